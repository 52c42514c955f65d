"""How far noise reaches: the ends of shares between which sums of known noise leave them.

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
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.estimation.intervals.interval import standard_errors
from ldpspatial.estimation.levels.level_map import LevelMap

Array = NDArray[np.float64]

# Steps: what noise is beside it in a cell's least squares makes one step of noise a little more.
ONE_STEP = 1.1
LAPLACE = 3.0  # excess kurtosis of its law


@dataclass(frozen=True)
class Reach:
    """How far intervals reach: of one level, or of several, each of which has a row of its own.

    Attributes
    ----------
    level : float or (k, 1) array
    step : float
        Of the noise, in people.
    fourth : float
        Excess kurtosis times variance that one sum's noise adds to an error, at most.
    of_all : float
        The same of the sum of all people, for an error that it adds to in full.
    """

    level: float | Array
    step: float
    fourth: float
    of_all: float

    @cached_property
    def _two_sided(self) -> dict[int, float | Array]:
        """The level at which an interval with both ends reaches as far as one with these sides."""
        one = 2 * np.asarray(self.level) - 1
        return {1: np.maximum(one, 0.0), 2: self.level}

    @cached_property
    def _laws(self) -> dict[int, "_Deviations"]:
        return {sides: _law_of(level) for sides, level in self._two_sided.items()}

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
        # Of next to no variance the excess is infinite, and what deviations come to is bounded.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            excess = np.where(variance > 0, fourth / variance, LAPLACE)
            return self._laws[sides].of(excess)

    def beyond(self, variance: Array, of_all: Array | float = 1.0, sides: int = 2) -> Array:
        """Return how many people an interval reaches beyond deviations, for the noise's atoms."""
        return self.reached(variance, of_all, sides)[1]

    def reached(self, variance: Array, of_all: Array | float, sides: int) -> tuple[Array, Array]:
        """Return deviations, and how many people an interval reaches beyond them.

        Half a step; and where noise may be other than 0 more often than the interval may err, so
        much that a step is held: a whole number of steps is not 0 with at most the probability of
        its variance (Chebyshev), and above 0 with half of that.
        """
        deviations = self.deviations(variance, of_all, sides)
        reached = deviations * np.sqrt(variance)
        often = variance > (1 - self._two_sided[sides]) * self.step**2
        far = np.maximum(np.where(often, ONE_STEP * self.step - reached, 0.0), self.step / 2)
        return deviations, np.where(variance > 0, far, 0.0)  # nothing is added to what is exact

    @cached_property
    def _of_one(self) -> tuple[float, float, float]:
        least, most, more = map(float, self._laws[2])
        return least, most, more

    def deviations_of_one(self, variance: float) -> float:
        """Return `deviations` of one error, for searches: in far less time than of an array."""
        least, most, more = self._of_one
        excess = max(self.fourth, self.of_all) / variance if variance > 0 else LAPLACE
        return min(max(least + excess * more, least), most)

    def beyond_of_one(self, variance: float) -> float:
        """Return `beyond` of one error."""
        if variance <= 0:
            return 0.0
        often = variance > (1 - self.level) * self.step**2
        reached = self.deviations_of_one(variance) * sqrt(variance)
        return max(ONE_STEP * self.step - reached if often else 0.0, self.step / 2)

    def people(self, variance: float) -> float:
        """Return how many people an error of this variance may be, whatever its law."""
        deviations = float(self._laws[2].of(np.array(LAPLACE)))
        return deviations * sqrt(variance) + float(self.beyond(np.array([variance]))[0])


Reached = tuple[Array, Array, Array]  # deviations, people beyond them, and the variance


class Inside(NamedTuple):
    """Least squares of the people inside, by region."""

    mean: Array
    variance: Array
    with_all: Array  # covariance with the number of all people


def reach_of(found: LevelMap, level: float) -> Reach:
    """Return how far intervals of this level reach on a map."""
    of_all, *below = fourth_of_levels(found)
    return Reach(level, max(each.step for each in found.levels), max(below, default=0.0), of_all)


def in_rows(reaches: Sequence[Reach]) -> Reach:
    """Return the reach of all levels, which lie in rows, of reaches on one map."""
    return replace(reaches[0], level=np.array([[each.level] for each in reaches]))


class _Deviations(NamedTuple):
    """How many standard deviations an interval of a level reaches, by the excess of the error."""

    least: float | Array  # of a normal law
    most: float | Array  # of Laplace's
    more: float | Array  # by one of the excess

    def of(self, excess: Array) -> Array:
        """Return how many for these."""
        return np.minimum(np.maximum(self.least + excess * self.more, self.least), self.most)


def _law_of(level: float | Array) -> _Deviations:
    normal = np.vectorize(standard_errors)(level)
    laplace = np.maximum(-np.log(1 - level) / sqrt(2), normal)
    return _Deviations(normal, laplace, (normal**3 - 3 * normal) / 24)


def noise_deviations(level: float, excess: ArrayLike = LAPLACE) -> Array:
    """Return how many standard deviations an interval reaches, by the excess kurtosis of the error.

    Enough for one Laplace variable, whose excess is 3, and for sums of any such: at level .95 what
    is left out is at most .0502, at .99 .0101 (sums of 1 to 20 alike, and of one large and many
    small ones).

    Examples
    --------
    >>> noise_deviations(0.95, [3.0, 0.0, 0.3]).round(3)
    array([2.118, 1.96 , 1.981])
    """
    with np.errstate(over="ignore"):
        return _law_of(level).of(np.asarray(excess))


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


def ends_of(
    inside: Inside,
    people: float,
    of_all: float,
    reach: Reach,
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

    def reached(sides: int, part: Array | float = 1.0) -> Reached:
        return (*reach.reached(error * part, part_of_all, sides), variance * part)

    def root(estimate: Array | float, side: int, reached: Reached) -> Array:
        deviations, beyond, own = reached
        center = estimate + side * beyond
        spread = deviations**2
        square = people**2 - spread * of_all  # above 0: so many people that there are some
        linear = center * people - spread * with_all
        rest = linear**2 - square * (center**2 - spread * own)
        share = (linear + side * np.sqrt(np.maximum(rest, 0.0))) / square
        return np.asarray(np.clip(share, 0, 1))

    from_above = np.minimum(mean, people)
    from_below = np.maximum(mean, 0.0)
    of_one = reached(1)
    one_sided = root(from_above, -1, of_one), root(from_below, 1, of_one)
    if sides == 1:
        return one_sided
    of_both = reached(2)
    lower, upper = root(from_above, -1, of_both), root(from_below, 1, of_both)
    # No upper end is below the first of these, and no lower end above the second.
    least_upper = root(0.0, 1, of_both if empty is None else reached(2, empty))
    most_lower = root(people, -1, of_both) if empty is None else np.ones(len(mean))
    apart = least_upper <= most_lower
    nearer = np.minimum(one_sided[0], least_upper), np.maximum(one_sided[1], most_lower)
    return (
        np.where(apart, np.maximum(lower, nearer[0]), lower),
        np.where(apart, np.minimum(upper, nearer[1]), upper),
    )
