from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from ldpspatial.errors import SolverError
from ldpspatial.metrics import transport
from ldpspatial.metrics.exact.certificate import check
from ldpspatial.metrics.exact.network_simplex import Ints
from tests.support import naive_transport as naive

LEAST, MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Claim:
    """The arguments of `certificate.check`."""

    supply: Ints
    demand: Ints
    sources: Ints
    targets: Ints
    flow: Ints
    source_value: Ints
    target_value: Ints
    cost: Ints | tuple[Ints, Ints]

    def but(self, **changes: Any) -> "Claim":
        return replace(self, **{name: np.array(value) for name, value in changes.items()})

    def by_table(self) -> "Claim":
        assert isinstance(self.cost, tuple)
        return replace(self, cost=self.cost[0][:, None] + self.cost[1][None, :])


def both_forms(claim: Claim) -> list[Claim]:
    return [claim, claim.by_table()]


def refuse(claim: Claim, message: str | None = None) -> None:
    for each in both_forms(claim):
        with pytest.raises(SolverError, match=message):
            check(**vars(each))


def accept(claim: Claim) -> int:
    """Return the cost that both forms prove, and that the obvious twin proves too."""
    first, second = (check(**vars(each)) for each in both_forms(claim))
    assert first == second
    assert naive.proves(**vars(claim))
    return first


def solved(seed: int, shape: tuple[int, int] = (5, 6)) -> Claim:
    rng = np.random.default_rng([1, seed])
    p = rng.integers(1, 20, shape) * (rng.random(shape) < 0.6)
    p[0, 0], p[-1, -1] = 3, 4
    q = rng.permutation(p.ravel()).reshape(shape)
    q = q[::-1, ::-1] if np.array_equal(p, q) else q
    proof = transport(p, q, certify=False).proof
    assert proof is not None
    return Claim(**vars(proof))


CLAIM = solved(0)


def filled(masses: Ints) -> list[tuple[int, int]]:
    return [(row, column) for row, column in np.argwhere(masses > 0).tolist()]


def moved(value: Ints, cell: tuple[int, int], by: int) -> Ints:
    changed: Ints = value.copy()
    changed[cell] += by
    return changed


@pytest.mark.parametrize("shape", [(1, 2), (1, 9), (9, 1), (2, 2), (5, 6)])
def test_a_true_proof_passes(shape: tuple[int, int]) -> None:
    for seed in range(5):
        claim = solved(seed, shape)
        cost = accept(claim)
        sources, targets = claim.supply.ravel(), claim.demand.ravel()
        cells = np.indices(shape).reshape(2, -1)
        squares = ((cells[:, :, None] - cells[:, None, :]) ** 2).sum(axis=0)
        assert cost == naive.least_cost(sources, targets, squares)


def test_moved_or_lost_units_are_refused() -> None:
    for k in range(len(CLAIM.flow)):
        for by in (1, -1, MOST):
            refuse(CLAIM.but(flow=CLAIM.flow + by * (np.arange(len(CLAIM.flow)) == k)))
        for name in ("sources", "targets"):
            ends = getattr(CLAIM, name).copy()
            ends[k, 1] += 1 if ends[k, 1] == 0 else -1
            refuse(CLAIM.but(**{name: ends}), "does not carry")
    for cell in filled(CLAIM.supply):
        refuse(CLAIM.but(supply=moved(CLAIM.supply, cell, -1)), "does not carry")
    for cell in np.ndindex(CLAIM.demand.shape):
        refuse(CLAIM.but(demand=moved(CLAIM.demand, cell, 1)), "does not carry")


def test_a_plan_of_nothing_is_refused_and_one_for_nothing_passes() -> None:
    nothing = CLAIM.but(
        sources=np.empty((0, 2), int), targets=np.empty((0, 2), int), flow=np.empty(0, int)
    )
    refuse(nothing, "does not carry")
    empty = np.zeros_like(CLAIM.supply)
    assert accept(nothing.but(supply=empty, demand=empty)) == 0


@pytest.mark.parametrize("units", [(0,), (-1,), (0, 0), (-1, 1), (LEAST,), (LEAST, LEAST)])
def test_flows_that_are_not_positive_are_refused(units: tuple[int, ...]) -> None:
    # Where two are given, what the one takes away the other brings, if need be by wrapping around.
    for at in (0, len(CLAIM.flow)):
        places = [at] * len(units)
        sources, targets = (
            np.insert(each, places, [0, 0], axis=0) for each in (CLAIM.sources, CLAIM.targets)
        )
        flow = np.insert(CLAIM.flow, places, units)
        refuse(CLAIM.but(sources=sources, targets=targets, flow=flow), "does not carry")


def test_a_flow_may_be_listed_in_two_parts() -> None:
    k = int(np.argmax(CLAIM.flow))
    flow = np.append(CLAIM.flow, 1)
    flow[k] -= 1
    sources, targets = (np.vstack([each, each[k]]) for each in (CLAIM.sources, CLAIM.targets))
    assert accept(CLAIM.but(sources=sources, targets=targets, flow=flow)) == accept(CLAIM)


@pytest.mark.parametrize("by", [1, -1, 2**40, -(2**40)])
def test_every_single_dual_value_counts(by: int) -> None:
    for masses, name in ((CLAIM.supply, "source_value"), (CLAIM.demand, "target_value")):
        for cell in filled(masses):
            # Up, it is above the cost of its own flow; down, it proves less than the plan costs.
            message = "is above a cost" if by > 0 else "prove only"
            refuse(CLAIM.but(**{name: moved(getattr(CLAIM, name), cell, by)}), message)


@pytest.mark.parametrize("shape", [(1, 2), (7, 1), (3, 4)])
def test_the_cells_farthest_apart_count_too(shape: tuple[int, int]) -> None:
    first = np.zeros(shape, np.int64)
    first[0, 0] = 1
    corners = [(first, np.zeros((1, 2), np.int64)), (first[::-1, ::-1], np.array([shape]) - 1)]
    cost, most = (np.arange(shape[0]), np.arange(shape[1])), sum(shape) - 2
    for (p, start), (q, end) in (corners, corners[::-1]):
        far = Claim(p, q, start, end, np.array([1]), 0 * p, 0 * q + most, cost)
        assert accept(far) == most
        refuse(far.but(source_value=p), "is above a cost")


@pytest.mark.parametrize("value", [0, 1, -1, 2**61, LEAST, MOST])
def test_dual_values_of_cells_without_mass_do_not_matter(value: int) -> None:
    source_value, target_value = CLAIM.source_value.copy(), CLAIM.target_value.copy()
    source_value[CLAIM.supply == 0] = target_value[CLAIM.demand == 0] = value
    changed = CLAIM.but(source_value=source_value, target_value=target_value)
    assert accept(changed) == accept(CLAIM)


@pytest.mark.parametrize("by", [1, -7, 2**55, -(2**60)])
def test_both_sides_shifted_against_each_other_prove_the_same(by: int) -> None:
    shifted = CLAIM.but(
        source_value=np.where(CLAIM.supply > 0, CLAIM.source_value + by, 0),
        target_value=np.where(CLAIM.demand > 0, CLAIM.target_value - by, 0),
    )
    assert accept(shifted) == accept(CLAIM)
    refuse(shifted.but(source_value=CLAIM.source_value))


def test_another_plan_with_potentials_of_its_own_is_refused() -> None:
    # Right to left and left to right: both cross. On the tree of that plan all costs are met.
    crossed = Claim(
        supply=np.array([[1, 1, 0, 0]]),
        demand=np.array([[0, 0, 1, 1]]),
        sources=np.array([[0, 0], [0, 1]]),
        targets=np.array([[0, 3], [0, 2]]),
        flow=np.array([1, 1]),
        source_value=np.array([[9, 4, 0, 0]]),
        target_value=np.array([[0, 0, -3, 0]]),
        cost=(np.array([0]), np.arange(4) ** 2),
    )
    refuse(crossed, "at cell \\[0, 0\\] is above a cost")  # 9 - 3 > 2^2
    # Lowered until none is above a cost, they prove less.
    refuse(crossed.but(source_value=[[7, 4, 0, 0]]), "costs 10, but .* prove only 8")
    parallel = crossed.but(targets=[[0, 2], [0, 3]], source_value=[[5, 2, 0, 0]])
    assert accept(parallel.but(target_value=[[0, 0, -1, 2]])) == 8


def test_values_for_another_cost_are_refused() -> None:
    rows, columns = CLAIM.cost
    for cost in ((2 * rows, 2 * columns), (rows, 0 * columns), (rows + 1, columns)):
        refuse(replace(CLAIM, cost=cost))


@pytest.mark.parametrize(
    "cell", [[-1, 0], [0, -1], [-5, -6], [5, 0], [0, 6], [LEAST, 0], [MOST, 0]]
)
def test_cells_outside_the_grid_are_refused(cell: list[int]) -> None:
    for name in ("sources", "targets"):
        ends = getattr(CLAIM, name).copy()
        ends[0] = cell
        refuse(CLAIM.but(**{name: ends}))


def test_a_cell_counted_from_the_other_end_is_no_shorter_way() -> None:
    # Row -1 of an array is its last one; that far from row 0 it is not.
    supply, demand = np.array([[0], [0], [0], [1]]), np.array([[1], [0], [0], [0]])
    claim = Claim(
        *(supply, demand, np.array([[-1, 0]]), np.array([[0, 0]]), np.array([1])),
        *(0 * supply, 0 * demand + 1, (np.arange(4), np.zeros(1, np.int64))),
    )
    refuse(claim)
    honest = claim.but(sources=[[3, 0]])
    refuse(honest, "costs 3, but the dual values prove only 1")
    assert accept(honest.but(target_value=[[3]] * 4)) == 3


def test_flows_that_only_balance_by_wrapping_around_are_refused() -> None:
    stay = Claim(
        *(np.array([[3]]), np.array([[3]]), np.zeros((5, 2), int), np.zeros((5, 2), int)),
        *(np.array([2**62] * 4 + [3]), np.array([[0]]), np.array([[0]])),
        cost=(np.array([0]), np.array([0])),
    )
    refuse(stay)  # 2^64 + 3 units
    refuse(stay.but(flow=[MOST, MOST, 2, 2, 1]))
    minus = stay.but(supply=[[-2]], demand=[[-2]], flow=[MOST, MOST - 2, 1, 1, 1])
    refuse(minus)


@pytest.mark.parametrize("huge", [LEAST, LEAST + 1, MOST, -(2**62), 2**62, 2**62 - 1, 2**61 + 1])
def test_dual_values_too_large_for_exact_sums_are_refused(huge: int) -> None:
    for masses, name in ((CLAIM.supply, "source_value"), (CLAIM.demand, "target_value")):
        value = getattr(CLAIM, name)
        for cell in filled(masses):
            changed = value.copy()
            changed[cell] = huge
            refuse(CLAIM.but(**{name: changed}))
        refuse(CLAIM.but(**{name: np.full_like(value, huge)}))
    opposite = min(max(-huge, LEAST), MOST)
    refuse(
        CLAIM.but(
            source_value=np.full_like(CLAIM.supply, huge),
            target_value=np.full_like(CLAIM.supply, opposite),
        )
    )


def test_a_sum_of_dual_values_that_wraps_around_is_refused() -> None:
    # Two neighbours trade places at a cost of 2, the dual values have a total of 2, and all sums
    # but 2^62 + 2^62 are at most the cost.
    ends, value = np.array([[0, 0], [0, 1]]), np.array([[2**62, 1 - 2**62]])
    swap = Claim(
        *(np.array([[1, 1]]), np.array([[1, 1]]), ends, ends[::-1], np.array([1, 1])),
        *(value, value, (np.array([0]), np.array([0, 1]))),
    )
    refuse(swap)


@pytest.mark.parametrize("huge", [LEAST, -(2**62), -1, 2**61, 2**62, MOST])
def test_costs_below_0_or_too_large_for_exact_sums_are_refused(huge: int) -> None:
    rows, columns = CLAIM.cost
    for at in (1, 4):
        steep = np.where(np.arange(5) == at, huge, rows)
        refuse(replace(CLAIM, cost=(steep, columns)))
    ends, ones = np.array([[0, 0], [0, 1]]), np.array([[1, 1]])
    for value in (1, -1):  # either may make the sum with the cost wrap around
        stay = Claim(
            *(ones, ones, ends, ends, ones[0], value * ones, -value * ones),
            cost=(np.array([0]), np.array([0, huge])),
        )
        refuse(stay)


def test_the_verdict_is_that_of_the_obvious_twin() -> None:
    rng = np.random.default_rng(2)
    claims = [solved(seed, (2, 3)) for seed in range(6)]
    passed = 0
    for _ in range(800):
        claim = claims[rng.integers(len(claims))]
        names = rng.choice(["source_value", "target_value", "flow"], rng.integers(1, 3))
        for name in names:
            changes = np.zeros_like(getattr(claim, name))
            size = rng.choice([1, 1, 2, 2**40, 2**61, 2**62])
            changes.flat[rng.integers(changes.size)] = rng.integers(-1, 2) * size
            claim = replace(claim, **{name: getattr(claim, name) + changes})
        true = naive.proves(**vars(claim))
        passed += true
        if true:
            accept(claim)
        else:
            refuse(claim)
    assert 100 < passed < 700
