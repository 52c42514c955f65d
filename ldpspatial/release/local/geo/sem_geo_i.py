"""SEM-Geo-I: the subset exponential mechanism under geo-indistinguishability (Wang et al. 2017).

DAM's rival in the DAM paper (Du et al. 2024, section VII), compared there at equal local privacy
because its epsilon means something else: it is a loss per cell of distance, NOT epsilon-LDP.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice
from math import ceil, comb, log, sqrt
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.errors import InputError
from ldpspatial.estimation import estimate
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.privacy.local_privacy import cell_distances
from ldpspatial.release.local.geo.planar_laplace import geo_claim, noise_patches
from ldpspatial.release.local.geo.subset_exponential import (
    SubsetExponential,
    squared_distances,
    subset_exponential,
)
from ldpspatial.release.local.local_release import LocalRelease, side_within, square_side
from ldpspatial.release.local.sets.set_reports import check_users
from ldpspatial.release.release import Released
from ldpspatial.validate import MAX_EPSILON, MICRO, exact_epsilon, number_in, one_of

Array = NDArray[np.float64]
Steps = NDArray[np.int16]

MOST_CELLS = 32  # beyond it tables of all pairs of cells take minutes
MOST_SETS = 100_000  # that local privacy goes through; beyond it a sample stands for all
SAMPLED_SETS = 20_000
SETS_AT_A_TIME = 1_000
DRAWN_AT_A_TIME = 1 << 20  # cells of sets


class LocalPrivacy(NamedTuple):
    """Local privacy in cells, and the standard error where a sample of sets stands for all."""

    value: float
    standard_error: float


@dataclass(frozen=True)
class SemGeoI(LocalRelease):
    """Subset exponential mechanism, decoded by the inverse of its hit matrix.

    A report is a set of k cells, likelier the nearer it comes to the user, or empty. Epsilon is
    per cell: the loss between two positions is epsilon times the distance of their cells. That is
    geo-indistinguishability, not epsilon-LDP.

    Attributes
    ----------
    size : int or None
        k; by default the paper's, see :meth:`subset_size`.
    estimator : {"inverse", "em"}
        "inverse" is the paper's decoding, which sets negative shares to 0. "em" maximises the
        likelihood, to which empty reports contribute too; for sets of one cell only. It stops as
        :class:`~ldpspatial.release.local.geo.planar_laplace.PlanarLaplace` does.
    """

    size: int | None = None
    estimator: Literal["inverse", "em"] = "inverse"

    name: ClassVar[str] = "sem-geo-i"

    def __post_init__(self) -> None:
        if self.size is not None:
            self._keep_whole("size", 1)  # as an int: the law overflows numpy's
        one_of("estimator", self.estimator, ("inverse", "em"))

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return epsilon-geo-indistinguishability per cell; it is not epsilon-LDP."""
        epsilon = number_in("epsilon", epsilon, f"[{1 / MICRO}, {MAX_EPSILON}]")
        return geo_claim(epsilon, "cell", "distances between cells are those of their centres")

    def subset_size(self, cells: int, epsilon: float) -> int:
        """Return k: the field, or ceil(d^2 / (e^(epsilon * mean distance) + 1)).

        The mean is over the pairs of different cells, as in the code of the DAM paper's authors.

        Raises
        ------
        InputError
            A field that leaves no choice on this map: k must be below d^2 (1 on a single cell).
        """
        cells = side_within(self.name, cells, MOST_CELLS)
        most = max(1, cells**2 - 1)
        if self.size is None:
            # 1 / (e^x + 1) is expit(-x), which does not overflow.
            return max(1, ceil(cells**2 * float(expit(-epsilon * _mean_distance(cells)))))
        if self.size > most:
            raise InputError(
                f"size must be at most {most} on {cells} x {cells} cells, got {self.size}"
            )
        return self.size

    def law(self, cells: int, epsilon: float) -> SubsetExponential:
        """Return the probabilities of all reports, exact and with the claim proved."""
        epsilon = self.claim(epsilon).epsilon
        return subset_exponential(cells, self.subset_size(cells, epsilon), exact_epsilon(epsilon))

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the mean distance of an observer's guess, in cells.

        Exact up to 100,000 sets (k = 1 on every map, k = 2 up to 21 x 21 cells), otherwise an
        estimate from 20,000 sets, the same for every epsilon: see :meth:`sampled_local_privacy`.
        """
        return self.sampled_local_privacy(cells, epsilon).value

    def sampled_local_privacy(self, cells: int, epsilon: float) -> LocalPrivacy:
        """Return the local privacy with its standard error, which is 0 where it is exact.

        With S(Z) the sum over cells of a set's weight and g(Z) the mean distance of a guess from
        its posterior, the sets' part is sum S g / sum S times the probability of a set, which is
        known exactly. The sample is uniform over sets of k cells, so the estimate is as smooth in
        epsilon as the truth and can be solved for.
        """
        law = self.law(cells, epsilon)
        distances = cell_distances((cells, cells))
        # Weights may be beyond all floats; quotients of whole numbers are rounded once and are not.
        by_step = np.array([weight / law.weights[0] for weight in law.weights])
        nearest, complete = _nearest_steps(cells, law.size)
        sums = np.empty(len(nearest))
        guesses = np.empty(len(nearest))
        for first in range(0, len(nearest), SETS_AT_A_TIME):
            some = slice(first, first + SETS_AT_A_TIME)
            weights = by_step[nearest[some]]
            sums[some] = weights.sum(axis=1)
            apart = np.einsum("zx,zx->z", weights @ distances, weights)
            guesses[some] = apart / sums[some] ** 2
        mean = float(sums @ guesses / sums.sum())
        empty = law.empty
        # P(empty) = sum / d^2, times the mean distance of two draws from the posterior empty / sum.
        unseen = float(empty @ distances @ empty / empty.sum()) / cells**2 if empty.any() else 0.0
        share = 1 - float(empty.mean())
        # Of a ratio of two means, to first order: the spread of S (g - ratio) over the mean of S.
        spread = float(np.std(sums * (guesses - mean)) / sums.mean())
        error = 0.0 if complete else share * spread / sqrt(len(nearest))
        return LocalPrivacy(share * mean + unseen, error)

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Draw one report a user and decode how often each cell was in a set."""
        claim = self.claim(epsilon)
        side = square_side(self.name, users)
        check_users(len(users))
        law = self.law(side, epsilon)
        if self.estimator == "em" and law.size > 1:
            raise InputError(f"estimator must be inverse for sets of {law.size} cells, got em")
        hits = np.zeros(side**2, np.int64)
        empty = 0
        at_a_time = max(1, DRAWN_AT_A_TIME // law.size)
        for cell, people in enumerate(np.bincount(users.one_cell_each(rng)).tolist()):
            for first in range(0, people, at_a_time):
                sets = law.draw(cell, min(at_a_time, people - first), rng)
                empty += int((sets[:, 0] < 0).sum())
                hits += np.bincount(sets[sets >= 0], minlength=side**2)
        found = None
        if self.estimator == "em":
            matrix = np.vstack([law.hits, law.empty])
            channel = MatrixChannel(matrix, (side, side), claim.epsilon)
            found = estimate(channel, np.append(hits, empty), noise_patches(channel))
        density = decode(law, hits / len(users)).reshape(side, side)
        return Released(
            density if found is None else found.density,
            claim,
            {
                "estimator": self.estimator,
                "notion": "geo-indistinguishability per cell, not epsilon-LDP",
                "subset_size": law.size,
                "empty_reports": empty / len(users),
            },
            found,
        )


def decode(law: SubsetExponential, hit_rates: Array) -> Array:
    """Return the density of the cells from the share of reports that hold each of them.

    Unbiased before negative estimates are set to 0 and the rest to sum 1; where nothing is left,
    the uniform density.
    """
    density = np.clip(np.linalg.solve(law.hits, hit_rates), 0, None)
    total = density.sum()
    return density / total if total > 0 else np.full(len(density), 1 / len(density))


def least_epsilon(cells: int, size: int) -> float:
    """Return from which epsilon on the paper's k is at most ``size``, 1 <= size < d^2; or 0."""
    return max(0.0, log(cells**2 / size - 1) / _mean_distance(cells))


@lru_cache(maxsize=32)
def _mean_distance(cells: int) -> float:
    return float(cell_distances((cells, cells)).sum()) / max(cells**4 - cells**2, 1)


@lru_cache(maxsize=2)
def _nearest_steps(cells: int, size: int) -> tuple[Steps, bool]:
    """Return, for sets by cells, the step of the nearest cell of the set, and if these are all.

    The sets are all there are, or a uniform sample of them from a fixed seed.
    """
    squared = squared_distances(cells)
    steps = np.searchsorted(np.unique(squared), squared).astype(np.int16)
    number = comb(cells**2, size)
    complete = number <= MOST_SETS
    rng = np.random.default_rng(0)
    every = combinations(range(cells**2), size)
    found = []
    for first in range(0, number if complete else SAMPLED_SETS, SETS_AT_A_TIME):
        if complete:
            sets = np.array(list(islice(every, SETS_AT_A_TIME)))
        else:
            keys = rng.random((min(SETS_AT_A_TIME, SAMPLED_SETS - first), cells**2))
            # The places of the k smallest of independent keys are a uniform set.
            sets = np.argpartition(keys, size, axis=1)[:, :size]
        nearest = steps[sets[:, 0]]  # a copy, as an index array makes one: `steps` stays
        for column in sets.T[1:]:
            np.minimum(nearest, steps[column], out=nearest)
        found.append(nearest)
    return np.concatenate(found), complete
