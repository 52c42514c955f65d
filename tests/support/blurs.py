"""Releases for tests of the comparison: fast, with errors that are known."""

import gc
import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from threadpoolctl import threadpool_info

from ldpspatial.errors import SolverError
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import Model, PrivacyClaim
from ldpspatial.release.release import Release, Released


@dataclass(frozen=True)
class Blur(Release):
    """The truth mixed with a random map: exp(-epsilon) of it."""

    name: ClassVar[str] = "blur"
    model: ClassVar[Model] = "central"
    width: float = 1.0

    def claim(self, epsilon: float) -> PrivacyClaim:
        return PrivacyClaim("central", epsilon, neighbours="add or remove")

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        noise = rng.dirichlet(np.ones(users.density.size)).reshape(users.shape)
        share = self.width * np.exp(-epsilon)
        mixed = (1 - share) * users.density + share * noise
        return Released(mixed, self.claim(epsilon), {"share": float(share)})


@dataclass(frozen=True)
class Fragile(Blur):
    """Fails while a file is there: an interruption in the middle of a comparison."""

    name: ClassVar[str] = "fragile"
    trouble: str = ""

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        if epsilon > 1 and Path(self.trouble).exists():
            self._fail()
        return super().release(users, epsilon, rng)

    def _fail(self) -> None:
        raise SolverError("interrupted")


@dataclass(frozen=True)
class Killed(Fragile):
    """Its process is killed there, as where memory runs out."""

    name: ClassVar[str] = "killed"

    def _fail(self) -> None:
        os._exit(9)


@dataclass(frozen=True)
class Counting(Blur):
    """Tells a fact as NumPy counts."""

    name: ClassVar[str] = "counting"

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        found = super().release(users, epsilon, rng)
        return Released(found.density, found.claim, {"share": np.int64(1)})


@dataclass(frozen=True)
class Threaded(Blur):
    """Tells how many threads linear algebra may take."""

    name: ClassVar[str] = "threaded"

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        found = super().release(users, epsilon, rng)
        threads = max(each["num_threads"] for each in threadpool_info())
        return Released(found.density, found.claim, {"threads": threads})


@dataclass(frozen=True)
class Frozen(Blur):
    """Tells its process, and how much of it is set apart from collections of garbage."""

    name: ClassVar[str] = "frozen"

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        found = super().release(users, epsilon, rng)
        facts = {"process": os.getpid(), "frozen": gc.get_freeze_count()}
        return Released(found.density, found.claim, facts)


@dataclass(frozen=True)
class Loose(Blur):
    """Promises with a delta."""

    name: ClassVar[str] = "loose"
    delta: float = 0.01

    def claim(self, epsilon: float) -> PrivacyClaim:
        return PrivacyClaim("central", epsilon, self.delta, neighbours="add or remove")


@dataclass(frozen=True)
class Changing(Blur):
    """Promises per user at epsilons up to 1, per report above."""

    name: ClassVar[str] = "changing"

    def claim(self, epsilon: float) -> PrivacyClaim:
        return PrivacyClaim("central", epsilon, unit="user" if epsilon <= 1 else "report")


class Bare(Release):
    """No dataclass: nothing tells its settings apart."""

    name: ClassVar[str] = "bare"
    model: ClassVar[Model] = "none"

    def claim(self, epsilon: float) -> PrivacyClaim:
        return PrivacyClaim("none", epsilon)

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        return Released(users.density, self.claim(epsilon))
