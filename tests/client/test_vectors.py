"""The vectors: up to date, followed by this client, and confirmed by the slow twins."""

import hmac
import importlib
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client_sdk import (
    Collection,
    CollectionError,
    Grid,
    ParameterError,
    PositionError,
    Report,
    kernels,
    response_table,
)
from client_sdk.events import event_name
from client_sdk.exact import exp_below
from client_sdk.sampling import Sampler
from client_sdk.testing import FixedEntropy
from tests.support import naive_collection, naive_sampling

FOLDER = Path(__file__).parents[2] / "client_sdk" / "vectors"
FILES = ("tables", "draws", "positions", "documents", "reports", "series", "events")


def load(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="ascii"))


@pytest.mark.parametrize("name", FILES)
def test_files_are_what_the_client_makes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    maker = importlib.import_module("make_vectors")
    assert set(maker.MAKERS) == set(FILES)
    assert (FOLDER / f"{name}.json").read_bytes() == maker.render(name).encode("ascii")


def test_files_stay_small() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(FILES)
    # A port carries a copy of them, and its tests may load them over a network.
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) < 300_000


def test_tables() -> None:
    for entry in load("tables")["tables"]:
        table = response_table(
            entry["mechanism"],
            Fraction(entry["micro_epsilon"], 10**6),
            entry["cells"],
            entry["given_radius"],
            entry.get("given_squared_radius"),
        )
        assert ("given_squared_radius" in entry) == (entry["mechanism"] == "disk")
        for field in ("radius", "base_weight", "output_size", "total_weight"):
            assert getattr(table, field) == entry[field]
        assert [list(row) for row in table.octant] == entry["weights"]


def test_bounds() -> None:
    for entry in load("tables")["bounds"]:
        assert exp_below(Fraction(entry["micro_epsilon"], 10**6)) == int(entry["bound"], 16)


def test_draws() -> None:
    vectors = load("draws")
    collections = [Collection.from_json(text) for text in vectors["documents"]]
    for entry in vectors["draws"]:
        table, (row, col) = collections[entry["document"]].table, entry["cell"]
        entropy = FixedEntropy(bytes.fromhex(entry["entropy"]))
        if entry["output"] is None:
            with pytest.raises(EOFError):
                Sampler(table).draw(row, col, entropy)
        else:
            assert Sampler(table).draw(row, col, entropy) == tuple(entry["output"])
            again = FixedEntropy(bytes.fromhex(entry["entropy"]))
            out = kernels.draw_many(table, [row], [col], again)
            assert np.concatenate(out).tolist() == entry["output"]
        assert entropy.used == entry["bytes"]


def test_bad_input_cells_are_refused_before_a_byte_is_read() -> None:
    vectors = load("draws")
    for entry in vectors["bad"]:
        table = Collection.from_json(vectors["documents"][entry["document"]]).table
        entropy, (row, col) = FixedEntropy(bytes(7)), entry["cell"]
        with pytest.raises(ParameterError):
            Sampler(table).draw(row, col, entropy)
        with pytest.raises(ParameterError):
            kernels.randomize_many(table, [row], [col])
        assert entropy.used == 0


def test_draws_agree_with_the_twin() -> None:
    vectors = load("draws")
    parts = set()
    for entry in vectors["draws"]:
        document = json.loads(vectors["documents"][entry["document"]])
        disk = naive_collection.disk_of(document["weights"])
        cells, base, total = (
            document["grid"]["cells"],
            document["base_weight"],
            document["total_weight"],
        )
        data, output, used = bytes.fromhex(entry["entropy"]), None, 0
        while output is None and used + 7 <= len(data):
            u = int.from_bytes(data[used : used + 7], "big") % (1 << (total - 1).bit_length())
            used += 7
            end = 0
            for length, cell in naive_sampling.intervals(disk, cells, base, *entry["cell"]):
                end += length
                if u < end:
                    output = list(cell)
                    break
            low = u < document["output_size"] * base
            parts.add("low" if low else "lifted" if output else "rejected")
        assert (output, used) == (entry["output"], entry["bytes"])
    assert parts == {"low", "lifted", "rejected"}


def test_positions() -> None:
    for entry in load("positions")["grids"]:
        fields = ("kind", "south_e7", "west_e7", "height_e7", "width_e7", "cells")
        grid = Grid(*(entry[field] for field in fields))
        for position in entry["positions"]:
            assert list(grid.cell(*position["at"])) == position["cell"]
            assert grid.contains(*position["at"]) == position["inside"]
        at = [[float(number) for number in p["at"]] for p in entry["positions"]]
        rows, cols, inside = kernels.cells_of(grid, *np.array(at).T)
        assert np.stack([rows, cols], 1).tolist() == [p["cell"] for p in entry["positions"]]
        assert inside.tolist() == [p["inside"] for p in entry["positions"]]


def test_bad_positions() -> None:
    grids = {"geographic": Grid.from_bounds(0, 0, 1, 5), "plane": Grid.plane(0, 0, 1, 5)}
    for entry in load("positions")["bad"]:
        grid, (y, x) = grids[entry["kind"]], map(float, entry["at"])
        for call in (grid.cell, grid.contains):
            with pytest.raises(PositionError):
                call(y, x)
        with pytest.raises(PositionError):
            kernels.cells_of(grid, [y], [x])


def test_the_rounding_position_tells_apart_how_units_may_be_computed() -> None:
    """It is worth its place: exact arithmetic and a division give other units."""
    entry = next(e for e in load("positions")["grids"] if e["south_e7"] == 392781826)
    lat, lon = entry["positions"][0]["at"]
    assert math.floor(lat * 1e7 + 0.5) == 392781828
    assert math.floor(Fraction(lat) * 10**7 + Fraction(1, 2)) == 392781827
    assert math.floor(lon * 1e7 + 0.5) == -854265579
    assert math.floor(lon / 1e-7 + 0.5) == -854265580


def test_good_documents() -> None:
    for entry in load("documents")["good"]:
        collection = Collection.from_json(entry["text"], entry["digest"])
        assert collection.to_json() == entry["canonical"]
        assert collection.digest == entry["digest"]


@pytest.mark.parametrize("entry", load("documents")["bad"], ids=lambda e: e["reason"])
def test_bad_documents(entry: dict[str, Any]) -> None:
    cap = entry.get("max_micro_epsilon")
    max_epsilon = None if cap is None else Fraction(cap, 10**6)
    with pytest.raises(CollectionError):
        Collection.from_json(entry["text"], entry.get("digest"), max_epsilon)


@pytest.mark.parametrize("entry", load("documents")["bytes"], ids=lambda e: e["reason"])
def test_bad_bytes(entry: dict[str, str]) -> None:
    """This client reads texts: the bytes are refused when they are decoded, or as a text."""
    data = bytes.fromhex(entry["hex"])
    with pytest.raises((UnicodeDecodeError, CollectionError)):
        Collection.from_json(data.decode("utf-8"))
    # U+FFFD, which a lenient decoder puts in, is refused as well; nothing else is wrong.
    lenient = data.decode("utf-8", "replace").removeprefix("\ufeff")
    Collection.from_json(lenient.replace("\ufffd", "?"))


@pytest.mark.parametrize("entry", load("documents")["long"], ids=lambda e: e["reason"])
def test_long_documents(entry: dict[str, Any]) -> None:
    text = "".join(part * times for part, times in entry["parts"])
    if entry["digest"] is None:
        with pytest.raises(CollectionError):
            Collection.from_json(text)
    else:
        assert Collection.from_json(text, entry["digest"]).to_json() == text


def test_long_documents_are_refused_for_their_length_alone() -> None:
    long = {entry["reason"]: entry["parts"] for entry in load("documents")["long"]}
    assert Collection.from_json("".join(part for part, _ in long["2^26 + 1 code points"]))
    assert sum(len(part) * times for part, times in long["2^26 + 1 code points"]) == 2**26 + 1
    document = json.loads("".join(part * times for part, times in long["8194 rows"]))
    # A star of r arms around one cell: 4 r + 1 output cells, each of weight 1.
    assert document["output_size"] == document["total_weight"] == 4 * 8193 + 1


def test_bad_documents_are_refused_for_their_reason() -> None:
    told = {}
    for entry in load("documents")["bad"]:
        if entry["kind"] == "arithmetic":
            with pytest.raises(CollectionError) as caught:
                Collection.from_json(entry["text"])
            told[entry["reason"]] = str(caught.value)
    for words, rule in (
        ("by one, with a total that fits", "not epsilon-LDP"),
        ("below the base", "not epsilon-LDP"),
        ("one millionth below", "not epsilon-LDP"),
        ("power of two", "base_weight must be a power of two"),
        ("54 bits", "total_weight must be"),
        ("modulo 2^64", f"total_weight must be {2**64 + 2**51} for these weights"),
        ("diagonal", "1 to x + 1 numbers"),
        ("gap", "narrows from row 0 on"),
        ("widens", "narrows from row 0 on"),
        ("longer than the one before", "narrows from row 0 on"),
        ("one larger", "the document was altered"),
        ("changed places", "the document was altered"),
        ("85 degrees", "grid: height"),
        ("units high", "grid: height must be a whole number from 4"),
        ("units wide", "grid: width must be a whole number from 4"),
    ):
        matching = [told[reason] for reason in told if words in reason]
        assert matching
        assert all(rule in text for text in matching)


def test_the_document_with_a_wrapped_total_would_report_the_true_cell() -> None:
    entry = next(e for e in load("documents")["bad"] if "modulo" in e["reason"])
    document = json.loads(entry["text"])
    base, ((weight,),), d = document["base_weight"], document["weights"], document["grid"]["cells"]
    low = d * d * base
    total = low + weight - base
    assert (document["output_size"], document["total_weight"]) == (d * d, total % 2**64)
    assert low % 2**64 == 0  # no low part is left: every draw would be the cell itself
    assert weight * 2**192 <= base * exp_below(Fraction(document["micro_epsilon"], 10**6))


def test_reports() -> None:
    vectors = load("reports")
    collection = Collection.from_json(vectors["document"])
    assert list(map(list, collection.table.output_cells())) == vectors["outputs"]
    for entry in vectors["good"]:
        report = Report.from_json(entry["text"])
        assert report.to_json() == entry["canonical"]
        report.check(collection)
    for text in vectors["bad"]:
        with pytest.raises(CollectionError):
            Report.from_json(text)
    for text in vectors["foreign"]:
        report = Report.from_json(text)
        with pytest.raises(CollectionError):
            report.check(collection)


def test_bodies() -> None:
    vectors = load("reports")
    lengths = set()
    for entry in vectors["bodies"]:
        report = Report.from_json(entry["text"])
        assert report.to_body() == entry["body"]
        # What the protocol says, without the client.
        content = {k: v or 0 for k, v in json.loads(entry["text"]).items()}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        assert entry["body"] == text + " " * (192 - len(text))
        lengths.add(len(text))
    assert {168, 182} <= lengths
    assert {len(entry["body"].encode("ascii")) for entry in vectors["bodies"]} == {192}


def test_events() -> None:
    vectors = load("events")
    names = {}
    for entry in vectors["events"]:
        key = bytes.fromhex(entry["key"])
        name = event_name(key, entry["digest"], entry["event"])
        assert name.hex() == entry["name"]
        message = f"{len(entry['digest'])}:{entry['digest']}{entry['event']}".encode()
        assert hmac.new(key, message, "sha256").hexdigest() == entry["name"]
        names[entry["key"], entry["digest"], entry["event"]] = entry["name"]
    assert len(set(names.values())) == len(names) == len(vectors["events"])
    for entry in vectors["bad"]:
        with pytest.raises(ParameterError):
            event_name(bytes.fromhex(entry["key"]), entry["digest"], entry["event"])


def test_some_events_are_told_apart_by_the_length_alone_or_by_their_form() -> None:
    entries = load("events")["events"]
    together = [(entry["key"], entry["digest"] + entry["event"]) for entry in entries]
    assert len(together) - len(set(together)) >= 2
    texts = {entry["event"] for entry in entries}
    assert {"\u00e9", "e\u0301"} <= texts
    assert any(character > "\uffff" for text in texts for character in text)
