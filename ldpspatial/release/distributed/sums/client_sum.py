"""A round as it really runs: every client draws its own noise share, and a secure sum adds up.

Slow: use it with few clients or short vectors, to test `Cohort.sum`, which has the same law, and to
run a secure sum of one's own.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from client_sdk.shared import Entropy
from ldpspatial.errors import InputError
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.distributed.noise.noise_share import NoiseShare, client_vector
from ldpspatial.release.distributed.sums.cohort import Cohort, NoisySum, Shard, checked_round
from ldpspatial.release.distributed.sums.secure_sum import ModularSum, SecureSum, SecureSums
from ldpspatial.validate import check_generator, function, instance

Ints = NDArray[np.int64]


def sum_clients(
    cohort: Cohort,
    contributions: sparse.csr_array,
    epsilon: float | Fraction,
    sensitivity: int,
    rng: np.random.Generator,
    *,
    entropy: Entropy | None = None,
    secure_sum: SecureSums = ModularSum,
) -> NoisySum:
    """Run one round client by client.

    Parameters
    ----------
    cohort : Cohort
    contributions, sensitivity
        As in :meth:`Cohort.sum`.
    epsilon : float or Fraction, from 0.000001 to 20
        Of this round.
    rng : numpy.random.Generator
        Deals the shards and lets clients fail.
    entropy : callable, optional
        What the clients draw their noise from, `client_sdk.entropy.system` where it matters;
        the bytes of ``rng`` by default.
    secure_sum : callable, modulus and threshold -> SecureSum
        Called once a shard, before any client draws its noise; ``SecureAggregation.of_modulus``
        for the real protocol.

    Raises
    ------
    InputError
        A bad argument, a contribution beyond the sensitivity, or ``secure_sum`` returns no sum for
        a shard of that size, or one with another modulus or threshold.

    Examples
    --------
    >>> ones = sparse.csr_array(np.ones((20, 3), dtype=np.int64))
    >>> round_ = sum_clients(Cohort(shard_size=10), ones, 3.0, 3, np.random.default_rng(1))
    >>> round_.shards, round_.survivors, bool((abs(round_.counts - 20) < 20).all())
    (2, 20, True)
    """
    instance("cohort", cohort, Cohort)
    rows = checked_round(contributions, epsilon, sensitivity)
    check_generator(rng)
    source = rng.bytes if entropy is None else function("entropy", entropy)

    def reveal(shard: Shard, protocol: SecureSum) -> Ints | None:
        size = len(shard.members)
        share = NoiseShare(epsilon, sensitivity, cohort.honest(size))
        vectors = [
            client_vector(own.tolist(), share, cohort.modulus, source)
            for own in rows[shard.members].toarray()
        ]
        return protocol.total(np.array(vectors, dtype=np.int64), shard.survives)

    shards = cohort.deal(rows.shape[0], rng)
    protocols = [secure_sum_of(cohort, len(shard.members), secure_sum) for shard in shards]
    totals = (reveal(*pair) for pair in zip(shards, protocols, strict=True))
    spread = noise_deviation(float(epsilon), sensitivity)
    return cohort.gather(shards, totals, rows.shape[1], spread)


def secure_sum_of(cohort: Cohort, clients: int, secure_sum: SecureSums) -> SecureSum:
    """Return the secure sum of a shard of so many clients.

    Raises
    ------
    InputError
        ``secure_sum`` returns none for this modulus and threshold, or one with others, or its
        method ``check``, if it has one, refuses so many clients and colluding ones among them.
    """
    function("secure_sum", secure_sum)
    modulus = cohort.modulus
    threshold = cohort.threshold(clients)
    asked = f"a shard of {clients} with modulus {modulus} and threshold {threshold}"
    try:
        protocol = secure_sum(modulus, threshold)
    except InputError as error:
        raise InputError(f"secure_sum must sum {asked}: {error}") from None
    found = getattr(protocol, "modulus", None), getattr(protocol, "threshold", None)
    if found != (modulus, threshold):
        raise InputError(
            f"secure_sum must sum {asked}, got modulus {found[0]} and threshold {found[1]}"
        )
    try:
        if (check := getattr(protocol, "check", None)) is not None:
            check(clients, threshold - cohort.honest(clients))
    except InputError as error:
        raise InputError(f"secure_sum must sum {asked}: {error}") from None
    return protocol
