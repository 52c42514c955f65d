"""An estimator and a release of another package, as CONTRIBUTING.md shows them."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ldpspatial import Channel, Estimate, Estimator, PrivacyClaim, Release, Released, UserCells
from ldpspatial.estimation import check_counts


@dataclass(frozen=True)
class Uniform(Estimator):
    """The uniform map, whatever was reported: what every estimator has to beat."""

    kind: ClassVar[str] = "uniform"

    @property
    def name(self) -> str:
        """What files and tables call it."""
        return "uniform"

    def fit(self, channel: Channel, counts: ArrayLike, progress: object = None) -> Estimate:
        """Return the uniform density of the channel's shape."""
        checked = check_counts(channel, counts)
        density = np.full(channel.input_shape, 1 / np.prod(channel.input_shape))
        law = channel.forward(density)
        likelihood = float(checked[checked > 0] @ np.log(law[checked > 0]))
        return Estimate(density, likelihood, 0, True, (likelihood,), channel, checked, self)


@dataclass(frozen=True)
class Choosy(Uniform):
    """An estimator that cannot be made from its name: its choice has no default."""

    strength: float


class Plain(Estimator):
    """An estimator that is no dataclass, and has a choice none the less."""

    kind = "uniform"
    name = "uniform"  # type: ignore[assignment]

    def __init__(self, strength: float = 1.0):
        self.strength = strength

    fit = Uniform.fit


@dataclass(frozen=True)
class Nothing(Release):
    """Publishes the uniform map, which no data go into."""

    name = "nothing"
    model = "central"

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return a claim that costs nothing; stated at the epsilon that was asked for."""
        return PrivacyClaim("central", epsilon)

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Look at the shape of the map only."""
        rows, columns = users.shape
        return Released(np.full(users.shape, 1 / (rows * columns)), self.claim(epsilon))


@dataclass(frozen=True)
class Truth(Release):
    """Publishes the truth under a claim of privacy, which ``ldpspatial audit`` has to find."""

    name = "truth"
    model = "central"

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Claim what is not so."""
        return PrivacyClaim("central", epsilon)

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Return the map as it is."""
        return Released(users.density, self.claim(epsilon))


@dataclass(frozen=True)
class Spoilt(Nothing):
    """Publishes, or claims, what it was made with: most of it is refused."""

    density: object = None
    changes: tuple[tuple[str, object], ...] = ()

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return the claim with the changes."""
        return replace(super().claim(epsilon), **dict(self.changes))

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Return the density, or the uniform one where there is none."""
        if self.density is None:
            return super().release(users, epsilon, rng)
        return Released(np.array(self.density), self.claim(epsilon))
