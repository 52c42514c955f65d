"""HDG: grids over rows, over columns and over both, made to agree and combined."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log2, sinh
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.release.local.local_release import LocalRelease, check_side, square_side
from ldpspatial.release.local.sets.local_hashing import (
    hash_values,
    keep_probability,
    olh_counts,
    olh_frequencies,
)
from ldpspatial.release.local.sets.set_reports import check_loss, check_users, on_simplex
from ldpspatial.release.local.trees.halving_tree import (
    assign_groups,
    full_depth,
    partition_privacy,
    ranges,
)
from ldpspatial.release.release import Released

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

GRIDS = 3  # rows, columns, both
ALPHA_1, ALPHA_2 = 0.7, 0.03  # weights of the error inside a grid cell, for 1-D and 2-D grids
MOST_ROUNDS = 100  # of consistency, and of the weighted update


@dataclass(frozen=True)
class Hdg(LocalRelease):
    """Hybrid-dimensional grids (Yang et al., PVLDB 2020, "HDG") of the two coordinates.

    Users are split evenly over three grids and report their cell of it by OLH with all of epsilon:
    g1 ranges of rows, g1 ranges of columns, g2 x g2 of both. Then

    1. Granularity (their guideline): with x = (users of a grid) (e^eps - 1)^2 / e^eps,
       g1 = (x a1^2 / 2)^(1/3) and g2 = sqrt(2 a2 sqrt(x)), a1 = .7, a2 = .03, each rounded to the
       nearest power of two from 2 on. Decision for any side: those powers count halvings of the
       map, as in a quadtree, so the fine ranges always refine the coarse ones.
    2. Norm-Sub on each grid, and consistency of the 1-D and the 2-D grid of each coordinate, by
       turns; Norm-Sub comes last (their phase of post-processing).
    3. The response matrix by weighted update (their algorithm 1): from the uniform map on, every
       grid in turn scales its cells to its frequencies, until a round changes less than 1/n in all.

    Step 2 takes 100 rounds and step 3 at most 100, as in the published code.

    Attributes
    ----------
    usual_users : int
        Number of users that :meth:`local_privacy` supposes, on which granularities depend.
    """

    name: ClassVar[str] = "hdg"
    one_mechanism: ClassVar[bool] = False

    usual_users: int = 100_000

    def __post_init__(self) -> None:
        self._keep_whole("usual_users", 1, 10**12)

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP: one OLH report a user, on a grid drawn without a look at the data."""
        check_loss(epsilon)
        claim = super().claim(epsilon)
        grid = "the grid that a user reports on is drawn without looking at any position"
        return replace(claim, conditions=(*claim.conditions, grid))

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the mean over the grids of the mean distance of an observer's guess, in cells."""
        check_side(cells)
        partitions = () if cells == 1 else _axes(cells, self.usual_users, epsilon).partitions()
        keep = float(keep_probability(epsilon))
        other = 1 / hash_values(epsilon)
        return partition_privacy(cells, partitions, keep, other)

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Collect one report a user and estimate the density."""
        claim = self.claim(epsilon)
        side = square_side(self.name, users)
        n = len(users)
        check_users(n)
        cells = users.one_cell_each(rng)
        facts = {"estimator": "weighted update"}
        if side == 1:
            return Released(np.ones((1, 1)), claim, facts)
        axes = _axes(side, n, epsilon)
        group = assign_groups(n, GRIDS, rng)
        rows, columns, both = (
            _frequencies(part, cells[group == k], epsilon, rng)
            for k, part in enumerate(axes.partitions())
        )
        grids = _agreeing(axes, rows, columns, both.reshape(axes.coarse, axes.coarse))
        matrix, iterations = _weighted_update(axes, grids, 1 / n)
        found = {"g1": axes.fine, "g2": axes.coarse, "iterations": iterations}
        return Released(axes.spread(matrix), claim, {**facts, **found})


class _Axes(NamedTuple):
    """The ranges of rows, which are those of columns.

    Attributes
    ----------
    lengths : (g1,) array
        Cells in each fine range.
    above : (g1,) array
        The coarse range that each fine range lies in.
    """

    lengths: Ints
    above: Ints

    @property
    def fine(self) -> int:
        """Number of fine ranges, g1."""
        return len(self.lengths)

    @property
    def coarse(self) -> int:
        """Number of coarse ranges, g2."""
        return int(self.above[-1]) + 1

    def partitions(self) -> tuple[Ints, Ints, Ints]:
        """Return the grid cell of each cell of the map, for rows, columns and both."""
        fine = np.repeat(np.arange(self.fine), self.lengths)
        coarse = self.above[fine]
        side = len(fine)
        both = coarse[:, None] * self.coarse + coarse
        return np.repeat(fine, side), np.tile(fine, side), both.ravel()

    def spread(self, matrix: Array) -> Array:
        """Return the density of a (g1, g1) matrix whose masses lie evenly on their cells."""
        each = matrix / np.outer(self.lengths, self.lengths)
        return each.repeat(self.lengths, axis=0).repeat(self.lengths, axis=1)


class _Grids(NamedTuple):
    """Frequencies of the ranges of rows, of columns, and of coarse ranges of both."""

    rows: Array
    columns: Array
    both: Array


def granularities(users: int, epsilon: float) -> tuple[float, float]:
    """Return g1 and g2 of the guideline before rounding, for this many users of all grids.

    Examples
    --------
    >>> [round(value, 2) for value in granularities(100_000, 1.0)]
    [20.7, 3.38]
    """
    # (e^eps - 1)^2 / e^eps = 4 sinh(eps / 2)^2.
    information = users / GRIDS * 4 * sinh(epsilon / 2) ** 2
    return (information * ALPHA_1**2 / 2) ** (1 / 3), (2 * ALPHA_2 * information**0.5) ** 0.5


def _axes(side: int, users: int, epsilon: float) -> _Axes:
    """Return the ranges for a map of two cells a side or more."""
    fine_level, coarse_level = (
        min(_nearest_power(value), full_depth(side)) for value in granularities(users, epsilon)
    )
    fine = ranges(side, fine_level)
    coarse = ranges(side, coarse_level)
    above = np.searchsorted(coarse[:, 0], fine[:, 0], side="right") - 1
    return _Axes(fine[:, 1] - fine[:, 0], above)


def _nearest_power(value: float) -> int:
    """Return the exponent, from 1 on, of the power of two nearest to a value."""
    if value <= 2:
        return 1
    below = int(log2(value))
    # Nearest in difference: 1.5 * 2^k lies half-way between 2^k and 2^(k + 1).
    return below if value <= 1.5 * 2**below else below + 1


def _frequencies(part: Ints, cells: Ints, epsilon: float, rng: np.random.Generator) -> Array:
    """Return Norm-Sub of what the users in these cells report of their part."""
    size = int(part.max()) + 1
    n = len(cells)
    if n == 0:  # fewer users than grids: nothing is known but the area
        return np.bincount(part) / len(part)
    return on_simplex(olh_frequencies(olh_counts(part[cells], size, epsilon, rng), n, epsilon))


def _agreeing(axes: _Axes, rows: Array, columns: Array, both: Array) -> _Grids:
    """Take turns between consistency of each coordinate and Norm-Sub."""
    for _ in range(MOST_ROUNDS):
        rows, both = _consistent(axes, rows, both)
        columns, turned = _consistent(axes, columns, both.T)
        rows = on_simplex(rows)
        columns = on_simplex(columns)
        both = on_simplex(turned.T)
    return _Grids(rows, columns, both)


def _consistent(axes: _Axes, line: Array, both: Array) -> tuple[Array, Array]:
    """Make the sums of a 1-D grid over coarse ranges those of the 2-D grid over its rows.

    The two sums are averaged by inverse variance, that is by the number of terms, and the average
    is scaled to its known total (which matters only where ranges have unequal numbers of terms);
    the difference is shared evenly by the terms.
    """
    terms = np.bincount(axes.above).astype(np.float64)
    line_sums = np.bincount(axes.above, line)
    both_sums = both.sum(axis=1)
    variance = 1 / (1 / terms + 1 / axes.coarse)
    agreed = variance * (line_sums / terms + both_sums / axes.coarse)
    # Least squares under the known total: its error is shared in proportion to the variances.
    agreed += (1 - agreed.sum()) * variance / variance.sum()
    line = line + ((agreed - line_sums) / terms)[axes.above]
    return line, both + ((agreed - both_sums) / axes.coarse)[:, None]


def _weighted_update(axes: _Axes, grids: _Grids, tolerance: float) -> tuple[Array, int]:
    """Return the response matrix, and after how many rounds it was left.

    All cells of a fine range of rows and one of columns are scaled alike, so the matrix is held as
    the (g1, g1) masses of those blocks.
    """
    matrix = np.outer(axes.lengths, axes.lengths) / axes.lengths.sum() ** 2
    fine = np.arange(axes.fine)
    above = axes.above
    # (g1, g1) labels: which cell of each grid a block lies in.
    parts = (
        (grids.rows, fine[:, None] + 0 * fine),
        (grids.columns, fine + 0 * fine[:, None]),
        (grids.both.ravel(), above[:, None] * axes.coarse + above),
    )
    change = np.inf
    iterations = 0
    while change >= tolerance and iterations < MOST_ROUNDS:
        before = matrix
        matrix = _scaled(matrix, parts)
        change = float(np.abs(matrix - before).sum())
        iterations = iterations + 1
    return matrix, iterations


def _scaled(matrix: Array, parts: Sequence[tuple[Array, Ints]]) -> Array:
    """Scale the matrix to the frequencies of each grid in turn."""
    for frequencies, part in parts:
        sums = np.bincount(part.ravel(), matrix.ravel())[part]
        share = np.divide(matrix, sums, out=np.zeros_like(matrix), where=sums > 0)
        scaled = share * frequencies[part]
        if scaled.any():  # grids that exclude each other would leave nothing
            matrix = scaled / scaled.sum()
    return matrix
