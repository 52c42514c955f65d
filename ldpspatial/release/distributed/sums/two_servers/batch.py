"""Batch: reports whose sum two servers show, each with noise of its own."""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from client_sdk.shared import Entropy, system_entropy
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.privacy.discrete_laplace import noise_deviation, sample
from ldpspatial.release.distributed._checks import MAX_BITS, MAX_CLIENTS
from ldpspatial.release.distributed.sums.cohort import Cohort, NoisySum, checked_round
from ldpspatial.release.distributed.sums.two_servers.aggregator import (
    Aggregator,
    collect,
    is_valid,
    split,
)
from ldpspatial.validate import MICRO, check_generator, whole_number, written_epsilon

Ints = NDArray[np.int64]
SERVERS = 2

CONDITIONS = (
    "one of two aggregators follows the protocol and shows nobody its noise; the other one, the "
    "collector and all other clients may do anything",
    "each report counts in one batch, and a batch is collected once",
    "that shares and proofs tell an aggregator nothing is computational, as Prio3 and HPKE are",
    "the number of reports is public, and who sends none, which does not depend on the data",
)


@dataclass(frozen=True)
class Batch(Cohort):
    """Clients who send two servers a report each, in place of shards of a secure sum.

    As the ``cohort`` of a distributed release it takes the place of a
    :class:`ldpspatial.release.distributed.Cohort`. All who report are one batch, as DAP calls it
    (draft-ietf-ppm-dap). Clients add no noise, and there is no threshold: the noise is there
    whoever stays away. Epsilon is from 0.000001 to 20 a batch.

    ``sum`` draws all that a seed may repeat from ``rng``, exactly: it is the law of two
    :class:`~ldpspatial.release.distributed.sums.two_servers.aggregator.Aggregator` objects. That
    reports are valid is taken as proved: no more than the sensitivity each.

    Attributes
    ----------
    drop_out : float in [0, 1)
        Chance of each client to send no report to a batch, independently (simulated).

    Raises
    ------
    InputError
        A field breaks its rule.

    Examples
    --------
    >>> ones = sparse.csr_array(np.ones((1000, 3), dtype=np.int64))
    >>> total = Batch(drop_out=0.1).sum(ones, 3.0, 3, np.random.default_rng(1))
    >>> total.survivors, total.counts.tolist(), round(total.deviation, 2)
    (908, [909, 908, 909], 1.92)
    """

    # What a secure sum needs and two servers do not. Numbers are modulo a prime of 128 bits; 2^62
    # is what the rest of the package can tell.
    shard_size: int = field(init=False, default=MAX_CLIENTS, repr=False)
    tolerated: float = field(init=False, default=0.0, repr=False)
    colluding: float = field(init=False, default=0.0, repr=False)
    bits: int = field(init=False, default=MAX_BITS, repr=False)

    def threshold(self, clients: int) -> int:
        """Return 1: a single report is hidden by the noise as many are."""
        whole_number("clients", clients, 1, MAX_CLIENTS)
        return 1

    def deviation(self, epsilon: float, sensitivity: int, clients: int) -> float:
        """Return the standard deviation of the noise of both servers, however many report."""
        written_epsilon("epsilon", epsilon)
        del clients
        return sqrt(SERVERS) * noise_deviation(epsilon, sensitivity)

    def claim(self, epsilon: float, clients: int | None = None) -> PrivacyClaim:
        """Return what batches that spend epsilon together promise, exactly.

        Parameters
        ----------
        epsilon : float from 0.000001 to 20
            The sum over all batches.
        clients : int, optional
            Of no matter here.
        """
        written_epsilon("epsilon", epsilon)
        del clients
        return PrivacyClaim("distributed", epsilon, neighbours="zero", conditions=CONDITIONS)

    @property
    def assumption(self) -> str:
        """What it rests on that each server sees nothing but sums."""
        return "computational, as Prio3 and HPKE are, and one of two servers is honest"

    def sum(
        self,
        contributions: sparse.csr_array,
        epsilon: float,
        sensitivity: int,
        rng: np.random.Generator,
    ) -> NoisySum:
        """Simulate one batch; arguments as in :meth:`Cohort.sum`, epsilon from 0.000001 to 20."""
        rows = checked_round(contributions, epsilon, sensitivity)
        micro = int(written_epsilon("epsilon", epsilon) * MICRO)
        check_generator(rng)
        clients, length = rows.shape
        if self.drop_out:
            rows = rows[rng.random(clients) >= self.drop_out]
        here = rows.shape[0]
        counts = np.zeros(length, dtype=np.int64)
        if here:
            # Laplace noise of this scale is epsilon's by itself: either server's is enough.
            counts = self._collected(rows, sensitivity, sensitivity * MICRO, micro, rng.bytes)
        spread = self.deviation(micro / MICRO, sensitivity, clients) if here else 0.0
        return NoisySum(counts, 1, int(here > 0), clients, here, spread)

    def _collected(
        self, rows: sparse.csr_array, most: int, numerator: int, denominator: int, noise: Entropy
    ) -> Ints:
        """Return the sums that the collector gets of reports that arrived."""
        del most
        counts = np.asarray(rows.sum(axis=0), dtype=np.int64)
        for _ in range(SERVERS):
            counts = counts + sample(len(counts), numerator, denominator, noise)
        return counts


@dataclass(frozen=True)
class SharedBatch(Batch):
    """A batch that is played report by report, between two aggregators and a collector.

    Slow, and of the same law: to see the pipeline at work. From the same generator it gives the
    very numbers of :class:`Batch`, since shares are drawn from the operating system.

    Examples
    --------
    >>> ones = sparse.csr_array(np.eye(4, dtype=np.int64))
    >>> rng = np.random.default_rng
    >>> slow, fast = (kind().sum(ones, 1.0, 1, rng(1)).counts for kind in (SharedBatch, Batch))
    >>> slow.tolist() == fast.tolist()
    True
    """

    def _collected(
        self, rows: sparse.csr_array, most: int, numerator: int, denominator: int, noise: Entropy
    ) -> Ints:
        length = rows.shape[1]
        leader, helper = (Aggregator(length, numerator, denominator, noise) for _ in range(SERVERS))
        for start in range(rows.shape[0]):
            report = split(rows[[start]].toarray()[0].tolist(), system_entropy)
            if is_valid(*report, most):
                leader.add(report[0])
                helper.add(report[1])
        return np.array(collect(leader.noisy_sum(), helper.noisy_sum()), dtype=np.int64)
