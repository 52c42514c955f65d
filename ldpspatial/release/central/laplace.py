"""Noise on every cell: the baselines of Ghazi et al. (AAAI 2023, section 4)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import Entropy
from ldpspatial.places.users import UserCells
from ldpspatial.release.central.central_release import CentralRelease, claim_of, with_noise
from ldpspatial.release.central.masses import density_of_masses
from ldpspatial.release.central.quantise import unit_sums
from ldpspatial.release.release import Released
from ldpspatial.validate import number_in

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Laplace(CentralRelease):
    """Noise on every cell, negatives set to 0, normalised; zeros alone give the uniform map.

    Examples
    --------
    >>> from ldpspatial.places.users import cells_by_user
    >>> people = cells_by_user(range(1000), [3] * 1000, (2, 2))
    >>> run = Laplace().release(people, 1.0, np.random.default_rng(1))
    >>> print(run.claim)
    central differential privacy, epsilon 1, per user, one user added or removed
    >>> bool(run.density[1, 1] > 0.97)
    True
    """

    name: ClassVar[str] = "laplace"

    def _run(self, users: UserCells, micro_epsilon: int, source: Entropy) -> Released:
        noisy = noisy_cells(users, micro_epsilon, source)
        return Released(density_of_masses(noisy.reshape(users.shape)), claim_of(micro_epsilon))


@dataclass(frozen=True)
class LaplaceTop(CentralRelease):
    """As :class:`Laplace`, but only the largest noisy values are kept.

    Attributes
    ----------
    top : float in (0, 100]
        Per cent of all cells of the map that are kept, at least one cell; the first of equals.

    Raises
    ------
    InputError
        ``top`` breaks its rule.
    """

    name: ClassVar[str] = "laplace-top"

    top: float = 0.1

    def __post_init__(self) -> None:
        number_in("top", self.top, "(0, 100]")

    def _run(self, users: UserCells, micro_epsilon: int, source: Entropy) -> Released:
        noisy = noisy_cells(users, micro_epsilon, source)
        keep = max(1, round(len(noisy) * self.top / 100))
        # The choice looks at noisy values alone, so it costs no privacy.
        kept = np.argsort(-noisy, kind="stable")[:keep]
        largest = np.zeros_like(noisy)
        largest[kept] = noisy[kept]
        return Released(
            density_of_masses(largest.reshape(users.shape)), claim_of(micro_epsilon), {"kept": keep}
        )


def noisy_cells(users: UserCells, micro_epsilon: int, source: Entropy) -> Ints:
    """Return every cell's units with noise, shape (rows * columns,).

    The output depends on the users through these alone.
    """
    cells, units = unit_sums(users)
    # Empty cells get noise too: which cells are empty says where people are not.
    every = np.zeros(users.shape[0] * users.shape[1], np.int64)
    every[cells] = units
    return with_noise(every, micro_epsilon, source)
