"""The JSON schemas: valid, and as strict as a schema can be about the documents of the vectors."""

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from client_sdk import Collection, CollectionError, Grid, Report, Series, visible_text

ROOT = Path(__file__).parents[2] / "client_sdk"


def load(path: str) -> Any:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


COLLECTION = Draft202012Validator(load("schema/collection-1.json"))
REPORT = Draft202012Validator(load("schema/report-1.json"))
SERIES = Draft202012Validator(load("schema/series-1.json"))
DOCUMENTS = load("vectors/documents.json")
REPORTS = load("vectors/reports.json")
SERIES_VECTORS = load("vectors/series.json")


@pytest.mark.parametrize("validator", [COLLECTION, REPORT, SERIES])
def test_schemas_are_schemas(validator: Draft202012Validator) -> None:
    Draft202012Validator.check_schema(validator.schema)


@pytest.mark.parametrize("entry", DOCUMENTS["good"], ids=lambda e: e["digest"][:8])
def test_good_documents_fit(entry: dict[str, str]) -> None:
    COLLECTION.validate(json.loads(entry["text"]))


@pytest.mark.parametrize("cells", [1, 4096])
@pytest.mark.parametrize(
    "grid",
    [
        lambda cells: Grid.from_bounds(-85, -180, 170, cells),
        lambda cells: Grid.plane(-1e8, 1e8, 2e8, cells),
        lambda cells: Grid("geographic", 0, 1799999999, 2 * cells, 2 * cells, cells),
        lambda cells: Grid("geographic", 850000000 - 2 * cells, 0, 2 * cells, 2 * cells, cells),
    ],
)
def test_documents_at_the_limits_fit(grid: Any, cells: int) -> None:
    text = Collection.create("x" * 200, grid(cells), 20, radius=1, max_reports=10**6).to_json()
    COLLECTION.validate(json.loads(text))


@pytest.mark.parametrize(
    "entry", [e for e in DOCUMENTS["bad"] if e["kind"] == "form"], ids=lambda e: e["reason"]
)
def test_documents_of_wrong_form_do_not_fit(entry: dict[str, str]) -> None:
    assert not COLLECTION.is_valid(json.loads(entry["text"]))


@pytest.mark.parametrize(
    "entry", [e for e in DOCUMENTS["bad"] if e["kind"] == "arithmetic"], ids=lambda e: e["reason"]
)
def test_what_needs_arithmetic_fits_and_is_refused_by_the_client(entry: dict[str, str]) -> None:
    COLLECTION.validate(json.loads(entry["text"]))
    with pytest.raises(CollectionError):
        Collection.from_json(entry["text"])


@pytest.mark.parametrize(
    "entry", [e for e in DOCUMENTS["bad"] if e["kind"] == "text"], ids=lambda e: e["reason"]
)
def test_what_only_the_table_tells_fits_and_is_refused_for_its_name(entry: dict[str, str]) -> None:
    document = json.loads(entry["text"])
    COLLECTION.validate(document)
    with pytest.raises(CollectionError, match="not among the visible characters"):
        Collection.from_json(entry["text"])
    Collection.from_json(json.dumps({**document, "name": "ab"}))  # nothing else is wrong


@pytest.mark.parametrize("value", ["x", 1.5, None, True, [], {}, 1 << 60])
@pytest.mark.parametrize("field", [*COLLECTION.schema["required"], "extra"])
def test_no_field_of_a_document_takes_any_value(field: str, value: Any) -> None:
    if field in ("name", "mechanism") and value == "x":
        return
    document = json.loads(DOCUMENTS["good"][0]["text"])
    assert not COLLECTION.is_valid({**document, field: value})


def test_the_pattern_of_visible_texts_names_no_surrogates() -> None:
    """A regular expression that works on UTF-16 would find them in every whole pair."""
    pattern = COLLECTION.schema["$defs"]["visible"]["not"]["pattern"]
    assert "\\ud8" not in pattern.lower()
    halves = "\U0001f6b2".encode("utf-16-be", "surrogatepass")
    units = "".join(chr(int.from_bytes(halves[i : i + 2], "big")) for i in (0, 2))
    assert not re.search(pattern, units)
    assert re.search(pattern, "a\u2066b")


def test_the_pattern_of_visible_texts_refuses_nothing_that_is_visible() -> None:
    pattern = re.compile(COLLECTION.schema["$defs"]["visible"]["not"]["pattern"])
    for first, last in load("schema/visible-1.json")["ranges"]:
        for code in range(first, last + 1):
            assert not pattern.search(f"a{chr(code)}b"), hex(code)


def test_the_pattern_of_visible_texts_sees_all_that_is_assigned_up_to_ffff() -> None:
    """Whether unseen or younger than the table; the younger ones, which are seen, are few."""
    pattern = re.compile(COLLECTION.schema["$defs"]["visible"]["not"]["pattern"])
    left_out = {
        code
        for code in range(0x10000)
        if not 0xD800 <= code <= 0xDFFF
        and visible_text.fault(f"a{chr(code)}b")
        and not pattern.search(f"a{chr(code)}b")
    }
    assigned = {code for code in left_out if unicodedata.category(chr(code)) != "Cn"}
    if unicodedata.unidata_version == "13.0.0":
        assert not assigned
    assert len(assigned) < 500
    assert not {unicodedata.category(chr(code)) for code in assigned} & {"Cc", "Co", "Zs", "Zl"}


def test_a_long_document_may_fit_but_not_one_of_too_many_rows() -> None:
    for entry in DOCUMENTS["long"]:
        if entry["reason"].endswith(" rows"):
            text = "".join(part * times for part, times in entry["parts"])
            assert COLLECTION.is_valid(json.loads(text)) == (entry["digest"] is not None)


def test_good_reports_fit() -> None:
    for text in (*(entry["text"] for entry in REPORTS["good"]), *REPORTS["foreign"]):
        REPORT.validate(json.loads(text))
    REPORT.validate(json.loads(Report("0" * 64, "f" * 32, 1 << 20, -(1 << 20)).to_json()))


def test_bad_reports_do_not_fit_unless_only_a_strict_parser_sees_it() -> None:
    unseen = 0
    for text in REPORTS["bad"]:
        try:
            document = json.loads(text)
        except ValueError:
            continue
        if REPORT.is_valid(document):
            # A whole number with a fraction or an exponent, a field given twice, a long text.
            assert len(text) > 1024 or any(mark in text for mark in ("1.0", "2e0", '"row":0,'))
            unseen += 1
    assert unseen == 4


# Series


def of_kind(kind: str) -> Any:
    entries = [entry for entry in SERIES_VECTORS["bad"] if entry["kind"] == kind]
    assert entries
    return pytest.mark.parametrize("entry", entries, ids=lambda e: e["reason"])


def test_good_series_fit_and_the_collections_of_their_windows_too() -> None:
    for entry in SERIES_VECTORS["good"]:
        SERIES.validate(json.loads(entry["text"]))
    for entry in SERIES_VECTORS["windows"]:
        if "canonical" in entry:
            COLLECTION.validate(json.loads(entry["canonical"]))


@pytest.mark.parametrize("cells", [1, 4096])
@pytest.mark.parametrize("most", [True, False])
def test_series_at_the_limits_fit(cells: int, most: bool) -> None:
    numbers = (
        {"first_start": 253402300799, "window_seconds": 10**9, "windows": 10**5, "answers": 10**5}
        if most
        else {"first_start": 0, "window_seconds": 1, "windows": 1, "answers": 1}
    )
    name = "\U0001f6b2" * 100 if most else "a"
    series = Series.create(name, Grid.plane(0, 0, 1, cells), 20, radius=1, **numbers)
    SERIES.validate(json.loads(series.to_json()))


@of_kind("form")
def test_series_of_wrong_form_do_not_fit(entry: dict[str, str]) -> None:
    assert not SERIES.is_valid(json.loads(entry["text"]))


@of_kind("arithmetic")
def test_series_that_need_arithmetic_fit_and_are_refused(entry: dict[str, str]) -> None:
    SERIES.validate(json.loads(entry["text"]))
    with pytest.raises(CollectionError):
        Series.from_json(entry["text"])


@of_kind("text")
def test_series_whose_name_only_the_table_refuses_fit(entry: dict[str, str]) -> None:
    SERIES.validate(json.loads(entry["text"]))
    with pytest.raises(CollectionError, match="not among the visible characters"):
        Series.from_json(entry["text"])


@of_kind("json")
def test_series_that_only_a_strict_reader_refuses_fit_where_they_can_be_read(
    entry: dict[str, str],
) -> None:
    try:
        document = json.loads(entry["text"])
    except ValueError:
        return
    assert SERIES.is_valid(document) == (entry["reason"] not in ("a fraction", "NaN"))


@pytest.mark.parametrize("value", ["x", 1.5, None, True, [], {}, 1 << 60])
@pytest.mark.parametrize("place", ["series", "collection"])
def test_no_field_of_a_series_takes_any_value(place: str, value: Any) -> None:
    document = json.loads(SERIES_VECTORS["good"][0]["text"])
    fields = document if place == "series" else document["collection"]
    for field in [*fields, "extra"]:
        if field in ("name", "mechanism") and value == "x":
            continue
        other = {**fields, field: value}
        changed = other if place == "series" else {**document, "collection": other}
        assert not SERIES.is_valid(changed), field


def test_the_schema_of_a_series_says_of_its_collection_what_that_of_a_collection_says() -> None:
    """Each file stands alone, so the text is there twice."""
    whole = COLLECTION.schema["properties"]
    own = SERIES.schema["properties"]["collection"]
    assert own["properties"] == {
        field: whole[field] for field in whole if field not in ("schema", "name", "max_reports")
    }
    assert sorted(own["required"]) == sorted(own["properties"])
    assert sorted(SERIES.schema["required"]) == sorted(SERIES.schema["properties"])
    assert own["additionalProperties"] is SERIES.schema["additionalProperties"] is False
    assert SERIES.schema["$defs"] == COLLECTION.schema["$defs"]
    refs = re.findall(r'"\$ref": "([^"]+)"', (ROOT / "schema/series-1.json").read_text())
    assert refs
    assert all(ref.startswith("#/$defs/") for ref in refs)
