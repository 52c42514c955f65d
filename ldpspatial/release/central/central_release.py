"""What the central releases share: claim, budget and noise."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import Entropy, system_entropy
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import Model, PrivacyClaim
from ldpspatial.privacy.discrete_laplace import sample
from ldpspatial.release.central.quantise import MASS
from ldpspatial.release.release import Release, Released, check_run
from ldpspatial.validate import MICRO, instance, written_epsilon

Ints = NDArray[np.int64]

CONDITIONS = (
    "each user has mass 1, rounded to whole units of 2^-20",
    "place, side and resolution of the map are public",
    "random bytes are uniform and independent",
    "nothing is promised of running time and memory",
)


class CentralRelease(Release):
    """A release by a server that sees all data and adds exact discrete Laplace noise.

    ``release`` is a simulation, which a seed repeats; ``publish`` is for what leaves the server.
    """

    model: ClassVar[Model] = "central"

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return what a run promises; the claim of a run itself says what was spent.

        Raises
        ------
        InputError
            Epsilon is not from 0.000001 to 20.
        """
        return claim_of(micro_budget(epsilon))

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Simulate a run, all randomness from ``rng``.

        Raises
        ------
        InputError
            An argument breaks its rule.
        """
        micro_epsilon = micro_budget(epsilon)
        check_run(users, epsilon, rng)
        return self._run(users, micro_epsilon, rng.bytes)

    def publish(self, users: UserCells, epsilon: float) -> Released:
        """Run with the entropy of the operating system, which nobody can repeat.

        Raises
        ------
        InputError
            An argument breaks its rule.
        """
        user_cells = instance("users", users, UserCells)
        return self._run(user_cells, micro_budget(epsilon), system_entropy)

    @abstractmethod
    def _run(self, users: UserCells, micro_epsilon: int, source: Entropy) -> Released: ...


def micro_budget(epsilon: object) -> int:
    """Return epsilon in whole millionths, rounded down."""
    return int(written_epsilon("epsilon", epsilon) * MICRO)


def claim_of(micro_epsilon: int) -> PrivacyClaim:
    """Return the claim of sums of users' units to which noise of this epsilon was added."""
    return PrivacyClaim(
        "central", micro_epsilon / MICRO, neighbours="add or remove", conditions=CONDITIONS
    )


def with_noise(units: Ints, micro_epsilon: int, source: Entropy) -> Ints:
    """Return sums of users' units plus discrete Laplace noise of scale MASS / epsilon.

    A user changes sums over disjoint sets of cells by MASS units in all, so all these sums
    together are epsilon-differentially private.
    """
    # The scale MASS / epsilon as a fraction: 2^20 * 10^6 is below the sampler's 2^53.
    noisy: Ints = units + sample(len(units), MASS * MICRO, micro_epsilon, source)
    return noisy
