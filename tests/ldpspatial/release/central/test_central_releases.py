"""Central releases from users to map: what they claim, spend, keep and give."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import Grid, entropy
from client_sdk.entropy import Entropy
from ldpspatial.errors import InputError
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells, cells_by_user, user_cells
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release import central
from ldpspatial.release.central import (
    CentralAdaptiveGrid,
    CentralLevels,
    CentralQuadtree,
    Laplace,
    LaplaceTop,
    LeastCostPartition,
    PrivTree,
    SparseEmd,
    UniformGrid,
    Wavelets,
    central_release,
    sparse_emd,
)
from ldpspatial.release.central.central_release import CentralRelease, with_noise
from ldpspatial.release.central.pyramid import Pyramid
from ldpspatial.release.central.quantise import MASS, unit_sums
from ldpspatial.release.central.trees.privtree import Growth, crowded
from tests.support import naive_central as naive
from tests.support.central_noise import recorded_spending, replace_noise, replace_shape_noise

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

RELEASES = [
    *(CentralLevels(), SparseEmd(), Laplace(), LaplaceTop(top=10)),
    *(UniformGrid(parts=16), UniformGrid(), CentralAdaptiveGrid(), CentralQuadtree(), PrivTree()),
    *(LeastCostPartition(), Wavelets(), Wavelets(basis="tensor", growth=1.5)),
]
every_release = pytest.mark.parametrize("release", RELEASES, ids=repr)


def town(shape: tuple[int, int], users: int = 500, seed: int = 1) -> UserCells:
    """Users with ten visits each around a few places."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, shape[0] * shape[1], 5)
    cells = places[rng.integers(0, 5, 10 * users)]
    return cells_by_user(np.repeat(np.arange(users), 10), cells, shape)


def without_noise(units: Ints, micro_epsilon: int, source: Entropy) -> Ints:
    return units


def test_public_names() -> None:
    assert {"RELEASES", *(kind.__name__ for kind in central.RELEASES)} == set(central.__all__)
    assert {type(release) for release in RELEASES} <= set(central.RELEASES)
    assert {kind.name for kind in central.RELEASES} >= {
        *("central-levels", "sparse-emd", "laplace", "laplace-top", "uniform-grid"),
        *("central-adaptive-grid", "quadtree", "privtree", "least-cost-partition", "wavelets"),
    }
    assert {release.model for release in RELEASES} == {"central"}


# Every release


@every_release
@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 2), (16, 16), (5, 13), (100, 3)], ids=str)
def test_the_map_is_a_density_of_the_shape_asked_for(
    release: CentralRelease, shape: tuple[int, int]
) -> None:
    for epsilon in (0.001, 1, 20):
        run = release.release(town(shape), epsilon, np.random.default_rng(1))
        assert run.density.shape == shape
        assert (run.density >= 0).all()
        assert run.density.sum() == pytest.approx(1, rel=1e-12)


@every_release
@pytest.mark.parametrize("epsilon", [0.001, 0.7, 0.1 + 0.2, 1, 3.0000009, 20])
def test_the_claim_is_of_what_was_spent_and_never_above_what_was_asked(
    release: CentralRelease, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = recorded_spending(monkeypatch)
    run = release.release(town((16, 16)), epsilon, np.random.default_rng(1))
    assert run.claim.epsilon == sum(spent) / 10**6
    assert epsilon - 1e-6 < run.claim.epsilon <= epsilon
    assert run.claim == release.claim(epsilon)
    assert (run.claim.model, run.claim.unit, run.claim.delta) == ("central", "user", 0)
    assert run.claim.neighbours == "add or remove"
    assert run.claim.under_replacement().epsilon == 2 * run.claim.epsilon


@every_release
def test_a_seed_repeats_a_simulation_and_nothing_repeats_what_is_published(
    release: CentralRelease,
) -> None:
    people = town((16, 16))
    runs = [release.release(people, 1, np.random.default_rng(s)).density for s in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    first, second = (release.publish(people, 1) for _ in range(2))
    assert not np.array_equal(first.density, second.density)
    assert first.claim == release.claim(1)


@every_release
def test_much_epsilon_and_many_users_give_the_truth(release: CentralRelease) -> None:
    people = town((16, 16), users=6000)
    density = release.release(people, 20, np.random.default_rng(1)).density
    assert np.abs(density - people.density).sum() < 0.02


@every_release
def test_nobody_is_a_neighbour_of_one_user(release: CentralRelease) -> None:
    nobody = UserCells((4, 4), town((4, 4)).visits[:0])
    run = release.release(nobody, 1, np.random.default_rng(1))
    assert run.density.sum() == pytest.approx(1)


@every_release
def test_the_map_does_not_tell_how_many_users_there_are(
    release: CentralRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same noisy sums the output is the same: n users, or 2 n with sums halved."""
    outputs = []
    for users, divisor in ((300, 1), (600, 2)):
        ids = np.repeat(np.arange(users), 2)
        people = cells_by_user(ids, np.tile([3, 200, 7, 7], users // 2), (16, 16))

        def halved(units: Ints, micro: int, source: Entropy, by: int = divisor) -> Ints:
            return with_noise(units // by, micro, source)

        def divided(
            units: Ints,
            level: int,
            micro: int,
            source: Entropy,
            growth: Growth,
            by: int = divisor,
        ) -> Bools:
            return crowded(units // by, level, micro, source, growth)

        replace_noise(monkeypatch, halved)
        replace_shape_noise(monkeypatch, divided)
        outputs.append(release.release(people, 1, np.random.default_rng(1)))
    assert np.array_equal(outputs[0].density, outputs[1].density)
    assert outputs[0].facts == outputs[1].facts


@every_release
def test_positions_on_a_grid_go_in_too(release: CentralRelease) -> None:
    points = np.random.default_rng(1).random((200, 2))
    run = release.run(points, Grid.plane(0, 0, 1.0, 8), 1.0, np.random.default_rng(1))
    assert run.density.shape == (8, 8)


@every_release
@pytest.mark.parametrize("bad", [5e-7, 20.1])
def test_a_bad_epsilon_is_refused(release: CentralRelease, bad: float) -> None:
    people = town((4, 4), users=3)
    for call in (
        lambda: release.claim(bad),
        lambda: release.release(people, bad, np.random.default_rng(1)),
        lambda: release.publish(people, bad),
    ):
        with pytest.raises(InputError, match="epsilon must be a number from"):
            call()


def test_noise_has_the_scale_of_one_user_per_epsilon() -> None:
    noise = with_noise(np.full(20_000, 5 * MASS), 500_000, np.random.default_rng(1).bytes)
    scatter = (noise - 5 * MASS).std() / noise_deviation(1, 2 * MASS)
    assert scatter == pytest.approx(1, abs=0.06)  # five standard errors and more


# The baselines


def test_negatives_count_as_zero_and_nothing_gives_the_uniform_map(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    people = cells_by_user(["a"], [0], (1, 4))
    for noisy, laplace, top in (
        ([4, -3, 0, 12], [0.25, 0, 0, 0.75], [0, 0, 0, 1]),
        ([-1, -3, 0, -1], [0.25] * 4, [0.25] * 4),
        ([7, 7, 0, 7], [1 / 3, 1 / 3, 0, 1 / 3], [1, 0, 0, 0]),  # the first of equals
    ):
        monkeypatch.setattr(
            "ldpspatial.release.central.laplace.with_noise",
            lambda *_, values=noisy: np.array(values),
        )
        run = Laplace().release(people, 1, np.random.default_rng(1))
        assert run.density.tolist() == [laplace]
        run = LaplaceTop(top=25).release(people, 1, np.random.default_rng(1))
        assert run.density.tolist() == [top]


@pytest.mark.parametrize(
    ("top", "kept"), [(100, 256), (10, 26), (1, 3), (0.01, 1), (1e-9, 1), (Fraction(1, 2), 1)]
)
def test_the_share_of_cells_is_of_all_cells_and_one_at_least(top: float, kept: int) -> None:
    run = LaplaceTop(top=top).release(town((16, 16)), 0.01, np.random.default_rng(1))
    assert run.facts["kept"] == kept
    assert np.count_nonzero(run.density) <= kept


# Sparse EMD


@pytest.mark.parametrize("keep", [1, 3, 4, 15, 16, 20, 64])
def test_levels_start_at_the_last_that_is_followed_whole(keep: int) -> None:
    first = {1: 0, 3: 0, 4: 1, 15: 1, 16: 2, 20: 2, 64: 3}[keep]
    release = SparseEmd(keep=keep)
    for levels in range(9):
        assert len(release.split(10**6, levels)) == levels + 1 - min(first, levels)


@pytest.mark.parametrize("micro", [10**3, 699_999, 10**6, 20 * 10**6])
@pytest.mark.parametrize("decay", [1.0, 2**-0.5, 0.5, 0.8])
def test_shares_fall_by_the_decay_and_spend_all(micro: int, decay: float) -> None:
    shares = SparseEmd(decay=decay).split(micro, 8)
    assert sum(shares) == micro
    for step, share in enumerate(shares):
        exact = micro * decay**step / sum(decay**k for k in range(7))
        assert -1 < share - exact < (7 if step == 0 else 1e-6)


def test_too_little_epsilon_for_the_levels_is_refused() -> None:
    with pytest.raises(InputError, match="epsilon must leave each of 7 levels"):
        SparseEmd(decay=0.1).release(town((256, 256), 5), 0.001, np.random.default_rng(1))


@pytest.mark.parametrize("shape", [(8, 8), (16, 16), (5, 13), (1, 9)], ids=str)
@pytest.mark.parametrize("keep", [1, 5, 20])
def test_nodes_looked_at_are_those_of_the_twin(
    shape: tuple[int, int], keep: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse_emd, "with_noise", without_noise)
    tree, release = Quadtree(shape), SparseEmd(keep=keep)
    for seed in range(5):
        cells, units = unit_sums(town(shape, 30, seed))
        budget = release.split(10**6, tree.depth)
        found = release.measure(Pyramid(tree, cells, units), budget, entropy.system)
        dense = np.zeros(shape[0] * shape[1], np.int64)
        dense[cells] = units
        first = tree.depth + 1 - len(budget)
        expected = naive.beam(dense.reshape(shape), first, keep)
        assert len(found) == len(expected)
        for level, (nodes, sums, followed) in zip(found, expected, strict=True):
            blocks = [tree.cells_below(level.level, node) for node in level.nodes.tolist()]
            corners = [(rows.start, columns.start) for rows, columns in blocks]
            shift = tree.depth - level.level
            assert corners == [(r << shift, c << shift) for _, r, c in nodes]
            assert level.noisy.tolist() == sums
            assert level.chosen.tolist() == followed


def test_a_run_tells_what_it_did() -> None:
    run = SparseEmd().release(town((16, 16)), 1, np.random.default_rng(1))
    assert run.facts["micro epsilons"] == "453083 320377 226540"
    assert run.facts["noisy sums"] == 16 + 64 + 80
    assert run.facts["variables"] == (64 - 20) + 80
    assert run.facts["objective"] >= 0  # type: ignore[operator]


def test_no_positive_sum_gives_the_uniform_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_emd, "with_noise", lambda units, *_: -1 - units)
    density = SparseEmd().release(town((5, 7)), 1, np.random.default_rng(1)).density
    assert np.array_equal(density, np.full((5, 7), 1 / 35))


def test_a_million_cells_are_no_trouble() -> None:
    people = town((1024, 1024), 200)
    run = SparseEmd().release(people, 5, np.random.default_rng(1))
    assert run.facts["noisy sums"] == 16 + 64 + 7 * 80
    heavy = people.density > 0
    assert run.density[heavy].sum() > 0.5


def test_conditions_are_said_in_words() -> None:
    assert SparseEmd().claim(1).conditions == central_release.CONDITIONS
    assert any("mass 1" in condition for condition in central_release.CONDITIONS)


@every_release
def test_where_the_only_user_inside_is_gone_there_is_a_map_as_before(
    release: CentralRelease,
) -> None:
    """An error would tell: neighbouring sets of users all give a map, of one shape."""
    grid = Grid.plane(0, 0, 4, 4)
    both = (["ann", "bob"], [[0.5, 0.5], [9.0, 9.0]])
    alone = (["bob"], [[9.0, 9.0]])
    broken = (["ann", "bob"], [[0.5, 0.5], [np.nan, np.inf]])
    nobody = ((np.zeros(0, int), np.zeros((0, 2))), [], ([], []), np.zeros((0, 2)))
    for points in (both, alone, broken, *nobody):
        found = release.publish(user_cells(points, grid, may_be_empty=True), 1.0)
        assert found.density.shape == (4, 4)
        assert found.density.sum() == pytest.approx(1)
        assert release.run(points, grid, 1.0, np.random.default_rng(1)).density.shape == (4, 4)


def test_a_position_that_is_none_is_outside_and_the_others_stay_where_they_are() -> None:
    berlin = Grid.from_center(lat=52.0, lon=13.0, side_m=1000, cells=4)
    here = [[52.001, 13.001], [51.999, 12.999], [52.001, 13.002]]
    for none in ([np.nan, 13.0], [52.0, -np.inf], [91.0, 13.0], [52.0, 361.0]):
        users = user_cells([*here, none], berlin, may_be_empty=True)
        alone = user_cells(here, berlin)
        assert (len(users), users.outside, users.users_outside) == (3, 1, 1)
        assert (users.visits != alone.visits).nnz == 0
        with pytest.raises(InputError, match="finite"):
            user_cells([*here, none], berlin)
    for shapeless in ([[1.0], [1.0, 2.0]], [["a", "b"]], [1.0, 2.0], [[1.0, 2.0, 3.0]]):
        with pytest.raises(InputError, match="points must be an array"):
            user_cells(shapeless, berlin, may_be_empty=True)
