from typing import Any

import numpy as np
import pytest

from ldpspatial.errors import InputError
from ldpspatial.metrics import wasserstein

GOOD = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ([[1.0, 2.0, 3.0, 4.0]], r"q must have the shape of p, \(2, 2\), got \(1, 4\)"),
        ([[1.0, 2.0], [3.0, 4.00002]], "q must have the total of p, 10.0, .*got 10.00002"),
        ([[10.0, 20.0], [30.0, 40.0]], "q must have the total of p, 10.0, .*got 100.0"),
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
                with pytest.raises(InputError, match=r"q must have the total of p, .* up to 1e-06"):
                    wasserstein(p, q)


def test_sides_too_different_for_whole_costs_are_refused() -> None:
    p, q = np.eye(3), np.ones((3, 3)) / 3
    with pytest.raises(
        InputError, match=r"^cell must have sides that are less different .* got 1e-11 to 1:"
    ):
        wasserstein(p, q, cell=(1.0, 1e11))
    for cell in ((1.0, 1e13), (1e-320, 1e10)):
        with pytest.raises(InputError, match=r"^cell must have no side below 1e-12 of the other"):
            wasserstein(p, q, cell=cell)
