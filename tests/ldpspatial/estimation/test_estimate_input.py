"""What estimate() takes, and what it refuses."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import response_table
from ldpspatial import EM, Field, StampChannel, estimate
from ldpspatial.errors import InputError
from tests.support.extensions import Uniform

Array = NDArray[np.float64]
CHANNEL = StampChannel(response_table("dam", 3.5, 5, radius=2))
GOOD = CHANNEL.support.astype(float)  # 9 x 9, of which the corners are no output cells
N = CHANNEL.table.output_size


@pytest.mark.parametrize("kind", ["i8", "u4", "f4"])
def test_counts_in_index_order_and_as_a_map_are_the_same(kind: str) -> None:
    counts = (np.arange(N) % 7 < 3).astype(kind)
    as_map = np.zeros(CHANNEL.output_shape, kind)
    as_map[CHANNEL.support] = counts
    first, second, third = (estimate(CHANNEL, c, "em") for c in (counts, as_map, counts.tolist()))
    assert first.trace == second.trace == third.trace
    np.testing.assert_array_equal(first.counts, as_map)
    assert first.n == counts.sum()


def test_an_estimate_keeps_its_own_counts() -> None:
    counts = GOOD.copy()
    found = estimate(CHANNEL, counts, "em")
    counts[:] = 0
    assert found.n == N


def changed(value: object, corner: bool = False) -> Array:
    counts = GOOD.astype(object if isinstance(value, str) else float)
    counts[(0, 0) if corner else (3, 3)] = value
    return counts


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (changed(-1), r"counts must hold numbers in \[0, 9007199254740992\], got -1.0 at \[3, 3\]"),
        (changed(0.5), "counts must be whole numbers, got 0.5"),
        (changed(1, corner=True), "counts must be 0 outside the output domain"),
        (changed(1e17), "counts must hold numbers in .* got 1e[+]17"),
        (GOOD * 2**52, "counts must hold 1 to 9007199254740992 reports, got 3.46"),
        ([10**400] * N, "counts must be an array of numbers, got object"),
        (GOOD * 0, "counts must hold 1 to 9007199254740992 reports, got 0"),
        (GOOD[:-1], r"counts must have shape \(9, 9\) or \(77,\), got \(8, 9\)"),
        (GOOD.ravel(), r"counts must have shape \(9, 9\) or \(77,\), got \(81,\)"),
        (GOOD[None], r"counts must have shape"),
    ],
)
def test_bad_counts_are_refused(counts: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        estimate(CHANNEL, counts, "em")  # type: ignore[arg-type]


NAMES = "field, robust, map-alone, em, scaled, likelihood, published"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "fixed"}, f"rule must be one of {NAMES}, .*module:Name, .*, got 'fixed'"),
        ({"smoothing": "gauss"}, "smoothing must be one of binomial, five-point, got 'gauss'"),
        ({"max_iterations": 0}, "max_iterations must be a whole number from 1 on, got 0"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        estimate(CHANNEL, GOOD, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", [EM(), Field(), "tests.support.extensions:Uniform"])
@pytest.mark.parametrize("choice", [{"max_iterations": 5}, {"smoothing": "binomial"}])
def test_an_estimator_that_is_an_object_brings_its_own_choices(
    rule: Any, choice: dict[str, Any]
) -> None:
    """A limit that is given beside it was ignored."""
    with pytest.raises(InputError, match=r"must be left out \(None\) with rule"):
        estimate(CHANNEL, GOOD, rule, **choice)


def test_what_another_estimator_returns_is_an_estimate() -> None:
    class Silent(Uniform):
        def fit(self, *_: object) -> None:  # type: ignore[override]
            """Return nothing at all."""

    with pytest.raises(InputError, match="what rule uniform returns must be an Estimate, got None"):
        estimate(CHANNEL, GOOD, Silent())
