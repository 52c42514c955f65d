"""Cohort: clients in shards, each of which adds up its vectors and noise shares by a secure sum.

`Cohort.sum` is a simulation: it draws the noise of a whole round at once, from a numpy Generator
and in floating point. Its law is that of clients who each add their own share (`client_sum`), which
is how a real collection works and what the proof of privacy is about (docs/noise-shares.md).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import floor, log, sqrt

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import sparse

from ldpspatial.errors import InputError
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.distributed._checks import (
    MAX_BITS,
    MAX_CLIENTS,
    MAX_SENSITIVITY,
    micro_of,
)
from ldpspatial.release.distributed.noise.polya import sum_of_shares
from ldpspatial.release.distributed.sums.secure_sum import Bools, decode, encode
from ldpspatial.validate import check_epsilon, check_generator, number_in, whole_number

Ints = NDArray[np.int64]
LEAST_DECAY = 2.0**-40  # the noise of a hundred thousand shares for one still fits into int64
NEVER = 2.0**-64  # a probability far below what floating point leaves of the law of the noise


@dataclass(frozen=True, eq=False)
class Shard:
    """One shard of a round: who is in it (row numbers), and who of them survives."""

    members: Ints
    survives: Bools

    @property
    def survivors(self) -> int:
        """How many survive."""
        return int(np.count_nonzero(self.survives))


@dataclass(frozen=True, eq=False)
class NoisySum:
    """What a server gets of one round.

    Attributes
    ----------
    counts : (length,) int64 array
        Signed sum over the revealed shards, noise included.
    shards, revealed : int
        How many shards there were, and how many had enough survivors.
    clients, survivors : int
        How many clients there were in all shards, and how many survived in the revealed ones.
    deviation : float
        Standard deviation of the noise in each entry of ``counts``.
    """

    counts: Ints
    shards: int
    revealed: int
    clients: int
    survivors: int
    deviation: float


@dataclass(frozen=True)
class Cohort:
    """How the clients of a round are put together.

    Attributes
    ----------
    shard_size : int
        S, most clients of one secure sum.
    drop_out : float in [0, 1)
        Chance of each client to fail in each round, independently (simulated).
    tolerated : float in [0, 1)
        Share of a shard's clients that may fail before its sum is withheld: of n clients,
        t = ceil((1 - tolerated) n) have to survive.
    colluding : float in [0, 1 - tolerated)
        Largest share of a shard's clients that may tell the server their noise, or add none,
        without harm to the others: shares are made for h = t - floor(colluding n) honest
        survivors.
    bits : int in [1, 62]
        The modulus is 2^bits.

    Raises
    ------
    InputError
        A field breaks its rule.
    """

    shard_size: int = 10_000
    drop_out: float = 0.0
    tolerated: float = 0.0
    colluding: float = 0.0
    bits: int = 32

    def __post_init__(self) -> None:
        whole_number("shard_size", self.shard_size, 1, MAX_CLIENTS)
        whole_number("bits", self.bits, 1, MAX_BITS)
        for name in ("drop_out", "tolerated", "colluding"):
            number_in(name, getattr(self, name), "[0, 1)")
        if Fraction(str(self.tolerated)) + Fraction(str(self.colluding)) >= 1:
            raise InputError(
                "tolerated + colluding must be below 1, "
                f"got {self.tolerated!r} + {self.colluding!r}"
            )

    @property
    def modulus(self) -> int:
        """2^bits."""
        return 1 << int(self.bits)

    def shards(self, clients: int) -> list[int]:
        """Return the sizes of the shards: as few as shard_size allows, and as equal as possible.

        Examples
        --------
        >>> Cohort(shard_size=4).shards(10)
        [4, 3, 3]
        """
        return [size for size, number in self.shard_sizes(clients) for _ in range(number)]

    def shard_sizes(self, clients: int) -> list[tuple[int, int]]:
        """Return each size of a shard, larger first, and how many shards have it.

        Examples
        --------
        >>> Cohort(shard_size=4).shard_sizes(10), Cohort(shard_size=4).shard_sizes(8)
        ([(4, 1), (3, 2)], [(4, 2)])
        """
        total = whole_number("clients", clients, 1, MAX_CLIENTS)
        number = self.shard_count(total)
        small, larger = divmod(total, number)
        sizes = [(small + 1, larger), (small, number - larger)]
        return [each for each in sizes if each[1]]

    def shard_count(self, clients: int) -> int:
        """Return how many shards there are."""
        total = whole_number("clients", clients, 1, MAX_CLIENTS)
        return -(-total // int(self.shard_size))

    def threshold(self, clients: int) -> int:
        """Return t, the fewest survivors of a shard of that many clients for which it is revealed.

        Examples
        --------
        >>> Cohort(tolerated=0.1).threshold(10), Cohort(tolerated=0.1).threshold(9)
        (9, 9)
        """
        size = whole_number("clients", clients, 1, MAX_CLIENTS)
        return size - _part(self.tolerated, size)

    def honest(self, clients: int) -> int:
        """Return h, the fewest honest survivors of a revealed shard: noise shares are made for it.

        Examples
        --------
        >>> Cohort(tolerated=0.1, colluding=0.2).honest(10)
        7
        """
        return self.threshold(clients) - _part(self.colluding, int(clients))

    def deviation(self, epsilon: float, sensitivity: int, clients: int) -> float:
        """Return the standard deviation of a total's noise, as it is before survivors are known.

        The root of the mean of ``NoisySum.deviation`` squared: a survivor adds its share of the
        variance, in a shard that is revealed.
        """
        check_epsilon(epsilon)
        shares = 0.0
        for size, number in self.shard_sizes(clients):
            # E[V; V >= t] for binomial V of n and p is n p P(V' >= t - 1), V' of n - 1 and p. That
            # chance is an incomplete beta function: scipy.stats takes as long to load as a run.
            stays = 1 - self.drop_out
            others = self.threshold(size) - 1
            enough = scipy.special.betainc(others, size - others, stays) if others else 1.0
            mean = size * stays * enough
            shares += number * mean / self.honest(size)
        return noise_deviation(epsilon, sensitivity) * sqrt(shares)

    def claim(self, epsilon: float, clients: int | None = None) -> PrivacyClaim:
        """Return what sums that spend epsilon promise clients that draw their own shares, exactly.

        Parameters
        ----------
        epsilon : float, a millionth at least
            The sum over all rounds.
        clients : int, optional
            States how many shards there are.
        """
        micro_of(epsilon)
        conditions = [
            f"a shard's sum is withheld if more than {100 * self.tolerated:.6g} % of its clients "
            "fail",
            f"at most {100 * self.colluding:.6g} % of a shard's clients omit or reveal their noise",
            f"the server sees nothing but sums of shards: {self.assumption}",
            "the number of clients is public, and who fails, which does not depend on the data",
        ]
        if clients is not None:
            most = self.shard_sizes(clients)[0][0]
            conditions.append(
                f"{self.shard_count(clients)} disjoint shards of at most {most} clients"
            )
        return PrivacyClaim("distributed", epsilon, neighbours="zero", conditions=(*conditions,))

    @property
    def assumption(self) -> str:
        """What it rests on that the server sees sums only.

        Shards of any size have 2 t > n + floor(colluding n) if 2 tolerated + colluding is below 1.
        Else so few shares give a secret back that a server may collect those of two, and show
        single vectors (docs/secure-aggregation.md).
        """
        some = "computational, as secure aggregation is"
        if 2 * Fraction(str(self.tolerated)) + Fraction(str(self.colluding)) < 1:
            return some
        return f"{some} with a server that follows the protocol, as so many may fail or collude"

    def sum(
        self,
        contributions: sparse.csr_array,
        epsilon: float,
        sensitivity: int,
        rng: np.random.Generator,
    ) -> NoisySum:
        """Simulate one round: random shards, clients that fail, secure sums with their noise.

        Parameters
        ----------
        contributions : sparse CSR array of whole numbers >= 0, shape (clients, length)
            One row a client, of L1 norm at most ``sensitivity``.
        epsilon : float > 0
            Of this round.
        sensitivity : int in [1, 2^32]
            Largest L1 norm of a contribution.
        rng : numpy.random.Generator

        Raises
        ------
        InputError
            A bad argument, or a contribution beyond the sensitivity.

        Examples
        --------
        >>> ones = sparse.csr_array(np.ones((1000, 3), dtype=np.int64))
        >>> total = Cohort(tolerated=0.1).sum(ones, 3.0, 3, np.random.default_rng(1))
        >>> bool((abs(total.counts - 1000) < 6 * total.deviation).all())
        True
        """
        rows = checked_round(contributions, epsilon, sensitivity)
        shards = self.deal(rows.shape[0], rng)
        opened = [each for each in shards if each.survivors >= self.threshold(len(each.members))]
        # Survivors alone, contributions and noise shares alike: who fails takes both away.
        kept = np.zeros(rows.shape[0], dtype=np.int64)
        for shard in opened:
            kept[shard.members[shard.survives]] = 1
        counts = np.asarray(kept @ rows, dtype=np.int64)
        most = min(int(counts.max(initial=0)), self.shard_size * sensitivity)
        decay = epsilon / sensitivity
        deviation = noise_deviation(epsilon, sensitivity)
        if self._may_wrap(opened, most, decay, rows.shape[1]):
            return self._shard_by_shard(rows, shards, decay, deviation, rng)
        # No shard wraps, so decoded totals add up to the counts and to all of the noise, and the
        # shares of several shards add up as those of one do: one draw in place of one a shard.
        shares = self._shares(opened)
        noise = sum_of_shares(*shares.as_integer_ratio(), decay, rows.shape[1], rng)
        return self._seen(counts + noise, shards, opened, deviation)

    def deal(self, clients: int, rng: np.random.Generator) -> list[Shard]:
        """Deal clients to shards at random, and let some fail."""
        check_generator(rng)
        ends = np.cumsum(self.shards(clients))[:-1]
        members = np.split(rng.permutation(clients), ends)
        return [Shard(who, rng.random(len(who)) >= self.drop_out) for who in members]

    def gather(
        self, shards: list[Shard], totals: Iterable[Ints | None], length: int, deviation: float
    ) -> NoisySum:
        """Decode the shards' totals one by one and add them up.

        Parameters
        ----------
        shards : list of Shard
        totals : (length,) int64 array in [0, modulus), or None, for each shard
            None where the sum was withheld.
        length : int
        deviation : float
            Standard deviation of the noise of a shard in which just as many survive as noise
            shares are made for.
        """
        counts = np.zeros(length, dtype=np.int64)
        opened = []
        for shard, total in zip(shards, totals, strict=True):
            if total is not None:
                counts += decode(total, self.modulus)
                opened.append(shard)
        return self._seen(counts, shards, opened, deviation)

    def _seen(
        self, counts: Ints, shards: list[Shard], opened: list[Shard], deviation: float
    ) -> NoisySum:
        """Return what a server sees of shards of which some were opened."""
        clients = sum(len(shard.members) for shard in shards)
        survivors = sum(shard.survivors for shard in opened)
        # Each share has 1 / h of the variance that a shard's noise is made for.
        spread = deviation * sqrt(self._shares(opened))
        return NoisySum(counts, len(shards), len(opened), clients, survivors, spread)

    def _shares(self, opened: Iterable[Shard]) -> Fraction:
        """Return how often the noise that a shard's is made for is in the sum of all."""
        survivors = Counter[int]()
        for shard in opened:
            survivors[len(shard.members)] += shard.survivors
        parts = (Fraction(here, self.honest(size)) for size, here in survivors.items())
        return sum(parts, Fraction(0))

    def _may_wrap(self, opened: list[Shard], most: int, decay: float, length: int) -> bool:
        """Tell whether some entry of a shard's total may leave the range that is decoded.

        Noise is X - Y of Polya(r, a), a = exp(-decay). By Markov's inequality for a^(-X/2),
        P(X >= k) <= ((1 - a) / (1 - sqrt(a)))^r a^(k/2) <= 2^r exp(-decay k / 2), and counts from 0
        to ``most`` leave k = modulus / 2 - most to X and more to Y, in every entry of every shard.
        With the r of all shards in the place of one's, all their noise fits into int64, too.

        Returns
        -------
        bool
            False where the probability is at most 2^-64.
        """
        room = decay * (self.modulus // 2 - most) / 2
        entries = max(1, len(opened) * length)
        return room < log(2 * entries / NEVER) + log(2) * self._shares(opened)

    def _shard_by_shard(
        self,
        rows: sparse.csr_array,
        shards: list[Shard],
        decay: float,
        deviation: float,
        rng: np.random.Generator,
    ) -> NoisySum:
        """Draw the noise of each shard and decode each total: right whatever wraps."""
        totals = (self._simulated(rows, shard, decay, rng) for shard in shards)
        return self.gather(shards, totals, rows.shape[1], deviation)

    def _simulated(
        self, rows: sparse.csr_array, shard: Shard, decay: float, rng: np.random.Generator
    ) -> Ints | None:
        """Return the residues that a secure sum of the shard would reveal."""
        here, size = shard.survivors, len(shard.members)
        if here < self.threshold(size):
            return None
        counts = rows[shard.members[shard.survives]].sum(axis=0)
        noise = sum_of_shares(here, self.honest(size), decay, rows.shape[1], rng)
        return encode(np.asarray(counts, dtype=np.int64) + noise, self.modulus)


REALISTIC = Cohort(drop_out=0.1, tolerated=0.2, colluding=0.1)
"""What releases take by default: a tenth of the clients fails, and as many may be dishonest.

Twice as many failures are tolerated as are to be expected, so that hardly a shard is withheld.
`Cohort()` is the ideal one, in which nobody fails or colludes.
"""


def checked_round(
    contributions: sparse.csr_array, epsilon: float | Fraction, sensitivity: int
) -> sparse.csr_array:
    """Check the arguments of a round and return its contributions as int64."""
    check_epsilon(epsilon)
    most = whole_number("sensitivity", sensitivity, 1, MAX_SENSITIVITY)
    if epsilon / most < LEAST_DECAY:
        raise InputError(f"epsilon / sensitivity must be at least 2^-40, got {epsilon} / {most}")
    try:
        rows = sparse.csr_array(contributions)
    except (TypeError, ValueError):
        kind = type(contributions).__name__
        raise InputError(f"contributions must be a sparse array, got {kind}") from None
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or rows.shape[0] == 0:
        raise InputError(
            "contributions must be whole numbers of shape (clients, length) with a client, "
            f"got {rows.dtype} {rows.shape}"
        )
    # Entry by entry first, so that a row's sum cannot run over.
    if rows.nnz and (rows.data.min() < 0 or rows.data.max() > most):
        raise InputError(f"contributions must lie in [0, {most}] (not repeated here)")
    rows = rows.astype(np.int64)
    if rows.sum(axis=1).max() > most:
        raise InputError(f"contributions must have L1 norms of at most {most} (not repeated here)")
    return rows


def _part(share: float, clients: int) -> int:
    """Return floor(share * clients); a share is what is written: 0.1 of ten clients is one."""
    return floor(Fraction(str(share)) * clients)
