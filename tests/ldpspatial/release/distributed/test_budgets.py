from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpspatial.errors import InputError
from ldpspatial.release.distributed.levels.budgets import split_budget


@given(st.floats(0.01, 20), st.lists(st.floats(0.05, 20), min_size=1, max_size=12))
def test_parts_are_in_proportion_and_never_more_than_the_whole(
    epsilon: float, shares: list[float]
) -> None:
    parts = split_budget(epsilon, shares)
    whole = Fraction(str(epsilon)) * 10**6
    assert whole - len(parts) - 1 < sum(parts) <= whole
    for part, share in zip(parts, shares, strict=True):
        exact = whole * Fraction(share) / sum(map(Fraction, shares))
        assert exact - 2 < part <= exact


@pytest.mark.parametrize(
    ("epsilon", "shares", "parts"),
    [
        (0.3, (1,), [300_000]),  # the float holds less
        (1.0, (0.5, 0.5), [500_000, 500_000]),
        (0.000003, (1, 2), [1, 2]),
        (1.0, (1, 2, 4), [142_857, 285_714, 571_428]),
    ],
)
def test_known_parts(epsilon: float, shares: tuple[float, ...], parts: list[int]) -> None:
    assert split_budget(epsilon, shares) == parts


def test_a_part_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="epsilon must leave a millionth for each of 3 parts"):
        split_budget(0.000002, (1, 1, 1))
    with pytest.raises(InputError, match="epsilon must be a positive finite number"):
        split_budget(float("nan"), (1,))
