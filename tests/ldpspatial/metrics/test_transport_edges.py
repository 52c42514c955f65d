"""Maps at the edge of what numbers can hold: no answer without bounds that are true."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ldpspatial import InputError, SeparableCost, SolverError, transport
from ldpspatial.metrics.exact import certificate
from tests.support.exact_lines import exact_on_a_line

MET = {1: 1e-6, 2: 1e-5}
"""Least ratio of the sides that a grid of 30 x 30 cells must stand, by order."""

PROOF: dict[str, Any] = {
    "supply": np.array([[1, 0, 0]]),
    "demand": np.array([[0, 0, 1]]),
    "sources": np.array([[0, 0]]),
    "targets": np.array([[0, 2]]),
    "flow": np.array([1]),
    "source_value": np.array([[0, 0, 0]]),
    "target_value": np.array([[0, 0, 4]]),
    "cost": (np.array([0]), np.array([0, 1, 4])),
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("p", "q"),
    [
        ([1, 1e-40, 0], [1, 0, 1e-40]),
        ([1, 2.0**-130], [1, 2.0**-131]),
        ([1e300, 1e-300], [1e300, 2e-300]),
        ([0.4959382524479947, 0.7797338258287211], [0.49593825244799467, 0.7797338258287212]),
        ([2**50 + 1, 2**50], [2**50, 2**50 + 1]),
        ([2**53, 0, 1], [2**53, 1, 0]),
        ([5e-324, 0], [0, 5e-324]),
    ],
)
def test_bounds_hold_however_small_the_difference(p: list[Any], q: list[Any], order: int) -> None:
    plan = transport([p], [q], order)
    exact = exact_on_a_line(p, q, order)
    assert Fraction(plan.lower) ** order <= exact <= Fraction(plan.upper) ** order


def test_bounds_hold_for_maps_that_are_equal_but_for_rounding() -> None:
    rng = np.random.default_rng(1)
    for order in (1, 2):
        for _ in range(300):
            p = rng.random(6)
            q = p * (1 + 4e-16 * rng.integers(-2, 3, 6))
            plan = transport([p], [q], order)
            exact = exact_on_a_line(p.tolist(), q.tolist(), order)
            assert Fraction(plan.lower) ** order <= exact <= Fraction(plan.upper) ** order


def test_counts_that_differ_by_one_are_told_apart() -> None:
    plan = transport([[2**50 + 1, 2**50]], [[2**50, 2**50 + 1]])
    assert plan.value == pytest.approx((2**51 + 1) ** -0.5, rel=1e-15)


@pytest.mark.parametrize("ratio", [1e-3, 1e-5, 1e-6, 1e-8])
@pytest.mark.parametrize(("order", "ground"), [(1, "euclidean"), (2, "cityblock")])
def test_flat_cells_are_met_or_refused(ratio: float, order: int, ground: str) -> None:
    # All moves along the short side: the distance is the mean over columns of that on a line.
    rng = np.random.default_rng(2)
    p = rng.integers(1, 9, (30, 30))
    q = rng.permuted(p, axis=0)
    share = p.sum(axis=0) / p.sum()
    lines = [float(exact_on_a_line(p[:, k].tolist(), q[:, k].tolist(), order)) for k in range(30)]
    expected = ratio * float(share @ lines) ** (1 / order)
    if ratio < MET[order]:
        with pytest.raises(InputError, match=r"^cell must have sides that are less different"):
            transport(p, q, order, ground, cell=(ratio, 1.0))
        return
    plan = transport(p, q, order, ground, cell=(ratio, 1.0))
    assert plan.value == pytest.approx(expected, rel=1e-6)
    assert plan.lower <= expected * (1 + 1e-12)
    assert expected <= plan.upper * (1 + 1e-12)


def test_whole_numbers_beyond_floats_and_masks_are_refused() -> None:
    with pytest.raises(
        InputError, match=rf"^p must hold whole numbers of at most 2\^53, got {2**60}"
    ):
        transport([[2**60, 1]], [[1, 2**60]])
    masked = np.ma.masked_array(np.ones((2, 2)), mask=np.eye(2, dtype=bool))
    with pytest.raises(InputError, match=r"^q must not be masked"):
        transport([[1, 1], [0, 0]], masked)


def test_costs_of_another_shape_are_refused() -> None:
    cost = SeparableCost(np.array([0, 1]), np.array([0, 1, 2]))
    with pytest.raises(InputError, match=r"^ground must have a cost for each of \(1, 2\) rows"):
        transport([[1, 0]], [[0, 1]], 1, cost)


@pytest.mark.parametrize(
    "change",
    [
        {"flow": np.array([1.0])},
        {"supply": np.array([[1, 0, 0]], np.int32)},
        {"cost": (np.array([0]), np.array([0, 1]))},
        {"cost": np.zeros((3, 1), np.int64)},
        {"sources": np.array([[0, 0], [0, 0]])},
        {"target_value": np.array([[0.0, 0.0, 4.0]])},
    ],
)
def test_a_proof_of_other_types_or_shapes_proves_nothing(change: dict[str, Any]) -> None:
    assert certificate.check(**PROOF) == 4
    with pytest.raises(SolverError, match="proof"):
        certificate.check(**(PROOF | change))


MISSHAPEN = (
    lambda array: array[:0],
    lambda array: array[:1, :1] if array.ndim == 2 else array[:, None],
    lambda array: array[None],
    lambda array: array[0],
    lambda array: array.ravel()[0],
    lambda array: array.tolist(),
    lambda array: np.ma.masked_array(array, mask=array >= 0),
    lambda array: array.astype(">i8"),
    lambda array: None,
)


@pytest.mark.parametrize("change", MISSHAPEN)
@pytest.mark.parametrize("name", PROOF)
def test_every_part_of_a_proof_must_have_its_type_and_shape(name: str, change: Any) -> None:
    table = np.array([[0, 1, 4]])
    for proof in (PROOF, PROOF | {"cost": table}):
        parts = proof[name]
        broken = tuple(map(change, parts)) if isinstance(parts, tuple) else change(parts)
        with pytest.raises(SolverError, match="proof"):
            certificate.check(**(proof | {name: broken}))
    for cost in ((), PROOF["cost"][:1], (*PROOF["cost"], table[0]), [*PROOF["cost"]], table.T):
        with pytest.raises(SolverError, match="proof"):
            certificate.check(**(PROOF | {"cost": cost}))


@pytest.mark.parametrize("shape", [(), (3,), (1, 1, 3), (0, 0), (0, 3)])
def test_a_proof_for_maps_that_are_none_is_refused(shape: tuple[int, ...]) -> None:
    nothing = np.zeros(shape, np.int64)
    maps = dict.fromkeys(("supply", "demand", "source_value", "target_value"), nothing)
    parts = {name: PROOF[name][:0] for name in ("sources", "targets", "flow")}
    for cost in (nothing, tuple(np.zeros(length, np.int64) for length in shape)):
        with pytest.raises(SolverError, match="the parts of the proof do not fit together"):
            certificate.check(**maps, **parts, cost=cost)  # type: ignore[arg-type]


def test_a_proof_with_part_of_a_map_is_refused() -> None:
    proof = transport(np.eye(3), np.eye(3)[::-1]).proof
    assert proof is not None
    assert proof.check() == 8
    for name in ("supply", "demand", "source_value", "target_value"):
        for part in (getattr(proof, name)[:1], getattr(proof, name)[:, :2]):
            with pytest.raises(SolverError, match="the parts of the proof do not fit together"):
                replace(proof, **{name: part}).check()
