"""Which sums the recommended central release asks for, by public numbers and how many people.

With the aim "cells" all of epsilon is for single cells. With "distance" it depends on how many
people there are, over the scale 1 / epsilon of noise:

- Noise that leaves nearly all people as they are (``FOUND``), or many people a cell
  (``MANY_IN_A_CELL``): all is for single cells. One part in
  :data:`ldpspatial.release.level_sums.WIDE` asks sixteen wide areas besides, as noise of all their
  cells adds up; not where noise is next to none.
- Where noise leaves most people as they are (``WHOLE_PEOPLE``): whole levels, as fine as noise
  allows, from half as many people a cell on single cells and wide areas.
- A first level whose nodes hold few: a shape, which costs the same however deep it goes, and keeps
  places whole where nobody is (:mod:`ldpspatial.release.central.shaped_levels`).
- Where nodes of level ``FULL`` hold some people: whole levels again, coarser ones, as neighbours
  tell much of nodes that hold enough, and a whole level has neighbours on all sides.
- So few people that sixteen sums are all there is to ask.

The numbers were set on six cities and on generated towns (docs/experiments/levels.md).
"""

from typing import NamedTuple

from ldpspatial.release.level_sums import (
    LEAST,
    LIMITS,
    PER_NODE,
    Aim,
    Fineness,
    first_level,
    of_wide_areas,
    planned,
)
from ldpspatial.validate import MICRO

FULL = 5  # the first level that is asked whole in a shape's place
MANY_IN_A_CELL = 10  # people over the scale of the noise, in the mean of all cells
# Epsilon at which noise is less than half a person in .86, and in .97, of all sums.
WHOLE_PEOPLE = 4 * MICRO
FOUND = 7 * MICRO


class Plan(NamedTuple):
    """What to ask: a shape, or levels and millionths for each.

    Attributes
    ----------
    first : int
        First level to ask; for a shape, the one that a grid would begin with.
    parts : list of int
        Millionths of the first level and of those below it; empty for a shape.
    wide : int
        Millionths for the nodes of level ``LEAST``, beside single cells.
    """

    first: int
    parts: list[int]
    wide: int = 0

    @property
    def by_shape(self) -> bool:
        """Whether leaves of a shape are counted."""
        return not self.parts


def plan(people_per_noise: float, micro: int, cells: int, depth: int, aim: Aim) -> Plan:
    """Return what to ask for.

    Parameters
    ----------
    people_per_noise : float
        Number of people over the scale 1 / epsilon of noise.
    micro : int >= 1
        Millionths of epsilon, of which none is left over.
    cells : int
        Of the map.
    depth : int >= 1
        Level of single cells.
    aim : {"distance", "cells"}

    Examples
    --------
    >>> for people in (100.0, 200.0, 20_000.0, 41_000.0):
    ...     found = plan(people, 1_000_000, 64 * 64, 6, "distance")
    ...     print(found.by_shape, found.first, found.parts, found.wide)
    False 2 [1000000] 0
    True 2 [] 0
    False 5 [800000, 200000] 0
    False 6 [900000] 100000
    """
    many = people_per_noise >= MANY_IN_A_CELL * cells
    if aim == "cells" or micro >= FOUND:
        return Plan(depth, [micro])
    if not many and depth > LEAST and _asks_shape(people_per_noise, micro):
        return Plan(first_level(people_per_noise, depth), [])
    fineness: Fineness = "trusted" if micro >= WHOLE_PEOPLE else "full"
    first, parts = (
        (depth, [micro]) if many else planned(people_per_noise, micro, depth, fineness=fineness)
    )
    wide = of_wide_areas(first, parts, depth)
    parts[0] -= wide
    return Plan(first, parts, wide)


def _asks_shape(people_per_noise: float, micro: int) -> bool:
    one, factor = LIMITS["full"]
    full = one * factor ** (FULL - 0.5)  # where levels begin with FULL
    return PER_NODE * 4**LEAST <= people_per_noise < full and micro < WHOLE_PEOPLE
