"""How sure a map of noisy sums is: exact variances of least squares on a tree of known noise.

The noise of every sum is known, so an interval here asks nothing of the people; where some of them
were not counted, what that adds to a variance is estimated from the map. Least squares of a
node's children, given the people of the node, have the covariance diag(w) - w w' / W, w their
variances and W the sum of these. So the share of a region, given the people of a node, has a mean
that is linear in these people and a variance, and both are found from the leaves up.

Noise in whole people has atoms: at epsilon 2.4, 2.1 standard deviations are just less than one
person, and noise is 0 with probability .83. So an interval reaches half a step of noise farther.

What noise does not say is where the people are in a node that was not divided, or in a cell that
the border of a region cuts. There they may all be inside, or none: the interval's ends are those of
either case.
"""

from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.intervals.interval import Uncertainty, standard_errors
from ldpspatial.estimation.levels.level_map import LevelMap, divided_nodes, gathered
from ldpspatial.validate import instance, number_in

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class _Linear(NamedTuple):
    """A region's people by node, given the people p of the node: mean slope p + base."""

    slope: Array
    base: Array
    variance: Array


class _Reach(NamedTuple):
    """How far intervals reach."""

    deviations: float
    half_step: float  # of the noise, in people

    def people(self, variance: float) -> float:
        """Return how many people an error of this variance may be."""
        return self.deviations * sqrt(variance) + (self.half_step if variance > 0 else 0.0)


class _Inside(NamedTuple):
    """Least squares of the people inside, by region."""

    mean: Array
    variance: Array
    with_all: Array  # covariance with the number of all people


def level_intervals(found: LevelMap, level: float = 0.95) -> Uncertainty:
    """Return intervals of every cell and of any region of a map of noisy sums.

    They hold the share among the very people who were counted, whoever these stand for. Weights of
    a region between 0 and 1 are those of cut cells: of their people, all or none may be inside.

    Parameters
    ----------
    found : LevelMap
        Of any release that has ``Released.levels``.
    level : float in (0, 1)
        Probability with which one interval covers, each by itself, whatever the people.

    Returns
    -------
    Uncertainty
        With method "levels". A share that is published may lie outside its interval, which is
        about the sums without bias; intervals are widened to hold it.

    Raises
    ------
    InputError
        A bad argument.

    Examples
    --------
    >>> from ldpspatial.estimation.levels import NoisyLevel, combined
    >>> from ldpspatial.places.quadtree import Quadtree
    >>> whole = NoisyLevel(0, np.array([0]), np.array([100.0]), 0.0)
    >>> cells = NoisyLevel(1, np.arange(4), np.array([91.0, -2.0, 9.0, 2.0]), 4.0)
    >>> sure = level_intervals(combined(Quadtree((2, 2)), [whole, cells]))
    >>> south = sure.region(np.array([[True, True], [False, False]]))
    >>> round(south.lower, 3), round(south.upper, 3)
    (0.848, 0.932)
    """
    instance("found", found, LevelMap)
    number_in("level", level, "(0, 1)")
    reach = _Reach(noise_deviations(level), max(each.step for each in found.levels) / 2)
    lower, upper = _of_cells(found, reach)

    def of_unit(weights: Array) -> tuple[float, float]:
        return _of_region(found, weights, reach)

    density = found.density
    return Uncertainty(
        level, "levels", np.minimum(lower, density), np.maximum(upper, density), density, of_unit
    )


def noise_deviations(level: float) -> float:
    """Return how many standard deviations an interval reaches: enough for one Laplace variable.

    Sums of many are nearer to normal, for which the larger of the two is enough as well.

    Examples
    --------
    >>> round(noise_deviations(0.95), 3)
    2.118
    """
    return max(-log(1 - level) / sqrt(2), standard_errors(level))


def _of_region(found: LevelMap, weights: Array, reach: _Reach) -> tuple[float, float]:
    """Return the ends of a region's share: nobody, and everybody, of what is open being inside."""
    published = float((found.density * weights).sum())
    low, _ = _share(found, _pooled(found, np.floor(weights), np.minimum), reach)
    _, high = _share(found, _pooled(found, np.ceil(weights), np.maximum), reach)
    return min(low, published), max(high, published)


def _share(found: LevelMap, inside: list[Array], reach: _Reach) -> tuple[float, float]:
    """Return the interval of a region's share, with the part inside of each node of each level."""
    people = found.people
    of_all = float(found.variances[0][0])
    if people <= reach.people(of_all):  # nobody may be there, so a share may be anything
        return 0.0, 1.0
    linear = _Linear(inside[-1], np.zeros(len(inside[-1])), np.zeros(len(inside[-1])))
    for step in range(len(found.children) - 1, -1, -1):
        linear = _above(found, step, linear, inside[step])
    slope = linear.slope[:1]
    found_inside = _Inside(
        slope * people + linear.base[:1], linear.variance[:1] + slope**2 * of_all, slope * of_all
    )
    lower, upper = _ends(found_inside, people, of_all, reach)
    return float(lower[0]), float(upper[0])


def _ends(inside: _Inside, people: float, of_all: float, reach: _Reach) -> tuple[Array, Array]:
    """Return the shares s that noise leaves open: inside - s all is within its own reach of 0.

    The variance is that at s and not at the estimate, whose total may by chance be far too large
    (Fieller, "Some problems in interval estimation", JRSS B 1954). The ends are roots of a
    quadratic equation. An estimate below 0 or above all people reaches inwards as if it were there.
    """
    mean, variance, with_all = inside
    at = mean / people
    # Nothing is added to what is known exactly.
    error = variance - 2 * at * with_all + at**2 * of_all
    half_step = np.where(error > 0, reach.half_step, 0.0)
    spread = reach.deviations**2
    square = people**2 - spread * of_all  # above 0: so many people that there are some

    def root(center: Array, side: int) -> Array:
        linear = center * people - spread * with_all
        rest = linear**2 - square * (center**2 - spread * variance)
        share = (linear + side * np.sqrt(np.maximum(rest, 0.0))) / square
        return np.asarray(np.clip(share, 0, 1))

    lower = root(np.minimum(mean, people) - half_step, -1)
    return lower, root(np.maximum(mean, 0.0) + half_step, 1)


def _above(found: LevelMap, step: int, below: _Linear, inside: Array) -> _Linear:
    """Return the region's people by node of a level, from those of the level below."""
    children = found.children[step]
    variances = gathered(found.variances[step + 1], children, 0.0)
    divided = divided_nodes(found, step)
    inner = children[divided]
    spread = variances[divided]
    part = spread / spread.sum(1, keepdims=True)
    slope, base, variance = (gathered(values, inner, 0.0) for values in below)
    sums = gathered(found.sums[step + 1], inner, 0.0)
    mean_slope = (slope * part).sum(1)
    here = _Linear(inside.copy(), np.zeros(len(inside)), np.zeros(len(inside)))
    here.slope[divided] = mean_slope
    here.base[divided] = base.sum(1) + (slope * sums).sum(1) - mean_slope * sums.sum(1)
    # slope' (diag(w) - w w' / W) slope
    own = (slope**2 * spread).sum(1) - mean_slope**2 * spread.sum(1)
    here.variance[divided] = variance.sum(1) + np.maximum(own, 0.0)
    return here


def _pooled(found: LevelMap, weights: Array, over: np.ufunc) -> list[Array]:
    """Return for each level the least or the largest weight in each of its nodes."""
    return [found.tree.pooled(each.level, each.nodes, weights, over) for each in found.levels]


def _of_cells(found: LevelMap, reach: _Reach) -> tuple[Array, Array]:
    """Return the ends of every cell's share."""
    tree = found.tree
    lower = np.zeros(tree.shape)
    upper = np.ones(tree.shape)
    people = found.people
    of_all = float(found.variances[0][0])
    if people <= reach.people(of_all):
        return lower, upper
    mean, variance, with_all = found.sums[0], found.variances[0], found.variances[0]
    for step, level in enumerate(found.levels):
        ends = _ends(_Inside(mean, variance, with_all), people, of_all, reach)
        last = step == len(found.children)
        divided = np.zeros(len(mean), bool) if last else divided_nodes(found, step)
        single = level.level == tree.depth
        for map_, values in zip((lower, upper), ends, strict=True):
            # Of a node of several cells, all of its people may be in one of them, or none.
            shown = np.zeros(len(mean)) if map_ is lower and not single else values
            cells = tree.spread(level.level, level.nodes[~divided], shown[~divided], np.nan)
            np.copyto(map_, cells, where=~np.isnan(cells))
        if last or not divided.any():
            break
        mean, variance, with_all = _below(found, step, divided, mean, variance, with_all)
    return lower, upper


def _below(
    found: LevelMap,
    step: int,
    divided: NDArray[np.bool_],
    mean: Array,
    variance: Array,
    all_: Array,
) -> tuple[Array, Array, Array]:
    """Return least squares of the children, their variances, and covariances with all people."""
    inner = found.children[step][divided]
    sums = gathered(found.sums[step + 1], inner, 0.0)
    spread = gathered(found.variances[step + 1], inner, 0.0)
    part = spread / spread.sum(1, keepdims=True)
    given = (
        sums + part * (mean[divided] - sums.sum(1))[:, np.newaxis],
        spread - part * spread + part**2 * variance[divided][:, np.newaxis],
        part * all_[divided][:, np.newaxis],
    )
    size = len(found.sums[step + 1])
    out = tuple(np.zeros(size) for _ in given)
    for values, each in zip(out, given, strict=True):
        values[inner[inner >= 0]] = each[inner >= 0]
    return out[0], out[1], out[2]
