import importlib
import math
import types
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from ldpspatial.errors import InputError, SolverError
from ldpspatial.metrics import wasserstein

FloatArray: TypeAlias = npt.NDArray[np.float64]
TwoMaps: TypeAlias = tuple[FloatArray, FloatArray]

# The function of the same name hides the module from attribute access.
module = importlib.import_module("ldpspatial.metrics.wasserstein")
maps = importlib.import_module("ldpspatial.metrics._maps")


@pytest.fixture
def two_maps() -> TwoMaps:
    rng = np.random.default_rng(12)
    p, q = rng.random((7, 7)), rng.random((7, 7))
    return p / p.sum(), q / q.sum()


def test_a_pivot_limit_that_is_too_low_is_an_error_not_an_answer(
    monkeypatch: pytest.MonkeyPatch,
    two_maps: TwoMaps,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(module, "_PIVOT_LIMITS", (1, 2))
    with pytest.raises(SolverError, match="no optimum of 49 x 49 cells in 2 pivots"):
        wasserstein(*two_maps)
    assert capfd.readouterr() == ("", "")


def test_a_higher_pivot_limit_is_tried_next(
    monkeypatch: pytest.MonkeyPatch, two_maps: TwoMaps
) -> None:
    expected = wasserstein(*two_maps)
    monkeypatch.setattr(module, "_PIVOT_LIMITS", (1, 10_000))
    assert wasserstein(*two_maps) == expected


def answer_with(monkeypatch: pytest.MonkeyPatch, plan: Any, potential: Any, code: int = 1) -> None:
    """Let the solver answer with what `plan` and `potential` make of its true answer."""
    solve = module.ot.emd

    def emd(supply: FloatArray, demand: FloatArray, cost: FloatArray, **options: Any) -> Any:
        true_plan, log = solve(supply, demand, cost, **options)
        log["u"], log["result_code"] = potential(log["u"]), code
        return plan(true_plan, supply, demand), log

    monkeypatch.setattr(module, "ot", types.SimpleNamespace(emd=emd))


def same(value: Any, *_: Any) -> Any:
    return value


def test_a_plan_that_is_not_the_cheapest_is_refused(
    monkeypatch: pytest.MonkeyPatch, two_maps: TwoMaps
) -> None:
    def reversed_plan(plan: FloatArray, supply: FloatArray, demand: FloatArray) -> Any:
        # The north-west corner rule: feasible, not optimal.
        rest, need, crude = supply.copy(), demand.copy(), np.zeros_like(plan)
        for i in range(len(rest)):
            for j in reversed(range(len(need))):
                crude[i, j] = min(rest[i], need[j])
                rest[i] -= crude[i, j]
                need[j] -= crude[i, j]
        return crude

    answer_with(monkeypatch, reversed_plan, same)
    with pytest.raises(SolverError, match="duality gap"):
        wasserstein(*two_maps)


def test_potentials_that_prove_nothing_are_refused(
    monkeypatch: pytest.MonkeyPatch, two_maps: TwoMaps
) -> None:
    answer_with(monkeypatch, same, np.zeros_like)
    with pytest.raises(SolverError, match="duality gap"):
        wasserstein(*two_maps)
    answer_with(monkeypatch, same, lambda u: u * np.nan)
    with pytest.raises(SolverError, match="duality gap"):
        wasserstein(*two_maps)


@pytest.mark.parametrize("change", [1.0, -1.0])
def test_a_plan_that_loses_one_unit_of_mass_is_refused(
    monkeypatch: pytest.MonkeyPatch, two_maps: TwoMaps, change: float
) -> None:
    def leaking(plan: FloatArray, *_: Any) -> Any:
        plan[np.unravel_index(np.argmax(plan), plan.shape)] += change
        return plan

    answer_with(monkeypatch, leaking, same)
    with pytest.raises(SolverError, match="does not carry p to q"):
        wasserstein(*two_maps)


@pytest.mark.parametrize("code", [0, 2])
def test_any_other_failure_of_the_solver_is_an_error(
    monkeypatch: pytest.MonkeyPatch, two_maps: TwoMaps, code: int
) -> None:
    answer_with(monkeypatch, same, same, code)
    with pytest.raises(SolverError, match="network simplex failed"):
        wasserstein(*two_maps)


def test_refuses_maps_that_do_not_fit_in_memory(
    monkeypatch: pytest.MonkeyPatch, two_maps: TwoMaps
) -> None:
    assert 8192**2 <= maps.MAX_PAIRS <= 24 * 2**30 / 40
    monkeypatch.setattr(maps, "MAX_PAIRS", 49 * 49 - 1)
    with pytest.raises(InputError, match=r"49 x 49 = 2401 pairs .* at most 2400 .* coarser grid"):
        wasserstein(*two_maps)
    # Cells without mass, and for order 1 mass in common, cost nothing.
    assert wasserstein(*two_maps, order=1) > 0
    corner = np.zeros((7, 7))
    corner[0, 0] = 1.0
    assert wasserstein(corner, two_maps[0]) > 0


GOOD = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([1.0, 2.0], r"must be a 2-D array .* not \(2,\)"),
        ([[[1.0]]], r"must be a 2-D array .* not \(1, 1, 1\)"),
        (5.0, r"must be a 2-D array .* not \(\)"),
        (np.zeros((0, 3)), r"at least one cell, not \(0, 3\)"),
        ([[1.0], [2.0, 3.0]], "2-D array of numbers"),
        ([["a", "b"], ["c", "d"]], "must hold real numbers"),
        ([[1 + 0j, 2], [3, 4]], "must hold real numbers, not values of type complex128"),
        ([[None, 2], [3, 4]], "must hold real numbers, not values of type object"),
        ([[1.0, math.nan], [3, 4]], r"\[0, 1\]: masses must be finite, not nan"),
        ([[1.0, 2], [math.inf, 4]], r"\[1, 0\]: masses must be finite, not inf"),
        ([[1.0, 2], [3, -1e-9]], r"\[1, 1\]: masses must be >= 0, not -1e-09"),
        ([[0.0, 0.0], [0.0, 0.0]], "total mass must be positive and finite, not 0.0"),
        ([[1e308, 1e308], [1e308, 1e308]], "total mass must be positive and finite, not inf"),
    ],
)
def test_a_bad_map_is_named_with_its_rule_and_value(bad: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^p.*{message}"):
        wasserstein(bad, GOOD)
    with pytest.raises(InputError, match=f"^q.*{message}"):
        wasserstein(GOOD, bad)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ([[1.0, 2.0, 3.0, 4.0]], r"q: must have the shape of p, \(2, 2\), not \(1, 4\)"),
        ([[1.0, 2.0], [3.0, 4.00002]], "q: its total must equal that of p, 10.0, .*10.00002"),
        ([[10.0, 20.0], [30.0, 40.0]], "q: its total must equal that of p, 10.0, .*not 100.0"),
    ],
)
def test_two_maps_must_fit_each_other(other: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        wasserstein(GOOD, other)


@pytest.mark.parametrize("order", [0, 3, -1, 1.5, 2.0, "2", None, True, [1]])
def test_a_bad_order_is_refused(order: Any) -> None:
    with pytest.raises(InputError, match="order: must be 1 or 2, not "):
        wasserstein(GOOD, GOOD, order=order)


@pytest.mark.parametrize("ground", ["sqeuclidean", "l1", "", None, 2])
def test_a_bad_ground_is_refused(ground: Any) -> None:
    with pytest.raises(InputError, match="ground: must be one of euclidean, cityblock, not "):
        wasserstein(GOOD, GOOD, ground=ground)


@pytest.mark.parametrize(
    "cell",
    [0, -1.0, math.nan, math.inf, "1", None, True, (1,), (1, 2, 3), (1, 0), (1, "a"), (1, (2, 3))],
)
def test_a_bad_cell_is_refused(cell: Any) -> None:
    with pytest.raises(InputError, match="cell: must be a positive finite number or a pair"):
        wasserstein(GOOD, GOOD, cell=cell)
