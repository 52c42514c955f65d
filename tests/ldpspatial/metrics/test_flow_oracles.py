from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from experiments.benchmarks import distance_maps, flow_oracles
from experiments.benchmarks.distance_maps import CLASSES, Pair, draw_pair
from experiments.benchmarks.flow_oracles import (
    IntArray,
    Network,
    dense_cost,
    four_neighbour_cost,
    pot_dense_cost,
    solve,
    two_hop_cost,
    whole_masses,
)
from ldpspatial.errors import InputError, SolverError
from tests.support import naive_metrics

SHAPES = [(1, 1), (1, 9), (9, 1), (2, 2), (3, 5), (5, 4)]


def small_pair(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[IntArray, IntArray]:
    """Two maps of one total, about half of the cells empty."""
    p, q = rng.integers(0, 9, (2, *shape)) * (rng.random((2, *shape)) < 0.5)
    q[tuple(rng.integers(0, shape))] += max(0, p.sum() - q.sum()) + 1
    p[tuple(rng.integers(0, shape))] += q.sum() - p.sum()
    return p, q


def linear_program(p: IntArray, q: IntArray, order: int, ground: str) -> float:
    total = int(p.sum())
    return total * naive_metrics.wasserstein(p / total, q / total, order, ground) ** order


@pytest.mark.parametrize("shape", SHAPES)
def test_all_agree_on_small_maps(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng([12, *shape])
    for _ in range(5):
        p, q = small_pair(rng, shape)
        squared, cityblock = two_hop_cost(p, q), four_neighbour_cost(p, q)
        assert dense_cost(p, q, "squared") == squared
        assert dense_cost(p, q, "cityblock") == cityblock
        for cost, order, ground in (
            ("squared", 2, "euclidean"),
            ("cityblock", 1, "cityblock"),
            ("squared cityblock", 2, "cityblock"),
        ):
            expected = pytest.approx(linear_program(p, q, order, ground), rel=1e-9, abs=1e-9)
            assert dense_cost(p, q, cost) == expected
            assert pot_dense_cost(p, q, cost) == expected


def test_networks_agree_on_a_larger_map() -> None:
    rng = np.random.default_rng(13)
    for total in (2**40, 10**12):
        p, q = whole_masses(*draw_pair("mostly empty", (40, 25), 0), total)
        assert two_hop_cost(p, q) == dense_cost(p, q, "squared")
        assert pot_dense_cost(p, q, "squared") == pytest.approx(two_hop_cost(p, q), rel=1e-12)
    p, q = whole_masses(rng.random((12, 17)), rng.random((12, 17)))
    assert two_hop_cost(p, q) == dense_cost(p, q, "squared") == two_hop_cost(q.T, p.T)
    assert four_neighbour_cost(p, q) == dense_cost(p, q, "cityblock")


def test_a_cost_beyond_64_bits_is_exact() -> None:
    mass = 2**60 + 1
    p, q = np.zeros((2, 3, 12), np.int64)
    p[0, 0] = q[2, 11] = mass
    assert two_hop_cost(p, q) == dense_cost(p, q) == 125 * mass
    assert four_neighbour_cost(p, q) == 13 * mass
    assert four_neighbour_cost(p, p) == two_hop_cost(p, p) == 0


def test_networks_agree_on_masses_of_every_bit() -> None:
    p, q = np.random.default_rng(16).integers(0, 2**54, (2, 8, 7))
    q[0, 0] += max(0, p.sum() - q.sum())
    p[0, 0] += q.sum() - p.sum()
    assert p.sum() > 2**58
    assert two_hop_cost(p, q) == dense_cost(p, q, "squared")
    assert four_neighbour_cost(p, q) == dense_cost(p, q, "cityblock")


def test_anything_but_an_optimum_is_an_error() -> None:
    nodes, numbers = np.zeros(0, np.int32), np.zeros(0, np.int64)
    no_arcs = Network(nodes, nodes, numbers, numbers, supplies=np.array([1, -1]))
    with pytest.raises(SolverError, match="INFEASIBLE"):
        solve(lambda: no_arcs)


def test_solve_tells_the_time_of_building_and_solving() -> None:
    p, q = small_pair(np.random.default_rng(14), (5, 5))
    found = solve(lambda: flow_oracles.two_hop_network(p, q))
    assert found.cost == two_hop_cost(p, q)
    assert found.build_seconds > 0
    assert found.solve_seconds > 0


def test_full_maps_have_two_hops_of_side_cubed_arcs() -> None:
    p = np.ones((6, 6), np.int64)
    assert len(flow_oracles.two_hop_network(p, p).tails) == 2 * 6**3
    assert len(flow_oracles.four_neighbour_network(p, p).tails) == 4 * 6 * 5


@pytest.mark.parametrize("total", [1, 10, 999, 10**9, 10**12, 2**50])
def test_whole_masses_are_within_a_unit(total: int) -> None:
    rng = np.random.default_rng(15)
    p, q = 10.0 ** rng.uniform(-20, 0, (7, 9)), rng.random((7, 9)) * (rng.random((7, 9)) < 0.3)
    for masses, whole in zip((p, q), whole_masses(p, q, total), strict=True):
        assert whole.dtype == np.int64
        assert whole.sum() == total
        assert whole.min() >= 0
        assert not whole[masses == 0].any()
        assert np.abs(whole - masses / masses.sum() * total).max() < 1.0 + 1e-15 * total


def test_whole_masses_round_by_largest_remainders() -> None:
    p, q = whole_masses([[0.6, 1.7, 0.7]], [[1, 1, 1]], 3)
    assert p.tolist() == [[0, 2, 1]]
    assert q.tolist() == [[1, 1, 1]]
    assert whole_masses([[1, 1, 1]], [[1, 0, 0]], 2)[0].tolist() == [[1, 1, 0]]


def test_rules() -> None:
    one = np.ones((2, 2), np.int64)
    for p, q in (
        (one, 2 * one),
        (one, np.ones((1, 4), np.int64)),
        (one * 0, one * 0),
        (one - 2, one - 2),
        (one * 1.0, one * 1.0),
        (one[0], one[0]),
    ):
        for cost in (two_hop_cost, four_neighbour_cost, dense_cost, pot_dense_cost):
            with pytest.raises(InputError):
                cost(p, q)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cost: must be one of"):
        dense_cost(one, one, "euclidean")
    for total in (0, 2**50 + 1):
        with pytest.raises(InputError, match="total"):
            whole_masses(one, one, total)


DRAWS: dict[str, Callable[[tuple[int, int], int], Pair]] = {
    **{name: partial(draw_pair, name) for name in CLASSES},
    "checkins": distance_maps.checkins_against_estimate,
    "heat maps": distance_maps.smooth_heat_maps,
}


@pytest.mark.parametrize("name", DRAWS)
def test_maps_are_drawn_by_the_seed(name: str) -> None:
    draw = DRAWS[name]
    for cells in ((1, 1), (3, 1), (32, 20)):
        p, q = draw(cells, 0)
        assert p.shape == q.shape == cells
        assert p.dtype == q.dtype == np.float64
        assert min(p.min(), q.min()) >= 0
        assert p.sum() == pytest.approx(1, rel=1e-12)
        assert q.sum() == pytest.approx(1, rel=1e-12)
    again, other = draw(cells, 0), draw(cells, 1)
    assert np.array_equal(again, (p, q))
    assert not np.array_equal(other[0], p)
    assert not np.array_equal(p, q)


def test_sparse_classes_are_sparse() -> None:
    for seed in distance_maps.SEEDS:
        for density in draw_pair("mostly empty", (64, 64), seed):
            assert 0.015 < np.mean(density > 0) < 0.055
        for density in draw_pair("sparse spots", (64, 64), seed):
            assert np.count_nonzero(density) == 300
        for density in draw_pair("shapes", (64, 64), seed):
            assert np.ptp(density[density > 0]) == 0
