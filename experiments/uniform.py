"""The map of somebody who asked nobody: the line that a private map has to be below."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import Model, PrivacyClaim
from ldpspatial.release.release import Release, Released


@dataclass(frozen=True)
class Uniform(Release):
    """The same share in every cell, whoever the users are."""

    name: ClassVar[str] = "uniform"
    model: ClassVar[Model] = "local"

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return a claim of epsilon 0: nobody sends anything."""
        return PrivacyClaim("local", 0.0)

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Return the uniform density."""
        share = 1 / (users.shape[0] * users.shape[1])
        return Released(np.full(users.shape, share), self.claim(epsilon), {"estimator": "none"})
