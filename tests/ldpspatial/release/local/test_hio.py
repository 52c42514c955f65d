"""HIO: one OLH report of one level, and levels that agree."""

from math import exp

import numpy as np
import pytest
from scipy import stats

from ldpspatial.places.users import cells_by_user
from ldpspatial.release.local.sets.local_hashing import hash_values, keep_probability
from ldpspatial.release.local.sets.set_reports import on_simplex
from ldpspatial.release.local.trees import hio
from ldpspatial.release.local.trees.halving_tree import full_tree
from ldpspatial.release.local.trees.hio import Hio
from tests.support import naive_local_trees as naive
from tests.support import tree_releases as shared


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[shared.Question]:
    return shared.recorded(monkeypatch, hio, "olh_counts")


@pytest.mark.parametrize(("side", "epsilon"), [(2, 0.2), (2, 1.0), (3, 0.2)])
def test_no_report_is_likelier_elsewhere_than_is_claimed(side: int, epsilon: float) -> None:
    # All levels, functions and hashes; a report names its level, each drawn with equal chance.
    tree = full_tree(side, (side - 1).bit_length())
    keep, buckets = float(keep_probability(epsilon)), hash_values(epsilon)
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
    shared.check_claim(
        Hio(), 1.0, "the level that a user reports on is drawn without looking at any position"
    )


def test_reports_have_the_law_of_the_channel(asked: list[shared.Question]) -> None:
    # One user on 2 x 2 cells: chi-square over the 16 sets that a report can support, at 1e-6.
    users = cells_by_user([0], [2], (2, 2))
    rng = np.random.default_rng(3)
    for _ in range(2500):
        Hio().release(users, 1.0, rng)
    seen = np.bincount([int(counts @ [1, 2, 4, 8]) for *_, counts in asked], minlength=16)

    def p_value(epsilon: float) -> float:
        keep, other = float(keep_probability(epsilon)), 1 / hash_values(epsilon)
        law = naive.set_channel(np.arange(4), keep, other)
        return float(stats.chisquare(seen, law[:, 2] * len(asked)).pvalue)

    assert p_value(1.0) > 1e-6
    assert p_value(1.5) < 1e-6  # and tells a larger loss


def test_each_user_answers_once_whatever_their_position(asked: list[shared.Question]) -> None:
    at = np.random.default_rng(1).permutation(64)
    for cells in (np.arange(64), at):
        Hio().release(cells_by_user(np.arange(64), cells, (8, 8)), 1.0, np.random.default_rng(5))
    assert [size for _, size, *_ in asked] == [4, 16, 64] * 2
    assert sorted(len(values) for values, *_ in asked[:3]) == [21, 21, 22]
    here, there = asked[2][0], asked[5][0]  # who reports a single cell
    cell_number = full_tree(8, 3).partition(3)
    who = [
        np.argsort(cell_number[cells])[np.sort(found)]
        for cells, found in ((np.arange(64), here), (at, there))
    ]  # each cell has one user
    assert set(who[0]) == set(who[1])


def test_a_user_with_many_positions_answers_for_one_of_them(asked: list[shared.Question]) -> None:
    users = cells_by_user([0, 0, 0, 0], [0, 0, 0, 3], (2, 2))
    rng = np.random.default_rng(3)
    for _ in range(1000):
        Hio().release(users, 1.0, rng)
    values = np.bincount(np.concatenate([values for values, *_ in asked]), minlength=4)
    assert values[1] == values[2] == 0
    assert stats.binomtest(int(values[0]), 1000, 0.75).pvalue > 1e-6
    assert stats.binomtest(int(values[0]), 1000, 0.5).pvalue < 1e-6


@pytest.mark.parametrize("side", [8, 10])
def test_it_finds_the_map(side: int) -> None:
    assert shared.check_map_is_found(Hio(), side).facts == {
        "estimator": "consistency and projection by family",
        "levels": {8: 3, 10: 4}[side],
    }


def test_range_queries_beat_randomised_response() -> None:
    shared.check_ranges_beat_randomised_response(Hio())


def test_consistency_beats_the_level_of_single_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    users, tree = shared.normal_users(100_000, 32), full_tree(32, 5)
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
    for n, found in shared.check_few_users(Hio(), side, epsilon).items():
        assert found.facts["levels"] == min((side - 1).bit_length(), n)


def test_equal_seeds_give_equal_maps() -> None:
    shared.check_equal_seeds(Hio())


def test_local_privacy_is_the_mean_over_levels_of_the_sum_over_reports() -> None:
    tree = full_tree(3, 2)
    for epsilon in (0.5, 4.0):
        law = float(keep_probability(epsilon)), 1 / hash_values(epsilon)
        exact = [naive.privacy_of(naive.set_channel(tree.partition(k), *law), 3) for k in (1, 2)]
        assert Hio().local_privacy(3, epsilon) == pytest.approx(np.mean(exact), rel=1e-9)
    assert Hio().local_privacy(1, 1.0) == 0


def test_bad_input() -> None:
    shared.check_bad_input(Hio())
