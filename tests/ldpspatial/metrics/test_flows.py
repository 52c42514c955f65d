"""Flows of a plan summed up: nothing is lost, nothing cancels, ends stay near."""

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from ldpspatial.metrics import SeparableCost, Transport, transport
from ldpspatial.metrics.flows import bundles, flow_lengths, single_flows

RNG = np.random.default_rng(5)
P, Q = RNG.multinomial(10**4, np.full(16 * 12, 1 / 192), 2).reshape(2, 16, 12)
SPREAD = transport(P, Q, cell=(2.0, 3.0))


def plan_of(flows: list[tuple[tuple[int, int], tuple[int, int], float]]) -> Transport:
    """Return a plan of given flows, source, target and mass, for the distance in cells."""
    sources, targets, mass = (np.array(part) for part in zip(*flows, strict=True))
    return Transport(1.0, 1.0, 1.0, sources, targets, mass, 1, "euclidean", (1.0, 1.0), None)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("ground", ["euclidean", "cityblock"])
def test_lengths_make_up_the_distance(order: int, ground: str) -> None:
    plan = transport(P, P[::-1], order, ground, (0.5, 2.0))
    lengths = flow_lengths(plan)
    assert plan.mass @ lengths**order == pytest.approx(plan.value**order, rel=1e-12)
    down, right = abs(plan.sources - plan.targets).T * np.array([[0.5], [2.0]])
    ways = down + right if ground == "cityblock" else np.hypot(down, right)
    np.testing.assert_allclose(lengths, ways, rtol=1e-14)


def test_lengths_under_a_cost_of_ones_own_make_up_the_distance_too() -> None:
    steps = np.arange(16) ** 3
    plan = transport(P, P[::-1], 2, SeparableCost(steps, 2 * steps[:12]))
    assert plan.mass @ flow_lengths(plan) ** 2 == pytest.approx(plan.value**2, rel=1e-12)


def naive(plan: Transport, block: tuple[int, int]) -> dict[Any, float]:
    """Return the mass of each bundle by its block, direction and length, flow by flow."""
    found: dict[Any, float] = defaultdict(float)
    for source, target, mass in zip(plan.sources, plan.targets, plan.mass, strict=True):
        down, right = (target - source).tolist()
        if down == right == 0:
            continue
        turn = math.degrees(math.atan2(down * plan.cell[0], right * plan.cell[1])) % 360
        sector = [abs((turn - 45 * k + 180) % 360 - 180) <= 22.5 for k in range(8)].index(True)
        reach, size = math.hypot(down / block[0], right / block[1]), 1
        while reach >= 2 * size:
            size *= 2
        at = source[0] // (size * block[0]), source[1] // (size * block[1])
        found[(*at, size, sector)] += mass
    return found


@pytest.mark.parametrize("block", [(1, 1), (2, 3), (5, 5)])
def test_bundles_are_those_of_a_loop_over_all_flows(block: tuple[int, int]) -> None:
    found, expected = bundles(SPREAD, block), naive(SPREAD, block)
    np.testing.assert_allclose(np.sort(found.mass), np.sort(list(expected.values())), rtol=1e-12)


@pytest.mark.parametrize("block", [(1, 1), (2, 3), (50, 50)])
def test_bundles_keep_mass_cost_and_mean_places(block: tuple[int, int]) -> None:
    flows, found = single_flows(SPREAD), bundles(SPREAD, block)
    assert len(found) <= len(flows)
    assert found.mass.sum() == pytest.approx(flows.mass.sum(), rel=1e-12)
    assert found.cost.sum() == pytest.approx(SPREAD.value**2, rel=1e-12)
    for ends, means in ((flows.start, found.start), (flows.end, found.end)):
        np.testing.assert_allclose(found.mass @ means, flows.mass @ ends, rtol=1e-12)


def test_mass_that_stays_is_in_no_flow() -> None:
    plan = transport([[5, 1, 0]], [[5, 0, 1]])
    assert plan.mass.sum() == pytest.approx(1)
    (mass,) = single_flows(plan).mass
    assert mass == bundles(plan, (1, 1)).mass.sum() == pytest.approx(1 / 6)


def test_flows_apart_do_not_cancel() -> None:
    flows = [((4, 4), (4 + i, 4 + j), 0.1) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    found = bundles(plan_of(flows), (9, 9))
    assert len(found) == 8
    ways = np.rint(1e9 * (found.end - found.start)) / 1e9
    assert sorted(map(tuple, ways.tolist())) == sorted(
        (i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j
    )


def test_near_and_far_flows_of_one_direction_are_apart() -> None:
    found = bundles(plan_of([((0, 0), (0, n), 0.1) for n in (1, 2, 3, 4, 5, 8, 20)]), (1, 1))
    assert sorted(found.end[:, 1].tolist()) == pytest.approx([1, 2.5, 4.5, 8, 20])


def test_far_flows_of_neighbouring_blocks_are_one() -> None:
    near = [((row, 0), (row, 1), 0.1) for row in range(4)]
    far = [((row, 0), (row, 9), 0.1) for row in range(4)]
    assert len(bundles(plan_of(near), (1, 1))) == 4
    assert len(bundles(plan_of(far), (1, 1))) == 1


def test_the_dearest_come_first_and_as_many_as_needed() -> None:
    flows = single_flows(plan_of([((0, 0), (0, n), 0.1) for n in (1, 5, 2, 12)]))
    assert flows.dearest(3).end[:, 1].tolist() == [12, 5, 2]
    assert [flows.number_for(share) for share in (0.0, 0.59, 0.61, 0.84, 0.86, 0.99)] == [
        *(1, 1, 2, 2, 3, 4)
    ]
    none = single_flows(transport([[1, 2]], [[1, 2]]))
    assert len(none) == len(none.dearest(5)) == len(bundles(transport([[1]], [[1]]), (1, 1))) == 0


def test_flows_to_the_west_are_one_a_little_north_or_south_of_it() -> None:
    flows = [((4, 19), (4 + i, 0), 0.1) for i in (-1, 1)]
    assert len(bundles(plan_of(flows), (20, 20))) == 1


def test_directions_are_those_on_the_ground() -> None:
    """Up one cell of 1 and along one of 4 is rather east than north-east."""
    ends = np.array([[0, 1], [1, 1], [1, 0]])
    starts = np.zeros((3, 2), np.int64)
    mass = np.full(3, 0.1)
    plan = Transport(1.0, 1.0, 1.0, starts, ends, mass, 1, "euclidean", (1.0, 4.0), None)
    found = bundles(plan, (9, 9))
    assert sorted(map(tuple, found.end.tolist())) == [(0.5, 1.0), (1.0, 0.0)]
