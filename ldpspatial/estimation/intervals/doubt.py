"""What the reports tell of a few sets of cells, and whether that contradicts a field.

Of a set w the reports alone have the share u = w I^-1 M^T diag(1/g) c / n, and leave open
w I^-1 w, I = M^T diag(1/g) M. Conjugate gradients find x = I^-1 w set by set, in a few dozen
transforms instead of d^6 steps. Where they end early nothing that is said here is wrong: x I x is
at most what is left open, and x M^T diag(1/g) (c / n - g) is what the reports say beyond the map of
the set I x instead of w.

**Whether they contradict a field.** If the field is right and its map m the mean of its posterior,
u - m has the variance of u less that of the posterior (Hausman 1978), and the mean 0. A field that
is wrong is so where it has few people or many: it leaves somebody in each of a thousand empty
cells, who are missing elsewhere. So the cells are ranked by their shares in the map and divided,
once into sets of as many cells and once by how many people they have, and the differences of all
sets of a division are taken together, as chi-squared. What a field knows that it does not know,
where people are within patches (:mod:`.patches`), is added to their variance.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from ldpspatial.channels.reach import disk_radius
from ldpspatial.channels.stacks import of_one
from ldpspatial.estimation.field.optimise import conjugate_gradients
from ldpspatial.estimation.intervals.patches import RADIUS, Patches
from ldpspatial.estimation.intervals.posterior import MANY_UP
from ldpspatial.estimation.result import Estimate

Array = NDArray[np.float64]

RANKS = 8  # sets of as many cells
PEOPLE = (1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5)  # in cells that have no more than those of a set
CONTRADICTED = 1e-4  # p-value below which a field is held for contradicted
LEAST_LEFT = 0.1  # of a variance, where a field is hardly surer than the reports
STEPS = 100  # of conjugate gradients
SOLVED = 0.01  # their residual
LEAST = 1e-300


@dataclass(frozen=True, eq=False)
class Telling:
    """What the reports tell of sets of cells, beyond a map.

    Attributes
    ----------
    told : (B, d * d) array
        The sets that the reports were asked for: the given ones, but for the last digits.
    beyond : (B,) array
        How much more people than the map has the reports see in each.
    covariance : (B, B) array
        Of the shares by the reports alone.
    """

    told: Array
    beyond: Array
    covariance: Array

    @cached_property
    def errors(self) -> Array:
        """(B,) standard errors of the shares by the reports alone, or a little less."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def of(self, first: int, end: int) -> "Telling":
        """Return what is told of some of the sets."""
        some = slice(first, end)
        return Telling(self.told[some], self.beyond[some], self.covariance[some, some])


def telling(estimate: Estimate, sets: Array, inside: NDArray[np.bool_] | None) -> Telling:
    """Return what the reports tell of (B, d, d) sets, beyond the density of an estimate.

    ``inside``: the (d, d) cells where people can be; None: all of them.
    """
    channel = estimate.channel
    shape = estimate.density.shape
    forward, adjoint = of_one(channel)
    where = np.ones(shape) if inside is None else inside.astype(np.float64)
    law = np.maximum(forward(estimate.density), LEAST)
    precision = np.where(channel.support, 1 / law, 0.0)

    def information(steps: Array) -> Array:
        maps = steps.reshape(-1, *shape)
        return np.array([(where * adjoint(precision * forward(each))).ravel() for each in maps])

    held = (sets * where).reshape(len(sets), -1)
    scales = np.maximum(adjoint(precision), LEAST).reshape(1, -1)
    with np.errstate(over="ignore", invalid="ignore"):  # where the counts tell nothing of a set
        solved = conjugate_gradients(information, held, lambda each: each / scales, SOLVED, STEPS)
        told = information(solved)
        score = where * adjoint(precision * (estimate.counts / estimate.n) - channel.support)
        covariance = solved @ told.T - np.outer(solved.sum(1), solved.sum(1))
    return Telling(told, solved @ score.ravel(), covariance / estimate.n)


def divisions(density: Array, inside: NDArray[np.bool_] | None) -> tuple[Array, Array]:
    """Return two divisions of the cells where people can be, from few people to many.

    Each is (B, d, d) masks, in which each cell is once: of about as many cells, and of cells with
    known parts of the people.
    """
    flat = density.ravel()
    cells = np.arange(flat.size) if inside is None else np.flatnonzero(inside)
    ranked = cells[np.argsort(flat[cells], kind="stable")]
    by_cells = np.arange(len(ranked)) * RANKS // len(ranked)
    by_people = np.searchsorted(PEOPLE, np.cumsum(flat[ranked]), side="right")
    found = []
    for division in (by_cells, by_people):
        masks = np.zeros((len(np.unique(division)), flat.size))
        masks[np.unique(division, return_inverse=True)[1], ranked] = 1.0
        found.append(masks.reshape(-1, *density.shape))
    return found[0], found[1]


def contradicts(told: Telling, both: tuple[Array, Array], estimate: Estimate) -> bool:
    """Return whether the reports contradict a field, from what they tell of two divisions."""
    first, second = both
    ends = len(first), len(first) + len(second)
    least = min(
        p_value(told.of(0, ends[0]), first, estimate), p_value(told.of(*ends), second, estimate)
    )
    return least < CONTRADICTED / 2


def p_value(told: Telling, sets: Array, estimate: Estimate) -> float:
    """Return the p-value of a field, from what the reports tell of a division of its cells.

    The estimate's density is the mean of its samples. 1.0 where there is nothing to be told.
    """
    samples = estimate.samples
    if samples is None or len(sets) < 2:
        return 1.0
    patches = Patches(estimate.density, RADIUS * disk_radius(estimate.channel))
    open_ = MANY_UP**2 * np.array([patches.variance(each) for each in sets[:-1]])
    held = samples.reshape(len(samples), -1) @ told.told[:-1].T
    sure = np.cov(held, rowvar=False).reshape(len(open_), -1)
    covariance = told.covariance[:-1, :-1]  # the last set has what the others have not
    covariance = covariance + 1e-12 * np.diag(np.diag(covariance))
    if not (np.isfinite(covariance).all() and np.isfinite(told.beyond).all()):
        return 1.0  # the counts tell nothing
    try:  # directions in which the reports' errors are 1, and the field's the square root of part
        part, directions = linalg.eigh(sure, covariance)
    except linalg.LinAlgError:
        return 1.0
    left = np.diag(np.maximum(1 - part, LEAST_LEFT))
    variance = left + directions.T @ (open_[:, None] * directions)
    beyond = directions.T @ told.beyond[:-1]
    squares = float(beyond @ np.linalg.solve(variance, beyond))
    return float(special.chdtrc(len(beyond), squares))
