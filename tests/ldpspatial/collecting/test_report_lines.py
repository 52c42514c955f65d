"""JSON lines of reports: the client's own verdict on every line, however the file is cut."""

import gzip
import json
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk import Collection, CollectionError, Report
from ldpspatial import InputError, count_reports
from ldpspatial.collecting import counting, repeated_ids, report_lines
from ldpspatial.collecting.report_lines import lines_to_parquet
from tests.support import naive_counting
from tests.support.files import write_file
from tests.support.report_files import COLLECTION, counted, csv, dropped, parquet, refusal

VECTORS = Path(__file__).parents[3] / "client_sdk" / "vectors" / "reports.json"
DIGEST = COLLECTION.digest
REASONS = {
    counting.MALFORMED: "malformed",
    counting.FOREIGN: "collection",
    counting.OUTSIDE: "cell",
    counting.CONFLICTING: "id",
}


def text(number: int, row: int = 0, col: int = 0, collection: str = DIGEST) -> str:
    return Report(collection, f"{number:032x}", row, col).to_json()


def written(folder: Path, data: bytes | str, name: str = "r.jsonl") -> Path:
    return write_file(folder, name, data)


def parsed(folder: Path, data: bytes) -> tuple[list[Report], int]:
    """Return the reports that were copied, sorted, and how many lines are malformed."""
    target = folder / "copy.parquet"
    malformed = lines_to_parquet([written(folder, data)], target).number
    rows = pq.read_table(target).to_pylist()
    reports = [Report(r["collection"], r["id"].hex(), r["row"], r["col"]) for r in rows]
    return sorted(reports, key=repr), malformed


def expected(data: bytes) -> tuple[list[Report], int]:
    reports, malformed = naive_counting.read_lines(data)
    return sorted(reports, key=repr), malformed


def accepted(line: bytes) -> bool:
    try:
        Report.from_json(line.decode())
    except (CollectionError, UnicodeDecodeError):
        return False
    return True


@pytest.mark.parametrize(
    "name", ["r.jsonl", "r.ndjson", "r.jsonl.gz", "R.NDJSON.GZ", "[1] *.jsonl"]
)
def test_lines_of_reports_are_counted(tmp_path: Path, name: str) -> None:
    lines = [text(1, 1, 2).ljust(192), text(2, -2, 0).ljust(192), text(3, 0, 6), ""]
    data = "\r\n".join(lines).encode()
    file = tmp_path / name
    file.write_bytes(gzip.compress(data) if name.lower().endswith(".gz") else data)
    assert counted(file) == {(1, 2): 1, (-2, 0): 1, (0, 6): 1}


@pytest.mark.parametrize("padding", ["", " " * 30, " \t \r "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\n \t\n"])
def test_lines_are_padded_or_not_and_end_in_any_way(tmp_path: Path, padding: str, end: str) -> None:
    reports = [Report(DIGEST, f"{k:032x}", k, -k) for k in range(4)]
    data = end.join(report.to_json() + padding for report in reports)
    for last in ("", end):
        assert parsed(tmp_path, (data + last).encode()) == (sorted(reports, key=repr), 0)


def test_several_files_add_up_and_ids_are_compared_across_them(tmp_path: Path) -> None:
    files = [
        written(tmp_path, text(1, 1, 1), "1.jsonl"),
        written(tmp_path, text(2, 2, 2), "2.ndjson.gz"),
        written(tmp_path, text(1, 1, 1) + "\n" + text(2, 3, 3), "3.jsonl.gz"),
    ]
    assert counted(*files[:2]) == {(1, 1): 1, (2, 2): 1}
    result = count_reports(files, COLLECTION, on_invalid="drop")
    assert (result.n, result.rejected, result.repeated) == (1, {counting.CONFLICTING: 2}, 1)
    assert result.ids_checked


def test_the_vectors_as_lines_get_the_verdicts_of_the_reader(tmp_path: Path) -> None:
    vectors = json.loads(VECTORS.read_text())
    collection = Collection.from_json(vectors["document"])
    for k, good in enumerate(vectors["good"]):
        for form in ("canonical", "text"):
            line = good[form].replace("\n", " ")  # white space between tokens is white space
            assert count_reports(written(tmp_path, line), collection).n == 1, k
    some = vectors["good"][0]["canonical"].replace("000102", "ffffff")
    for bad in filter(None, vectors["bad"]):  # no text at all is a blank line
        file = written(tmp_path, f"{bad}\n{some}")
        found = count_reports(file, collection, on_invalid="drop")
        assert (found.n, found.rejected) == (1, {counting.MALFORMED: 1}), bad
    for foreign in vectors["foreign"]:
        file = written(tmp_path, f"{foreign}\n{some}")
        found = count_reports(file, collection, on_invalid="drop")
        ((reason, number),) = found.rejected.items()
        assert (found.n, number) == (1, 1), foreign
        assert reason in (counting.FOREIGN, counting.OUTSIDE)


NUMBERS = ["0", "-0", "00", "-1", "+1", "01", "-01", "1.0", "1e0", "1e", "", "-", "null", '"1"']
NUMBERS += ["999999", "-999999", "1000000", "1048576", "-1048576", "1048577", "-1048577"]
NUMBERS += ["9" * 17, "9" * 18, "1 ", " 1", "١", "1_0", "0x1", "true", "NaN"]


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_read_as_the_client_reads_them(tmp_path: Path, number: str) -> None:
    lines = [
        text(k, 7, 7).replace(f'"{field}":7', f'"{field}":{number}')
        for k, field in enumerate(("row", "col"))
    ]
    data = "\n".join(lines).encode()
    assert parsed(tmp_path, data) == expected(data)


def test_other_forms_of_a_report_are_read_by_the_strict_reader(tmp_path: Path) -> None:
    one = text(1, 1, 2)
    lines = [
        json.dumps(json.loads(one)),  # spaces between tokens
        json.dumps(dict(reversed(json.loads(one).items()))),  # another order of fields
        " " + one,
        "\t" + one,
        one.replace("row", "r\\u006fw"),
        one.replace("000", "\\u0030\\u0030\\u0030", 1),
        "\ufeff" + one,
        one + "x",
        one + one,
        one + "\0",
        one + "\u2028",
        one + "\x0b",
        one.replace("report/1", "report/2"),
        one.replace('"id"', '"ID"'),
        one.replace("}", ',"more":1}'),
        one[:-1],
        "[" * 1000,
        '{"id":' * 170,
        "null",
        "0",
        '""',
    ]
    for line in lines:
        data = line.encode()
        found = parsed(tmp_path, data)
        assert found == expected(data), line
        assert (found[1] == 0) is accepted(data), line
    data = "\n".join(lines).encode()
    assert parsed(tmp_path, data) == expected(data)
    assert len(expected(data)[0]) == 6


def test_bytes_that_are_no_utf_8_are_malformed(tmp_path: Path) -> None:
    one = text(1).encode()
    wrong = [b"\xff", b"\xc0\xb0", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80"]
    data = b"\n".join([*(one.replace(b"0", byte, 1) for byte in wrong), *(one + w for w in wrong)])
    assert parsed(tmp_path, data) == expected(data) == ([], 2 * len(wrong))
    data = text(1).encode("utf-16")
    assert parsed(tmp_path, data) == expected(data)
    assert expected(data)[1] > 0


def test_a_report_may_have_1024_characters_and_no_more(tmp_path: Path) -> None:
    one = text(1)
    for length in (900, 975, 1000, 1023, 1024, 1025, 1026, 4097, 4098, 4099, 10_000):
        for end in ("", "\n", "\r\n", "\r"):
            # The carriage return before a line feed, or at the end of the file, ends the line.
            data = (one.ljust(length) + end).encode()
            found = parsed(tmp_path, data)
            assert found == expected(data)
            assert found[1] == (length > 1024), (length, end)
    wide = (" " * 800 + "€" * 224).encode()  # 1024 code points in 1472 bytes: malformed, not long
    assert parsed(tmp_path, wide) == expected(wide) == ([], 1)


def test_blank_lines_are_no_reports_unless_they_are_longer_than_one(tmp_path: Path) -> None:
    for length, malformed in ((0, 0), (1, 0), (1024, 0), (1025, 1), (5000, 1)):
        data = b"\n" + b" " * length + b"\r\n\n" + text(1).encode() + b"\n\r\n"
        assert parsed(tmp_path, data) == expected(data)
        assert parsed(tmp_path, data)[1] == malformed


@pytest.mark.parametrize("block", [1, 2, 7, 64, 191, 192, 193, 194, 1000, 4098, 5000])
def test_lines_may_straddle_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(report_lines, "BLOCK", block)
    monkeypatch.setattr(report_lines, "ROWS", 3)
    lines = [text(k, k % 5, k % 3).ljust(192) for k in range(9)]
    lines += ["", "x", "é" * 700, "y" * 9000, " " * 5000, json.dumps(json.loads(text(9))), "\ud7ff"]
    for end in ("\n", "\r\n"):
        for last in ("", end, text(10)):
            data = (end.join(lines + lines[::-1]) + last).encode()
            found = parsed(tmp_path, data)
            assert found == expected(data)
            assert len(found[0]) >= 19
            packed = written(tmp_path, data, "r.jsonl.gz")
            assert lines_to_parquet([packed], tmp_path / "packed.parquet").number == found[1]


def test_the_fast_and_the_slow_way_give_one_verdict_on_damaged_lines(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    alphabet = b' \t\r"{}:,-+.0123456789abcdefABCDEFxrow\x00\xc3\xa9\xff'
    lines = []
    for k in range(4_000):
        line = bytearray(text(k, *rng.integers(-9, 9, 2).tolist()).ljust(180).encode())
        for _ in range(int(rng.integers(1, 3))):
            place = int(rng.integers(len(line)))
            byte = alphabet[rng.integers(len(alphabet))]
            way = rng.integers(6)
            if way == 0:
                line[place] = byte
            elif way == 1:
                line.insert(place, byte)
            elif way == 2:
                del line[place]
            elif way < 5:  # other digits
                line[place : place + 1] = b"0123456789abcdef"[place % 16 :][:1]
            else:  # within the numbers and the names of fields, where most rules are
                line[6 + place % 4] = byte
        lines.append(bytes(line))
    data = b"\n".join(lines)
    found = parsed(tmp_path, data)
    assert found == expected(data)
    assert 500 < len(found[0]) < 3_500  # both verdicts are frequent

    # The slow way alone: a space before a text keeps it from the regular expression.
    slow = b"\n".join(b" " + line for line in lines)
    assert parsed(tmp_path, slow) == found


LINES = st.one_of(
    st.builds(
        text,
        st.integers(0, 6),
        st.integers(-3, 7),
        st.sampled_from([0, 1]),
        st.sampled_from([DIGEST, DIGEST, DIGEST, "0" * 64]),
    ),
    st.sampled_from(["", "  ", "{}", "x", text(1)[:-1], text(1, 1 << 20), text(2).upper()]),
)
FORMS = st.sampled_from([str, lambda line: line.ljust(192), lambda line: f" {line}\r"])


@settings(max_examples=60)
@given(
    st.lists(st.tuples(LINES, FORMS), max_size=25),
    st.integers(1, 400),
    st.integers(1, 30),
    st.sampled_from(["\n", "\r\n"]),
)
def test_any_mix_of_lines_is_counted_as_the_twin_counts(
    drawn: list[tuple[str, object]], block: int, size: int, end: str
) -> None:
    data = end.join(form(line) for line, form in drawn).encode()  # type: ignore[operator]
    reports, malformed = naive_counting.read_lines(data)
    counts, rejected, repeated = naive_counting.count(reports, COLLECTION)
    rejected |= {"malformed": malformed} if malformed else {}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_lines, "BLOCK", block)
        patch.setattr(repeated_ids, "HELD", size)
        file = written(Path(folder), data)
        if not counts:
            with pytest.raises(InputError):
                count_reports(file, COLLECTION, on_invalid="drop")
            return
        result = count_reports(file, COLLECTION, on_invalid="drop")
        assert {REASONS[reason]: n for reason, n in result.rejected.items()} == rejected
        assert (result.n, result.repeated) == (counts.total(), repeated)
        for (row, col), number in np.ndenumerate(result.counts):
            assert counts[row - 2, col - 2] == number
        if rejected:
            assert all(f"{n} {why}" in refusal(file) for why, n in result.rejected.items())
        else:
            assert count_reports(file, COLLECTION).n == result.n


@settings(max_examples=20)
@given(
    st.lists(
        st.builds(
            Report,
            st.sampled_from([DIGEST, DIGEST, "0" * 64]),
            st.integers(0, 8).map("{:032x}".format),
            st.integers(-3, 7),
            st.sampled_from([0, 1]),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_all_formats_give_one_result(reports: list[Report]) -> None:
    good = Report(DIGEST, "f" * 32, 1, 1)
    fields = [(r.row, r.col, r.id, r.collection) for r in [good, *reports]]
    names = ("row", "col", "id", "collection")
    columns = dict(zip(names, map(list, zip(*fields, strict=True)), strict=True))
    table = "\n".join([",".join(names), *(",".join(map(str, f)) for f in fields)])
    lines = "\n".join(r.to_json() for r in [good, *reports])
    counts, rejected, repeated = naive_counting.count([good, *reports], COLLECTION)
    with tempfile.TemporaryDirectory() as folder:
        files = [
            parquet(Path(folder, "text.parquet"), **columns),
            parquet(
                Path(folder, "bytes.parquet"),
                **{**columns, "id": [bytes.fromhex(str(name)) for name in columns["id"]]},
            ),
            csv(Path(folder, "r.csv"), table),
            written(Path(folder), lines),
        ]
        for file in files:
            found = count_reports(file, COLLECTION, on_invalid="drop")
            assert {REASONS[reason]: n for reason, n in found.rejected.items()} == rejected
            assert (found.n, found.repeated) == (counts.total(), repeated)


def test_no_error_repeats_what_a_line_holds(tmp_path: Path) -> None:
    lines = ['{"lat":48.567}', "48.567,11.567", text(1, 567), text(2, 1, 1, "567" + "0" * 61)]
    message = refusal(written(tmp_path, "\n".join(lines)))
    assert "2 are malformed" in message
    assert "1 name another collection" in message
    assert "1 name a cell outside the output domain" in message
    assert "567" not in message
    plain = tmp_path / "plain.jsonl.gz"
    plain.write_text("48.567\n" + text(1))
    assert "567" not in refusal(plain)


def test_a_gzip_file_must_be_whole(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    data = "\n".join(text(int(n)) for n in rng.integers(0, 1 << 60, 5_000)).encode()
    packed = gzip.compress(data)
    file = tmp_path / "r.jsonl.gz"
    for length in (1, 5, 17, len(packed) // 2, len(packed) - 9, len(packed) - 1):
        file.write_bytes(packed[:length])
        with pytest.raises(InputError) as caught:
            count_reports(file, COLLECTION, on_invalid="drop")
        assert str(caught.value) == f"reports cannot be read: {file} is not a gzip file or cut off"
    broken = bytearray(packed)
    broken[len(packed) // 2] ^= 255
    for damaged in (bytes(broken), packed + b"more", data):
        file.write_bytes(damaged)
        assert "is not a gzip file or cut off" in refusal(file)
    file.write_bytes(packed + gzip.compress(b"\n" + text(1).encode()))  # two in a row are fine
    assert count_reports(file, COLLECTION).n == 5_001


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz"])
@pytest.mark.parametrize("byte", [b"x", b" ", b"\0", b"["])
def test_a_huge_line_takes_no_memory(tmp_path: Path, name: str, byte: bytes) -> None:
    good = text(1).encode()
    file = written(tmp_path, good + b"\n" + byte * 30_000_000 + b"\n" + good + b"\n" + byte, name)
    tracemalloc.start()
    try:
        bad = lines_to_parquet([file], tmp_path / "copy.parquet")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (bad.number, bad.first) == (1 + (byte != b" "), f"line 2 of {file}")
    assert pq.read_metadata(tmp_path / "copy.parquet").num_rows == 2
    assert peak < 40 * report_lines.BLOCK < 6_000_000


def test_many_lines_of_nothing_take_no_memory(tmp_path: Path) -> None:
    file = written(tmp_path, b"\n" * 500_000 + b"x\n" * 10)
    tracemalloc.start()
    try:
        assert lines_to_parquet([file], tmp_path / "copy.parquet").number == 10
        # At most 100 bytes a line of one block; all lines at once would take 50 MB.
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_kinds_of_files_are_not_mixed(tmp_path: Path) -> None:
    lines = written(tmp_path, text(1))
    table = csv(tmp_path / "r.csv", "row,col\n0,0\n")
    columns = parquet(tmp_path / "r.parquet", row=[0], col=[0])
    for files in ((lines, table), (columns, lines), (table, lines), (lines, columns, table)):
        message = refusal(*files)
        assert ".jsonl and .ndjson files (also with .gz), all of one kind" in message
        assert all(file.name in message for file in files)
    assert "all of one kind" in refusal(written(tmp_path, text(1), "r.json"))


@pytest.mark.parametrize("nothing", ["", "\n", "\n \r\n"])
@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz"])
def test_a_file_without_reports_is_a_quiet_day(tmp_path: Path, nothing: str, name: str) -> None:
    quiet, day = written(tmp_path, nothing, name), written(tmp_path, text(1), "day.jsonl")
    assert count_reports([quiet, day], COLLECTION).n == 1
    assert "at least one good report" in refusal(quiet)


def test_the_first_malformed_line_is_named(tmp_path: Path) -> None:
    good = "\n".join(text(k) for k in range(1000)) + "\n"  # more than one block
    first, second = written(tmp_path, good, "a.jsonl"), written(tmp_path, f"{good}\nx\n{good}?")
    message = refusal(first, second)
    assert f"2 are malformed (first: line 1002 of {second})" in message
    with pytest.raises(InputError, match="at least one good report"):
        count_reports(written(tmp_path, "x"), COLLECTION, on_invalid="drop")
    assert "found none at" in refusal(tmp_path / "missing.jsonl")
    file = written(tmp_path, text(1))
    assert "one is given twice" in refusal(file, tmp_path / "." / "r.jsonl")


def test_a_file_that_may_not_be_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, text(1))

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(report_lines, "_open", refuse)
    assert refusal(file) == f"reports cannot be read: Permission denied ({file})"


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spill))
    assert dropped(written(tmp_path, f"{text(1)}\nx")) == (1, {counting.MALFORMED: 1})
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(text(1).encode())[:-3])
    refusal(tmp_path / "cut.jsonl.gz")
    assert list(spill.iterdir()) == []
