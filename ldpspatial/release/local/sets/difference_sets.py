"""Sets that are one set moved round: as much of a cell as subset selection tells, on any map.

A subset of a million cells takes a quarter of a million draws, and as many additions to be counted.
Here a report is one whole number s below v, and its set the cells x for which x - s modulo v is in
D, a difference set (:mod:`ldpspatial.release.local.sets.planes`): of its k places any two cells are
in k (k - 1) / (v - 1) of the v sets together. So frequencies are unbiased as those of subset
selection are, with the variance that it has on many cells, and how many sets hold each cell is a
circular convolution of how often each s came: one Fourier transform, however many people there are.
Others have reported by designs in which any two cells meet equally often: Acharya, Sun and Zhang,
"Hadamard Response" (2019); Feldman, Nelson, Nguyen and Talwar, "Private Frequency Estimation via
Projective Geometry" (2022).

Cells have places in [0, v) that are drawn for each map, before anybody reports. They are public,
and are there for nothing but that no two cells are together in sets of other sizes than any two.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from ldpspatial.compiled import compiled
from ldpspatial.privacy.whole_draws import TwoWeights, two_weights
from ldpspatial.release.local.sets.frequencies import unbiased_shares
from ldpspatial.release.local.sets.planes import best_plane
from ldpspatial.release.local.sets.set_reports import (
    Array,
    Ints,
    Rng,
    SetRelease,
    SetReports,
    check_users,
    checked_values,
)
from ldpspatial.release.release import Fact


@dataclass(frozen=True)
class DifferenceSets(SetRelease):
    """Sets of a cyclic design, one number a report, with projection on the densities or EM.

    Attributes
    ----------
    estimator : {"projection", "em"}
        Unbiased shares projected on the densities, or EM on the reports one by one.
    rule : str
        Name of the estimator, as in :func:`ldpspatial.estimate`; only with "em".
    """

    name: ClassVar[str] = "difference-sets"

    def design(self, size: int, epsilon: float) -> dict[str, Fact]:
        """Return how many sets there are, and how many places each has."""
        plane = best_plane(size, epsilon)
        return {"sets": plane.sets, "set_size": plane.set_size}

    def weights(self, size: int, epsilon: float) -> TwoWeights:
        """Return those of a set that holds the own cell, and of one that does not."""
        return two_weights(float(epsilon))

    def set_sizes(self, size: int, epsilon: float) -> Array:
        """Return the law of the number of cells that a set holds, over all places of the cells."""
        plane = best_plane(size, epsilon)
        held = np.arange(size + 1)
        law = scipy.stats.hypergeom.pmf(held, plane.sets, plane.set_size, size)
        # A set is drawn in proportion to its weight under a uniform cell.
        weighted = law * (size + self.weights(size, epsilon).gain * held)
        return np.asarray(weighted / weighted.sum())

    def reports(self, values: Ints, size: int, epsilon: float, rng: Rng) -> SetReports:
        """Draw the sets of users who hold these values in [0, size), and list their cells."""
        plane = best_plane(size, epsilon)
        given = checked_values(values, size)
        places = plane.place(size, rng)
        cell_at = np.full(plane.sets, -1)
        cell_at[places] = np.arange(size)
        sets = plane.draw(places[given], epsilon, rng)
        starts = np.zeros(len(given) + 1, np.int64)
        np.cumsum(_set_sizes(sets, plane.difference, cell_at), out=starts[1:])
        cells = np.empty(starts[-1], np.min_scalar_type(size - 1))
        _fill_sets(sets, plane.difference, cell_at, cells)
        return SetReports(starts, cells, size, self.weights(size, epsilon), plane.lift(epsilon))

    def frequencies(self, values: Ints, size: int, epsilon: float, rng: Rng) -> Array:
        """Draw reports and return unbiased shares of the values; they need not sum to 1."""
        plane = best_plane(size, epsilon)
        given = checked_values(values, size)
        check_users(len(given))
        if size == 1:
            return np.ones(1)
        places = plane.place(size, rng)
        came = np.bincount(plane.draw(places[given], epsilon, rng), minlength=plane.sets)
        hits = plane.hits(came)[places]
        return unbiased_shares(hits, len(given), plane.other(epsilon), plane.lift(epsilon))

    def variances(self, size: int, n: int, epsilon: float) -> tuple[float, float]:
        """Return the variances of a share near 0 and of one near 1, as subset selection does."""
        plane = best_plane(size, epsilon)
        check_users(n)
        return plane.variances(n, epsilon) if size > 1 else (0.0, 0.0)


@compiled
def _set_sizes(drawn, difference, cell_at):  # type: ignore[no-untyped-def]
    """Return how many cells each of the sets holds."""
    sizes = np.zeros(drawn.size, np.int64)
    for i in range(drawn.size):
        for step in difference:
            sizes[i] += cell_at[(drawn[i] + step) % cell_at.size] >= 0
    return sizes


@compiled
def _fill_sets(drawn, difference, cell_at, cells):  # type: ignore[no-untyped-def]
    """List the cells of all sets, one set after another."""
    at = 0
    for i in range(drawn.size):
        for step in difference:
            cell = cell_at[(drawn[i] + step) % cell_at.size]
            if cell >= 0:
                cells[at] = cell
                at += 1
