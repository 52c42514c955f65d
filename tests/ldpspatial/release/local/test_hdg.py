"""HDG: grids of rows, of columns and of both, made to agree and combined."""

from math import exp

import numpy as np
import pytest

from ldpspatial import wasserstein
from ldpspatial.errors import InputError
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.local.sets.local_hashing import hash_values, keep_probability
from ldpspatial.release.local.sets.set_reports import on_simplex
from ldpspatial.release.local.trees import hdg
from ldpspatial.release.local.trees.hdg import Hdg, granularities
from tests.support import naive_local_trees as naive
from tests.support import tree_releases as shared


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[shared.Question]:
    return shared.recorded(monkeypatch, hdg, "olh_counts")


def test_granularities_follow_the_guideline() -> None:
    for n, epsilon in ((100_000, 1.0), (5000, 0.2), (1_000_000, 4.0)):
        a1, a2, lift = 0.7, 0.03, exp(epsilon) - 1
        g1 = (n / 3 * lift**2 * a1**2 / (2 * exp(epsilon))) ** (1 / 3)
        g2 = (2 * a2 * lift * (n / 3 / exp(epsilon)) ** 0.5) ** 0.5
        assert granularities(n, epsilon) == pytest.approx((g1, g2))
    assert granularities(100_000, 1.0) == pytest.approx((20.70, 3.379), abs=0.01)


def test_powers_of_two_by_distance() -> None:
    powers = [2 ** hdg._nearest_power(v) for v in (1e-9, 1.9, 2, 3, 3.01, 6, 6.1, 20.7, 24, 24.1)]
    assert powers == [2, 2, 2, 2, 4, 4, 8, 16, 16, 32]


@pytest.mark.parametrize(
    ("side", "n", "epsilon"), [(2, 1, 1e-6), (15, 10_000, 1.0), (64, 1000, 3.0)]
)
def test_fine_ranges_refine_coarse_ones_on_any_map(side: int, n: int, epsilon: float) -> None:
    axes = hdg._axes(side, n, epsilon)
    assert axes.lengths.sum() == side
    assert 2 <= axes.coarse <= axes.fine <= side
    rows, columns, both = (part.reshape(side, side) for part in axes.partitions())
    assert (rows == columns.T).all()
    assert (rows[:, :1] == rows).all()
    coarse = axes.above[rows[:, 0]]
    assert (both == coarse[:, None] * axes.coarse + coarse).all()
    assert np.unique(both).tolist() == list(range(axes.coarse**2))


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_no_report_is_likelier_elsewhere_than_is_claimed(epsilon: float) -> None:
    # All grids, functions and hashes; a report names its grid, each drawn with equal chance.
    keep, buckets = float(keep_probability(epsilon)), hash_values(epsilon)
    grids = hdg._axes(4, 100, epsilon).partitions()
    channel = np.concatenate([naive.hashing_channel(part, keep, buckets) / 3 for part in grids])
    assert channel.sum(axis=0) == pytest.approx(1, abs=1e-12)
    assert (channel.max(axis=1) / channel.min(axis=1)).max() == pytest.approx(
        exp(epsilon), rel=1e-12
    )
    condition = "the grid that a user reports on is drawn without looking at any position"
    shared.check_claim(Hdg(), epsilon, condition)


def test_each_user_answers_about_one_grid(asked: list[shared.Question]) -> None:
    at = np.random.default_rng(1).integers(0, 64, 10_000)
    users = cells_by_user(np.arange(10_000), at, (8, 8))
    found = Hdg().release(users, 2.0, np.random.default_rng(5))
    fine, coarse = int(found.facts["g1"]), int(found.facts["g2"])
    assert [size for _, size, *_ in asked] == [fine, fine, coarse**2] == [8, 8, 4]
    assert sorted(len(values) for values, *_ in asked) == [3333, 3333, 3334]
    assert {epsilon for *_, epsilon, _ in asked} == {2.0}


def test_who_answers_about_what_does_not_depend_on_positions(asked: list[shared.Question]) -> None:
    # Users of the first half are in row 0, others in row 7; then the other way round.
    for first in (0, 7):
        cells = np.where(np.arange(200) < 100, first, 7 - first) * 8
        Hdg().release(cells_by_user(np.arange(200), cells, (8, 8)), 1.0, np.random.default_rng(5))
    low, high = asked[0][0], asked[3][0]
    assert (low != high).all()  # the same users, in order, each in the other row
    assert set(low) == set(high) == {low.min(), low.max()}


@pytest.mark.parametrize("lengths", [[2, 2, 2, 2], [2, 1, 2, 2, 1]])
def test_consistency_is_least_squares_with_a_known_total(lengths: list[int]) -> None:
    above = np.array([0, 0, 1, 1] if len(lengths) == 4 else [0, 0, 1, 2, 2])
    axes = hdg._Axes(np.array(lengths), above)
    rng = np.random.default_rng(2)
    line, both = rng.dirichlet(np.ones(len(lengths))), rng.dirichlet(np.ones(axes.coarse**2))
    both = both.reshape(axes.coarse, axes.coarse)
    new_line, new_both = hdg._consistent(axes, line, both)
    agreed = naive.agreed_sums(line, both, above)
    assert np.bincount(above, new_line) == pytest.approx(agreed, abs=1e-6)
    assert new_both.sum(axis=1) == pytest.approx(np.bincount(above, new_line), abs=1e-12)
    assert new_line.sum() == pytest.approx(1)
    assert np.ptp((new_both - both), axis=1) == pytest.approx(0, abs=1e-12)
    # The other coordinate's sums all move alike, so what agreed there before still agrees.
    assert np.ptp((new_both - both).sum(axis=0)) == pytest.approx(0, abs=1e-12)


def test_grids_agree_in_the_end() -> None:
    axes = hdg._axes(15, 20_000, 1.0)
    rng = np.random.default_rng(4)
    rows, columns = on_simplex(rng.normal(0, 0.1, (2, axes.fine))) * 2
    both = on_simplex(rng.normal(0, 0.1, (axes.coarse, axes.coarse)))
    grids = hdg._agreeing(axes, rows / rows.sum(), columns / columns.sum(), both)
    for line, sums in ((grids.rows, grids.both.sum(1)), (grids.columns, grids.both.sum(0))):
        assert np.bincount(axes.above, line) == pytest.approx(sums, abs=1e-6)
    for frequencies in grids:
        assert frequencies.min() >= 0
        assert frequencies.sum() == pytest.approx(1)


@pytest.mark.parametrize(("side", "n"), [(4, 300), (9, 3000), (10, 60_000)])
def test_the_weighted_update_by_blocks_is_that_by_cells(side: int, n: int) -> None:
    axes = hdg._axes(side, n, 1.0)
    rng = np.random.default_rng(3)
    grids = hdg._Grids(
        rng.dirichlet(np.ones(axes.fine)),
        rng.dirichlet(np.ones(axes.fine)),
        rng.dirichlet(np.ones(axes.coarse**2)).reshape(axes.coarse, axes.coarse),
    )
    matrix, iterations = hdg._weighted_update(axes, grids, 1 / n)
    parts = zip(axes.partitions(), (grids.rows, grids.columns, grids.both.ravel()), strict=True)
    slow, slow_iterations = naive.response_matrix(side, list(parts), 1 / n)
    assert axes.spread(matrix) == pytest.approx(slow, abs=1e-12)
    assert iterations == slow_iterations


def test_grids_that_exclude_each_other_leave_a_density() -> None:
    axes = hdg._axes(2, 100, 1.0)
    grids = hdg._Grids(np.array([1.0, 0]), np.array([1.0, 0]), np.array([[0, 0], [0, 1.0]]))
    matrix, _ = hdg._weighted_update(axes, grids, 0.01)
    assert matrix.tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize("side", [8, 10])
def test_it_finds_the_map(side: int) -> None:
    assert shared.check_map_is_found(Hdg(), side).facts["estimator"] == "weighted update"


def test_rows_are_rows() -> None:
    users = cells_by_user(np.arange(20_000), 8 + np.arange(20_000) % 8, (8, 8))  # all in row 1
    found = Hdg().release(users, 3.0, np.random.default_rng(2)).density
    assert found[1].sum() > 0.9


def test_range_queries_beat_randomised_response() -> None:
    shared.check_ranges_beat_randomised_response(Hdg())


def test_the_fine_ranges_add_to_the_coarse_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    users = shared.normal_users(100_000, 16)
    found = Hdg().release(users, 1.0, np.random.default_rng(2)).density
    scaled = hdg._scaled
    monkeypatch.setattr(hdg, "_scaled", lambda matrix, parts: scaled(matrix, parts[2:]))
    coarse = Hdg().release(users, 1.0, np.random.default_rng(2)).density
    assert wasserstein(users.density, found) < wasserstein(users.density, coarse) / 1.2


@pytest.mark.parametrize("side", [1, 2, 3, 10])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 20])
def test_few_users_and_the_ends_of_epsilon(side: int, epsilon: float) -> None:
    shared.check_few_users(Hdg(), side, epsilon)


def test_equal_seeds_give_equal_maps() -> None:
    shared.check_equal_seeds(Hdg())


def test_local_privacy_is_the_mean_over_grids_of_the_sum_over_reports() -> None:
    for users, epsilon in ((200, 0.5), (100_000, 2.0)):
        law = float(keep_probability(epsilon)), 1 / hash_values(epsilon)
        parts = hdg._axes(3, users, epsilon).partitions()
        exact = [naive.privacy_of(naive.set_channel(part, *law), 3) for part in parts]
        found = Hdg(usual_users=users).local_privacy(3, epsilon)
        assert found == pytest.approx(np.mean(exact), rel=1e-9)
    assert Hdg().local_privacy(1, 1.0) == 0


def test_bad_input() -> None:
    shared.check_bad_input(Hdg())


@pytest.mark.parametrize("users", [0, 1.5, "9", True])
def test_bad_numbers_of_users(users: object) -> None:
    with pytest.raises(InputError, match="usual_users must"):
        Hdg(usual_users=users)  # type: ignore[arg-type]
