"""How sure a map of noisy sums is: exact variances of least squares on a tree of known noise.

The noise of every sum is known, so an interval here asks nothing of the people; where some of them
were not counted, what that adds to a variance is estimated from the map. How far it reaches is in
``noise_reach.py``, what a region holds and what the sums leave open of it in ``level_regions.py``
and ``parts_apart.py``.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.intervals.interval import Uncertainty, standard_errors
from ldpspatial.estimation.intervals.level_regions import (
    fixed_of,
    given_above,
    is_chosen,
    parts_together,
)
from ldpspatial.estimation.intervals.noise_reach import Inside, Reach, ends_of, in_rows, reach_of
from ldpspatial.estimation.intervals.parts_apart import parts_apart, published_of
from ldpspatial.estimation.levels.level_map import LevelMap, divided_nodes
from ldpspatial.validate import instance, number_in, one_of, true_or_false

Array = NDArray[np.float64]

OPEN_PARTS = ("together", "apart", "learned")
METHODS = {"apart": "levels, parts apart", "learned": "levels, parts learned"}
# How far an end reaches is not in every step more at a higher level: an interval may err at one of
# its ends alone, or end next to a lump of a law. So none ends nearer than one of these below it.
USUAL_LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
MOST_LEVEL = float(np.nextafter(1, 0))


def level_intervals(
    found: LevelMap,
    level: float = 0.95,
    open_parts: str = "together",
    several_positions: bool = False,
) -> Uncertainty:
    """Return intervals of every cell and of any region of a map of noisy sums.

    They hold the share among the very people who took part, whoever these stand for, each at the
    position that was reported. Of a region that cuts cells `Uncertainty.bounds` gives the ends.

    Parameters
    ----------
    found : LevelMap
        Of any release that has ``Released.levels``.
    level : float in (0, 1)
        Probability with which one interval covers, each by itself; whatever the people, but for
        what ``open_parts`` takes for granted of regions. No interval ends nearer than that of .5,
        .8, .9, .95 or .99 where its level is higher.
    open_parts : {"together", "apart", "learned"}
        What sums do not say: where people are in a node that was not divided and in a cut cell.
        "together": of all that a region cuts, all people may be inside, or none. That holds
        whatever the people. "apart": each part by itself. That is narrower, and holds where borders
        have nothing to do with where people are. "learned": and within parts people are as crowded
        as the sums above say. That is narrower still where they are spread out, and a model: where
        equally many people are in each cell, and all of these at one address, it is far too narrow
        (docs/levels.md). Intervals of cells are the same.
    several_positions : bool
        Hold the mean over all positions of each person, of which each reported one, drawn at
        random, as distributed releases do. Ends are then farther by what such a draw may add, as
        Wilson (1927) has it for a share: too far by up to 1.4 times where noise adds as much.

    Returns
    -------
    Uncertainty
        With method "levels"; of regions "levels, parts apart" or "levels, parts learned" where
        these are. A share that is published may lie outside its interval, which is about the sums
        without bias; intervals are widened to hold it.

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
    level = float(number_in("level", level, "(0, 1)"))
    method = METHODS.get(one_of("open_parts", open_parts, OPEN_PARTS))
    levels = [each for each in USUAL_LEVELS if each < level]
    reaches = [reach_of(found, each) for each in (*levels, level)]
    true_or_false("several_positions", several_positions)
    # On a map of one cell, nowhere and everywhere, a share is certain whichever position was drawn.
    counted = _counted(found) if several_positions and found.density.size > 1 else np.inf
    lower, upper = _drawn(*_of_cells(found, reaches), level, counted)
    fixed = fixed_of(found)
    published = published_of(fixed, open_parts == "learned") if method else None

    def bounds(weights: Array) -> tuple[float, float]:
        ends = parts_together(fixed, weights, reaches)
        if published is not None:
            ends = parts_apart(fixed, published, weights, reaches, ends)
        if weights.min() == weights.max():
            return ends
        low, high = _drawn(np.float64(ends[0]), np.float64(ends[1]), level, counted)
        return float(low), float(high)

    density = found.density
    return Uncertainty(
        level, "levels", np.minimum(density, lower), np.maximum(density, upper), density, bounds,
        of_regions=method, _method_of=(lambda _: method) if method else None,
    )  # fmt: skip


def _counted(found: LevelMap) -> float:
    """Return how many people the sums of the level count that counts the fewest."""
    measured = [each for each in found.levels if np.isfinite(each.variance)]
    return max(found.people, 1.0) / (1 + max(each.per_person for each in measured))


def _drawn(
    lower: Array | np.float64, upper: Array | np.float64, level: float, people: float
) -> tuple[Array, Array]:
    """Return ends of a mean over positions, given those of the ones that so many people drew."""
    room = standard_errors(level) ** 2 / people
    down, up = (np.sqrt(room * (ends * (1 - ends) + room / 4)) for ends in (lower, upper))
    low, high = lower + room / 2 - down, upper + room / 2 + up
    return np.clip(low / (1 + room), 0.0, 1.0), np.clip(high / (1 + room), 0.0, 1.0)


def _of_cells(found: LevelMap, reaches: Sequence[Reach]) -> tuple[Array, Array]:
    """Return the ends of every cell's share: the farthest of these reaches, the highest last."""
    tree = found.tree
    upper = np.ones(tree.shape)
    lower = np.zeros(tree.shape) if upper.size > 1 else upper.copy()  # one cell holds everybody
    people = found.people
    of_all = float(found.variances[0][0])
    if people <= reaches[-1].people(of_all):
        return lower, upper
    reach = in_rows(reaches)
    mean, variance, with_all = found.sums[0], found.variances[0], found.variances[0]
    for step, level in enumerate(found.levels):
        last = step == len(found.children)
        divided = np.zeros(len(mean), bool) if last else divided_nodes(found, step)
        inside = Inside(mean, variance, with_all)
        areas = tree.areas(level.level).ravel()[tree.positions(level.level, level.nodes)]
        empty = None
        if level.per_person:
            nobody = level.variance + level.per_person  # as if one were in it, to be safe
            known = found.variances[step]
            empty = np.divide(nobody, known, out=np.ones(len(mean)), where=known > nobody)
        ends = ends_of(inside, people, of_all, reach, empty)
        # Of a node of several cells, all of its people may be in one of them, or none.
        all_of_it = ends_of(inside, people, of_all, reach, sides=1)[1]
        if not last and is_chosen(found, step):
            is_near = _is_near_divided(found, step, divided, reach)
            all_of_it = np.where(is_near, _far(inside, people, of_all, reaches), all_of_it)
        single = areas == 1
        ends = (
            np.where(single, ends[0], 0.0).min(0),
            np.where(single, ends[1], all_of_it).max(0),
        )
        for map_, values in zip((lower, upper), ends, strict=True):
            cells = tree.spread(level.level, level.nodes[~divided], values[~divided], np.nan)
            np.copyto(map_, cells, where=~np.isnan(cells))
        if last or not divided.any():
            break
        mean, variance, with_all = given_above(found, step, divided, mean, variance, with_all)
    return lower, upper


def _is_near_divided(
    found: LevelMap, step: int, divided: NDArray[np.bool_], reach: Reach
) -> NDArray[np.bool_]:
    """Tell which nodes might have been divided, had the noise been another; a row for each level.

    A node with as many people as its end says would seldom be divided if its sum, with twice the
    reach, is still below what others stayed whole with.
    """
    sums = found.levels[step].sums
    error = np.where(np.isfinite(found.variances[step]), found.variances[step], 0.0)
    noise = reach.deviations(error, sides=1) * np.sqrt(error)
    return np.asarray(sums + 2 * noise >= sums[~divided].max())


def _far(inside: Inside, people: float, of_all: float, reaches: Sequence[Reach]) -> Array:
    """Return the upper ends of nodes that are in error a tenth as often as of these levels."""
    surer = [
        replace(each, level=min(1 - (1 - float(each.level)) / 10, MOST_LEVEL)) for each in reaches
    ]
    far = np.ones((len(surer), len(inside.mean)))
    known = [k for k, each in enumerate(surer) if people > each.people(of_all)]
    if known:
        reach = in_rows([surer[k] for k in known])
        far[known] = ends_of(inside, people, of_all, reach, sides=1)[1]
    return far
