"""A cohort whose rounds are played client by client, through a secure sum of one's own choice.

With it as their ``cohort``, releases run on the real protocol and not on a simulation of its law.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ldpspatial.release.distributed.sums.client_sum import secure_sum_of, sum_clients
from ldpspatial.release.distributed.sums.cohort import Cohort, NoisySum
from ldpspatial.release.distributed.sums.secure_sum import ModularSum, SecureSums


@dataclass(frozen=True)
class ClientCohort(Cohort):
    """Clients who each draw their own noise shares, exactly, and hand them to a secure sum.

    Rounds take epsilon from 0.000001 to 20. It is slower than `Cohort` by orders of magnitude and
    has its law: for small cohorts, to see a release work end to end. All clients live in one
    process, and their noise comes from the generator that the release is given, so it is as secret
    as its seed. The secure sum has a source of its own for its keys: `SecureAggregation` takes
    them from the operating system.

    Attributes
    ----------
    secure_sum : callable, modulus and threshold -> SecureSum
        ``SecureAggregation.of_modulus`` for the real protocol. It must return a sum for a
        full shard and, when a round is played, for every shard of it: `SecureAggregation` has
        none for a threshold of 1.

    Raises
    ------
    InputError
        A field breaks its rule, or ``secure_sum`` has another modulus or threshold.

    Examples
    --------
    >>> from ldpspatial.release.distributed.levels.flat import Flat
    >>> from ldpspatial.places.users import cells_by_user
    >>> people = cells_by_user(range(40), [0] * 36 + [3] * 4, (2, 2))
    >>> cohort = ClientCohort(shard_size=20)
    >>> released = Flat(cohort=cohort).release(people, 10.0, np.random.default_rng(1))
    >>> int(released.density.argmax()), cohort.assumption
    (0, 'sums by a party that all trust')
    """

    secure_sum: SecureSums = ModularSum

    def __post_init__(self) -> None:
        super().__post_init__()
        secure_sum_of(self, self.shard_size, self.secure_sum)

    @property
    def assumption(self) -> str:
        """What the secure sum rests on."""
        return secure_sum_of(self, self.shard_size, self.secure_sum).assumption

    def sum(
        self,
        contributions: sparse.csr_array,
        epsilon: float,
        sensitivity: int,
        rng: np.random.Generator,
    ) -> NoisySum:
        """Play one round as `sum_clients` does; epsilon from 0.000001 to 20."""
        return sum_clients(
            self, contributions, epsilon, sensitivity, rng, secure_sum=self.secure_sum
        )
