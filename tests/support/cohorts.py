"""Cohorts for tests: without noise, without data, with a record of what was summed."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ldpspatial.release.distributed.noise.polya import sum_of_shares
from ldpspatial.release.distributed.sums.cohort import Cohort, NoisySum

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Call:
    """What a release handed to a sum, and what it got back."""

    contributions: sparse.csr_array
    epsilon: float
    sensitivity: int
    found: NoisySum

    @property
    def loss(self) -> float:
        """Largest privacy loss of a client in this sum: L1 norm by the scale of the noise."""
        return float(self.contributions.sum(axis=1).max()) * self.epsilon / self.sensitivity


@dataclass(frozen=True)
class Recording(Cohort):
    """The real thing, which remembers."""

    calls: list[Call] = field(default_factory=list, compare=False, repr=False)

    def sum(
        self,
        contributions: sparse.csr_array,
        epsilon: float,
        sensitivity: int,
        rng: np.random.Generator,
    ) -> NoisySum:
        found = super().sum(contributions, epsilon, sensitivity, rng)
        self.calls.append(Call(contributions, epsilon, sensitivity, found))
        return found


@dataclass(frozen=True)
class Silent(Cohort):
    """Sums without noise."""

    def sum(
        self,
        contributions: sparse.csr_array,
        epsilon: float,
        sensitivity: int,
        rng: np.random.Generator,
    ) -> NoisySum:
        noisy = super().sum(contributions, epsilon, sensitivity, rng)
        return replace(noisy, counts=np.asarray(contributions.sum(axis=0)), deviation=0.0)


@dataclass(frozen=True)
class Deaf(Cohort):
    """Sums that do not depend on what clients contribute."""

    def sum(
        self,
        contributions: sparse.csr_array,
        epsilon: float,
        sensitivity: int,
        rng: np.random.Generator,
    ) -> NoisySum:
        nothing = sparse.csr_array(contributions.shape, dtype=np.int64)
        return super().sum(nothing, epsilon, sensitivity, rng)


@dataclass(frozen=True)
class HalfNoise(Cohort):
    """A bug to be caught: noise for twice the epsilon that is claimed."""

    def sum(
        self,
        contributions: sparse.csr_array,
        epsilon: float,
        sensitivity: int,
        rng: np.random.Generator,
    ) -> NoisySum:
        return super().sum(contributions, 2 * epsilon, sensitivity, rng)


def replays(call: Call, client: int, repeats: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw the sum of a single shard anew, with the report of a client and with zeros instead.

    The noise is the simulation's own for the epsilon and sensitivity that the release asked for.
    Only entries that the client contributes to are drawn, less what the other clients contribute,
    which both inputs have in common.

    Returns
    -------
    with_report, without_report : (repeats, entries) int64 arrays
    """
    mine = call.contributions[[client]].toarray().ravel()
    mine = mine[mine > 0]
    clients = call.found.clients
    noise = [
        sum_of_shares(clients, clients, call.epsilon / call.sensitivity, repeats * mine.size, rng)
        for _ in range(2)
    ]
    with_report, without_report = (part.reshape(repeats, mine.size) for part in noise)
    return with_report + mine, without_report


def log_likelihood_ratio(call: Call, client: int, sums: Ints) -> NDArray[np.float64]:
    """Return ln P(sums | report) - ln P(sums | zeros), summed over entries: the best statistic."""
    mine = call.contributions[[client]].toarray().ravel()
    mine = mine[mine > 0]
    ratio: NDArray[np.float64] = (np.abs(sums) - np.abs(sums - mine)).sum(axis=1)
    return ratio * call.epsilon / call.sensitivity
