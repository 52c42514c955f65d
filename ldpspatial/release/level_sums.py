"""How the levels of a quadtree are asked for sums, whoever draws the noise.

What the central and the distributed model share, which looks at noisy sums and public numbers
alone. No one division of epsilon is good for everything, so a release has an *aim*.

"distance", how far people on the map are from where they are (W2, and the people of regions):

- The first level asked is as fine as epsilon allows. With a server that is trusted its nodes hold
  about ``PER_NODE`` / epsilon people in the mean: as fine as a uniform grid may be before noise
  takes over (Qardaji et al., ICDE 2013, section IV); or four times as many ("full"), of which
  neighbours tell more. With secure sums they hold the more, the finer
  the level is: sums of nodes add up to those of wide areas with all that those who fail leave out.
  Still more where each client is asked once, as finer levels are less noisy then: a part of the
  people makes fewer shards, each of which has noise, where a part of epsilon makes all noisier.
- It gets four fifths of epsilon, and the finer levels share the rest evenly. Where there are fewer
  than ``FEW`` / epsilon people, it gets all.
- Nodes are divided whose sum exceeds ``DIVIDED`` standard deviations of the noise of the next
  level. All of a level are disjoint, so a level costs its epsilon once, however many they are.
- Where nodes to divide hold less than ``WORTH`` of the people, nothing finer is asked: what is left
  of epsilon goes into a second measurement of the level.
- Where all of epsilon would go to single cells, one part in ``WIDE`` asks the nodes of level
  ``LEAST`` as well: noise of all cells of a wide area adds up, and so does who fails in a round.
  Not where clients are asked once, nor where noise is next to none.

In the central model a rule of its own says which of this is asked, and when a shape takes its place
(:mod:`ldpspatial.release.central.level_plan`).

"cells", how many people single cells hold (L1, MSE):

- All of epsilon goes to single cells, however few people there are: what is learned from all of
  them tells nearly as much as sums of larger nodes, which hide the one cell where many are.

The numbers were set on six cities (docs/experiments/levels.md).
"""

from collections.abc import Callable, Sequence
from math import log, sqrt
from operator import truediv
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.levels import NoisyLevel
from ldpspatial.estimation.levels.balanced import BELOW
from ldpspatial.places.quadtree import Quadtree

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
# Level, nodes and millionths of epsilon, or number of people -> what was measured.
Ask = Callable[[int, Ints, int], NoisyLevel]
Aim = Literal["distance", "cells"]
Asked = Literal["either", "once", "every round"]

PER_NODE = 9.0
Fineness = Literal["trusted", "full", "secure", "once"]
# How fine the first level may be: people over the noise's scale of a level of one node, and how
# many times more a level takes than the one above it.
LIMITS: dict[Fineness, tuple[float, float]] = {
    "trusted": (PER_NODE, 4.0),
    "full": (4 * PER_NODE, 4.0),
    "secure": (4.7, 5.1),
    "once": (2.2, 6.5),
}
FEW = 700.0
LEAST = 2  # the first level at least: sixteen nodes
DIVIDED = 2.0
WORTH = 0.5
WIDE = 10


def planned(
    people_per_noise: float,
    micro: int,
    depth: int,
    aim: Aim = "distance",
    fineness: Fineness = "trusted",
) -> tuple[int, list[int]]:
    """Return the first level to ask, and the millionths of it and of those below it.

    Parameters
    ----------
    people_per_noise : float
        Number of people over the scale 1 / epsilon of noise.
    micro : int >= 1
        Millionths of epsilon, of which none is left over.
    depth : int >= 1
        Level of single cells.
    aim : {"distance", "cells"}
    fineness : {"trusted", "full", "secure", "once"}
        With a server that is trusted, as fine as noise allows or with nodes that hold some people;
        with secure sums, of all clients in every round or of each client once.

    Examples
    --------
    >>> planned(2_000.0, 1_000_000, 6), planned(500.0, 7, 6), planned(1e9, 7, 6)
    ((4, [800000, 100000, 100000]), (3, [7]), (6, [7]))
    >>> planned(2_000.0, 1_000_000, 6, "cells")
    (6, [1000000])
    """
    if aim == "cells":
        return depth, [micro]
    first = first_level(people_per_noise, depth, fineness)
    if people_per_noise < FEW:
        return first, [micro]
    return first, budget_parts(micro, depth - first + 1)


def first_level(people_per_noise: float, depth: int, fineness: Fineness = "trusted") -> int:
    """Return the first level to ask where the aim is distance.

    Examples
    --------
    >>> [first_level(people, 6) for people in (-3.0, 200.0, 15_000.0, 1e9)]
    [2, 2, 5, 6]
    >>> few_to_many = (270.0, 1_300.0, 8_000.0, 36_000.0, 37_000.0)
    >>> [first_level(people, 6, "secure") for people in few_to_many]
    [2, 3, 5, 5, 6]
    >>> [first_level(people, 6, "once") for people in few_to_many]
    [2, 3, 4, 5, 6]
    """
    one, factor = LIMITS[fineness]
    wanted = round(log(max(people_per_noise, one) / one, factor))
    first = min(max(wanted, LEAST), depth)
    if fineness != "once":
        return first
    # Never finer than in every round; single cells alone are one round of everybody either way.
    every_round = first_level(people_per_noise, depth, "secure")
    return depth if every_round == depth else min(first, every_round)


def of_wide_areas(first: int, parts: Sequence[int], depth: int) -> int:
    """Return the millionths for the nodes of level ``LEAST`` where all are for single cells.

    Nothing on maps whose areas on that level are too small to be told apart from their cells.

    Examples
    --------
    >>> of_wide_areas(6, [1_000_000], 6), of_wide_areas(5, [800_000, 200_000], 6)
    (100000, 0)
    >>> of_wide_areas(4, [1_000_000], 4)
    0
    """
    return sum(parts) // WIDE if first == depth >= LEAST + BELOW else 0


def budget_parts(micro: int, levels: int) -> list[int]:
    """Divide millionths: four fifths to the first level, the rest evenly to those below it.

    Levels that would get less than a millionth are left out.

    Examples
    --------
    >>> budget_parts(1_000_000, 3), budget_parts(3, 6), budget_parts(7, 1)
    ([800000, 100000, 100000], [3], [7])
    """
    first = -(-4 * micro // 5) if levels > 1 else micro
    each, over = divmod(micro - first, max(levels - 1, 1))
    below = [each + (k < over) for k in range(levels - 1)]
    return [first, *(part for part in below if part)]


def measure(
    tree: Quadtree,
    whole: NoisyLevel,
    first: int,
    parts: Sequence[int],
    ask: Ask,
    wide: int = 0,
    noisier: Callable[[int, int], float] = truediv,
) -> list[NoisyLevel]:
    """Ask level after level.

    Parameters
    ----------
    tree : Quadtree
    whole : NoisyLevel
        Level 0.
    first : int
        First level to ask.
    parts : sequence of int
        Millionths for this level and those below it, or people who are asked on that level alone.
    ask : callable
    wide : int
        The same for all nodes of level ``LEAST``, above the first one, 0 to ask none.
    noisier : callable
        Of a part and another: the noise of a sum by the other over that by the part, in all people.
        By default in inverse proportion, as to epsilon.

    Returns
    -------
    list of NoisyLevel
        From level 0 on; those above the first are not measured, but for wide areas.
    """
    found = [whole]
    found += [NoisyLevel.unmeasured(level, tree.numbers(level)) for level in range(1, first)]
    if wide:
        found[LEAST] = ask(LEAST, tree.numbers(LEAST), wide)
    nodes = tree.numbers(first)
    left = sum(parts)
    for level, part in enumerate(parts, start=first):
        # Where nothing is left to divide, what remains makes this level surer.
        seen = ask(level, nodes, part)
        left -= part
        found.append(seen)
        if not left:
            break
        deviation = sqrt(seen.variance) * noisier(part, parts[level - first + 1])
        crowded = nodes_to_divide(seen, deviation)
        if crowded is None:
            found[-1] = averaged(seen, ask(level, seen.nodes, left))
            break
        nodes = tree.numbers_below(level + 1, seen.nodes[crowded])
    return found


def nodes_to_divide(asked: NoisyLevel, deviation: float) -> Bools | None:
    """Return which nodes of a level are divided; None where the next level is not worth its cost.

    Parameters
    ----------
    asked : NoisyLevel
    deviation : float
        Of the noise of a sum on the next level.
    """
    crowded: Bools = asked.sums > DIVIDED * deviation
    if not crowded.any() or asked.sums[crowded].sum() < WORTH * asked.sums.sum():
        return None
    return crowded


def averaged(one: NoisyLevel, other: NoisyLevel) -> NoisyLevel:
    """Return the mean of two measurements of the same nodes, by inverse variances of noise."""
    if np.isinf(one.variance) or np.isinf(other.variance):
        return one if one.variance < other.variance else other
    share = one.variance / (one.variance + other.variance)
    sums = (1 - share) * one.sums + share * other.sums
    # Who is counted is drawn afresh for either, and these errors are independent as well. Of
    # disjoint cohorts less is left than that: who is missed by one is counted by the other.
    per_person = (1 - share) ** 2 * one.per_person + share**2 * other.per_person
    return NoisyLevel(
        one.level,
        one.nodes,
        sums,
        (1 - share) * one.variance,
        per_person,
        max(one.step, other.step),
        # Fourth cumulants add up as fourth powers of the weights.
        excess=(1 - share) ** 2 * one.excess + share**2 * other.excess,
    )
