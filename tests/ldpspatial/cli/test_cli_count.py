"""``count``: parts that are counted apart and added give the map of the whole."""

import asyncio
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpspatial import count_reports
from ldpspatial.cli import count
from ldpspatial.collecting.counting import ReportCounts
from ldpspatial.collecting.partial_counts import add_counts, read_counts
from ldpspatial.collecting.records import OutputDomain, Records, records_of
from ldpspatial.collecting.report_files import write_reports
from ldpspatial.service.store import open_store
from tests.support.command_line import refusal, succeed
from tests.support.service import CELLS, COLLECTION, OTHER


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    (tmp_path / "berlin.json").write_text(COLLECTION.to_json())
    (tmp_path / "other.json").write_text(OTHER.to_json())
    for day in ("monday", "tuesday"):
        cells = np.array(CELLS)[rng.integers(len(CELLS), size=500)]
        ids = rng.integers(256, size=(500, 16), dtype=np.uint8)
        write_reports(tmp_path / f"{day}.parquet", COLLECTION, cells[:, 0], cells[:, 1], ids)
    return tmp_path


def test_parts_give_the_map_of_the_whole(folder: Path) -> None:
    document = folder / "berlin.json"
    for day in ("monday", "tuesday"):
        shown = succeed(
            "count", document, folder / f"{day}.parquet", "--out", folder / f"{day}.c.json"
        )
        assert "500 reports" in shown.output
    both = folder / "both.json"
    succeed("count", document, folder / "monday.c.json", folder / "tuesday.c.json", "--out", both)
    again = folder / "again.json"
    succeed("count", document, folder / "monday.c.json", folder / "tuesday.parquet", "--out", again)
    assert both.read_bytes() == again.read_bytes()
    maps = []
    apart = [folder / "monday.parquet", folder / "tuesday.parquet"]
    for name, files in (("one", [both]), ("two", apart)):
        quick = ("--intervals", "none", "--estimator", "em")
        succeed("estimate", document, *files, *quick, "--out", folder / name)
        maps.append((folder / name / "estimate.csv").read_bytes())
    assert maps[0] == maps[1]


def test_bad_parts_are_refused(folder: Path) -> None:
    document = folder / "berlin.json"
    part = folder / "part.json"
    succeed("count", document, folder / "monday.parquet", "--out", part)
    out = folder / "out.json"
    told = refusal("count", folder / "other.json", part, "--out", out)
    assert "holds those of another one" in told
    assert "must be counts that ldpspatial count wrote" in refusal(
        "count", document, document, "--out", out
    )
    assert "--out must end in .json" in refusal(
        "count", document, part, "--out", folder / "out.csv"
    )
    assert not out.exists()


def test_only_counts_of_the_collection_are_replaced(folder: Path) -> None:
    document, part, out = (folder / f"{name}.json" for name in ("berlin", "part", "out"))
    command = ("count", document, folder / "monday.parquet", "--out")
    succeed(*command, part)
    new = "--out must be a new file"
    assert refusal(*command, part) == f"{new}, got {str(part)!r} (--overwrite replaces it)"
    succeed(*command, part, "--overwrite")
    out.write_text(part.read_text().replace(COLLECTION.digest, OTHER.digest))
    for kept in (folder / "other.json", out):
        before = kept.read_bytes()
        told = refusal(*command, kept, "--overwrite")
        rule = "--out must be new, or counts of this collection to be replaced"
        assert told == f"{rule}, got {str(kept)!r}"
        assert kept.read_bytes() == before


@pytest.mark.parametrize("has_links", [True, False])
def test_of_two_commands_at_once_one_writes_the_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    document, out = folder / "berlin.json", folder / "out.json"
    kept = sorted(folder.iterdir())
    counted = count._counted

    def meanwhile(*arguments: Any) -> Any:
        out.write_text("of the other")
        return counted(*arguments)

    def no_links(*_: Any) -> None:
        raise PermissionError

    if not has_links:
        monkeypatch.setattr(os, "link", no_links)
    asked = ("count", document, folder / "monday.parquet", "--out", out)
    with monkeypatch.context() as patched:
        patched.setattr(count, "_counted", meanwhile)
        told = refusal(*asked)
    new = "--out must be a new file"
    assert told == f"{new}, got {str(out)!r}, which another command has written meanwhile"
    assert out.read_text() == "of the other"
    out.unlink()
    succeed(*asked)
    assert sorted(folder.iterdir()) == sorted([*kept, out])


def test_no_part_counts_twice_and_none_is_overwritten(folder: Path) -> None:
    document, part, out = (folder / f"{name}.json" for name in ("berlin", "part", "out"))
    succeed("count", document, folder / "monday.parquet", "--out", part)
    (folder / "link.json").symlink_to(part)
    kept = {file: file.read_bytes() for file in (document, part)}
    told = refusal("count", document, part, part, "--out", out)
    assert f"must be different files, but {part} is given twice" in told
    told = refusal("estimate", document, part, folder / "link.json", "--out", folder / "map")
    assert "is given twice" in told
    for overwritten in (document, part, folder / "link.json"):
        told = refusal("count", document, part, "--out", overwritten, "--overwrite")
        assert "--out must not replace an input" in told
    assert {file: file.read_bytes() for file in kept} == kept
    names = [f"{scheme}://nobody@localhost:1/berlin" for scheme in ("postgresql", "postgres")]
    told = refusal("count", document, *names, "--out", out)
    assert "PARTS must be different stores, but one is given twice" in told
    assert not out.exists()


def some_records(n: int) -> Records:
    rng = np.random.default_rng(n)
    cells = np.array(CELLS)[rng.integers(len(CELLS), size=n)]
    return records_of(rng.bytes(16 * n), OutputDomain(COLLECTION).places(cells[:, 0], cells[:, 1]))


def stored(path: Path, records: Records, close: bool = True) -> Path:
    """Make a store that holds these reports."""
    succeed("store", "new", path)
    succeed("store", "add", path, path.with_name("berlin.json"), "--minimum", 1)

    async def fill() -> None:
        store = await open_store(path)
        await store.append({1: records})
        await store.close()

    asyncio.run(fill())
    if close:
        succeed("store", "close", path, COLLECTION.digest[:8])
    return path


def counts_of(folder: Path, *parts: Path) -> ReportCounts:
    out = folder / "out.json"
    way = ("--on-invalid", "drop", "--overwrite")
    succeed("count", folder / "berlin.json", *parts, "--out", out, *way)
    return read_counts(out, COLLECTION)


def test_stores_files_and_counts_add_up(folder: Path) -> None:
    north = stored(folder / "north.db", some_records(300))
    south = stored(folder / "south.store", np.concatenate([some_records(200), some_records(50)]))
    parts = [counts_of(folder, part) for part in (north, south, folder / "monday.parquet")]
    assert [part.n for part in parts] == [300, 250, 500]
    counts = folder / "monday.json"
    succeed("count", folder / "berlin.json", folder / "monday.parquet", "--out", counts)
    for together in ((north, south, folder / "monday.parquet"), (counts, south, north)):
        found = counts_of(folder, *together)
        np.testing.assert_array_equal(found.counts, add_counts(parts).counts)
        assert found.ids_checked


def test_a_report_in_two_stores_counts_twice_and_once_where_both_are_exported(
    folder: Path,
) -> None:
    shared = some_records(40)
    stores = [
        stored(folder / "north.db", np.concatenate([shared, some_records(100)])),
        stored(folder / "south.db", np.concatenate([shared, shared[:9], some_records(200)])),
    ]
    added = counts_of(folder, *stores)
    assert (added.n, added.repeated) == (380, 9)
    files = [store.with_suffix(".parquet") for store in stores]
    for store, file in zip(stores, files, strict=True):
        succeed("store", "export", store, COLLECTION.digest, "--out", file)
    together = counts_of(folder, *files)
    assert (together.n, together.repeated) == (340, 40)
    assert count_reports(files, COLLECTION).n == together.n


def test_stores_that_cannot_be_counted_are_refused(folder: Path) -> None:
    document = folder / "berlin.json"
    out = folder / "out.json"
    open_one = stored(folder / "open.db", some_records(20), close=False)
    told = refusal("count", document, open_one, "--out", out)
    assert "must be closed before its counts are final" in told
    closed = stored(folder / "closed.db", some_records(20))
    told = refusal("count", folder / "other.json", closed, "--out", out)
    assert "collection must be one that the store has" in told
    told = refusal("count", document, closed, f"{folder}/./closed.db", "--out", out)
    assert "PARTS must be different stores, but one is given twice" in told
    twice = np.concatenate([some_records(20), some_records(20)])
    twice["place"][0] = twice["place"][1:][twice["place"][1:] != twice["place"][0]][0]
    told = refusal("count", document, stored(folder / "b.db", twice), "--out", out)
    assert "2 share an id with a different report (--on-invalid drop leaves them out" in told
    (folder / "x.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    assert "is damaged" in refusal("count", document, folder / "x.db", "--out", out)
    told = refusal("count", document, folder / "missing.db", "--out", out)
    assert "reports must be a file, found none at" in told
    assert not out.exists()
