"""Reports: what leaves a device, and what a server refuses to count."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk import Collection, CollectionError, Grid, Report, ResponseTable
from client_sdk.report import BODY_BYTES

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


@settings(max_examples=100)
@given(st.binary(min_size=16, max_size=16), *[st.integers(-(1 << 20), 1 << 20)] * 2)
def test_every_report_reads_back(name: bytes, row: int, col: int) -> None:
    report = Report(OTHER.digest, name.hex(), row, col)
    assert Report.from_json(report.to_json()) == report


# The body: what is sent has one length, whatever the cell


FARTHEST = 1 << 20
EXTREMES = [
    (row, col)
    for row in (-FARTHEST, -FARTHEST + 1, -1, 0, 9, 10, FARTHEST - 1, FARTHEST)
    for col in (-FARTHEST, FARTHEST, 0)
]
TABLES = [
    COLLECTION,
    Collection.create("one cell", Grid.plane(0, 0, 1, 1), 20, "disk", squared_radius=0),
    Collection.create("no shrinking", Grid.plane(0, 0, 1, 12), 1, "dam-ns"),
    Collection.create("exponential", Grid.plane(0, 0, 1, 40), 2, "huem", radius=12),
    Collection.create("a real radius", Grid.from_bounds(0, 0, 1, 101), 3, "disk"),
    # A star: few numbers, and rows and columns of four digits and a sign.
    Collection(
        "star",
        Grid.plane(0, 0, 1, 2),
        ResponseTable("hand-made", 1.0, 2, 1, ((1,),) * 1200),
        1_000_000,
    ),
]


def body_of(report: Report) -> str:
    """Check a body by what the protocol says of it, and return it."""
    body = report.to_body()
    assert len(body.encode()) == BODY_BYTES == 192
    text = report.to_json()
    assert body == text + " " * (192 - len(text))
    assert 168 <= len(text) <= 182
    assert Report.from_json(body) == report
    return body


@pytest.mark.parametrize("collection", TABLES, ids=lambda c: c.name)
def test_every_output_cell_has_a_body_of_one_length_that_reads_back(collection: Collection) -> None:
    """The whole output domain, so that no length tells anything of any cell."""
    cells = list(collection.table.output_cells())
    assert len(cells) == collection.table.output_size
    bodies = {body_of(Report(collection.digest, REPORT.id, *cell)) for cell in cells}
    assert len(bodies) == len(cells)


@pytest.mark.parametrize(("row", "col"), EXTREMES)
def test_cells_at_the_limits_of_a_report_have_a_body_of_the_same_length(row: int, col: int) -> None:
    for name in ("0" * 32, "f" * 32):
        body_of(Report("0" * 64, name, row, col))


def test_without_spaces_the_lengths_would_tell_cells_apart() -> None:
    """The check has the power to see a body that is left as long as its text."""
    cells = TABLES[-1].table.output_cells()
    lengths = {len(Report(COLLECTION.digest, REPORT.id, *cell).to_json()) for cell in cells}
    assert lengths == set(range(168, 173))
    extremes = {len(Report("0" * 64, "0" * 32, *cell).to_json()) for cell in EXTREMES}
    assert max(extremes) == 182


@settings(max_examples=200)
@given(
    *[st.binary(min_size=n, max_size=n) for n in (32, 16)], *[st.integers(-FARTHEST, FARTHEST)] * 2
)
def test_any_report_has_a_body_of_one_length(
    digest: bytes, name: bytes, row: int, col: int
) -> None:
    body_of(Report(digest.hex(), name.hex(), row, col))


# Refusals


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
