"""Reports: what leaves a device, and what a server refuses to count."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk import Collection, CollectionError, Grid, Report

COLLECTION = Collection.create("x", Grid.from_bounds(0, 0, 1, 5), 2)
OTHER = Collection.create("y", Grid.from_bounds(0, 0, 1, 5), 2)
REPORT = Report(COLLECTION.digest, "0123456789abcdef" * 2, -1, 5)
TEXT = REPORT.to_json()
DOCUMENT: dict[str, Any] = json.loads(TEXT)


def refused(document: Any, rule: str) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    with pytest.raises(CollectionError, match=rule) as caught:
        Report.from_json(text)
    assert len(str(caught.value)) < 300


def test_the_text_of_a_report_is_canonical_and_holds_five_fields() -> None:
    assert (
        f'{{"col":5,"collection":"{COLLECTION.digest}","id":"{REPORT.id}",'
        '"row":-1,"schema":"ldpspatial/report/1"}'
    ) == TEXT


def test_a_report_reads_back() -> None:
    assert Report.from_json(TEXT) == REPORT
    assert Report.from_json(json.dumps(DOCUMENT, indent=2)).to_json() == TEXT


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.binary(min_size=16, max_size=16), *[st.integers(-(1 << 20), 1 << 20)] * 2)
def test_every_report_reads_back(name: bytes, row: int, col: int) -> None:
    report = Report(OTHER.digest, name.hex(), row, col)
    assert Report.from_json(report.to_json()) == report


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("schema", "ldpspatial/report/2", "schema must be 'ldpspatial/report/1'"),
        ("schema", None, "schema must be"),
        ("collection", COLLECTION.digest[:-1], "collection must be 64 hexadecimal digits"),
        ("collection", COLLECTION.digest.upper(), "collection must be 64 hexadecimal digits"),
        ("collection", 5, "collection must be 64 hexadecimal digits"),
        ("id", "", "id must be 32 hexadecimal digits"),
        ("id", "0" * 31 + "g", "id must be 32 hexadecimal digits"),
        ("id", "\u0660" * 32, "id must be 32 hexadecimal digits"),
        ("id", ["0"] * 32, "id must be 32 hexadecimal digits"),
        ("id", None, "id must be 32 hexadecimal digits"),
        ("row", 0.5, "numbers must be whole"),
        ("row", "1", "row must be a whole number"),
        ("row", True, "row must be a whole number"),
        ("row", [0], "row must be a whole number.* got a list"),
        ("col", (1 << 20) + 1, "col must be a whole number from -1048576 to 1048576"),
        ("col", -(1 << 20) - 1, "col must be a whole number"),
        ("col", float("nan"), "numbers must be whole"),
        ("time", 5, "the report has the unknown field 'time'"),
    ],
)
def test_a_bad_field_is_refused(field: str, value: Any, rule: str) -> None:
    refused({**DOCUMENT, field: value}, rule)


@pytest.mark.parametrize("field", list(DOCUMENT))
def test_a_missing_field_is_refused(field: str) -> None:
    rule = "schema must be" if field == "schema" else f"the report lacks the field '{field}'"
    refused({key: value for key, value in DOCUMENT.items() if key != field}, rule)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", TEXT + "x", TEXT.replace("{", '{"row":0,', 1), "[" * 1000]
)
def test_text_that_is_no_report_is_refused(text: str) -> None:
    refused(text, "report|appears twice")


def test_a_long_text_is_refused_unread() -> None:
    assert Report.from_json(f"{TEXT:1024}") == REPORT
    refused(f"{TEXT:1025}", "the report must be at most 1024 characters, got 1025")
    refused("[" * 10**5, "the report must be at most 1024 characters")


@pytest.mark.parametrize("text", [None, 5, TEXT.encode()])
def test_only_text_is_read(text: Any) -> None:
    with pytest.raises(CollectionError, match="the report must be text, got"):
        Report.from_json(text)


def test_a_report_belongs_to_one_collection() -> None:
    REPORT.check(COLLECTION)
    with pytest.raises(CollectionError, match="the report names collection"):
        REPORT.check(OTHER)


def test_only_output_cells_belong_to_a_collection() -> None:
    outputs = set(COLLECTION.table.output_cells())
    for row in range(-4, 9):
        for col in range(-4, 9):
            report = Report(COLLECTION.digest, REPORT.id, row, col)
            if (row, col) in outputs:
                report.check(COLLECTION)
            else:
                with pytest.raises(CollectionError, match="outside the output domain"):
                    report.check(COLLECTION)
