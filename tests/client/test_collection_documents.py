"""Documents from anyone: each is either refused with CollectionError or truly epsilon-LDP."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from client_sdk import Collection, CollectionError, Grid, canonical
from tests.support import naive_collection as naive

PLAIN = Grid.from_bounds(41.64, -87.90, 0.36, 2)
SEEDS = [
    Collection.create("a", PLAIN, 1, "dam", radius=2),
    Collection.create("b", Grid.plane(0, 0, 1, 1), 2, "huem", radius=2),
    Collection.create("c", Grid.plane(0, 0, 1, 3), 3, "dam-ns", radius=1),
]
TEXT = SEEDS[0].to_json()
DOCUMENT: dict[str, Any] = json.loads(TEXT)
HOLES = [*DOCUMENT, *(f"grid.{name}" for name in DOCUMENT["grid"])]


def replaced(hole: str, json_text: str) -> str:
    """The document's text with one value replaced by any JSON text, valid or not."""
    document = json.loads(TEXT)
    outer, _, inner = hole.partition(".")
    if inner:
        document[outer][inner] = "HOLE"
    else:
        document[outer] = "HOLE"
    return json.dumps(document).replace('"HOLE"', json_text)


def refused(text: Any, rule: str | None = None) -> None:
    with pytest.raises(CollectionError, match=rule) as caught:
        Collection.from_json(text)
    assert len(str(caught.value)) < 500


# Values


@pytest.mark.parametrize("hole", HOLES)
@pytest.mark.parametrize(
    "value",
    ["null", "true", "false", '""', '"5"', "[]", "{}", "[1]", '{"a":1}', "0.5", "1.0", "1e3", "1E3",
     "-1", "NaN", "Infinity", "-Infinity", "9007199254740992", "-9007199254740992", "1" + "0" * 18,
     "7" * 5000, "-" + "7" * 5000, "0." + "7" * 5000, '"\\ud800"', '"\\udfff"', '"\\udc00\\ud800"',
     '"a\\u0000"', '"\\u009f"', '"\\u2028"', '"\\u202e"', '"\\u2069"',
     '"' + "x" * 5000 + '"', "[" * 50 + "]" * 50, "01", "+1", "1_0", "0x1", "", ",",
     "'a'", '"\n"', "\u0661"],
)  # fmt: skip
def test_a_wrong_value_is_refused_in_every_field(hole: str, value: str) -> None:
    good = {"-1": ("grid.south_e7", "grid.west_e7")}
    if hole in good.get(value, ()) or (hole in ("name", "mechanism") and value == '"5"'):
        assert Collection.from_json(replaced(hole, value)).digest != SEEDS[0].digest
        return
    refused(replaced(hole, value))


@pytest.mark.parametrize(
    ("hole", "value", "rule"),
    [
        ("schema", '"ldpspatial/collection/2"', "schema must be 'ldpspatial/collection/1', got"),
        ("schema", '{"a":1}', "got a dict"),
        ("grid.kind", '"round"', "grid.kind must be one of geographic, plane"),
        ("grid.cells", "3", "output_size must be 45 for these weights, got 32"),
        ("grid.cells", "4097", "grid: cells must be a whole number from 1 to 4096, got 4097"),
        ("grid.height_e7", "3", "grid: height must be a whole number from 4 to"),
        ("grid.west_e7", "1800000000", "grid: west must be a whole number"),
        ("micro_epsilon", "0", "micro_epsilon must be a whole number from 1 to 20000000, got 0"),
        ("micro_epsilon", "true", "got True"),
        ("micro_epsilon", "20000001", "got 20000001"),
        ("max_reports", "1000001", "max_reports must be a whole number from 1 to 1000000"),
        ("base_weight", "0", "base_weight must be a whole number from 1 to"),
        ("output_size", "27", "output_size must be 32 for these weights, got 27"),
        ("weights", "[1]", "weights must be a list of lists"),
        ("weights", "[[0]]", r"weights\[0\] must be a whole number from 1 to 9007199254740991"),
        ("weights", "[[1],[true,1]]", r"weights\[1\] must be a whole number"),
        ("weights", "[[1],[1,1.5]]", "numbers must be whole and written without exponent, got 1.5"),
        ("weights", "[" + ",".join(["[1]"] * 8194) + "]", "at most 8193 rows, got 8194"),
        ("max_reports", "9" * 18, "numbers must lie within 2.53, got 999999999999999999"),
    ],
)
def test_the_error_names_field_rule_and_value(hole: str, value: str, rule: str) -> None:
    refused(replaced(hole, value), rule)


def test_minus_zero_is_zero() -> None:
    zero = Collection.from_json(replaced("grid.south_e7", "0"))
    assert Collection.from_json(replaced("grid.south_e7", "-0")).digest == zero.digest


# Form


@pytest.mark.parametrize("name", list(DOCUMENT))
def test_a_missing_field_is_refused(name: str) -> None:
    document = {key: value for key, value in DOCUMENT.items() if key != name}
    refused(json.dumps(document), "lacks the field" if name != "schema" else "schema must be")


@pytest.mark.parametrize("name", list(DOCUMENT["grid"]))
def test_a_missing_field_of_the_grid_is_refused(name: str) -> None:
    grid = {key: value for key, value in DOCUMENT["grid"].items() if key != name}
    refused(json.dumps({**DOCUMENT, "grid": grid}), f"grid lacks the field '{name}'")


@pytest.mark.parametrize("name", ["seed", "", "Schema", "\ud800", "x" * 10**5])
def test_an_unknown_field_is_refused(name: str) -> None:
    refused(json.dumps({**DOCUMENT, name: 1}), "has the unknown field")
    refused(json.dumps({**DOCUMENT, "grid": {**DOCUMENT["grid"], name: 1}}), "grid has the unknown")


def test_a_field_that_appears_twice_is_refused() -> None:
    for twice in ('{"name":"a",', '{"max_reports":1,', '{"na\\u006de":"b",'):
        refused(TEXT.replace("{", twice, 1), "appears twice in one JSON object")
    refused(TEXT.replace('"grid":{', '"grid":{"cells":2,'), "appears twice")
    many = ",".join(f'"{k}":1' for k in range(10**5))
    refused("{" + many + ',"99999":1}', "'99999' appears twice")
    refused('{"' + "x" * 10**5 + '":1,"' + "x" * 10**5 + '":1}', "appears twice")


@pytest.mark.parametrize(
    "text",
    ["", " ", "{", "[]", "null", "1", '"text"', "{}", "{}{}", TEXT + "x", TEXT + TEXT, TEXT[:-1],
     TEXT[1:], "\ufeff" + TEXT, TEXT.replace(":", "=", 1), TEXT.replace('"', "'"), TEXT + "\x00",
     "\u00a0" + TEXT, TEXT.replace(",", ",,", 1), TEXT.replace("}", ",}"), "// note\n" + TEXT,
     '{"a":' * 100_000, "[" * 100_000, TEXT.replace('"a"', '"a\ud800"'), "\ud800" + TEXT],
    ids=range(25),
)  # fmt: skip
def test_text_that_is_no_document_is_refused(text: str) -> None:
    refused(text)


@pytest.mark.parametrize("text", [None, 5, TEXT.encode(), DOCUMENT, ["x"]])
def test_only_text_is_read(text: Any) -> None:
    refused(text, "the collection document must be text, got")


def test_a_long_text_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical, "LONGEST", len(TEXT))
    assert Collection.from_json(TEXT).digest == SEEDS[0].digest
    refused(TEXT + " ", f"must be at most {len(TEXT)} characters")


@pytest.mark.parametrize("brackets", ["[]", "{}"])
@pytest.mark.parametrize("hole", ["micro_epsilon", "schema", "weights", "grid.kind", "name"])
def test_every_depth_of_nesting_is_refused_cleanly(hole: str, brackets: str) -> None:
    """Also where the parser just manages and writing the value out would not."""
    for depth in [1, 2, *range(100, 1100, 7), *range(930, 1000)]:
        opening = "[" if brackets == "[]" else '{"a":'
        closing = brackets[1]
        refused(replaced(hole, opening * depth + "1" + closing * depth))


# Fuzzing


NUMBERS = st.integers(-3, 12) | st.integers(0, 40).map(lambda k: 1 << k) | st.integers()
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@st.composite
def octants(draw: st.DrawFn, base: int, most: int) -> list[list[int]]:
    """Weights around the limits, in a shape that is often, not always, a narrowing disk."""
    weight = st.integers(base, most) | st.sampled_from([base, most, most + 1, max(base - 1, 1)])
    widths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    if draw(st.booleans()):
        widths = [min(width, x + 1) for x, width in enumerate(widths)]
    return [[draw(weight) for _ in range(width)] for width in widths]


@st.composite
def documents(draw: st.DrawFn) -> str:
    document = json.loads(draw(st.sampled_from(SEEDS)).to_json())
    grid = document["grid"]
    for _ in range(draw(st.integers(0, 3))):
        place = grid if draw(st.integers(0, 3)) == 0 else document
        field = draw(st.sampled_from(sorted(place)))
        value = place[field]
        if isinstance(value, int) and draw(st.booleans()):
            place[field] = value + draw(st.integers(-1, 1))
        elif draw(st.integers(0, 9)) == 0:
            place[field] = draw(VALUES)
    if draw(st.booleans()):
        grid["cells"] = draw(st.integers(1, 4))
    if draw(st.booleans()):
        document["base_weight"] = 1 << draw(st.integers(0, 30))
        most = int(document["base_weight"] * 2.7182818284590455)
        document["weights"] = draw(octants(document["base_weight"], most))
    if draw(st.integers(0, 4)):
        try:
            weights, cells = document["weights"], document["grid"]["cells"]
            document |= naive.totals(weights, min(cells, 9), document["base_weight"])
        except (TypeError, KeyError, ValueError, AttributeError):
            pass  # no table at all
    return json.dumps(document)


def test_an_accepted_document_is_epsilon_ldp() -> None:
    verdicts = {"accepted": 0, "refused": 0, "not private": 0}

    @settings(max_examples=600, suppress_health_check=list(HealthCheck))
    @given(documents())
    def judge(text: str) -> None:
        try:
            collection = Collection.from_json(text)
        except CollectionError as error:
            verdicts["not private" if "not epsilon-LDP" in str(error) else "refused"] += 1
            return
        verdicts["accepted"] += 1
        document, table = json.loads(text), collection.table
        assert naive.is_private(document)
        domain = naive.domain_of(document["weights"], table.cells)
        assert list(table.output_cells()) == sorted(domain)
        assert dict(table.weights) == naive.disk_of(document["weights"])
        assert Collection.from_json(collection.to_json(), collection.digest) == collection

    judge()
    assert min(verdicts.values()) >= 5  # else the documents are too wild or too tame


@settings(max_examples=400)
@given(st.sampled_from(SEEDS), st.data())
def test_a_slip_of_the_pen_is_refused_or_private(seed: Collection, data: st.DataObject) -> None:
    """One character of the text dropped, doubled or replaced."""
    text = seed.to_json()
    at = data.draw(st.integers(0, len(text) - 1))
    piece = data.draw(st.sampled_from(["", text[at] * 2]) | st.characters(max_codepoint=0x2030))
    slip = text[:at] + piece + text[at + 1 :]
    try:
        collection = Collection.from_json(slip)
    except CollectionError:
        return
    assert naive.is_private(json.loads(slip))
    assert collection.digest == seed.digest or collection != seed
    if collection != seed:
        with pytest.raises(CollectionError, match="was altered"):
            Collection.from_json(slip, seed.digest)
