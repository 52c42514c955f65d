"""A round as it really runs: every client draws its own noise share, and a secure sum adds up.

Slow: use it with few clients or short vectors, to test `Cohort.sum`, which has the same law, and to
run a secure sum of one's own.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from client_sdk.entropy import Entropy
from ldpspatial.distributed.cohort import Cohort, NoisySum, Shard, checked_round
from ldpspatial.distributed.noise_share import NoiseShare, client_vector
from ldpspatial.distributed.polya import noise_deviation
from ldpspatial.distributed.secure_sum import ModularSum, SecureSum

Ints = NDArray[np.int64]
SecureSums = Callable[[int, int], SecureSum]  # modulus, threshold -> the sum of one shard


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
        Called once a shard.

    Raises
    ------
    InputError
        A bad argument, or a contribution beyond the sensitivity.

    Examples
    --------
    >>> ones = sparse.csr_array(np.ones((20, 3), dtype=np.int64))
    >>> round_ = sum_clients(Cohort(shard_size=10), ones, 3.0, 3, np.random.default_rng(1))
    >>> round_.shards, round_.survivors, bool((abs(round_.counts - 20) < 20).all())
    (2, 20, True)
    """
    rows = checked_round(contributions, epsilon, sensitivity)
    source = rng.bytes if entropy is None else entropy

    def reveal(shard: Shard) -> Ints | None:
        size = len(shard.members)
        share = NoiseShare(epsilon, sensitivity, cohort.honest(size))
        vectors = [
            client_vector(own.tolist(), share, cohort.modulus, source)
            for own in rows[shard.members].toarray()
        ]
        protocol = secure_sum(cohort.modulus, cohort.threshold(size))
        return protocol.total(np.array(vectors, dtype=np.int64), shard.survives)

    shards = cohort.deal(rows.shape[0], rng)
    spread = noise_deviation(float(epsilon), sensitivity)
    return cohort.gather(shards, (reveal(shard) for shard in shards), rows.shape[1], spread)
