"""The vectors: up to date, followed by this client, and confirmed by the slow twins."""

import importlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client_sdk import (
    Collection,
    CollectionError,
    Grid,
    PositionError,
    Report,
    kernels,
    response_table,
)
from client_sdk.exact import exp_below
from client_sdk.sampling import Sampler
from client_sdk.testing import FixedEntropy
from tests.support import naive_collection, naive_sampling

FOLDER = Path(__file__).parents[2] / "client_sdk" / "vectors"
FILES = ("tables", "draws", "positions", "documents", "reports")


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
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) < 200_000


def test_tables() -> None:
    for entry in load("tables")["tables"]:
        table = response_table(
            entry["mechanism"],
            Fraction(entry["micro_epsilon"], 10**6),
            entry["cells"],
            entry["given_radius"],
        )
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
    vectors = load("positions")
    for entry in vectors["grids"]:
        fields = ("kind", "south_e7", "west_e7", "height_e7", "width_e7", "cells")
        grid = Grid(*(entry[field] for field in fields))
        for position in entry["positions"]:
            assert list(grid.cell(*position["at"])) == position["cell"]
            assert grid.contains(*position["at"]) == position["inside"]
    grid = Grid.from_bounds(0, 0, 1, 5)
    for lat, lon in vectors["bad"]:
        with pytest.raises(PositionError):
            grid.cell(lat, lon)


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
        ("diagonal", "1 to x + 1 numbers"),
        ("gap", "narrows from row 0 on"),
        ("widens", "narrows from row 0 on"),
        ("longer than the one before", "narrows from row 0 on"),
        ("one larger", "the document was altered"),
        ("changed places", "the document was altered"),
        ("85 degrees", "grid: height"),
    ):
        matching = [told[reason] for reason in told if words in reason]
        assert matching
        assert all(rule in text for text in matching)


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
