"""The rules for arguments: what they take, what they return, and what they say."""

import doctest
import enum
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpspatial import validate
from ldpspatial.errors import InputError
from ldpspatial.estimation import Estimate
from ldpspatial.places.users import UserCells
from ldpspatial.validate import (
    file_path,
    function,
    instance,
    map_shape,
    number_array,
    number_in,
    one_of,
    positive,
    processes,
    shown,
    true_or_false,
    whole_array,
    whole_number,
)

NO_NUMBERS = ("0.5", None, True, np.True_, [0.5], np.array(0.5), np.ones(2), 0.5j, b"0.5")
NO_FLOATS = (nan, Decimal("NaN"), Decimal("sNaN"), np.float64(nan))


def refusal(call: Callable[..., object], *arguments: object, **more: object) -> str:
    with pytest.raises(InputError) as caught:
        call(*arguments, **more)
    return str(caught.value)


@pytest.mark.parametrize(
    "value",
    [0.5, Fraction(1, 2), Decimal("0.5"), np.float32(0.5), np.float64(0.5), np.longdouble(0.5)],
)
def test_numbers_of_any_kind_become_floats(value: Any) -> None:
    for found in (number_in("a", value, "(0, 1)"), positive("a", value)):
        assert (found, type(found)) == (0.5, float)


@pytest.mark.parametrize(
    ("interval", "inside", "outside"),
    [
        ("(0, 1)", [1e-300, 0.5, 1 - 2**-53], [0, 1, -1, 2]),
        ("[0, 1)", [0, -0.0, np.int8(0), 0.9], [1, -1e-300, np.uint64(1)]),
        ("(0, 1]", [1, np.int64(1), 5e-324], [0, 1 + 1e-15]),
        ("[0, inf)", [0, 1e308, 10**300], [inf, -1e-9, 10**400]),
        ("[1, inf]", [1, inf], [1 - 1e-12, -inf, 10**400]),
        ("(-inf, inf)", [-1e308, 0], [inf, -inf, -(10**400)]),
        ("[-90, 90]", [-90, 90.0], [90.1]),
        ("[1e-06, 20]", [Fraction(1, 10**6), 20], [9e-7, Fraction(20 * 10**20 + 10**6, 10**20)]),
    ],
)
def test_ends_belong_to_an_interval_as_they_are_written(
    interval: str, inside: list[Any], outside: list[Any]
) -> None:
    for value in inside:
        assert number_in("a", value, interval) == float(value)
    for value in (*outside, *NO_NUMBERS, *NO_FLOATS):
        message = f"alpha must be a number in {interval}, got {shown(value)}"
        assert refusal(number_in, "alpha", value, interval) == message


def test_what_is_nearest_to_an_open_end_does_not_lie_inside() -> None:
    for value in (Decimal("0.99999999999999999999"), Fraction(1, 10**400)):
        assert "(0, 1)" in refusal(number_in, "a", value, "(0, 1)")


def test_positive_numbers_are_finite_and_above_0() -> None:
    for value in (0, -1.0, inf, 10**400, Fraction(1, 10**400), *NO_NUMBERS, *NO_FLOATS):
        message = f"k must be a positive finite number, got {shown(value)}"
        assert refusal(positive, "k", value) == message


class Method(str, enum.Enum):
    FIRST = "first"


def test_a_name_is_one_of_those_that_there_are() -> None:
    for names in (("first", "second"), {"first": 1, "second": 2}):
        assert one_of("method", "first", names) == "first"
        assert one_of("method", Method.FIRST, names) is Method.FIRST
        assert one_of("method", np.str_("second"), names) == "second"
        for value in ("third", "", "First", None, 1, True, ["first"], np.array(["first"]), {}):
            message = f"method must be one of first, second, got {shown(value)}"
            assert refusal(one_of, "method", value, names) == message


def test_only_bools_are_true_or_false() -> None:
    for value in (True, False, np.True_, np.False_):
        found = true_or_false("plane", value)
        assert (found, type(found)) == (bool(value), bool)
    for value in (1, 0, "True", None, [True], np.array(True), np.array([True, False])):
        rule = "plane must be True or False, got "
        assert refusal(true_or_false, "plane", value).startswith(rule)


def test_of_an_object_of_another_class_the_type_is_told_and_nothing_else() -> None:
    assert instance("path", here := Path(), Path) is here
    for value, kind in (([48.1, 11.2], "list"), (None, "NoneType"), (Path, "type")):
        assert refusal(instance, "path", value, Path) == f"path must be a Path, got {kind}"
        assert refusal(instance, "estimate", value, Estimate).startswith("estimate must be an Est")
        assert refusal(instance, "users", value, UserCells).startswith("users must be a UserCells")


def test_functions_can_be_called() -> None:
    assert function("entropy", abs) is abs
    for value in (None, 3, "abs"):
        assert refusal(function, "entropy", value).startswith("entropy must be a function, got ")


def test_paths_are_texts_or_paths() -> None:
    assert file_path("path", "a/b.csv") == file_path("path", Path("a/b.csv")) == Path("a/b.csv")
    for value in (None, 3, "", b"a", "a\0b", ["a"]):
        assert refusal(file_path, "path", value).startswith("path must name a file, got ")
    assert "must name a folder" in refusal(file_path, "folder", None, "folder")


@pytest.mark.parametrize("dtype", ["i1", "u8", "f2", "f4", "f8", "longdouble"])
def test_arrays_of_numbers_become_float64(dtype: str) -> None:
    given = np.array([[0, 1], [2, 3]], dtype)
    for values in (given, given.tolist(), list(given)):
        found = number_array("counts", values, ("n", 2), "[0, 3]")
        assert found.dtype == np.float64
        assert found.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    found[0, 0] = 9
    assert given[0, 0] == 0  # it is an array of its own


def test_bools_are_numbers_only_where_they_are_wanted() -> None:
    mask = [[True, False]]
    assert number_array("w", mask, bools=True).tolist() == [[1.0, 0.0]]
    message = "w must be an array of numbers, got bool of shape (1, 2)"
    assert refusal(number_array, "w", mask) == message


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([[1], [1, 2]], "of one shape"),
        ("48.1, 11.2", "got str"),
        (None, "got NoneType"),
        (object(), "got object"),
        (["48.1", "11.2"], "got <U4 of shape (2,)"),
        ([None, 1.0], "got object of shape (2,)"),
        ([10**400, 1], "got object of shape (2,)"),
        ([Fraction(1, 2), Decimal(1)], "got object of shape (2,)"),
        ([1j], "got complex128 of shape (1,)"),
        (np.ones(2, "M8[D]"), "got datetime64[D] of shape (2,)"),
    ],
)
def test_what_is_no_array_of_numbers_is_told_by_its_type(values: object, told: str) -> None:
    message = refusal(number_array, "points", values)
    assert message.startswith("points must be an array of numbers")
    assert message.endswith(told)
    assert "48.1" not in message


@pytest.mark.parametrize(
    ("shape", "good", "bad"),
    [
        (("n", 2), [(1, 2), (7, 2)], [(2,), (2, 1), (0, 2), (1, 2, 1), ()]),
        (("g", "g"), [(1, 1), (3, 3)], [(2, 3), (0, 0), (4,)]),
        ((2, 3), [(2, 3)], [(3, 2), (6,)]),
        (("n",), [(1,), (5,)], [(0,), (1, 1), ()]),
    ],
)
def test_letters_stand_for_any_length_that_is_not_0(
    shape: tuple[int | str, ...], good: list[Any], bad: list[Any]
) -> None:
    for lengths in good:
        assert number_array("a", np.ones(lengths), shape).shape == lengths
    for lengths in bad:
        message = refusal(number_array, "a", np.ones(lengths), shape)
        wanted = str(shape).replace("'", "")
        least = ", with one number at least" if 0 in lengths else ""
        assert message.startswith(f"a must be an array of numbers of shape {wanted}{least}, got ")


def test_any_shape_goes_without_one() -> None:
    for values in (3, [], [[[1.0]]]):
        assert number_array("k", values).shape == np.shape(values)


def test_the_first_number_outside_an_interval_is_told_with_its_place() -> None:
    values = [[0.0, 1.0, 2.0], [0.5, -1.0, nan]]
    message = "w must hold numbers in [0, 1], got 2.0 at [0, 2]"
    assert refusal(number_array, "w", values, None, "[0, 1]") == message
    for bad in (nan, inf, -inf):
        message = f"points must hold finite numbers, got {bad!r} at [1]"
        assert refusal(number_array, "points", [0.0, bad]) == message
    assert refusal(number_array, "k", inf) == "k must hold finite numbers, got inf"
    beyond = np.array([np.finfo(np.longdouble).max])
    if beyond.dtype.itemsize > 8:
        assert refusal(number_array, "k", beyond) == "k must hold finite numbers, got inf at [0]"


def test_masked_entries_are_refused_and_a_mask_of_nothing_is_none() -> None:
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    assert "must not be masked" in refusal(number_array, "p", masked)
    assert number_array("p", np.ma.masked_array([1.0, 2.0])).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", ["i1", "u2", "u8", "i8"])
def test_arrays_of_whole_numbers_become_int64(dtype: str) -> None:
    for values in (np.array([0, 5], dtype), []):
        found = whole_array("cells", values, ("n",), 0, 6)
        assert found.dtype == np.int64
        assert found.tolist() == list(values)


def test_cells_are_never_repeated() -> None:
    for values in ([17], [-17], np.array([2**63 + 17], np.uint64)):
        message = "cells must lie in [0, 6) (not repeated here)"
        assert refusal(whole_array, "cells", values, ("n",), 0, 6) == message
    for values in ([1.5], [17.0], [[17]], 17, [True], ["17"], None, [[1], [1, 7]], [10**400]):
        message = refusal(whole_array, "cells", values, ("n",), 0, 6)
        assert message.startswith("cells must be an array of whole numbers")
        assert "17" not in message.replace("of shape (1,)", "")


def test_maps_have_rows_and_columns() -> None:
    for shape in ((2, 3), [2, 3], np.array([2, 3]), (np.int64(2), np.uint8(3))):
        found = map_shape("shape", shape)
        assert found == (2, 3)
        assert {type(side) for side in found} == {int}
    for bad in ((0, 3), (2,), (2, 3, 4), 3, None, "23", (2.0, 3), (True, 3), np.ones((2, 2))):
        message = refusal(map_shape, "shape", bad)
        assert message.startswith("shape must be two whole numbers from 1 on, rows and columns")
    assert refusal(map_shape, "shape", (0, 3)).endswith("got (0, 3)")


def test_whole_numbers_have_bounds_or_none() -> None:
    for value in (3, np.int8(3), np.uint64(3), np.array(3)):
        for high in (None, 9):
            found = whole_number("n", value, 1, high)
            assert (found, type(found)) == (3, int)
    assert whole_number("n", 10**400, 1) == 10**400
    for value in (0, 3.0, nan, "3", None, True, np.True_, [3], Fraction(3), Decimal(3)):
        message = f"n must be a whole number from 1 on, got {shown(value)}"
        assert refusal(whole_number, "n", value, 1) == message
        message = f"n must be a whole number from 1 to 9, got {shown(value)}"
        assert refusal(whole_number, "n", value, 1, 9) == message


def test_messages_are_short_and_show_no_content() -> None:
    for value in (np.array([48.1, 11.2]), [48.1], (48.1,), {"lat": 48.1}, {48.1}):
        assert shown(value) == f"a {type(value).__name__}"
    assert len(shown("x" * 1000)) <= 60
    assert shown(10**5000) == "a huge number"
    assert shown("text") == "'text'"


def test_the_examples_run() -> None:
    assert doctest.testmod(validate).failed == 0


def test_numbers_that_do_not_count_may_be_anything_and_become_zero() -> None:
    counts = np.array([True, False])
    assert number_array("a", [1.0, nan], (2,), where=counts).tolist() == [1.0, 0.0]
    assert "a must hold finite numbers" in refusal(number_array, "a", [nan, 1], (2,), where=counts)


def test_processes_are_as_many_as_are_named_or_one_a_core() -> None:
    assert [processes("jobs", each) for each in (1, np.int64(8), -1)] == [1, 8, -1]
    for bad in (0, -2, 1.5, True, "1", 1 << 17):
        with pytest.raises(InputError, match=f"^jobs must be 1 or more, or -1 .*, got {bad!r}"):
            processes("jobs", bad)


def test_an_array_that_nobody_can_write_to_is_kept_and_any_other_is_copied() -> None:
    values = np.arange(6.0).reshape(2, 3).copy()
    view = values[:, 1:]
    view.flags.writeable = False  # and yet what it shows may change
    for given in (values, view, values.astype(np.float32)):
        found = number_array("values", given)
        assert not np.shares_memory(found, given)
        assert found.flags.writeable
    values.flags.writeable = False
    assert np.shares_memory(number_array("values", values[:, 1:]), values)
    kept = number_array("values", values, where=values > 1)
    assert not np.shares_memory(kept, values)
    with pytest.raises(
        InputError, match=r"values must hold numbers in \[0, 4\], got 5.0 at \[1, 2\]"
    ):
        number_array("values", values, interval="[0, 4]")
