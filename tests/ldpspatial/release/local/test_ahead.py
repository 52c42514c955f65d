"""AHEAD: a tree that grows where people are, one OUE report a user."""

from collections.abc import Iterator
from math import exp, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from ldpspatial import wasserstein
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.local.sets.unary import oue_variance
from ldpspatial.release.local.trees import ahead
from ldpspatial.release.local.trees.ahead import Ahead, grow
from ldpspatial.release.local.trees.halving_tree import full_tree
from tests.support import naive_local_trees as naive
from tests.support import tree_releases as shared


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[shared.Question]:
    return shared.recorded(monkeypatch, ahead, "oue_counts")


def noise(number: int, leaf: naive.Rectangle) -> float:
    """Some frequency that depends on the round and the leaf alone."""
    return float(np.random.default_rng([number, *leaf]).normal(0.2, 0.3))


@pytest.mark.parametrize("side", [2, 3, 5, 8, 11])
def test_the_tree_is_that_of_a_plain_walk(side: int) -> None:
    rounds, variance = (side - 1).bit_length(), 0.01
    cuts: list[int] = []

    def ask(number: int, leaf_of_cell: np.ndarray, leaves: int) -> tuple[np.ndarray, float]:
        cuts.append(leaves)
        found = np.zeros(leaves)
        for leaf in range(leaves):
            rows, columns = np.divmod(np.flatnonzero(leaf_of_cell == leaf), side)
            rectangle = (rows.min(), rows.max() + 1, columns.min(), columns.max() + 1)
            found[leaf] = noise(number, tuple(map(int, rectangle)))  # type: ignore[arg-type]
        return found, variance

    tree, values, variances = grow(side, rounds, ask)
    found = {tuple(tree.bounds[leaf].tolist()): values[leaf] for leaf in tree.leaves}
    assert found == pytest.approx(naive.grow(side, rounds, noise, variance))
    assert len(cuts) == rounds
    assert cuts == sorted(cuts)
    for level in range(1, rounds + 1):  # asked once as an inner node, else in all later rounds
        for node in range(*tree.starts[level : level + 2]):
            times = 1 if tree.child_counts[node] else rounds - level + 1
            assert variances[node] == pytest.approx(variance / times)
    assert (values[0], variances[0]) == (1, 0)


@pytest.mark.parametrize(("share", "split"), [(0.999, False), (1.001, True)])
def test_the_threshold_is_the_root_of_five_variances(share: float, split: bool) -> None:
    variance = 0.003

    def ask(number: int, leaf_of_cell: np.ndarray, leaves: int) -> tuple[np.ndarray, float]:
        return np.append(share * sqrt(5 * variance), np.zeros(leaves - 1)), variance

    tree, _, _ = grow(4, 2, ask)
    assert len(tree.leaves) == (7 if split else 4)


def test_it_splits_where_people_are() -> None:
    # Everybody is in one corner cell of 16 x 16.
    users = cells_by_user(np.arange(20_000), np.zeros(20_000, int), (16, 16))
    found = Ahead().release(users, 1.0, np.random.default_rng(1))
    assert found.facts["rounds"] == 4
    assert 13 <= int(found.facts["leaves"]) < 40
    assert found.density[0, 0] > 0.85
    assert wasserstein(users.density, found.density) < 3


def reports_of_both(part: np.ndarray, epsilon: float) -> Iterator[np.ndarray]:
    for loss in (epsilon, 1.3 * epsilon):
        yield naive.set_channel(part, 0.5, 1 / (exp(loss) + 1))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
def test_no_report_is_likelier_elsewhere_than_is_claimed(epsilon: float) -> None:
    # Whatever tree the earlier rounds gave: one whole level, and leaves of three sizes.
    uneven = full_tree(4, 1).grown(np.array([2]))
    for part in (full_tree(3, 2).partition(1), uneven.labels(uneven.leaves)):
        channel, louder = reports_of_both(part, epsilon)
        assert channel.sum(axis=0) == pytest.approx(1, abs=1e-12)
        ratio = (channel.max(axis=1) / channel.min(axis=1)).max()
        assert ratio == pytest.approx(exp(epsilon), rel=1e-9)
        assert (louder.max(axis=1) / louder.min(axis=1)).max() > 1.001 * ratio
    assert Ahead().claim(epsilon).epsilon == epsilon


def test_reports_have_the_law_of_the_channel(asked: list[shared.Question]) -> None:
    # One user on 2 x 2 cells: chi-square over the 16 possible reports, at 1e-6.
    users = cells_by_user([0], [2], (2, 2))
    rng = np.random.default_rng(3)
    for _ in range(2500):
        Ahead().release(users, 1.0, rng)
    seen = np.bincount([int(counts @ [1, 2, 4, 8]) for *_, counts in asked], minlength=16)
    right, louder = (
        stats.chisquare(seen, law[:, 2] * 2500).pvalue for law in reports_of_both(np.arange(4), 1.0)
    )
    assert right > 1e-6 > louder


def test_the_claim_says_what_it_rests_on() -> None:
    shared.check_claim(
        Ahead(), 1.0, "the cells of a round depend on the noisy reports of earlier rounds alone"
    )


def test_each_user_answers_in_one_round_about_all_leaves(asked: list[shared.Question]) -> None:
    users = cells_by_user(np.arange(1000), np.arange(1000) % 64, (8, 8))
    found = Ahead().release(users, 2.0, np.random.default_rng(5))
    assert sorted(len(values) for values, *_ in asked) == [333, 333, 334]
    sizes = [size for _, size, *_ in asked]
    assert sizes[0] == 4
    assert sizes == sorted(sizes)
    assert sizes[-1] == found.facts["leaves"]


def test_splits_follow_from_reports_and_not_from_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    # With the same noisy counts, other positions give the same tree and the same map.
    counted = np.random.default_rng(8)
    canned: dict[int, np.ndarray] = {}

    def replayed(values: np.ndarray, size: int, *_: object) -> np.ndarray:
        return canned.setdefault(size, counted.integers(0, len(values) + 1, size))

    monkeypatch.setattr(ahead, "oue_counts", replayed)
    maps = [
        Ahead()
        .release(cells_by_user(np.arange(300), at, (8, 8)), 1.0, np.random.default_rng(5))
        .density
        for at in (np.zeros(300, int), np.arange(300) % 64)
    ]
    assert (maps[0] == maps[1]).all()


@pytest.mark.parametrize("side", [8, 10])
def test_it_finds_the_map(side: int) -> None:
    shared.check_map_is_found(Ahead(), side)


def test_range_queries_beat_randomised_response() -> None:
    shared.check_ranges_beat_randomised_response(Ahead())


def test_consistency_beats_the_leaves_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    users = shared.normal_users(100_000, 64)
    errors: dict[str, list[float]] = {"agreed": [], "alone": []}
    for seed in range(5):
        found = Ahead().release(users, 0.5, np.random.default_rng(seed)).density
        with monkeypatch.context() as patch:
            patch.setattr(ahead, "consistent", lambda tree, values, variances: values)
            patch.setattr(ahead, "non_negative", lambda tree, values: values)
            # Some of these numbers are negative, which no density is.
            patch.setattr(ahead, "Released", lambda density, *_: SimpleNamespace(density=density))
            alone = Ahead().release(users, 0.5, np.random.default_rng(seed)).density
        for name, density in (("agreed", found), ("alone", alone)):
            queries = np.random.default_rng(seed)
            errors[name].append(naive.rectangle_error(density, users.density, queries))
    assert np.mean(errors["agreed"]) < np.mean(errors["alone"]) / 1.5


@pytest.mark.parametrize("side", [1, 2, 3, 10])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 20])
def test_few_users_and_the_ends_of_epsilon(side: int, epsilon: float) -> None:
    for n, found in shared.check_few_users(Ahead(), side, epsilon).items():
        assert found.facts["rounds"] == min((side - 1).bit_length(), n)


def test_equal_seeds_give_equal_maps() -> None:
    shared.check_equal_seeds(Ahead())


def test_local_privacy_is_that_of_the_full_tree() -> None:
    tree = full_tree(3, 2)
    for epsilon in (0.5, 4.0):
        other = 1 / (exp(epsilon) + 1)
        exact = [
            naive.privacy_of(naive.set_channel(tree.partition(k), 0.5, other), 3) for k in (1, 2)
        ]
        assert Ahead().local_privacy(3, epsilon) == pytest.approx(np.mean(exact), rel=1e-9)
    assert Ahead().local_privacy(1, 1.0) == 0


def test_the_threshold_takes_the_variance_of_the_users_of_the_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def recording(n: int, epsilon: float) -> float:
        seen.append(n)
        return oue_variance(n, epsilon)

    monkeypatch.setattr(ahead, "oue_variance", recording)
    users = cells_by_user(np.arange(11), np.arange(11), (4, 4))
    Ahead().release(users, 1.0, np.random.default_rng(1))
    assert sorted(seen) == [5, 6]


def test_bad_input() -> None:
    shared.check_bad_input(Ahead())
