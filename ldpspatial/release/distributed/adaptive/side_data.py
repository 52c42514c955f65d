"""Side data: which share of the people of a region have a property, and how sure that is.

A user answers with region and status in one vector, a one in 2 T entries, so the sensitivity stays
1. Regions are split and given up by the width of the confidence interval of their proportion
instead of by their number of people (Bagdasaryan et al. 2022, appendix B).
"""

from dataclasses import dataclass, field
from math import log, sqrt
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.release.distributed._checks import check_clients
from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.adaptive.rounds import (
    OneLocation,
    Round,
    facts,
    last_revealed,
    one_hot,
)
from ldpspatial.release.release import Fact
from ldpspatial.validate import instance, number_in

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProportionMap:
    """Proportions of one run by pixel; all pixels of an element share one.

    Attributes
    ----------
    proportion : (rows, columns) array in [0, 1]
        NaN where nobody was counted.
    lower, upper : (rows, columns) arrays in [0, 1]
        Confidence interval of the element's proportion, each for itself: of many, some miss.
    density : (rows, columns) array
        Where people are, with the property or without; sums to 1.
    tree : PrefixTree
    claim : PrivacyClaim
    facts : mapping of str to number or text
    """

    proportion: Array
    lower: Array
    upper: Array
    density: Array = field(repr=False)
    tree: PrefixTree
    claim: PrivacyClaim
    facts: dict[str, Fact]


@dataclass(frozen=True)
class SideData:
    """Map of a proportion by an adaptive hierarchical histogram with two counts an element.

    Attributes
    ----------
    histogram : AdaptiveHierarchical
        How rounds are run: one position a user, threshold "adaptive".
    width : float in (0, 1)
        Wanted width of the confidence interval. An element is split where a quarter of its people
        would still have that width, and given up where all of them do not, both with the least
        noise that is still possible.
    confidence : float in (0, 1)
        Of the interval.

    Raises
    ------
    InputError
        A field breaks its rule.
    """

    histogram: AdaptiveHierarchical = field(default_factory=AdaptiveHierarchical)
    width: float = 0.2
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for name in ("width", "confidence"):
            number_in(name, getattr(self, name), "(0, 1)")
        instance("histogram", self.histogram, AdaptiveHierarchical)
        if not isinstance(self.histogram.locations, OneLocation):
            raise InputError("histogram must have locations OneLocation: a status is a person's")
        if self.histogram.threshold != "adaptive":
            raise InputError(
                f"histogram must have the threshold 'adaptive', got {self.histogram.threshold!r}"
            )

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return epsilon-DP for position and status of each user, all rounds together."""
        return self.histogram.claim(epsilon)

    def run(
        self, users: UserCells, positive: ArrayLike, epsilon: float, rng: np.random.Generator
    ) -> ProportionMap:
        """Run and return the map of the last round of which a sum was seen.

        Parameters
        ----------
        users : UserCells
        positive : (users,) array of bool
            Who has the property.
        epsilon : float > 0
        rng : numpy.random.Generator

        Raises
        ------
        InputError
            A bad argument, or statuses that are not one bool a user.
        """
        trace = self.rounds_of(users, positive, epsilon, rng)
        final = last_revealed(trace)
        tree = final.tree
        shards = self.histogram.cohort.shard_count(final.asked)
        has, has_not = final.counts.reshape(-1, 2).T
        proportion, lower, upper = proportion_interval(
            has, has_not, final.deviation, self.confidence, shards
        )
        known = facts(trace, self.histogram.asked == "once")
        wide = (upper - lower)[tree.labels] > self.width
        return ProportionMap(
            proportion[tree.labels],
            lower[tree.labels],
            upper[tree.labels],
            tree.density(has + has_not),
            tree,
            self.claim(epsilon),
            {**known, "share_of_pixels_within_width": float(1 - wide.mean())},
        )

    def rounds_of(
        self, users: UserCells, positive: ArrayLike, epsilon: float, rng: np.random.Generator
    ) -> tuple[Round, ...]:
        """Run and return every round; counts alternate: with the property, without, by element.

        Parameters and errors are those of :meth:`run`.
        """
        check_clients(users, epsilon, rng)
        try:
            status = np.asarray(positive)
        except ValueError:  # rows of different lengths
            raise InputError("positive must be a bool for each user, of one shape") from None
        if status.shape != (len(users),) or status.dtype != np.bool_:
            raise InputError(
                f"positive must be a bool for each of {len(users)} users, "
                f"got {status.dtype} {status.shape}"
            )
        cells = cast(OneLocation, self.histogram.locations).cells(users, rng)
        return self.histogram.ask(
            users.shape,
            len(users),
            # Even entries count those with the property, odd ones the others: a single 1 a user.
            lambda tree, _: one_hot(2 * tree.assign(cells) + ~status, 2 * len(tree)),
            self._grown,
            epsilon,
            rng,
            entries=2,
        )

    def _grown(self, step: Round) -> PrefixTree:
        """Split and remove by the widths that the best round still possible would allow."""
        tree = step.tree
        ahead = step.best / step.asked  # people in it for each that was asked now
        shards = self.histogram.cohort.shard_count(step.best)
        # The adaptive threshold is two deviations of the least noise that is still possible.
        deviation = ahead * step.threshold / 2
        has, has_not = ahead * step.counts.reshape(-1, 2).T

        def narrow(part: float) -> list[bool]:
            law = deviation, self.confidence, shards
            _, lower, upper = proportion_interval(part * has, part * has_not, *law)
            within: list[bool] = (upper - lower <= self.width).tolist()
            return within

        limit = min(self.histogram.depth, tree.depth)
        elements = tree.elements
        split = [
            node
            for node, fine in zip(elements, narrow(0.25), strict=True)
            if fine and node[0] < limit
        ]
        removed = [node for node, fine in zip(elements, narrow(1.0), strict=True) if not fine]
        return tree.split(split).collapse(removed)


def proportion_interval(
    has: ArrayLike, has_not: ArrayLike, deviation: float, confidence: float, shards: int = 1
) -> tuple[Array, Array, Array]:
    """Return proportions and their confidence intervals from two noisy counts each.

    The set of p at which (1 - p) A - p B is within z of its standard deviations of 0, whose square
    is N p (1 - p) for sampling and (p^2 + (1 - p)^2) deviation^2 for noise: a quadratic inequality
    (Fieller 1954). Without noise it is the score interval of Wilson (1927). z lies between the
    quantile of the normal and of the Laplace law, by the share of the Laplace law's kurtosis that
    the sum has. docs/adaptive.md has the measured coverage.

    Parameters
    ----------
    has, has_not : (n,) array_like
        Noisy counts A and B; what is negative is read as 0.
    deviation : float >= 0
        Standard deviation of the noise in each of them.
    confidence : float in (0, 1)
    shards : int
        Independent parts of equal size that the noise is a sum of.

    Returns
    -------
    proportion, lower, upper : (n,) float64 arrays
        Proportions NaN and intervals [0, 1] where A = B = 0.

    Examples
    --------
    >>> [value.round(3).tolist() for value in proportion_interval([30], [70], 0.0, 0.95)]
    [[0.3], [0.219], [0.396]]
    >>> [value.round(3).tolist() for value in proportion_interval([30], [70], 5.0, 0.95)]
    [[0.3], [0.187], [0.421]]
    """
    a, b = (np.maximum(np.asarray(counts, dtype=np.float64), 0.0) for counts in (has, has_not))
    people = a + b
    variance = deviation**2
    p = np.divide(a, people, out=np.full(a.shape, np.nan), where=people > 0)
    at = np.nan_to_num(p, nan=0.5)
    spread = people * at * (1 - at) + (at**2 + (1 - at) ** 2) * variance
    noisy = np.divide(variance, spread, out=np.zeros(a.shape), where=spread > 0)
    # Of (1 - p) A - p B the fourth cumulant of the noise over the whole variance squared, in units
    # of a Laplace law's kurtosis. That of a sum of K parts is K times smaller.
    share = (at**4 + (1 - at) ** 4) * noisy**2 / shards
    normal = ndtri((1 + confidence) / 2)
    # Of a Laplace law of variance 1: P(|X| > x) = exp(-sqrt(2) x).
    laplace = -log(1 - confidence) / sqrt(2)
    square = (normal + share * (laplace - normal)) ** 2
    # (a - p N)^2 <= z^2 [N p (1 - p) + (1 - 2 p + 2 p^2) v], in powers of p
    quadratic = people**2 + square * people - 2 * square * variance
    linear = 2 * a * people + square * people - 2 * square * variance
    constant = a**2 - square * variance
    # The roots bound the interval only where the parabola opens upwards; else no p is ruled out.
    known = (quadratic > 0) & (people > 0)
    twice = np.where(known, 2 * quadratic, 1.0)
    # linear is minus the coefficient of p, hence (linear -+ root) / twice.
    root = np.sqrt(np.maximum(linear**2 - 4 * quadratic * constant, 0.0))
    lower = np.where(known, np.clip((linear - root) / twice, 0.0, 1.0), 0.0)
    upper = np.where(known, np.clip((linear + root) / twice, 0.0, 1.0), 1.0)
    return p, lower, upper
