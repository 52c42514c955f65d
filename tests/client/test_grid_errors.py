"""Grids and positions that are none: one clear error, and never a coordinate of a user in it."""

import traceback
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from client_sdk import Grid, ParameterError, PositionError
from client_sdk.grid import UNIT

BERLIN = Grid.from_center(52.52, 13.405, 20_000, 15)


# Positions that are none


@pytest.mark.parametrize(
    "bad",
    [float("nan"), float("inf"), -float("inf"), None, "52.51630071", "", "x", b"52", 1j,
     [52.51630071], (52.51630071,), {}, True, 90.51630071, -90.51630071,
     Decimal("NaN"), Decimal("sNaN"), Fraction(10**400, 3), 10**400, np.array([52.51630071])],
)  # fmt: skip
def test_bad_latitude_is_refused_and_not_repeated(bad: Any) -> None:
    for call in (BERLIN.cell, BERLIN.contains):
        with pytest.raises(PositionError, match="latitude must be a number") as caught:
            call(bad, 13.37770071)
        told = "".join(traceback.format_exception_only(caught.value)) + repr(caught.value.args)
        context = caught.value.__context__
        assert "5163" not in told + repr(context)
        assert "3777" not in told + repr(context)


@pytest.mark.parametrize("bad", [float("nan"), None, "13.3777", 360.3777, -1e300, True])
def test_bad_longitude_is_refused_and_not_repeated(bad: Any) -> None:
    with pytest.raises(PositionError, match="longitude must be a number") as caught:
        BERLIN.cell(52.5163, bad)
    assert "3777" not in str(caught.value)
    assert "5163" not in str(caught.value)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), Decimal("NaN")])
def test_plane_positions_must_be_finite_and_no_more(bad: Any) -> None:
    grid = Grid.plane(0, 0, 1, 2)
    for call in (grid.cell, grid.contains):
        with pytest.raises(PositionError, match=r"^y must be a finite number$"):
            call(bad, 0)
        with pytest.raises(PositionError, match=r"^x must be a finite number$"):
            call(0, bad)
    with pytest.raises(PositionError, match=r"^x must be a number$"):
        grid.cell(0, None)  # type: ignore[arg-type]


# Grids that are none


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ((91, 0, 1000, 5), "lat must be a latitude"),
        ((85, 0, 1000, 5), "lat must lie within 85 degrees"),
        ((84.999, 0, 10_000, 5), "the square must stay within 85 degrees"),
        ((float("nan"), 0, 1000, 5), "lat must be finite"),
        (("52", 0, 1000, 5), "lat must be a number"),
        ((None, 0, 1000, 5), "lat must be a number"),
        ((52, True, 1000, 5), "lon must be a number"),
        ((52, 361, 1000, 5), "lon must be a longitude"),
        ((52, float("inf"), 1000, 5), "lon must be finite"),
        ((52, 13, 0, 5), "side_m must be above 0"),
        ((52, 13, -1, 5), "side_m must be above 0"),
        ((52, 13, 3e7, 5), "side_m must be above 0 and at most 20000000"),
        ((52, 13, 1.9e7, 5), "the square must stay within 85 degrees"),
        ((84, 13, 1e6, 5), "the square must"),
        ((52, 13, 1e-9, 5), "the side of the square must be at least"),
        ((52, 13, 1000, 0), "cells must be a whole number from 1 to 4096, got 0"),
        ((52, 13, 1000, 4097), "cells must be a whole number"),
        ((52, 13, 1000, 1.5), "cells must be a whole number"),
        ((52, 13, 1000, True), "cells must be a whole number"),
    ],
)
def test_bad_center_is_refused(arguments: Any, rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        Grid.from_center(*arguments)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ((41.64, -87.9, 0, 5), "side_deg must be above 0 and at most 180"),
        ((41.64, -87.9, 181, 5), "side_deg must be above 0 and at most 180"),
        ((41.64, -87.9, 50, 5), "the square must stay within 85 degrees"),
        ((-86, -87.9, 1, 5), "the square must stay within 85 degrees"),
        ((-85, 0, 175, 5), "the square must stay within 85 degrees"),
        (("x", -87.9, 1, 5), "south must be a number"),
        ((41, 500, 1, 5), "west must be a longitude"),
        ((41, 5, 1, -5), "cells must be a whole number"),
    ],
)
def test_bad_bounds_are_refused(arguments: Any, rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        Grid.from_bounds(*arguments)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ((0, 0, 0, 5), "side must be above 0"),
        ((0, 0, -1, 5), "side must be above 0"),
        ((0, 0, 2.1e8, 5), "side must be above 0 and at most 200000000"),
        ((1e9, 0, 1, 5), "y0 must be within 100000000"),
        ((0, -1e9, 1, 5), "x0 must be within 100000000"),
        ((0, float("nan"), 1, 5), "x0 must be finite"),
        ((0, "0", 1, 5), "x0 must be a number"),
        ((0, 0, 1e-7, 5), "the side of the square must be at least"),
    ],
)
def test_bad_plane_is_refused(arguments: Any, rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        Grid.plane(*arguments)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("round", 0, 0, 9, 9, 3), "kind must be one of geographic, plane"),
        (("plane", 0.5, 0, 9, 9, 3), "south must be a whole number"),
        (("plane", 0, 0, 9, True, 3), "width must be a whole number"),
        (("plane", 0, 0, 5, 9, 3), "height must be a whole number from 6"),
        (("geographic", 0, 180 * UNIT, 9, 9, 3), "west must be a whole number"),
        (("geographic", 85 * UNIT - 8, 0, 9, 9, 3), "height must be a whole number from 6 to 8"),
        (("geographic", 0, 0, 9, 180 * UNIT + 1, 3), "width must be a whole number"),
    ],
)
def test_bad_fields_are_refused(arguments: Any, rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        Grid(*arguments)
