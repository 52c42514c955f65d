"""Counts written, read and added; files that hold something else."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client_sdk import Collection
from ldpspatial import InputError, ReportCounts, count_reports
from ldpspatial.collecting.partial_counts import (
    add_counts,
    count_files,
    read_counts,
    write_counts,
)
from ldpspatial.collecting.report_files import write_reports
from tests.support.report_files import COLLECTION

OTHER = Collection.create("another", COLLECTION.grid, COLLECTION.epsilon)
RNG = np.random.default_rng(8)


def some_reports(path: Path, n: int = 300) -> Path:
    table = COLLECTION.table
    cells = np.array(table.output_cells())[RNG.integers(table.output_size, size=n)]
    ids = RNG.integers(256, size=(n, 16), dtype=np.uint8)
    write_reports(path, COLLECTION, cells[:, 0], cells[:, 1], ids)
    return path


def assert_equal(one: ReportCounts, two: ReportCounts) -> None:
    np.testing.assert_array_equal(one.counts, two.counts)
    assert one.counts.dtype == two.counts.dtype
    assert (one.rejected, one.repeated, one.ids_checked) == (
        two.rejected, two.repeated, two.ids_checked,
    )  # fmt: skip


def test_what_is_written_is_read(tmp_path: Path) -> None:
    counted = count_reports(some_reports(tmp_path / "r.parquet"), COLLECTION)
    counted.rejected["are malformed"] = 3
    write_counts(tmp_path / "c.json", COLLECTION, counted)
    assert_equal(read_counts(tmp_path / "c.json", COLLECTION), counted)


def test_parts_add_up_to_the_whole(tmp_path: Path) -> None:
    files = [some_reports(tmp_path / f"{k}.parquet") for k in range(3)]
    for file in files[:2]:
        part = count_reports(file, COLLECTION)
        write_counts(file.with_suffix(".json"), COLLECTION, part)
    mixed = [files[0].with_suffix(".json"), files[1].with_suffix(".json"), files[2]]
    assert_equal(count_files(mixed, COLLECTION), count_reports(files, COLLECTION))
    assert_equal(count_files(mixed[:1], COLLECTION), count_reports(files[0], COLLECTION))


def test_ids_were_checked_where_they_were_in_every_part() -> None:
    counts = np.ones((3, 3), np.int64)
    one = ReportCounts(counts, {"a": 1}, 2, True)
    two = ReportCounts(counts, {"a": 2, "b": 1}, 3, False)
    total = add_counts([one, two])
    assert (total.n, total.rejected, total.repeated) == (18, {"a": 3, "b": 1}, 5)
    assert not total.ids_checked


def test_counts_of_another_collection_are_never_added(tmp_path: Path) -> None:
    counted = count_reports(some_reports(tmp_path / "r.parquet"), COLLECTION)
    write_counts(tmp_path / "c.json", COLLECTION, counted)
    with pytest.raises(InputError, match="holds those of another one"):
        read_counts(tmp_path / "c.json", OTHER)
    with pytest.raises(InputError, match=r"counted\.counts must have the shape"):
        write_counts(tmp_path / "d.json", COLLECTION, ReportCounts(np.ones((2, 2)), {}, 0, True))
    with pytest.raises(InputError, match="parts must be counts of one collection"):
        add_counts([counted, ReportCounts(np.ones((2, 2)), {}, 0, True)])
    with pytest.raises(InputError, match="parts must be counts of one collection"):
        add_counts([])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", "ldpspatial/counts/2"), ("schema", None), ("collection", "x"),
        ("rejected", []), ("rejected", {"a": -1}), ("rejected", {"a": 1.5}), ("repeated", None),
        ("repeated", True), ("repeated", 2**70), ("cells", {}), ("cells", [[1, 2]]),
        ("cells", [[1, 2, 3.0]]), ("cells", [[999, 0, 1]]), ("cells", [[0, 0, -1]]), ("cells", [3]),
    ],
)  # fmt: skip
def test_a_file_that_was_changed_is_refused(tmp_path: Path, field: str, value: Any) -> None:
    file = tmp_path / "c.json"
    counted = count_reports(some_reports(tmp_path / "r.parquet"), COLLECTION)
    write_counts(file, COLLECTION, counted)
    held = json.loads(file.read_text())
    file.write_text(json.dumps({**held, field: value}))
    with pytest.raises(InputError):
        read_counts(file, COLLECTION)
    del held[field]
    file.write_text(json.dumps(held))
    with pytest.raises(InputError, match="must be counts that ldpspatial count wrote"):
        read_counts(file, COLLECTION)


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ([], "0"), ([[1, 1, 0]], "0"), ([[1, 1, 2**53], [1, 2, 2**53]], "18014398509481984"),
        ([[1, col, 2**53] for col in (1, 2, 3)], "27021597764222976"),
    ],
)  # fmt: skip
def test_a_file_of_no_report_or_too_many_is_refused(
    tmp_path: Path, cells: list[list[int]], told: str
) -> None:
    file = tmp_path / "c.json"
    write_counts(file, COLLECTION, count_reports(some_reports(tmp_path / "r.parquet"), COLLECTION))
    held = json.loads(file.read_text())
    file.write_text(json.dumps({**held, "cells": cells}))
    with pytest.raises(InputError, match=rf"must count 1 to {2**53} reports in all, got {told}"):
        read_counts(file, COLLECTION)
    file.write_text(json.dumps({**held, "cells": [[1, col, 2**62 - 1] for col in (1, 2, 3)]}))
    with pytest.raises(InputError, match=rf"numbers must be whole and from 0 to {2**53} in"):
        read_counts(file, COLLECTION)


def test_parts_of_too_many_reports_together_are_refused(tmp_path: Path) -> None:
    counted = count_reports(some_reports(tmp_path / "r.parquet"), COLLECTION)
    most = np.where(counted.counts > 0, 2**53 // np.count_nonzero(counted.counts), 0)
    full = ReportCounts(most, {}, 0, True)
    with pytest.raises(InputError, match=rf"parts must count 1 to {2**53} reports in all"):
        add_counts([full] * 1100)  # more than 64 bits hold
    for counts in (most * 2, np.zeros_like(most)):
        with pytest.raises(InputError, match=rf"counted\.counts must count 1 to {2**53} reports"):
            write_counts(tmp_path / "c.json", COLLECTION, ReportCounts(counts, {}, 0, True))
    assert not (tmp_path / "c.json").exists()


def test_a_file_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    reports = some_reports(tmp_path / "r.parquet")
    file = tmp_path / "c.json"
    write_counts(file, COLLECTION, count_reports(reports, COLLECTION))
    (tmp_path / "link.json").symlink_to(file)
    for again in (file, tmp_path / "link.json", tmp_path / "." / "sub" / ".." / "c.json"):
        with pytest.raises(InputError, match=r"must be different files, but .* is given twice"):
            count_files([file, reports, again], COLLECTION)


def test_a_cell_that_stands_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    reports = some_reports(tmp_path / "r.parquet")
    write_counts(file, COLLECTION, count_reports(reports, COLLECTION))
    found = json.loads(file.read_text())
    row, col, _ = found["cells"][0]
    found["cells"].append([row, col, 1])
    file.write_text(json.dumps(found))
    with pytest.raises(InputError, match=rf"each stand once in .*\[{row}, {col}\] again"):
        read_counts(file, COLLECTION)


@pytest.mark.parametrize("content", [b"", b"[]", b"x", b"\xff", b"[" * 10**5, b'{"schema": 3}'])
def test_what_is_no_file_of_counts_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c.json").write_bytes(content)
    with pytest.raises(InputError, match="must be counts that ldpspatial count wrote"):
        read_counts(tmp_path / "c.json", COLLECTION)


def test_counts_beyond_32_bits_are_added() -> None:
    part = ReportCounts(np.full((2, 2), 1 << 31), {}, 0, True)
    assert add_counts([part, part]).counts.tolist() == [[1 << 32] * 2] * 2
