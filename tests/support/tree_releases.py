"""What the tests of AHEAD, HIO and HDG share: users, recorded questions, and what all three keep.

Each asks every user one question, of a part of the map, and makes the answers agree.
"""

from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest

from client_sdk import Grid
from ldpspatial import wasserstein
from ldpspatial.datasets import synthetic_maps
from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user, user_cells
from ldpspatial.release.local import LocalRelease
from ldpspatial.release.release import Released
from tests.support import naive_local_trees as naive


class Question(NamedTuple):
    """What users of one group hold, out of how many values, at which epsilon; and their counts."""

    values: np.ndarray
    size: int
    epsilon: float
    counts: np.ndarray


def recorded(monkeypatch: pytest.MonkeyPatch, module: ModuleType, oracle: str) -> list[Question]:
    """Return a list to which every question goes that the module's oracle is asked from now on."""
    seen: list[Question] = []
    answer = getattr(module, oracle)

    def recording(
        values: np.ndarray, size: int, epsilon: float, rng: np.random.Generator
    ) -> np.ndarray:
        seen.append(Question(values, size, epsilon, answer(values, size, epsilon, rng)))
        return seen[-1].counts

    monkeypatch.setattr(module, oracle, recording)
    return seen


def normal_users(n: int, side: int) -> UserCells:
    """Return users of the synthetic normal map."""
    law = synthetic_maps()["normal"]
    grid = Grid.plane(law.y0, law.x0, law.side, side)
    return user_cells(law.draw(n, np.random.default_rng(1)), grid)


def check_claim(release: LocalRelease, epsilon: float, condition: str) -> None:
    """Pure eps-LDP of a user, under one condition more than usual."""
    claim = release.claim(epsilon)
    assert (claim.model, claim.delta, claim.unit, claim.neighbours) == (
        "local",
        0,
        "user",
        "replace",
    )
    assert claim.epsilon == epsilon
    assert condition in claim.conditions


def check_map_is_found(release: LocalRelease, side: int) -> Released:
    """Near the truth, where the uniform map is far from it."""
    users = normal_users(50_000, side)
    found = release.release(users, 3.0, np.random.default_rng(2))
    assert wasserstein(users.density, found.density) < 0.7
    assert wasserstein(users.density, np.full((side, side), 1 / side**2)) > 1.5
    return found


def check_ranges_beat_randomised_response(release: LocalRelease) -> None:
    """A quarter of the error of k-RR in rectangles, or less."""
    users = normal_users(100_000, 16)
    found = release.release(users, 1.0, np.random.default_rng(2)).density
    rival = naive.k_rr_projected(users.density, 100_000, 1.0, np.random.default_rng(3))
    error, rival_error = (
        naive.rectangle_error(f, users.density, np.random.default_rng(4)) for f in (found, rival)
    )
    assert error < 0.05
    assert rival_error > 4 * error


def check_few_users(release: LocalRelease, side: int, epsilon: float) -> dict[int, Released]:
    """Densities from one user on; return what was released, by number of users."""
    runs = {}
    for n in (1, 2, 3, 30):
        users = cells_by_user(np.arange(n), np.arange(n) % side**2, (side, side))
        runs[n] = found = release.release(users, epsilon, np.random.default_rng(1))
        assert found.density.shape == (side, side)
        assert found.density.min() >= 0
        assert found.density.sum() == pytest.approx(1, abs=1e-9)
    return runs


def check_equal_seeds(release: LocalRelease) -> None:
    """Equal seeds give equal maps, and the input is left alone."""
    users = cells_by_user(np.arange(50), np.arange(50) % 16, (4, 4))
    before = users.visits.copy()
    first, again = (release.release(users, 2.0, np.random.default_rng(9)) for _ in range(2))
    assert (first.density == again.density).all()
    assert (users.visits != before).nnz == 0


def check_bad_input(release: LocalRelease) -> None:
    """No square, no epsilon, nobody, or too many cells for the observer's guess."""
    with pytest.raises(InputError, match=f"{release.name} needs a square map, got 2 x 3 cells"):
        release.release(cells_by_user([0], [0], (2, 3)), 1.0, np.random.default_rng(1))
    users = cells_by_user([0], [0], (2, 2))
    for epsilon in (1e-30, 20.5):
        with pytest.raises(InputError, match="epsilon must"):
            release.release(users, epsilon, np.random.default_rng(1))
        with pytest.raises(InputError, match="epsilon must"):
            release.local_privacy(2, epsilon)
    nobody = cells_by_user(np.zeros(0, int), np.zeros(0, int), (2, 2))
    with pytest.raises(InputError, match="users must hold at least one user, got none"):
        release.release(nobody, 1.0, np.random.default_rng(1))
    with pytest.raises(InputError, match="cells must be smaller"):
        release.local_privacy(200, 1.0)
