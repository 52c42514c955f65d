"""How sure a map of noisy sums is: exact variances of least squares on a tree of known noise.

The noise of every sum is known, so an interval here asks nothing of the people; where some of them
were not counted, what that adds to a variance is estimated from the map. Least squares of a
node's children, given the people of the node, have the covariance diag(w) - w w' / W, w their
variances and W the sum of these. So the share of a region, given the people of a node, has a mean
that is linear in these people and a variance, and both are found from the leaves up.

How many standard deviations an interval reaches depends on the law. For one Laplace variable they
are 2.118 at level .95, for a sum of many 1.96, and the excess kurtosis of the sum says what is in
between (Cornish and Fisher, "Moments and cumulants in the specification of distributions", 1938).

Nobody is fewer than none. An interval whose upper end is never below some share misses no smaller
share from above. So for these all of the error may be on the other side, where an interval reaches
less far (Mandelkern, "Setting confidence intervals for bounded parameters", Statistical Science
2002); the same at the other end.

Noise in whole people has atoms: at epsilon 2.4, 2.1 standard deviations are just less than one
person, and noise is 0 with probability .83. So an interval reaches half a step of noise farther,
and a whole step where noise may be other than 0 more often than the interval may err.

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
variance is u (1 - u) at most: all people inside, or none. Of the eight parts with the largest
variances all 256 ways to lie are reckoned with; what the others add is near enough to normal. So
much is too little where a border follows the people, as that of a district follows a shore.
"""

from collections.abc import Sequence
from functools import partial
from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.estimation.intervals.all_or_none import MOST, share_beyond, sums_of
from ldpspatial.estimation.intervals.interval import Uncertainty, share_of, standard_errors
from ldpspatial.estimation.levels.level_map import LevelMap, divided_nodes, gathered
from ldpspatial.validate import instance, number_in, one_of

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


# Deviations of noise between the ends of what is open from which one of them alone can be in error:
# for both, noise must reach farther by as much, which it does less than once in 10^4.
FAR = 6.0
# Steps: what noise is beside it in a cell's least squares makes one step of noise a little more.
ONE_STEP = 1.1
OPEN_PARTS = ("together", "apart")
APART = "levels, parts apart"
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


class _Fixed(NamedTuple):
    """What the ends of every region need of a map: found once, for there may be many regions."""

    found: LevelMap
    steps: list[_Step]
    places: list[Ints]  # of each level's nodes, on a map of them row by row
    chosen: bool

    @property
    def empty(self) -> Array | None:
        """Of a region nothing is known of its variance if nobody is there: it is not negative."""
        return np.zeros(1) if any(each.per_person for each in self.found.levels) else None


class _Published(NamedTuple):
    """The map, as the regions need it whose open parts are taken each by itself."""

    density: Array  # positive, so that each node has a share inside
    people: list[Array]  # by level, of its nodes: shares of all
    whole: list[Bools]  # by level, whether a node was not divided and lies in no such node
    starts: Ints  # of each level but the first among the nodes of all


class _Linear(NamedTuple):
    """A region's people by node, given the people p of the node: mean slope p + base."""

    slope: Array
    base: Array
    variance: Array


class _Reach(NamedTuple):
    """How far intervals reach."""

    level: float
    step: float  # of the noise, in people
    fourth: float  # excess kurtosis times variance that one sum's noise adds to an error, at most
    of_all: float  # the same of the sum of all people, for an error that it adds to in full

    def deviations(self, variance: Array, of_all: Array | float = 1.0, sides: int = 2) -> Array:
        """Return how many standard deviations are enough for an error of this variance.

        An error's fourth cumulant is the sum of its terms'. If none of these is more than c times
        the term's own variance, the sum is at most c times the whole variance, and the excess is
        at most c over it.

        Parameters
        ----------
        variance : (m,) array
        of_all : (m,) array or float
            The part that the error of all people has in it.
        sides : {1, 2}
            On how many sides the error may be.
        """
        fourth = np.maximum(self.fourth, self.of_all * np.square(of_all))
        excess = np.full(variance.shape, 3.0)
        # Of next to no variance the excess is infinite, and what deviations come to is bounded.
        with np.errstate(over="ignore"):
            np.divide(fourth, variance, out=excess, where=variance > 0)
        return noise_deviations(self._two_sided(sides), excess)

    def beyond(self, variance: Array, of_all: Array | float = 1.0, sides: int = 2) -> Array:
        """Return how many people an interval reaches beyond deviations, for the noise's atoms.

        Half a step; and where noise may be other than 0 more often than the interval may err, so
        much that a step is held: a whole number of steps is not 0 with at most the probability of
        its variance (Chebyshev), and above 0 with half of that.
        """
        reached = self.deviations(variance, of_all, sides) * np.sqrt(variance)
        often = variance > (1 - self._two_sided(sides)) * self.step**2
        far = np.maximum(np.where(often, ONE_STEP * self.step - reached, 0.0), self.step / 2)
        return np.where(variance > 0, far, 0.0)  # nothing is added to what is known exactly

    def _two_sided(self, sides: int) -> float:
        """Return the level at which an interval with both ends reaches as far."""
        return self.level if sides == 2 else max(2 * self.level - 1, 0.0)

    def people(self, variance: float) -> float:
        """Return how many people an error of this variance may be, whatever its law."""
        deviations = float(noise_deviations(self.level))
        return deviations * sqrt(variance) + float(self.beyond(np.array([variance]))[0])


class _Inside(NamedTuple):
    """Least squares of the people inside, by region."""

    mean: Array
    variance: Array
    with_all: Array  # covariance with the number of all people


def level_intervals(
    found: LevelMap, level: float = 0.95, open_parts: str = "together"
) -> Uncertainty:
    """Return intervals of every cell and of any region of a map of noisy sums.

    They hold the share among the very people who were counted, whoever these stand for. Of a region
    that cuts cells `Uncertainty.bounds` gives the ends.

    Parameters
    ----------
    found : LevelMap
        Of any release that has ``Released.levels``.
    level : float in (0, 1)
        Probability with which one interval covers, each by itself, whatever the people.
    open_parts : {"together", "apart"}
        What sums do not say: where people are in a node that was not divided and in a cut cell.
        "together": of all that a region cuts, all people may be inside, or none. That holds
        whatever the people. "apart": each by itself. That is about half as wide where a border
        cuts many, and holds where borders have nothing to do with where people are
        (docs/experiments/levels.md).
        Intervals of cells are the same.

    Returns
    -------
    Uncertainty
        With method "levels"; of regions "levels, parts apart" where these are. A share that is
        published may lie outside its interval, which is about the sums without bias; intervals are
        widened to hold it.

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
    apart = one_of("open_parts", open_parts, OPEN_PARTS) == "apart"
    reach = _reach_of(found, level)
    lower, upper = _of_cells(found, reach)
    fixed = _fixed(found)
    published = _published(fixed) if apart else None

    def bounds(weights: Array) -> tuple[float, float]:
        ends = _of_region(fixed, weights, reach)
        return ends if published is None else _apart(fixed, published, weights, reach, ends)

    density = found.density
    return Uncertainty(
        level, "levels", np.minimum(lower, density), np.maximum(upper, density), density, bounds,
        of_regions=APART if apart else None, _method_of=(lambda _: APART) if apart else None,
    )  # fmt: skip


def _reach_of(found: LevelMap, level: float) -> _Reach:
    of_all, *below = fourth_of_levels(found)
    return _Reach(level, max(each.step for each in found.levels), max(below, default=0.0), of_all)


def noise_deviations(level: float, excess: ArrayLike = 3.0) -> Array:
    """Return how many standard deviations an interval reaches, by the excess kurtosis of the error.

    Enough for one Laplace variable, whose excess is 3, and for sums of any such: at level .95 what
    is left out is at most .0502, at .99 .0101 (sums of 1 to 20 alike, and of one large and many
    small ones).

    Examples
    --------
    >>> noise_deviations(0.95, [3.0, 0.0, 0.3]).round(3)
    array([2.118, 1.96 , 1.981])
    """
    normal = standard_errors(level)
    laplace = max(-log(1 - level) / sqrt(2), normal)
    with np.errstate(over="ignore"):
        more = np.asarray(excess) * (normal**3 - 3 * normal) / 24
    return np.clip(normal + more, normal, laplace)


def fourth_of_levels(found: LevelMap) -> list[float]:
    """Return by level the largest excess times variance that one sum adds to a region's error.

    The part of a node's own sum in what is known of the node is its variance over that of the sum,
    and the node's part in a region's people is between -1 and 1.
    """
    largest = []
    for level, variances in zip(found.levels, found.variances, strict=True):
        fourth = 0.0
        if 0 < level.variance < np.inf:
            known = variances if level.measured is None else variances[level.measured]
            part = min(float(known.max()) / level.variance, 1.0)
            fourth = level.excess * level.variance * part**2
        largest.append(fourth)
    return largest


def _fixed(found: LevelMap) -> _Fixed:
    """Return what is the same for every region."""
    steps = []
    for step, children in enumerate(found.children):
        divided = divided_nodes(found, step)
        inner = np.ascontiguousarray(children[divided].T)
        spread = gathered(found.variances[step + 1], inner, 0.0)
        sums = gathered(found.sums[step + 1], inner, 0.0)
        total = spread.sum(0)
        parts = _parts(spread, total)
        steps.append(_Step(divided, inner, spread, total, parts, sums, sums.sum(0)))
    places = [found.tree.positions(each.level, each.nodes) for each in found.levels]
    chosen = any(_is_chosen(found, step) for step in range(len(found.children)))
    return _Fixed(found, steps, places, chosen)


def _parts(spread: Array, total: Array) -> Array:
    """Return w / W: of children that are known exactly, none of what a node is off by."""
    return np.divide(spread, total, out=np.zeros_like(spread), where=total > 0)


def _of_region(fixed: _Fixed, weights: Array, reach: _Reach) -> tuple[float, float]:
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
    low, _ = _ends(fewest, people, of_all, reach, fixed.empty, sides)
    _, high = _ends(most, people, of_all, reach, fixed.empty, sides)
    # Of no cells and of all cells a share is known, whatever rounding leaves of the noise.
    lower = float(np.clip(low[0], inside.min(), inside.max()))
    upper = float(np.clip(high[0], touched.min(), touched.max()))
    published = share_of(found.density, weights)
    return min(lower, published), max(upper, published)


def _published(fixed: _Fixed) -> _Published:
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
    return _Published(density, people, [*whole, reached], starts)


def _apart(
    fixed: _Fixed,
    published: _Published,
    weights: Array,
    reach: _Reach,
    together: tuple[float, float],
) -> tuple[float, float]:
    """Return the ends of a region's share with each open part by itself, never beyond others."""
    found = fixed.found
    people, of_all = found.people, float(found.variances[0][0])
    if people <= reach.people(of_all):
        return together
    held = np.concatenate(_of_nodes(fixed, published.density * weights, np.add))
    every = np.concatenate(published.people)
    parts = held / every
    variances = np.where(np.concatenate(published.whole), every**2 * parts * (1 - parts), 0.0)
    largest = np.argsort(variances, kind="stable")[-MOST:]
    largest = largest[variances[largest] > 0]
    if not len(largest):
        return together
    rest = np.delete(variances, largest).clip(0).sum() * people**2
    ways = []
    for which in (0.0, 1.0, parts[largest]):
        inside = parts.copy()
        inside[largest] = which
        ways.append(_inside(fixed, np.split(inside, published.starts)))
    none, most = (float(each.mean[0]) for each in ways[:2])
    sums, probabilities = sums_of(every[largest], parts[largest])
    means = none + sums * (most - none)

    def error(share: float, side: int) -> tuple[Array, float]:
        noise = max(float((e.variance - 2 * share * e.with_all)[0]) for e in ways)
        variance = np.array([max(noise + share**2 * of_all + rest, 0.0)])
        reached = reach.deviations(variance) * np.sqrt(variance)
        # An estimate below 0 or above all people reaches inwards as if it were there.
        inwards = np.maximum(means, 0.0) if side > 0 else np.minimum(means, people)
        above = inwards - share * people + side * reach.beyond(variance)
        return above, float(reached[0]) / standard_errors(reach.level)

    low, high = (
        share_beyond(partial(error, side=side), probabilities, (1 - reach.level) / 2, side)
        for side in (-1, 1)
    )
    share = share_of(found.density, weights)
    return max(together[0], min(low, share)), min(together[1], max(high, share))


def _inside(fixed: _Fixed, inside: Sequence[Array]) -> _Inside:
    """Return a region's people, with the part inside of each node of each level."""
    found = fixed.found
    of_all = float(found.variances[0][0])
    linear = _Linear(inside[-1], np.zeros(len(inside[-1])), np.zeros(len(inside[-1])))
    for step, whole in zip(reversed(fixed.steps), inside[-2::-1], strict=True):
        linear = _above(step, linear, whole)
    slope = linear.slope[:1]
    return _Inside(
        slope * found.people + linear.base[:1],
        linear.variance[:1] + slope**2 * of_all,
        slope * of_all,
    )


def _ends(
    inside: _Inside,
    people: float,
    of_all: float,
    reach: _Reach,
    empty: Array | None = None,
    sides: int = 2,
) -> tuple[Array, Array]:
    """Return the shares s that noise leaves open: inside - s all is within its own reach of 0.

    The variance is that at s and not at the estimate, whose total may by chance be far too large
    (Fieller, "Some problems in interval estimation", JRSS B 1954). The ends are roots of a
    quadratic equation. An estimate below 0 or above all people reaches inwards as if it were there.

    ``empty`` is the variance that is left where nobody is inside, over the variance, at least;
    None where a variance does not depend on people.

    Where ``sides`` is 1, all of the error is left to either end: only one of them is asked for, or
    both and only one can be in error.
    """
    mean, variance, with_all = inside
    at = mean / people
    error = np.maximum(variance - 2 * at * with_all + at**2 * of_all, 0.0)
    part_of_all = with_all / of_all - at if of_all else 0.0
    nobody = 1.0 if empty is None else empty

    def root(estimate: Array | float, side: int, sides: int, part: Array | float = 1.0) -> Array:
        center = estimate + side * reach.beyond(error * part, part_of_all, sides)
        spread = reach.deviations(error * part, part_of_all, sides) ** 2
        square = people**2 - spread * of_all  # above 0: so many people that there are some
        linear = center * people - spread * with_all
        rest = linear**2 - square * (center**2 - spread * variance * part)
        share = (linear + side * np.sqrt(np.maximum(rest, 0.0))) / square
        return np.asarray(np.clip(share, 0, 1))

    from_above = np.minimum(mean, people)
    from_below = np.maximum(mean, 0.0)
    one_sided = root(from_above, -1, 1), root(from_below, 1, 1)
    if sides == 1:
        return one_sided
    lower, upper = root(from_above, -1, 2), root(from_below, 1, 2)
    # No upper end is below the first of these, and no lower end above the second.
    least_upper = root(0.0, 1, 2, nobody)
    most_lower = root(people, -1, 2) if empty is None else np.ones(len(mean))
    apart = least_upper <= most_lower
    nearer = np.minimum(one_sided[0], least_upper), np.maximum(one_sided[1], most_lower)
    return (
        np.where(apart, np.maximum(lower, nearer[0]), lower),
        np.where(apart, np.minimum(upper, nearer[1]), upper),
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


def _of_nodes(fixed: _Fixed, values: Array, over: np.ufunc) -> list[Array]:
    """Return for each level the sum, or an extreme, of the values in each of its nodes."""
    grids = fixed.found.tree.pooled_levels(values, over)
    return [
        grids[each.level].ravel()[places]
        for each, places in zip(fixed.found.levels, fixed.places, strict=True)
    ]


def _of_cells(found: LevelMap, reach: _Reach) -> tuple[Array, Array]:
    """Return the ends of every cell's share."""
    tree = found.tree
    upper = np.ones(tree.shape)
    lower = np.zeros(tree.shape) if upper.size > 1 else upper.copy()  # one cell holds everybody
    people = found.people
    of_all = float(found.variances[0][0])
    if people <= reach.people(of_all):
        return lower, upper
    mean, variance, with_all = found.sums[0], found.variances[0], found.variances[0]
    for step, level in enumerate(found.levels):
        last = step == len(found.children)
        divided = np.zeros(len(mean), bool) if last else divided_nodes(found, step)
        inside = _Inside(mean, variance, with_all)
        areas = tree.areas(level.level).ravel()[tree.positions(level.level, level.nodes)]
        empty = None
        if level.per_person:
            nobody = level.variance + level.per_person  # as if one were in it, to be safe
            empty = np.minimum(nobody / found.variances[step], 1.0)
        ends = _ends(inside, people, of_all, reach, empty)
        # Of a node of several cells, all of its people may be in one of them, or none.
        all_of_it = _ends(inside, people, of_all, reach, sides=1)[1]
        if not last and _is_chosen(found, step):
            surer = reach._replace(level=1 - (1 - reach.level) / 10)
            wide = np.ones(len(mean))
            if people > surer.people(of_all):
                wide = _ends(inside, people, of_all, surer, sides=1)[1]
            # A node with as many people as its end says would seldom be divided if its sum, with
            # twice the reach, is still below what others stayed whole with.
            error = np.where(np.isfinite(found.variances[step]), found.variances[step], 0.0)
            noise = reach.deviations(error, sides=1) * np.sqrt(error)
            is_near = level.sums + 2 * noise >= level.sums[~divided].max()
            all_of_it = np.where(is_near, wide, all_of_it)
        single = areas == 1
        ends = np.where(single, ends[0], 0.0), np.where(single, ends[1], all_of_it)
        for map_, values in zip((lower, upper), ends, strict=True):
            cells = tree.spread(level.level, level.nodes[~divided], values[~divided], np.nan)
            np.copyto(map_, cells, where=~np.isnan(cells))
        if last or not divided.any():
            break
        mean, variance, with_all = _below(found, step, divided, mean, variance, with_all)
    return lower, upper


def _is_chosen(found: LevelMap, step: int) -> bool:
    """Tell whether a level's own sums decided which of its nodes are divided."""
    level = found.levels[step]
    divided = divided_nodes(found, step)
    all_known = level.measured is None and bool(np.isfinite(level.variance))
    return all_known and bool(divided.any() and not divided.all())


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
    part = _parts(spread, spread.sum(1, keepdims=True))
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
