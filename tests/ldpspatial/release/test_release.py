"""Claims: what they say, and what they imply under replacement."""

from decimal import Decimal
from fractions import Fraction
from math import e, exp, inf

import numpy as np
import pytest

from client_sdk import Grid
from client_sdk.validate import shown
from ldpspatial.errors import InputError
from ldpspatial.privacy.claims import NEIGHBOURS, PrivacyClaim
from ldpspatial.release.non_private import NonPrivate


def test_replacing_a_user_is_removing_and_adding_one() -> None:
    claim = PrivacyClaim("central", 1.5, neighbours="add or remove").under_replacement()
    assert (claim.epsilon, claim.delta, claim.neighbours) == (3.0, 0.0, "replace")
    assert claim.model == "central"


def test_delta_grows_by_group_privacy() -> None:
    claim = PrivacyClaim("distributed", 1.0, delta=1e-9, neighbours="zero").under_replacement()
    assert claim.delta == pytest.approx(1e-9 * (1 + e))


@pytest.mark.parametrize("epsilon", [30.0, 800.0, inf])
def test_delta_is_never_above_one(epsilon: float) -> None:
    claim = PrivacyClaim("central", epsilon, delta=1e-9, neighbours="zero").under_replacement()
    assert claim.delta == 1
    assert claim.epsilon == 2 * epsilon
    least = PrivacyClaim("central", 800.0, delta=5e-324, neighbours="zero").under_replacement()
    assert least.delta == 1
    pure = PrivacyClaim("central", epsilon, neighbours="zero").under_replacement()
    assert pure.delta == 0


def test_numbers_of_a_claim_are_floats() -> None:
    claim = PrivacyClaim("local", Fraction(1, 2), np.float32(0.25))
    assert (type(claim.epsilon), claim.epsilon) == (float, 0.5)
    assert (type(claim.delta), claim.delta) == (float, 0.25)


def test_group_privacy_holds_and_is_tight_for_the_discrete_laplace_law() -> None:
    # Counts 0, 1 and 1 replaced by another user in the next cell: both cells move by one.
    epsilon, k = 0.7, np.arange(-60, 61)
    noise = (1 - exp(-epsilon)) / (1 + exp(-epsilon)) * np.exp(-epsilon * abs(k))
    both = np.outer(noise, noise)
    ratio = (both[1:, :-1] / both[:-1, 1:]).max()
    claim = PrivacyClaim("central", epsilon, neighbours="add or remove")
    assert ratio == pytest.approx(exp(claim.under_replacement().epsilon))


def test_a_claim_under_replacement_stays() -> None:
    claim = PrivacyClaim("local", 2.0)
    assert claim.under_replacement() is claim


def test_the_text_names_everything_that_two_claims_can_differ_in() -> None:
    text = str(PrivacyClaim("distributed", 1.0, 1e-12, "trajectory", "zero"))
    for part in ("distributed", "epsilon 1", "delta 1e-12", "trajectory", NEIGHBOURS["zero"]):
        assert part in text
    assert str(PrivacyClaim("none", inf)) == "no privacy"


def test_the_non_private_release_is_the_users_own_map() -> None:
    points = [[0.5, 0.5], [1.5, 0.5], [1.5, 0.5], [1.5, 0.5]]
    found = NonPrivate().run(points, Grid.plane(0, 0, 2, 2), 1.0, np.random.default_rng(1))
    assert found.density.tolist() == [[0.25, 0], [0.75, 0]]
    assert found.claim.epsilon == inf


@pytest.mark.parametrize(
    "epsilon",
    [0, -1, inf, float("nan"), "1", None, True, 10**400, 10**5000, -(10**400),
     Fraction(1, 10**400), Decimal("1E+999999"), Decimal("sNaN")],
    ids=shown,
)  # fmt: skip
def test_bad_epsilons(epsilon: object) -> None:
    with pytest.raises(InputError, match="epsilon must be a positive finite number"):
        NonPrivate().run([[0.5, 0.5]], Grid.plane(0, 0, 2, 2), epsilon, np.random.default_rng(1))  # type: ignore[arg-type]
