"""Which level of a map to publish: by an estimate from the noisy counts, or by the truth.

Fine levels drown in noise, coarse ones blur. A server can only choose from what it has, the noisy
counts; what it makes of them costs no privacy. The papers choose by the truth: an oracle, kept
here under its own name so that their tables can be had, without a privacy claim.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import Model, PrivacyClaim
from ldpspatial.release.distributed.levels.map_levels import Array, Ints, Levels
from ldpspatial.release.distributed.levels.one_visit import OneVisit, Published
from ldpspatial.validate import check_epsilon, number_array

STANDARD_ERRORS = 2.0  # docs/distributed.md: fewer pick noise now and then, more blur small crowds


@dataclass(frozen=True, eq=False)
class LevelCounts(ABC):
    """Estimated counts of people on every level.

    Attributes
    ----------
    levels : Levels
    people : sequence of int
        Clients whose reports are in the counts of levels 1, 2, ...
    spent : float
        Epsilon of all sums together.
    """

    levels: Levels
    people: Sequence[int]
    spent: float

    @abstractmethod
    def counts(self, level: int) -> Array:
        """Return the estimated counts of a level from 1 on, of any sign."""

    @abstractmethod
    def squared_error(self, level: int) -> tuple[float, float]:
        """Estimate the squared error of a level's density, and the standard error of that.

        The sum over cells of the map of (density - truth)^2, less truth^2, which no level changes;
        the truth is the density of those from whom the clients were drawn.
        """


@dataclass(frozen=True, eq=False)
class NoisyCounts(LevelCounts):
    """Counts with discrete Laplace noise, each level with its own.

    Attributes
    ----------
    maps : sequence of arrays
        Noisy counts of levels 1, 2, ...
    decays : sequence of float
        -ln a of each level's noise: epsilon by sensitivity.
    deviations : sequence of float
        Standard deviation of each level's noise.
    """

    maps: Sequence[Array]
    decays: Sequence[float]
    deviations: Sequence[float]

    def counts(self, level: int) -> Array:
        """Return the noisy counts."""
        return self.maps[level - 1]

    def squared_error(self, level: int) -> tuple[float, float]:
        """Estimate from the level's own counts; see `product_with_mean`.

        The standard error is rather too large. A sum over cells of y^2 / A has the variance
        sum (4 m^2 v + 5 v^2) / A^2 from Laplace noise of variance v, which clipping only lessens,
        and 4 (sum m^3 / A^2 - (sum m^2 / A)^2 / sum m) from the draw of the people.
        """
        counts = self.counts(level)
        areas = self.levels.areas(level)
        people = self.people[level - 1]
        decay = self.decays[level - 1]
        variance = self.deviations[level - 1] ** 2
        kept = np.maximum(counts, 0)
        total = kept.sum()
        if total == 0 or people == 0:
            return uniform_error(self.levels), 0.0
        # The error is |f|^2 - 2 f.truth, f = kept / (total A) on the A pixels of a cell: squares
        # give the first term, products the second without bias (the total counts as fixed).
        squares = (kept**2 / areas).sum()
        products = (product_with_mean(counts, decay, sqrt(variance)) / areas).sum()
        # y^2 - v is m^2 in the mean.
        of_noise = 4 * max(((counts**2 - variance) / areas**2).sum(), 0.0) * variance
        of_noise += 5 * variance**2 * (1 / areas**2).sum()
        of_people = 4 * max((kept**3 / areas**2).sum() - squares**2 / total, 0.0)
        scale = 2 / (total * people)
        return float(squares / total**2 - scale * products), scale * sqrt(of_noise + of_people)


def product_with_mean(counts: Array, decay: float, deviation: float) -> Array:
    """Estimate without bias the product of a clipped noisy count and its mean without noise.

    Let y = x + Z: x people, Poisson of mean m, and Z the sum of r shares, not necessarily whole, of
    discrete Laplace noise of parameter a, its variance v = 2 r a / (1 - a)^2. For g(y) = max(y, 0),

        E[m g(y)] = E[y g(y - 1) - w(y - 1)],   w(y) = v (1 - a^y / 2) if y >= 0, else v a^-y / 2.

    Two identities of Stein's kind. E[m g(x + Z)] = E[x g(x - 1 + Z)] for Poisson x: a person is
    compared with the count of the others, as in the cross-validation of histograms (Rudemo 1982),
    which is what remains without noise. And E[Z g(x + Z)] = E[w(x + Z)] for every x: the generating
    function of Z is ((1 - a)^2 / ((1 - a z) (1 - a / z)))^r, and its logarithmic derivative says
    E[Z h(Z)] = r sum over k >= 1 of a^k E[h(Z + k) - h(Z - k)]; for h = g that sum is w.

    Parameters
    ----------
    counts : array of y
    decay : float
        -ln a.
    deviation : float
        Root of v.
    """
    before = counts - 1
    tail = deviation**2 / 2 * np.exp(-decay * np.abs(before))
    noise = np.where(before >= 0, deviation**2 - tail, tail)
    products: Array = counts * np.maximum(before, 0) - noise
    return products


def uniform_error(levels: Levels) -> float:
    """Return the squared error of the uniform map, less the squared norm of the truth."""
    rows, columns = levels.shape
    # |u|^2 - 2 u.truth = 1 / P - 2 / P for u = 1 / P on P pixels.
    return -1.0 / (rows * columns)


def promising_level(found: LevelCounts) -> int:
    """Return the level whose squared error, two standard errors on top, is least.

    Level 0, the uniform map, is one of them: its error needs no estimate. The estimate alone would
    now and then fall for a fine level, where it is unbiased but a matter of luck.
    """
    bounds = [uniform_error(found.levels)]
    for level in range(1, found.levels.depth + 1):
        estimate, error = found.squared_error(level)
        bounds.append(estimate + STANDARD_ERRORS * error)
    return int(np.argmin(bounds))


def best_level(found: LevelCounts, truth: NDArray[np.float64]) -> int:
    """Return the level from 1 on whose density is nearest to the truth: this looks at data."""
    levels = found.levels
    errors = [
        np.square(levels.density(found.counts(level), level) - truth).sum()
        for level in range(1, levels.depth + 1)
    ]
    return int(np.argmin(errors)) + 1


@dataclass(frozen=True)
class OneLevel(OneVisit):
    """Counts of every level in one round, of which one level is published."""

    @abstractmethod
    def vector_length(self, levels: Levels) -> int:
        """Return how many numbers a client sends."""

    @abstractmethod
    def collect(
        self, levels: Levels, cells: Ints, epsilon: float, rng: np.random.Generator
    ) -> LevelCounts:
        """Return what the server learns of clients in these cells of the map, one each."""

    def choose(self, found: LevelCounts, users: UserCells) -> int:
        """Return the level to publish, from the noisy counts alone."""
        del users  # not the server's to see
        return promising_level(found)

    def publish(
        self, users: UserCells, cells: Ints, epsilon: float, rng: np.random.Generator
    ) -> Published:
        """Collect all levels and publish one."""
        levels = Levels(users.shape)
        found = self.collect(levels, cells, epsilon, rng)
        level = self.choose(found, users)
        counts = found.counts(level) if level else np.zeros((1, 1))
        facts = {
            "vector_length": self.vector_length(levels),
            "rounds": 1,
            "level": level,
            "survivors": min(found.people),
        }
        return Published(levels.density(counts, level), found.spent, facts)


@dataclass(frozen=True)
class ChosenByTruth(OneLevel):
    """An oracle: the level is the one nearest to the truth. Without a privacy claim.

    Attributes
    ----------
    truth : (rows, columns) array or None
        What the level is to be nearest to; the users' own density where it is None. A map from
        which the users were drawn gives the published tables.
    """

    model: ClassVar[Model] = "none"
    truth: Array | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.truth is not None:
            _checked_truth(self.truth, ("rows", "columns"))

    def claim_of(self, epsilon: float, clients: int | None) -> PrivacyClaim:
        """Return no claim: the choice looks at the data."""
        check_epsilon(epsilon)
        del clients
        return PrivacyClaim("none", inf, conditions=("the level is chosen against the truth",))

    def choose(self, found: LevelCounts, users: UserCells) -> int:
        """Return the level whose density is nearest to the truth."""
        if self.truth is None:
            return best_level(found, users.density)
        return best_level(found, _checked_truth(self.truth, users.shape))


def _checked_truth(truth: Array, shape: tuple[int | str, ...]) -> Array:
    """Return a map of masses as a density."""
    masses = number_array("truth", truth, shape, "[0, inf)", bools=True)
    total = masses.sum()
    if not 0 < total < inf:
        raise InputError(f"truth must have a positive and finite total, got {total:g}")
    return np.asarray(masses / total)
