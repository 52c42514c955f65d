"""Regions of a map of noisy sums: their people by least squares, and what the sums leave open.

Least squares of a node's children, given the people of the node, have the covariance
diag(w) - w w' / W, w their variances and W the sum of these. So the share of a region, given the
people of a node, has a mean that is linear in these people and a variance, and both are found from
the leaves up.

What noise does not say is where the people are in a node that was not divided, or in a cell that
the border of a region cuts. There they may all be inside, or none: the interval's ends are those of
either case. Where these are far apart an interval can err at one of its ends alone, and all of the
error may be there (Imbens and Manski, "Confidence intervals for partially identified parameters",
Econometrica 2004). A node whose own noisy sum decided that it stays whole is not like that: had the
noise been another, its cells would have sums, which may err as well. So where a node was near being
divided, its end reaches farther, to be in error a tenth as often.

So much holds wherever people are, and it takes all that a border cuts to lie on one side of it.
What may be asked for instead is in ``parts_apart.py``.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.intervals.interval import share_of
from ldpspatial.estimation.intervals.noise_reach import Inside, Reach, ends_of, in_rows
from ldpspatial.estimation.levels.level_map import LevelMap, divided_nodes, gathered

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Deviations of noise between the ends of what is open from which one of them alone can be in error:
# for both, noise must reach farther by as much, which it does less than once in 10^4.
FAR = 6.0


class Step(NamedTuple):
    """A level's divided nodes, whose children are along the first axis of (4, nodes) arrays."""

    divided: Bools  # of all nodes of the level
    inner: Ints  # places of children on the level below, -1 for none
    spread: Array  # w, the variances of the children
    spread_of_all: Array  # W
    part: Array  # w / W
    sums: Array
    sum_of_all: Array


class Fixed(NamedTuple):
    """What the ends of every region need of a map: found once, for there may be many regions."""

    found: LevelMap
    steps: list[Step]
    places: list[Ints]  # of each level's nodes, on a map of them row by row
    chosen: bool

    @property
    def empty(self) -> Array | None:
        """Of a region nothing is known of its variance if nobody is there: it is not negative."""
        return np.zeros(1) if any(each.per_person for each in self.found.levels) else None


class _Linear(NamedTuple):
    """A region's people by node, given the people p of the node: mean slope p + base."""

    slope: Array
    base: Array
    variance: Array


def fixed_of(found: LevelMap) -> Fixed:
    """Return what is the same for every region."""
    steps = []
    for step, children in enumerate(found.children):
        divided = divided_nodes(found, step)
        inner = np.ascontiguousarray(children[divided].T)
        spread = gathered(found.variances[step + 1], inner, 0.0)
        sums = gathered(found.sums[step + 1], inner, 0.0)
        total = spread.sum(0)
        parts = parts_of(spread, total)
        steps.append(Step(divided, inner, spread, total, parts, sums, sums.sum(0)))
    places = [found.tree.positions(each.level, each.nodes) for each in found.levels]
    chosen = any(is_chosen(found, step) for step in range(len(found.children)))
    return Fixed(found, steps, places, chosen)


def parts_together(fixed: Fixed, weights: Array, reaches: Sequence[Reach]) -> tuple[float, float]:
    """Return the ends of a region's share: nobody, and everybody, of what is open being inside.

    They are the farthest of these reaches, the last of which is of the highest level.
    """
    found = fixed.found
    people = found.people
    of_all = float(found.variances[0][0])
    inside, touched = np.floor(weights), np.ceil(weights)
    if people <= reaches[-1].people(of_all):  # nobody may be there, so a share may be anything
        return float(inside.min()), float(touched.max())
    none, every = of_nodes(fixed, inside, np.minimum), of_nodes(fixed, touched, np.maximum)
    fewest, most = inside_of(fixed, none), inside_of(fixed, every)
    open_ = inside_of(fixed, [more - less for less, more in zip(none, every, strict=True)])
    noise = np.sqrt(np.max([fewest.variance, most.variance, open_.variance]))
    # Where sums decide what is divided, what the other end may err is left for that.
    sides = 1 if open_.mean[0] > FAR * noise and not fixed.chosen else 2
    reach = in_rows(reaches)
    lows = ends_of(fewest, people, of_all, reach, fixed.empty, sides)[0]
    highs = ends_of(most, people, of_all, reach, fixed.empty, sides)[1]
    # Of no cells and of all cells a share is known, whatever rounding leaves of the noise.
    lower = float(np.clip(np.min(lows), inside.min(), inside.max()))
    upper = float(np.clip(np.max(highs), touched.min(), touched.max()))
    published = share_of(found.density, weights)
    return min(lower, published), max(upper, published)


def inside_of(fixed: Fixed, inside: Sequence[Array]) -> Inside:
    """Return a region's people, with the part inside of each node of each level."""
    found = fixed.found
    of_all = float(found.variances[0][0])
    linear = _Linear(inside[-1], np.zeros(len(inside[-1])), np.zeros(len(inside[-1])))
    for step, whole in zip(reversed(fixed.steps), inside[-2::-1], strict=True):
        linear = _above(step, linear, whole)
    slope = linear.slope[:1]
    return Inside(
        slope * found.people + linear.base[:1],
        linear.variance[:1] + slope**2 * of_all,
        slope * of_all,
    )


def _above(step: Step, below: _Linear, inside: Array) -> _Linear:
    """Return the region's people by node of a level, from those of the level below."""
    slope, base, variance = (gathered(values, step.inner, 0.0) for values in below)
    mean_slope = (slope * step.part).sum(0)
    here = _Linear(inside.copy(), np.zeros(len(inside)), np.zeros(len(inside)))
    here.slope[step.divided] = mean_slope
    here.base[step.divided] = (
        base.sum(0) + (slope * step.sums).sum(0) - mean_slope * step.sum_of_all
    )
    # slope' (diag(w) - w w' / W) slope
    own = (slope**2 * step.spread).sum(0) - mean_slope**2 * step.spread_of_all
    here.variance[step.divided] = variance.sum(0) + np.maximum(own, 0.0)
    return here


def of_nodes(fixed: Fixed, values: Array, over: np.ufunc) -> list[Array]:
    """Return for each level the sum, or an extreme, of the values in each of its nodes."""
    grids = fixed.found.tree.pooled_levels(values, over)
    return [
        grids[each.level].ravel()[places]
        for each, places in zip(fixed.found.levels, fixed.places, strict=True)
    ]


def given_above(
    found: LevelMap, step: int, divided: Bools, mean: Array, variance: Array, with_all: Array
) -> tuple[Array, Array, Array]:
    """Return least squares of a level's children, with their variances and covariances.

    ``mean``, ``variance`` and ``with_all``, the covariance with the number of all people, are those
    of the level's own nodes. Children of nodes that were not divided come out as 0.
    """
    inner = found.children[step][divided]
    sums = gathered(found.sums[step + 1], inner, 0.0)
    spread = gathered(found.variances[step + 1], inner, 0.0)
    part = parts_of(spread, spread.sum(1, keepdims=True))
    given = (
        sums + part * (mean[divided] - sums.sum(1))[:, np.newaxis],
        spread - part * spread + part**2 * variance[divided][:, np.newaxis],
        part * with_all[divided][:, np.newaxis],
    )
    size = len(found.sums[step + 1])
    out = tuple(np.zeros(size) for _ in given)
    for values, each in zip(out, given, strict=True):
        values[inner[inner >= 0]] = each[inner >= 0]
    return out[0], out[1], out[2]


def parts_of(spread: Array, total: Array) -> Array:
    """Return w / W: of children that are known exactly, none of what a node is off by."""
    return np.divide(spread, total, out=np.zeros_like(spread), where=total > 0)


def is_chosen(found: LevelMap, step: int) -> bool:
    """Tell whether a level's own sums decided which of its nodes are divided."""
    level = found.levels[step]
    divided = divided_nodes(found, step)
    all_known = level.measured is None and bool(np.isfinite(level.variance))
    return all_known and bool(divided.any() and not divided.all())
