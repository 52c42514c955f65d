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

So much holds wherever people are, and it takes all that a border cuts to lie on one side of it. It
may be asked for less: each node that was not divided, and each cell, by itself. Of its people a
share u is inside in the mean, as the map has it, and whatever the law of that share is, its
variance is u (1 - u) at most: all people inside, or none. Of the 64 parts with the largest
variances the law of their sum is reckoned with; what the others add is near enough to normal. So
much is too little where a border follows the people, as that of a district follows a shore.

How the parts lie decides what noise does, too: that between children of one node, whose people are
known better, shows if some of them are inside and some are not. Its variance is the mean over all
ways to lie, and no less than with none of these parts inside, or with all of them.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.intervals.all_or_none import MOST, share_beyond, sums_of
from ldpspatial.estimation.intervals.interval import share_of, standard_errors
from ldpspatial.estimation.intervals.noise_reach import Inside, Reach, ends_of
from ldpspatial.estimation.levels.level_map import LevelMap, divided_nodes, gathered

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Deviations of noise between the ends of what is open from which one of them alone can be in error:
# for both, noise must reach farther by as much, which it does less than once in 10^4.
FAR = 6.0
NEXT_TO_NOBODY = 1e-12  # of all people: with them a node where nobody is has a share inside


class _Step(NamedTuple):
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
    steps: list[_Step]
    places: list[Ints]  # of each level's nodes, on a map of them row by row
    chosen: bool

    @property
    def empty(self) -> Array | None:
        """Of a region nothing is known of its variance if nobody is there: it is not negative."""
        return np.zeros(1) if any(each.per_person for each in self.found.levels) else None


class Published(NamedTuple):
    """The map, as the regions need it whose open parts are taken each by itself."""

    density: Array  # positive, so that each node has a share inside
    people: Array  # of every node, level after level: shares of all
    whole: Bools  # whether a node was not divided and lies in no such node
    spreads: Array  # variances of the nodes' least squares
    starts: Ints  # of each level but the first among the nodes of all


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
        steps.append(_Step(divided, inner, spread, total, parts, sums, sums.sum(0)))
    places = [found.tree.positions(each.level, each.nodes) for each in found.levels]
    chosen = any(is_chosen(found, step) for step in range(len(found.children)))
    return Fixed(found, steps, places, chosen)


def published_of(fixed: Fixed) -> Published:
    """Return what is the same for every region whose open parts are taken each by itself."""
    found = fixed.found
    density = found.density + NEXT_TO_NOBODY / found.density.size
    whole, reached = [], np.ones(1, bool)
    for step in fixed.steps:
        whole.append(reached & ~step.divided)
        inner = step.inner[:, reached[step.divided]]
        reached = np.zeros(len(found.sums[len(whole)]), bool)
        reached[inner[inner >= 0]] = True
    people = _of_nodes(fixed, density, np.add)
    starts = np.cumsum([len(each) for each in people])[:-1]
    spreads = [found.variances[0]]
    for k, step in enumerate(fixed.steps):
        nothing = np.zeros(len(spreads[-1]))
        spreads.append(given_above(found, k, step.divided, nothing, spreads[-1], nothing)[1])
    joined = np.concatenate
    return Published(density, joined(people), joined([*whole, reached]), joined(spreads), starts)


def parts_together(fixed: Fixed, weights: Array, reach: Reach) -> tuple[float, float]:
    """Return the ends of a region's share: nobody, and everybody, of what is open being inside."""
    found = fixed.found
    people = found.people
    of_all = float(found.variances[0][0])
    inside, touched = np.floor(weights), np.ceil(weights)
    if people <= reach.people(of_all):  # nobody may be there, so a share may be anything
        return float(inside.min()), float(touched.max())
    none, every = _of_nodes(fixed, inside, np.minimum), _of_nodes(fixed, touched, np.maximum)
    fewest, most = _inside(fixed, none), _inside(fixed, every)
    open_ = _inside(fixed, [more - less for less, more in zip(none, every, strict=True)])
    noise = np.sqrt(np.max([fewest.variance, most.variance, open_.variance]))
    # Where sums decide what is divided, what the other end may err is left for that.
    sides = 1 if open_.mean[0] > FAR * noise and not fixed.chosen else 2
    low, _ = ends_of(fewest, people, of_all, reach, fixed.empty, sides)
    _, high = ends_of(most, people, of_all, reach, fixed.empty, sides)
    # Of no cells and of all cells a share is known, whatever rounding leaves of the noise.
    lower = float(np.clip(low[0], inside.min(), inside.max()))
    upper = float(np.clip(high[0], touched.min(), touched.max()))
    published = share_of(found.density, weights)
    return min(lower, published), max(upper, published)


def parts_apart(
    fixed: Fixed,
    published: Published,
    weights: Array,
    reach: Reach,
    together: tuple[float, float],
) -> tuple[float, float]:
    """Return the ends of a region's share with each open part by itself, never beyond others."""
    found = fixed.found
    people, of_all = found.people, float(found.variances[0][0])
    if people <= reach.people(of_all):
        return together
    held = np.concatenate(_of_nodes(fixed, published.density * weights, np.add))
    every = published.people
    parts = held / every
    variances = np.where(published.whole, every**2 * parts * (1 - parts), 0.0).clip(0)
    ranked = np.argsort(variances, kind="stable")
    largest = ranked[-MOST:][variances[ranked[-MOST:]] > 0]
    if not len(largest):
        return together
    others = ranked[: -len(largest)]
    rest = variances[others].sum() * people**2
    ways = _ways_to_lie(fixed, published, parts, largest)
    sums = sums_of(every[largest], parts[largest])
    lowest, highest = (float(each.mean[0]) for each in ways[:2])
    means = lowest + sums.values * (highest - lowest)
    farther = sums.off * abs(highest - lowest) + _step(every, parts, variances, reach) * people / 2

    def error(share: float, side: int) -> tuple[Array, float]:
        noise = max(float((e.variance - 2 * share * e.with_all)[0]) for e in ways)
        variance = np.array([max(noise + share**2 * of_all + rest, 0.0)])
        reached = reach.deviations(variance) * np.sqrt(variance)
        # An estimate below 0 or above all people reaches inwards as if it were there.
        inwards = np.maximum(means, 0.0) if side > 0 else np.minimum(means, people)
        above = inwards - share * people + side * (reach.beyond(variance) + farther)
        return above, float(reached[0]) / (standard_errors(reach.level) or 1.0)

    low, high = (
        share_beyond(partial(error, side=side), sums.probabilities, (1 - reach.level) / 2, side)
        for side in (-1, 1)
    )
    share = share_of(found.density, weights)
    return max(together[0], min(low, share)), min(together[1], max(high, share))


def _step(every: Array, parts: Array, variances: Array, reach: Reach) -> float:
    """Return the share of a part, of those that vary most and may be inside as well as not.

    Where parts are alike the sum lies on single numbers, and noise does not move an end that is
    just short of one of them: it goes half a step farther.
    """
    seldom = (1 - reach.level) / 4  # with such a chance a part is beyond the end, wherever that is
    varying = np.where((parts > seldom) & (parts < 1 - seldom), variances, 0.0)
    return float(every @ varying) / float(varying.sum()) if varying.any() else 0.0


def _ways_to_lie(
    fixed: Fixed, published: Published, parts: Array, largest: Ints
) -> tuple[Inside, Inside, Inside]:
    """Return a region's people with none of the largest parts inside, all of them, and the mean."""
    none, every = parts.copy(), parts.copy()
    none[largest], every[largest] = 0.0, 1.0
    fewest, most, mean = (
        _inside(fixed, np.split(inside, published.starts)) for inside in (none, every, parts)
    )
    # A part that is there in full or not at all adds to the variance of the mean what it varies by
    # times its own noise.
    either = np.where(published.whole, parts * (1 - parts), 0.0)
    open_ = either > 0
    between = float(either[open_] @ published.spreads[open_])
    return fewest, most, mean._replace(variance=mean.variance + between)


def _inside(fixed: Fixed, inside: Sequence[Array]) -> Inside:
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


def _above(step: _Step, below: _Linear, inside: Array) -> _Linear:
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


def _of_nodes(fixed: Fixed, values: Array, over: np.ufunc) -> list[Array]:
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
