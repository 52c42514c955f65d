"""Attacks by forgers that are searched for in few places, for tests of what tells of them."""

import pytest

from ldpspatial.estimation.forgery import attacks


def shorten_attacks(patch: pytest.MonkeyPatch) -> None:
    """Search with less effort; ``tests/ldpspatial/estimation/forgery`` tests the full search."""
    few = {"FEW": 10, "TRIED": 2, "BEGUN": 1, "CLIMB": 1, "AHEAD": 1, "POLISHED": 10**6}
    few["QUICK"] = few["CLIMBING"] = (1e-2, 1e-2)
    for name, value in few.items():
        patch.setattr(attacks, name, value)
