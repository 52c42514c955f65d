"""What the columns of a file of reports may hold, and what is not a report."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ldpspatial import count_reports
from ldpspatial.collecting import counting, repeated_ids
from tests.support.report_files import COLLECTION, counted, csv, dropped, parquet, refusal

DIGEST = COLLECTION.digest
TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.mark.parametrize("kind", TYPES)
def test_whole_numbers_of_every_size_are_read(tmp_path: Path, kind: str) -> None:
    cells = pa.array([0, 4, 4], kind)
    assert counted(parquet(tmp_path / "r.parquet", row=cells, col=cells)) == {(0, 0): 1, (4, 4): 2}


@pytest.mark.parametrize("values", [[2.0], [2.6], ["2"], [True], [[2]], [None]])
@pytest.mark.parametrize("place", [0, 1])
def test_columns_that_hold_no_whole_numbers_are_refused(
    tmp_path: Path, values: list[object], place: int
) -> None:
    # In the second file too, where DuckDB would cast to what the first one holds.
    good = parquet(tmp_path / "good.parquet", row=[0], col=[0])
    array = pa.array(values, pa.float64()) if values == [None] else values
    bad = parquet(tmp_path / "bad.parquet", row=[0], col=array)
    files = [good, bad] if place else [bad, good]
    assert "column col must hold whole numbers, holds" in refusal(*files)


def test_ids_that_are_numbers_are_refused(tmp_path: Path) -> None:
    file = parquet(tmp_path / "r.parquet", row=[0, 0], col=[0, 0], id=[0.1, 0.2])
    assert "column id must hold 16 bytes or 32 hexadecimal digits, holds double" in refusal(file)


def test_hexadecimal_ids_of_a_csv_stay_text(tmp_path: Path) -> None:
    # All of these read as one number each to a careless eye: 10, 10 and infinity.
    ids = ["0" * 30 + "10", "0" * 29 + "1e1", "1" + "0" * 28 + "e99", "1" + "0" * 28 + "e98"]
    for chosen in (ids[:2], ids[2:], ids):
        text = "row,col,id\n" + "".join(f"{k},0,{name}\n" for k, name in enumerate(chosen))
        result = count_reports(csv(tmp_path / "r.csv", text), COLLECTION)
        assert (result.n, result.rejected, result.ids_checked) == (len(chosen), {}, True)


@pytest.mark.parametrize("line", ["2.5,0", "0,-1.5", "x,0", "0,1;2", "1e-3,0"])
@pytest.mark.parametrize("before", [0, 30_000])
def test_a_line_of_a_csv_that_is_no_cell_is_refused(tmp_path: Path, line: str, before: int) -> None:
    # Also beyond the lines from which DuckDB guesses types: it would round the fractions.
    message = refusal(csv(tmp_path / "r.csv", "row,col\n" + "0,0\n" * before + line + "\n0,0\n"))
    assert "must" in message
    assert "whole numbers" in message


@pytest.mark.parametrize(
    "text",
    [
        "48.567,11.567\n48.567,11.567\n",
        "row,col\n48.567,11.567\n",
        "row,col\n0,0\n48.567N,11.567E\n",
        "row;col\n1,567;2\n",
        "row,col,id\n48.567,11.567,a,b,c\n",
    ],
)
def test_no_message_repeats_what_may_be_a_position(tmp_path: Path, text: str) -> None:
    assert "567" not in refusal(csv(tmp_path / "r.csv", text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row,col,row\n1,2,3\n", "reports must have one column row, {} has several"),
        ('"row","col",Col\n1,2,3\n', "reports must have one column col, {} has several"),
        ("row;col;id;ID\n1;2;3;4\n", "reports must have one column id, {} has several"),
        (
            "row,col\n1,2\n# comment\n3,4\n",
            "reports cannot be read: each line of r.csv must have the fields of the header, "
            "no others",
        ),
        (
            "row,col\n" + "1,1\n" * 30_000 + "1,2,3\n",
            "reports cannot be read: line 30002 must have the fields of the header, no others",
        ),
        (
            "row,col\n,2\n1,1\n",
            "reports must all be good, but 1 name a cell outside the output domain, or hold no row "
            "or col (on_invalid='drop' leaves them out and counts them)",
        ),
    ],
)
def test_what_is_wrong_with_a_csv_is_said_without_its_folder(
    tmp_path: Path, text: str, message: str
) -> None:
    file = csv(tmp_path / "r.csv", text)
    assert refusal(file) == message.format(file)


def test_numbers_beyond_every_grid_are_cells_outside(tmp_path: Path) -> None:
    far = csv(tmp_path / "r.csv", "row,col\n1,1\n1e300,0\n99999999999999999999,0\nnan,0\n0,inf\n")
    assert dropped(far) == (1, {counting.OUTSIDE: 4})
    big = pa.array([2**64 - 1, 2**63, 2**31, 1], "uint64")
    file = parquet(tmp_path / "r.parquet", row=big, col=pa.array([-(2**63), 0, 2**62, 1]))
    assert dropped(file) == (1, {counting.OUTSIDE: 3})


def test_every_cell_of_the_margin_is_told_from_the_corners_beyond_it(tmp_path: Path) -> None:
    cells = [(r, c) for r in range(-3, 8) for c in range(-3, 8)]
    file = parquet(tmp_path / "r.parquet", row=[r for r, _ in cells], col=[c for _, c in cells])
    inside = COLLECTION.table.output_cells()
    n, rejected = dropped(file)
    assert (n, rejected) == (len(inside), {counting.OUTSIDE: len(cells) - len(inside)})
    counts = count_reports(file, COLLECTION, on_invalid="drop").counts
    assert [(int(r) - 2, int(c) - 2) for r, c in np.argwhere(counts)] == inside


@pytest.mark.parametrize("suffix", ["parquet", "csv", "csv.gz", "CSV.GZ", "Parquet"])
def test_rejected_reports_are_counted_once_and_by_reason(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[tuple[int | None, int | None, str | None, str | None]] = [
        (0, 0, "aa", DIGEST),
        (0, 0, "aa", DIGEST),  # two copies of the first: no reason to refuse the files
        (0, 0, "aa", DIGEST),
        (1, 1, "bb", DIGEST),  # one id, two contents
        (1, 2, "bb", DIGEST),
        (1, 1, "bb", "other"),  # foreign: the ids of another collection are its own affair
        (5, 5, "03", DIGEST),  # which does not lose what is ours
        (1, 1, "03", "other"),
        (2, 2, "cc", "other"),
        (2, 2, "cc", "other"),  # a copy of a foreign report: foreign once
        (9, 9, "dd", "other"),  # foreign before outside
        (9, 9, "ee", DIGEST),
        (None, 0, "ff", DIGEST),
        (None, 0, "ff", DIGEST),
        (3, 3, None, DIGEST),  # without an id
        (3, 3, None, DIGEST),
        (4, 4, "01", None),  # a report that names no collection is one of ours
        (4, 4, "02", DIGEST),
    ]
    file = tmp_path / f"r.{suffix}"
    if suffix.lower() == "parquet":
        names = ("row", "col", "id", "collection")
        parquet(file, **dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    else:
        lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
        csv(file, "\n".join(["row,col,id,collection", *lines]))
    expected = {
        counting.FOREIGN: 4,
        counting.OUTSIDE: 2,
        counting.CONFLICTING: 2,
        counting.UNNAMED: 2,
    }
    for size in (1, 3, 10**6):
        monkeypatch.setattr(repeated_ids, "HELD", size)
        assert dropped(file) == (4, expected)
        assert count_reports(file, COLLECTION, on_invalid="drop").repeated == 4
        message = refusal(file)
        assert all(f"{number} {reason}" in message for reason, number in expected.items())
