"""DAM, DAM-NS and HUEM as releases: the client's tables, one report a user."""

from math import exp

import numpy as np
import pytest
from scipy import stats

from client_sdk import Grid, response_table
from client_sdk.kernels import draw_many
from client_sdk.mechanisms import PAPER
from ldpspatial import StampChannel, wasserstein
from ldpspatial.datasets import synthetic_maps
from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user, user_cells
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.release.local import Dam, DamNs, Huem
from ldpspatial.release.local.disks.dam import DiskRelease

DISKS = [Dam(), DamNs(), Huem()]


@pytest.mark.parametrize("release", DISKS, ids=lambda release: release.name)
def test_it_finds_the_map(release: DiskRelease) -> None:
    law = synthetic_maps()["normal"]
    grid = Grid.plane(law.y0, law.x0, law.side, 8)
    points = law.draw(50_000, np.random.default_rng(1))
    truth = user_cells(points, grid).density
    found = release.run(points, grid, 4.0, np.random.default_rng(2))
    assert wasserstein(truth, found.density) < 0.3
    assert wasserstein(truth, np.full((8, 8), 1 / 64)) > 1.5
    assert found.estimate is not None
    assert found.estimate.n == 50_000
    assert found.facts["radius"] == response_table(release.name, 4.0, 8).radius


@pytest.mark.parametrize("release", DISKS, ids=lambda release: release.name)
def test_the_claim_is_that_of_the_table(release: DiskRelease) -> None:
    users = cells_by_user(np.arange(100), np.arange(100) % 9, (3, 3))
    found = release.release(users, 1.4, np.random.default_rng(1))
    assert found.claim == release.claim(1.4)
    assert (found.claim.model, found.claim.epsilon, found.claim.delta) == ("local", 1.4, 0)
    assert found.claim.neighbours == "replace"
    assert float(found.facts["realised_epsilon"]) <= 1.4
    assert response_table(release.name, 1.4, 3).max_ratio() <= exp(1.4)


def _reports(users: UserCells, repeats: int) -> np.ndarray:
    """Reports of the first user, by output cell."""
    rng = np.random.default_rng(5)
    runs = (Dam().release(users, 1.0, rng).estimate for _ in range(repeats))
    return sum(run.counts for run in runs if run is not None)  # type: ignore[return-value]


def test_a_user_with_many_positions_sends_one_report_of_one_of_them() -> None:
    # The report's law is the mixture of the rows of the user's positions: chi-square, 1e-6.
    users = cells_by_user([0, 0, 0, 0], [0, 0, 0, 8], (3, 3))
    counts = _reports(users, 3000)
    channel = StampChannel(response_table("dam", 1.0, 3))
    law = channel.forward(users.density)[channel.support] * counts.sum()
    assert counts.sum() == 3000
    assert stats.chisquare(counts[channel.support], law).pvalue > 1e-6
    # The same test tells a report that is always of the first position.
    first = channel.forward(np.eye(1, 9).reshape(3, 3))[channel.support] * counts.sum()
    assert stats.chisquare(counts[channel.support], first).pvalue < 1e-6


def test_equal_seeds_give_equal_maps() -> None:
    users = cells_by_user(np.arange(50), np.arange(50) % 16, (4, 4))
    first, again = (Dam().release(users, 2.0, np.random.default_rng(9)) for _ in range(2))
    assert (first.density == again.density).all()


def test_a_map_that_is_no_square_is_refused() -> None:
    users = cells_by_user([0], [0], (2, 3))
    with pytest.raises(InputError, match="dam needs a square map, got 2 x 3 cells"):
        Dam().release(users, 1.0, np.random.default_rng(1))


def _own_cell(name: str, epsilon: float, cell: int, runs: int, seed: int) -> np.ndarray:
    """Whether a user in ``cell`` of 3 x 3 reports the first cell, many times."""
    table = response_table(name, epsilon, 3)
    rows, cols = np.full(runs, cell // 3), np.full(runs, cell % 3)
    rng = np.random.default_rng(seed)
    out = draw_many(table, rows, cols, rng.bytes)
    return ((out[0] == 0) & (out[1] == 0)).astype(np.int64)


@pytest.mark.parametrize("name", PAPER)
def test_a_user_elsewhere_cannot_be_told_apart_beyond_epsilon_and_could_with_half_the_noise(
    name: str,
) -> None:
    # 100,000 reports a side: the bound lies some 0.3 below the loss, at 1 - 1e-6.
    bounds = [
        lower_bound_epsilon(*(_own_cell(name, eps, c, 100_000, c) for c in (0, 8)))
        for eps in (1.0, 2.0)
    ]
    assert 0.5 < bounds[0] <= 1.0 < bounds[1]
