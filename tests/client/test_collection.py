"""Collections: what is designed, what is sent, and what a device refuses."""

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client_sdk import (
    Collection,
    CollectionError,
    DesignWarning,
    Device,
    Grid,
    ParameterError,
    ResponseTable,
    canonical,
    response_table,
)
from client_sdk.mechanisms import MECHANISMS
from tests.support import naive_collection as naive

GRID = Grid.from_center(52.52, 13.405, 20_000, 3)
FOUR = Grid.plane(0, 0, 1, 4)
COLLECTION = Collection.create("noon in Berlin", GRID, 2, max_reports=4)
TEXT = COLLECTION.to_json()
DOCUMENT: dict[str, Any] = json.loads(TEXT)


def changed(**fields: Any) -> dict[str, Any]:
    return {**DOCUMENT, **fields}


# Round trips


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("grid", [GRID, Grid.plane(-4.44, -4.87, 9.45, 7)])
@pytest.mark.parametrize("name", ["x", "Zürich – 正午 \U0001f6b2", 'a "quoted" \\ name', "y" * 200])
def test_a_document_reads_back_as_the_same_collection(
    mechanism: str, grid: Grid, name: str
) -> None:
    collection = Collection.create(name, grid, Decimal("1.2"), mechanism, max_reports=9)
    read_back = Collection.from_json(collection.to_json(), collection.digest, max_epsilon=1.2)
    assert read_back == collection
    assert read_back.digest == collection.digest
    assert read_back.to_json() == collection.to_json()
    assert (read_back.epsilon, read_back.micro_epsilon) == (1.2, 1_200_000)
    assert naive.is_private(json.loads(collection.to_json()))


def test_the_digest_does_not_depend_on_white_space_order_or_escapes() -> None:
    def backwards(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: backwards(value[key]) for key in reversed(value)}
        return value

    for text in (
        json.dumps(DOCUMENT, indent=3),
        json.dumps(backwards(DOCUMENT), separators=(" , ", "\t:\r\n")),
        "\n " + TEXT + "\n",
        TEXT.replace('"noon', '"\\u006eoon').replace("micro_epsilon", "micro\\u005fepsilon"),
    ):
        assert text != TEXT
        collection = Collection.from_json(text, COLLECTION.digest)
        assert collection == COLLECTION
        assert collection.to_json() == TEXT


def test_the_canonical_text_is_sorted_utf8_without_space() -> None:
    assert json.dumps(DOCUMENT, sort_keys=True, separators=(",", ":")) == TEXT
    accented = Collection.create("é \U0001f6b2/", GRID, 2)
    assert '"name":"é \U0001f6b2/"' in accented.to_json()
    with pytest.raises(CollectionError):
        Collection.from_json(accented.to_json().replace("é", "e\u0301"), accented.digest)


# Design


def test_create_uses_the_table_at_the_exact_decimal() -> None:
    collection = Collection.create("x", GRID, 0.7, "huem", radius=2)
    assert collection.table.octant == response_table("huem", Fraction(7, 10), 3, 2).octant
    assert collection.table.epsilon == 0.7
    assert collection.grid.cells == collection.table.cells


def test_create_passes_a_real_radius_on() -> None:
    collection = Collection.create("x", GRID, 0.7, "disk", squared_radius=5)
    assert collection.table == response_table("disk", 0.7, 3, squared_radius=5)
    read_back = Collection.from_json(collection.to_json(), collection.digest)
    assert read_back == collection
    others = [Collection.create("x", GRID, 0.7, "disk", squared_radius=r) for r in (4, 6, 8)]
    # No cell is between the square roots of 5 and 6: the same weights are the same document.
    assert [other.digest == collection.digest for other in others] == [False, True, False]


def test_numpy_numbers_make_a_document() -> None:
    grid = Grid.from_center(np.float64(52.52), np.float32(13), np.int64(20_000), np.int8(3))
    kinds: Any = {"epsilon": np.float32(2), "radius": np.int64(1), "max_reports": np.uint8(4)}
    collection = Collection.create("x", grid, **kinds)
    assert Collection.from_json(collection.to_json()) == collection
    assert collection.micro_epsilon == 2_000_000


def test_a_disk_of_one_cell_is_warned_about() -> None:
    with pytest.warns(DesignWarning, match="disk radius is 0 at epsilon 3.5 and 3 cells") as caught:
        collection = Collection.create("x", GRID, 3.5)
    assert caught[0].filename == __file__
    assert Collection.from_json(collection.to_json()).table.radius == 0


def test_a_document_that_no_device_joins_is_warned_about(tmp_path: Path) -> None:
    grid = Grid.from_center(52.52, 13.405, 200_000, 760)
    with pytest.warns(DesignWarning, match="no Device joins this: its document has") as caught:
        made = Collection.create("x", grid, 0.1)
    assert caught[0].filename == __file__
    device = Device.install(tmp_path / "device", cap_epsilon=1)
    with pytest.raises(CollectionError, match="at most 4194304 characters"):
        device.join(made.to_json(), digest=made.digest, max_epsilon=1)


def test_a_disk_of_one_cell_that_was_asked_for_is_not_warned_about() -> None:
    asked = Collection.create("x", GRID, 3.5, "disk", squared_radius=0)  # warnings are errors here
    assert asked.table.radius == 0


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"name": ""}, "name must be a text of 1 to 200 visible characters"),
        ({"name": "x" * 201}, "name must be a text"),
        ({"name": "a\nb"}, "name must be a text"),
        ({"name": "\ud800"}, "name must be a text"),
        ({"name": None}, "name must be a text"),
        ({"grid": "grid"}, "grid must be a Grid, got str"),
        ({"epsilon": 0}, "epsilon must be a number from 0.000001 to 20"),
        ({"epsilon": "2"}, "epsilon must be a number"),
        ({"epsilon": 0.1234567}, "epsilon must be a whole number of millionths.*: take 0.123456"),
        ({"epsilon": Fraction(1, 3)}, "epsilon must be a whole number of millionths"),
        ({"mechanism": "laplace"}, "mechanism must be one of dam, dam-ns, huem, "),
        ({"squared_radius": 5}, "squared_radius is for mechanism disk alone, not for dam"),
        ({"radius": 7}, "radius must be a whole number from 0 to 6, got 7"),
        ({"max_reports": 0}, "max_reports must be a whole number from 1 to 1000000, got 0"),
        ({"max_reports": 1.0}, "max_reports must be a whole number"),
        ({"max_reports": 10**6 + 1}, "max_reports must be a whole number"),
    ],
)
def test_a_bad_design_is_refused(fields: dict[str, Any], rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        Collection.create(**{"name": "x", "grid": GRID, "epsilon": 2, **fields})


@pytest.mark.parametrize("grid", [GRID, FOUR, Grid.plane(0, 0, 1, 40)])
@pytest.mark.parametrize("name", ["x", 'é "\U0001f6b2" \\'])
def test_a_design_that_devices_would_not_read_is_refused(
    grid: Grid, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Collection.create(name, grid, 2, "huem").to_json()
    monkeypatch.setattr(canonical, "LONGEST", len(text))
    assert Collection.from_json(Collection.create(name, grid, 2, "huem").to_json())
    monkeypatch.setattr(canonical, "LONGEST", len(text) - 1)
    rule = f"at most {len(text) - 1} characters.*got {len(text)} at {grid.cells} cells"
    with pytest.raises(ParameterError, match=rule):
        Collection.create(name, grid, 2, "huem")


# What a device asks for


@pytest.mark.parametrize(
    "field",
    ["name", "mechanism", "micro_epsilon", "max_reports", "base_weight", "output_size",
     "total_weight", "weights", "grid", "schema"],
)  # fmt: skip
def test_an_altered_field_is_refused_by_its_digest(field: str) -> None:
    value = DOCUMENT[field]
    if isinstance(value, list):
        altered: Any = [[value[0][0] - 1], *value[1:]]
    elif isinstance(value, dict):
        altered = {**value, "south_e7": value["south_e7"] + 1}
    else:
        altered = value + ("x" if isinstance(value, str) else 1)
    text = json.dumps(changed(**{field: altered}))
    assert Collection.from_json(TEXT, COLLECTION.digest) == COLLECTION
    with pytest.raises(CollectionError):
        Collection.from_json(text, COLLECTION.digest)


def test_another_document_than_the_expected_one_is_refused() -> None:
    for digest in ("0" * 64, "", COLLECTION.digest.upper(), COLLECTION.digest[:-1]):
        with pytest.raises(CollectionError, match="was altered: its id is"):
            Collection.from_json(TEXT, digest)


def test_the_cap_of_the_device_is_the_written_number() -> None:
    seven_tenths = Collection.create("x", GRID, Fraction(7, 10)).to_json()
    for cap in (0.7, Decimal("0.7"), Fraction(7, 10), 1, 20, np.float64(0.7)):
        assert Collection.from_json(seven_tenths, max_epsilon=cap).epsilon == 0.7
    for low in (0.699999, Fraction(7, 10) - Fraction(1, 10**9), 1e-6):
        with pytest.raises(CollectionError, match=r"epsilon 0\.7 exceeds this device's cap"):
            Collection.from_json(seven_tenths, max_epsilon=low)
    for bad in (0, float("nan"), "0.7", True, 21):
        with pytest.raises(ParameterError, match="max_epsilon must be a number"):
            Collection.from_json(seven_tenths, max_epsilon=bad)


def test_hand_made_collections_are_verified_too() -> None:
    table = COLLECTION.table
    Collection("x", GRID, table, 2_000_000).verify()
    base, octant = table.base_weight, table.octant
    for bad in (
        Collection("x", GRID, table, 1_999_999),
        Collection("", GRID, table, 2_000_000),
        Collection("x", FOUR, table, 2_000_000),
        Collection("x", GRID, table, 2_000_000, 0),
        Collection("x", GRID, table, 2_000_000, True),
        Collection("x", GRID, ResponseTable("\ud800", 2.0, 3, base, octant), 2_000_000),
        Collection("x", GRID, ResponseTable("dam", 2.0, 3, 3, octant), 2_000_000),
        Collection("x", GRID, ResponseTable("dam", 2.0, 3, 4.0, octant), 2_000_000),  # type: ignore[arg-type]
        Collection("x", GRID, ResponseTable("dam", 2.0, 3, 1, ((1.5,),)), 2_000_000),  # type: ignore[arg-type]
        Collection("x", GRID, ResponseTable("dam", 2.0, 3, 1, ((True,),)), 2_000_000),
        Collection("x", GRID, ResponseTable("dam", 2.0, 3, 1, ()), 2_000_000),
        Collection("x", GRID, ResponseTable("dam", 2.0, 3, 1, ((),)), 2_000_000),
        Collection("x", GRID, ResponseTable("dam", 2.0, 3, 1 << 50, ((1 << 50,),)), 2_000_000),
        Collection("x", FOUR, ResponseTable("2^53", 2.0, 4, 1 << 49, ((1 << 49,),)), 2_000_000),
    ):
        with pytest.raises(CollectionError):
            bad.verify()
