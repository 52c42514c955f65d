"""What positions in the clear would give: the floor of every error curve."""

from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np

from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import Model, PrivacyClaim
from ldpspatial.release.release import Release, Released, check_run
from ldpspatial.validate import check_epsilon


@dataclass(frozen=True)
class NonPrivate(Release):
    """The users' own mean distribution, published as it is."""

    name: ClassVar[str] = "non-private"
    model: ClassVar[Model] = "none"

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return the claim that promises nothing."""
        check_epsilon(epsilon)
        return PrivacyClaim("none", inf)

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Return the density of the users themselves."""
        check_run(users, epsilon, rng)
        return Released(users.density, self.claim(epsilon))
