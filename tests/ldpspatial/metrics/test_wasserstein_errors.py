import math
from typing import Any

import numpy as np
import pytest

from ldpspatial.errors import InputError
from ldpspatial.metrics import wasserstein

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


def test_totals_may_differ_by_a_millionth_and_no_more() -> None:
    for off, equal in ((0.999e-6, True), (1.001e-6, False)):
        # Of the larger total, whichever it is.
        for p, q in (([[1.0, 1.0]], [[1 - off, 1 - off]]), ([[1 - off, 1 - off]], [[1.0, 1.0]])):
            if equal:
                assert wasserstein(p, q) == 0.0
            else:
                with pytest.raises(InputError, match=r"its total must equal .* up to 1e-06"):
                    wasserstein(p, q)


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


def test_sides_too_different_for_whole_costs_are_refused() -> None:
    p, q = np.eye(3), np.ones((3, 3)) / 3
    with pytest.raises(InputError, match=r"^cell: its sides are too different, 1e-11 to 1, "):
        wasserstein(p, q, cell=(1.0, 1e11))
    for cell in ((1.0, 1e13), (1e-320, 1e10)):
        with pytest.raises(
            InputError, match=r"^cell: one side must be at least 1e-12 of the other"
        ):
            wasserstein(p, q, cell=cell)
