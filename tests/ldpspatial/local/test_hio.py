"""HIO: one OLH report of one level, and levels that agree."""

from math import exp

import numpy as np
import pytest
from scipy import stats

from client_sdk import Grid
from ldpspatial import wasserstein
from ldpspatial.datasets import synthetic_maps
from ldpspatial.errors import InputError
from ldpspatial.local import hio
from ldpspatial.local.hio import Hio
from ldpspatial.local.local_hashing import hash_values, keep_probability, olh_counts
from ldpspatial.local.quadtree import full_tree
from ldpspatial.local.set_reports import on_simplex
from ldpspatial.users import UserCells, cells_by_user, user_cells
from tests.support import naive_local_trees as naive


def normal_users(n: int, side: int) -> UserCells:
    law = synthetic_maps()["normal"]
    grid = Grid.plane(law.y0, law.x0, law.side, side)
    return user_cells(law.draw(n, np.random.default_rng(1)), grid)


Asked = list[tuple[np.ndarray, int, np.ndarray]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Values, number of values and counts of every question that HIO asks."""
    seen: Asked = []

    def recording(
        values: np.ndarray, size: int, epsilon: float, rng: np.random.Generator
    ) -> np.ndarray:
        counts = olh_counts(values, size, epsilon, rng)
        seen.append((values, size, counts))
        return counts

    monkeypatch.setattr(hio, "olh_counts", recording)
    return seen


@pytest.mark.parametrize(("side", "epsilon"), [(2, 0.2), (2, 1.0), (3, 0.2)])
def test_no_report_is_likelier_elsewhere_than_is_claimed(side: int, epsilon: float) -> None:
    # All levels, functions and hashes; a report names its level, each drawn with equal chance.
    tree = full_tree(side, (side - 1).bit_length())
    keep, buckets = keep_probability(epsilon), hash_values(epsilon)
    channel = np.concatenate(
        [
            naive.hashing_channel(tree.partition(level), keep, buckets) / tree.depth
            for level in range(1, tree.depth + 1)
        ]
    )
    assert channel.sum(axis=0) == pytest.approx(1, abs=1e-12)
    ratio = (channel.max(axis=1) / channel.min(axis=1)).max()
    assert ratio == pytest.approx(exp(epsilon), rel=1e-12)
    assert Hio().claim(epsilon).epsilon == epsilon


def test_the_claim_says_what_it_rests_on() -> None:
    claim = Hio().claim(1.0)
    assert (claim.model, claim.delta, claim.unit, claim.neighbours) == (
        "local",
        0,
        "user",
        "replace",
    )
    assert "the level that a user reports on is drawn without looking at any position" in (
        claim.conditions
    )


def test_reports_have_the_law_of_the_channel(asked: Asked) -> None:
    # One user on 2 x 2 cells: chi-square over the 16 sets that a report can support, at 1e-6.
    users = cells_by_user([0], [2], (2, 2))
    rng = np.random.default_rng(3)
    for _ in range(2500):
        Hio().release(users, 1.0, rng)
    seen = np.bincount([int(counts @ [1, 2, 4, 8]) for _, _, counts in asked], minlength=16)

    def p_value(epsilon: float) -> float:
        law = naive.set_channel(np.arange(4), keep_probability(epsilon), 1 / hash_values(epsilon))
        return float(stats.chisquare(seen, law[:, 2] * len(asked)).pvalue)

    assert p_value(1.0) > 1e-6
    assert p_value(1.5) < 1e-6  # and tells a larger loss


def test_each_user_answers_once_whatever_their_position(asked: Asked) -> None:
    at = np.random.default_rng(1).permutation(64)
    for cells in (np.arange(64), at):
        Hio().release(cells_by_user(np.arange(64), cells, (8, 8)), 1.0, np.random.default_rng(5))
    assert [size for _, size, _ in asked] == [4, 16, 64] * 2
    assert sorted(len(values) for values, _, _ in asked[:3]) == [21, 21, 22]
    here, there = asked[2][0], asked[5][0]  # who reports a single cell
    cell_number = full_tree(8, 3).partition(3)
    who = [
        np.argsort(cell_number[cells])[np.sort(found)]
        for cells, found in ((np.arange(64), here), (at, there))
    ]  # each cell has one user
    assert set(who[0]) == set(who[1])


def test_a_user_with_many_positions_answers_for_one_of_them(asked: Asked) -> None:
    users = cells_by_user([0, 0, 0, 0], [0, 0, 0, 3], (2, 2))
    rng = np.random.default_rng(3)
    for _ in range(1000):
        Hio().release(users, 1.0, rng)
    values = np.bincount(np.concatenate([values for values, _, _ in asked]), minlength=4)
    assert values[1] == values[2] == 0
    assert stats.binomtest(int(values[0]), 1000, 0.75).pvalue > 1e-6
    assert stats.binomtest(int(values[0]), 1000, 0.5).pvalue < 1e-6


@pytest.mark.parametrize("side", [8, 10])
def test_it_finds_the_map(side: int) -> None:
    users = normal_users(50_000, side)
    found = Hio().release(users, 3.0, np.random.default_rng(2))
    assert wasserstein(users.density, found.density) < 0.7
    assert wasserstein(users.density, np.full((side, side), 1 / side**2)) > 1.5
    assert found.facts == {
        "estimator": "consistency and projection by family",
        "levels": {8: 3, 10: 4}[side],
    }


def test_range_queries_beat_randomised_response() -> None:
    users = normal_users(100_000, 16)
    found = Hio().release(users, 1.0, np.random.default_rng(2)).density
    rival = naive.k_rr_projected(users.density, 100_000, 1.0, np.random.default_rng(3))
    error, rival_error = (
        naive.rectangle_error(f, users.density, np.random.default_rng(4)) for f in (found, rival)
    )
    assert error < 0.05
    assert rival_error > 4 * error


def test_consistency_beats_the_level_of_single_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    users, tree = normal_users(100_000, 32), full_tree(32, 5)
    found = Hio().release(users, 1.0, np.random.default_rng(2)).density
    raw: list[np.ndarray] = []
    consistent = hio.consistent

    def keep_leaves(of: object, values: np.ndarray, variances: np.ndarray) -> np.ndarray:
        raw.append(values[-1024:])
        return consistent(of, values, variances)  # type: ignore[arg-type]

    monkeypatch.setattr(hio, "consistent", keep_leaves)
    Hio().release(users, 1.0, np.random.default_rng(2))
    for alone in (raw[0], on_simplex(raw[0])):  # unbiased, and with a density's sum and sign
        density = alone[tree.partition(5)].reshape(32, 32)
        worse = naive.rectangle_error(density, users.density, np.random.default_rng(4))
        assert naive.rectangle_error(found, users.density, np.random.default_rng(4)) < worse / 3


@pytest.mark.parametrize("side", [1, 2, 3, 10])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 20])
def test_few_users_and_the_ends_of_epsilon(side: int, epsilon: float) -> None:
    for n in (1, 2, 3, 30):
        users = cells_by_user(np.arange(n), np.arange(n) % side**2, (side, side))
        found = Hio().release(users, epsilon, np.random.default_rng(1))
        assert found.density.shape == (side, side)
        assert found.density.min() >= 0
        assert found.density.sum() == pytest.approx(1, abs=1e-9)
        assert found.facts["levels"] == min((side - 1).bit_length(), n)


def test_equal_seeds_give_equal_maps() -> None:
    users = cells_by_user(np.arange(50), np.arange(50) % 16, (4, 4))
    before = users.visits.copy()
    first, again = (Hio().release(users, 2.0, np.random.default_rng(9)) for _ in range(2))
    assert (first.density == again.density).all()
    assert (users.visits != before).nnz == 0


def test_local_privacy_is_the_mean_over_levels_of_the_sum_over_reports() -> None:
    tree = full_tree(3, 2)
    for epsilon in (0.5, 4.0):
        law = keep_probability(epsilon), 1 / hash_values(epsilon)
        exact = [naive.privacy_of(naive.set_channel(tree.partition(k), *law), 3) for k in (1, 2)]
        assert Hio().local_privacy(3, epsilon) == pytest.approx(np.mean(exact), rel=1e-9)
    assert Hio().local_privacy(1, 1.0) == 0


def test_bad_input() -> None:
    with pytest.raises(InputError, match="hio needs a square map, got 2 x 3 cells"):
        Hio().release(cells_by_user([0], [0], (2, 3)), 1.0, np.random.default_rng(1))
    users = cells_by_user([0], [0], (2, 2))
    for epsilon in (0.0, -1.0, 1e-30, 20.5, float("nan")):
        with pytest.raises(InputError, match="epsilon must"):
            Hio().release(users, epsilon, np.random.default_rng(1))
        with pytest.raises(InputError, match="epsilon must"):
            Hio().local_privacy(2, epsilon)
    nobody = cells_by_user(np.zeros(0, int), np.zeros(0, int), (2, 2))
    with pytest.raises(InputError, match="n must be at least 1"):
        Hio().release(nobody, 1.0, np.random.default_rng(1))
    with pytest.raises(InputError, match="cells must be smaller"):
        Hio().local_privacy(200, 1.0)
