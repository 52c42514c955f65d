"""Regions of a map of noisy sums whose open parts lie each by itself: cut cells, undivided nodes.

Of the people of such a part a share u is inside in the mean, as the map has it. Whatever the law of
that share is, its variance is u (1 - u) at most: all people inside, or none. Or people are as
crowded as the sums say they are (``crowding.py``), and the variance is c u (1 - u). Of the 64 parts
with the largest variances the law of their sum is reckoned with (``sum_law.py``); what the others
add is near enough to normal. All of this is too little where a border follows the people, as that
of a district follows a shore.

How the parts lie decides what noise does, too: that between children of one node, whose people are
known better, shows if some of them are inside and some are not. Its variance is the mean over all
ways to lie, and no less than with none of these parts inside, or with all of them. So noise may be
less than that, and next to nothing for one way to lie. Where the law has a lump, which is missed as
a whole if an end is just short of it, an end is not nearer than without any noise; and where noise
itself may be what an end is short by, it goes up to half a part farther: all of that where the lump
has as much of the chance as an end may miss, nothing where it has half.
"""

from collections.abc import Sequence
from functools import partial
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.intervals.crowding import crowding, of_levels
from ldpspatial.estimation.intervals.interval import share_of, standard_errors
from ldpspatial.estimation.intervals.level_regions import (
    Fixed,
    given_above,
    inside_of,
    of_nodes,
)
from ldpspatial.estimation.intervals.noise_reach import Inside, Reach
from ldpspatial.estimation.intervals.sum_law import (
    MOST,
    Error,
    PartLaw,
    all_or_none,
    chance_beyond,
    crowded_law,
    farthest,
    share_beyond,
    sums_of,
)

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

NEXT_TO_NOBODY = 1e-12  # of all people: with them a node where nobody is has a share inside
NEAR = 2.0  # deviations of noise within which it may have moved a lump across an end


class Published(NamedTuple):
    """The map, as the regions need it whose open parts are taken each by itself."""

    density: Array  # positive, so that each node has a share inside
    people: Array  # of every node, level after level: shares of all
    crowded: Array  # of the people of nodes that were not divided; 0 for the others
    spreads: Array  # variances of the nodes' least squares
    starts: Ints  # of each level but the first among the nodes of all
    learned: bool  # whether it is known how crowded people are


class _Ways(NamedTuple):
    """A region's people by the ways its open parts can lie."""

    people: float  # of the map
    of_all: float  # the variance of these
    # Variance, covariance with all people: with none of the largest parts inside, all, the mean.
    noise: list[tuple[float, float]]
    means: Array  # people in the region, by what the largest parts come to
    likely: Array  # probabilities of these
    rounding: float  # people that a mean may be off by
    rest: float  # the variance of the other parts

    def end(self, side: int, reach: Reach, half: float) -> float:
        """Return the share beyond which the truth seldom lies on a side; half a part in people."""
        chance = _seldom(reach)
        noisy, exact = self._errors(side, reach)
        share = share_beyond(noisy, self.likely, chance, side)
        near = NEAR * sqrt(self._noise(share)) + self.rounding
        lump = float(self.likely[abs(self.means - share * self.people) <= near].sum()) / chance
        farther = share + side * half / self.people * min(max(2 * lump - 1, 0.0), 1.0)
        if chance_beyond(exact, self.likely, share, side) > chance:
            share = share_beyond(exact, self.likely, chance, side)
        return max(farther, share) if side > 0 else min(farther, share)

    def is_within(self, share: float, side: int, reach: Reach, half: float) -> bool:
        """Return whether that end is no farther than a share: found in far less time."""
        noisy, exact = self._errors(side, reach)
        nearer = share - side * half / self.people
        beyond = [
            chance_beyond(error, self.likely, at, side)
            for error, at in ((noisy, nearer), (exact, share))
        ]
        return max(beyond) <= _seldom(reach)

    def _errors(self, side: int, reach: Reach) -> list[Error]:
        """Return what the region's people may be off by: with noise, and without."""
        # An estimate below 0 or above all people reaches inwards as if it were there.
        inwards = np.maximum(self.means, 0.0) if side > 0 else np.minimum(self.means, self.people)
        of_normal = standard_errors(float(reach.level)) or 1.0

        def error(share: float, noisy: bool) -> tuple[Array, float]:
            noise = self._noise(share)
            variance = noise * noisy + self.rest
            reached = reach.deviations_of_one(variance) * sqrt(variance)
            farther = reach.beyond_of_one(noise) + self.rounding
            return inwards + (side * farther - share * self.people), reached / of_normal

        return [partial(error, noisy=each) for each in (True, False)]

    def _noise(self, share: float) -> float:
        """Return the variance of what noise makes of a region's people, less a share of all."""
        of_ways = max(variance - 2 * share * with_all for variance, with_all in self.noise)
        return max(of_ways + share**2 * self.of_all, 0.0)


def published_of(fixed: Fixed, learned: bool = False) -> Published:
    """Return what is the same for every region whose open parts are taken each by itself.

    ``learned`` takes people to be as crowded as the sums say, and not all at one place.
    """
    found = fixed.found
    density = found.density + NEXT_TO_NOBODY / found.density.size
    whole, reached = [], np.ones(1, bool)
    for step in fixed.steps:
        whole.append(reached & ~step.divided)
        inner = step.inner[:, reached[step.divided]]
        reached = np.zeros(len(found.sums[len(whole)]), bool)
        reached[inner[inner >= 0]] = True
    people = of_nodes(fixed, density, np.add)
    starts = np.cumsum([len(each) for each in people])[:-1]
    spreads = [found.variances[0]]
    for k, step in enumerate(fixed.steps):
        nothing = np.zeros(len(spreads[-1]))
        spreads.append(given_above(found, k, step.divided, nothing, spreads[-1], nothing)[1])
    joined = np.concatenate
    crowded = joined([*whole, reached]).astype(np.float64)
    if learned:
        crowded *= joined(_crowding(fixed, [each * max(found.people, 0.0) for each in people]))
    return Published(density, joined(people), crowded, joined(spreads), starts, learned)


def _crowding(fixed: Fixed, people: Sequence[Array]) -> list[Array]:
    """Return how crowded people are in every node of each level."""
    seen = []
    for step, above in zip(fixed.steps, people, strict=False):
        with_four = (step.inner >= 0).all(0)
        held = above[step.divided][with_four]
        seen.append(crowding(step.sums[:, with_four], step.spread[:, with_four], held))
    # Few people are crowded by being few: one is at one place.
    return [
        level + (1 - level) / np.maximum(each, 1.0)
        for level, each in zip(of_levels(seen), people, strict=True)
    ]


def parts_apart(
    fixed: Fixed,
    published: Published,
    weights: Array,
    reaches: Sequence[Reach],
    together: tuple[float, float],
) -> tuple[float, float]:
    """Return the ends of a region's share with each open part by itself, never beyond others.

    They are the farthest of these reaches, the last of which is of the highest level.
    """
    people, of_all = fixed.found.people, float(fixed.found.variances[0][0])
    if people <= reaches[-1].people(of_all):
        return together
    every, crowded = published.people, published.crowded
    parts = np.concatenate(of_nodes(fixed, published.density * weights, np.add)) / every
    variances = (crowded * every**2 * parts * (1 - parts)).clip(0)
    ranked = np.argsort(variances, kind="stable")
    largest = ranked[-MOST:][variances[ranked[-MOST:]] > 0]
    if not len(largest):
        return together
    noise = _ways_to_lie(fixed, published, parts, largest)
    fewest, all_inside = (float(way.mean[0]) for way in noise[:2])
    of_noise = [(float(way.variance[0]), float(way.with_all[0])) for way in noise]
    rest = float(variances[ranked[: -len(largest)]].sum())

    def ways(law: PartLaw) -> _Ways:
        sums = sums_of(every[largest], law)
        return _Ways(
            people, of_all, of_noise,
            means=fewest + sums.values * (all_inside - fewest),
            likely=sums.probabilities,
            rounding=sums.off * abs(all_inside - fewest),
            rest=(rest + float(every[largest] ** 2 @ law.within)) * people**2,
        )  # fmt: skip

    inside, known = parts[largest], crowded[largest]
    usual = ways(crowded_law(inside, known) if published.learned else all_or_none(inside))
    share = share_of(fixed.found.density, weights)

    def end(side: int) -> float:
        farther = max if side > 0 else min
        found = share
        for reach in reversed(reaches):  # the farthest is most often that of the highest level
            half = _of_one_part(every * crowded, parts, variances, reach) * people / 2
            laws = [usual]
            seldom = _seldom(reach)
            if not published.learned and ((inside if side > 0 else 1 - inside) <= seldom).any():
                laws.append(ways(farthest(inside, seldom, side)))
            for law in laws:
                if not law.is_within(found, side, reach, half):
                    found = farther(found, law.end(side, reach, half))
        return found

    return max(together[0], end(-1)), min(together[1], end(1))


def _seldom(reach: Reach) -> float:
    """Return the chance that an end may miss."""
    return (1 - float(reach.level)) / 2


def _of_one_part(every: Array, parts: Array, variances: Array, reach: Reach) -> float:
    """Return the share of a part, of those that vary most and may be inside as well as not."""
    seldom = _seldom(reach) / 2  # with such a chance a part is beyond the end, wherever that is
    varying = np.where((parts > seldom) & (parts < 1 - seldom), variances, 0.0)
    return float(every @ varying) / float(varying.sum()) if varying.any() else 0.0


def _ways_to_lie(
    fixed: Fixed, published: Published, parts: Array, largest: Ints
) -> tuple[Inside, Inside, Inside]:
    """Return a region's people with none of the largest parts inside, all of them, and the mean."""
    none, every = parts.copy(), parts.copy()
    none[largest], every[largest] = 0.0, 1.0
    fewest, most, mean = (
        inside_of(fixed, np.split(inside, published.starts)) for inside in (none, every, parts)
    )
    # A part that is there in full or not at all adds to the variance of the mean what it varies by
    # times its own noise.
    either = published.crowded * parts * (1 - parts)
    open_ = either > 0
    between = float(either[open_] @ published.spreads[open_])
    return fewest, most, mean._replace(variance=mean.variance + between)
