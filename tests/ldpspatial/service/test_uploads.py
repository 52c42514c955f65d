"""The lines of a request: verdicts as those of the client's strict reader, for every line."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from client_sdk import Collection, CollectionError, Report
from client_sdk.conformance.cases import MAKERS
from client_sdk.conformance.dice import Dice
from ldpspatial.service.store import CLOSED, Held
from ldpspatial.service.uploads import (
    Refusal,
    Taking,
    Upload,
    read_body,
    sort_out,
)
from tests.support.service import CELLS, COLLECTION, OTHER, lines, report

BLANK = b" \t\r"
HEX64 = re.compile(rb"[0-9a-f]{64}")


def taking(collection: Collection, number: int, state: str = "open") -> tuple[bytes, Taking]:
    held = Held(number, collection.digest, collection.to_json(), state, 1, 0, 0)
    return collection.digest.encode(), Taking.of(held)


KNOWN = dict([taking(COLLECTION, 1), taking(OTHER, 2, CLOSED)])


def sorted_out(body: bytes) -> Upload:
    return sort_out(read_body(body), KNOWN)


def strict(line: bytes) -> tuple[str, Report | None]:
    """Return the verdict on one line as the client reads it: a reason, or the report."""
    try:
        found = Report.from_json(line.decode())
    except (CollectionError, UnicodeDecodeError):
        return "malformed", None
    if found.collection == OTHER.digest:
        return "closed", None
    try:
        found.check(COLLECTION)
    except CollectionError:
        return "foreign", None
    return "", found


def stored(upload: Upload) -> list[tuple[bytes, int, int]]:
    """Return id, row and col of what is to be stored, in the order of the lines."""
    if not upload.arrived:
        return []
    records, at = upload.arrived[1]
    rows, cols = KNOWN[COLLECTION.digest.encode()].domain.cells(records["place"])
    found = zip(at, (row.tobytes() for row in records["id"]), rows, cols, strict=True)
    return [(name, int(row), int(col)) for _, name, row, col in sorted(found)]


def check(body: list[bytes]) -> Upload:
    """Compare the verdicts on lines with those on each of them."""
    upload = sorted_out(b"\n".join(body))
    expected = [strict(line) for line in body]
    blank = {k for k, line in enumerate(body, 1) if len(line) <= 1024 and not line.strip(BLANK)}
    refused = [(k, why) for k, (why, _) in enumerate(expected, 1) if why and k not in blank]
    assert [(refusal.line, refusal.reason) for refusal in upload.refused] == refused
    good = [(bytes.fromhex(r.id), r.row, r.col) for _, r in expected if r is not None]
    assert stored(upload) == good
    assert upload.lines == len(body) - len(blank)
    return upload


def mutated(number: int) -> bytes:
    """Return the text of a report of any collection, half of them with a slip."""
    made = MAKERS["report"][1](Dice(f"lines {number}"))
    text = bytes.fromhex(made["hex"]) if "hex" in made else made["text"].encode("utf-8", "replace")
    return text.replace(b"\n", b" ")


@pytest.mark.slow
def test_the_verdicts_on_30_000_reports_are_those_of_the_client() -> None:
    # A text in 2,200 that is judged otherwise is seen with probability 1 - 1e-6.
    chance = random.Random(3)  # noqa: S311
    digests = (COLLECTION.digest, OTHER.digest)
    accepted = 0
    for start in range(0, 30_000, 1000):
        texts = []
        for number in range(start, start + 1000):
            text = mutated(number)
            # Those of unknown collections are foreign whatever else they say: name known ones.
            if chance.random() < 0.9:
                digest = chance.choice(digests).encode()
                text = HEX64.sub(digest, text, count=1)
            texts.append(text)
        accepted += len(stored(check(texts)))
    assert 3_000 < accepted < 18_000


def test_good_lines_are_stored_whatever_stands_beside_them() -> None:
    good = [report(cell) for cell in CELLS[:3]]
    texts = [each.to_body().encode() for each in good]
    upload = check([
        texts[0], b"hello", texts[1], b"", texts[2] + b"\r", b'{"a":1}', b"\xff\xfe",
        report(collection=OTHER).to_json().encode(), report((999, 0)).to_json().encode(),
        b" " * 1024, b" " * 1025, Report("0" * 64, "1" * 32, 0, 0).to_json().encode(),
    ])  # fmt: skip
    assert [refusal.line for refusal in upload.refused] == [2, 6, 7, 8, 9, 11, 12]
    numbers = {refusal.reason: refusal.collection for refusal in upload.refused}
    assert numbers == {"malformed": 0, "closed": 2, "foreign": 0}
    assert Refusal(9, "foreign", 1) in upload.refused


def test_the_last_line_may_end_or_not() -> None:
    text = report().to_json().encode()
    for body in (text, text + b"\n", text + b"\r\n", text + b"\n\n\n"):
        assert sorted_out(body).lines == 1
    assert sorted_out(b"").lines == sorted_out(b"\n \n").lines == 0


@pytest.mark.parametrize(
    "bad",
    [
        '{"col":1,"col":1,%s', '{"col":1.0,%s', '{"col":1e0,%s', '{"col":01,%s', '{"col":+1,%s',
        '{"col":true,%s', '{"col":null,%s', '{"col":"1",%s', '{"col":1,"x":1,%s', "{%s",
        '[{"col":1,%s]', '{"col":1,%s}', '{"col":9007199254740993,%s', '{"col":[[[[[1]]]]],%s',
    ],
)  # fmt: skip
def test_what_a_lenient_reader_takes_is_refused(bad: str) -> None:
    rest = report().to_json().partition(",")[2]
    assert check([(bad % rest).encode()]).refused[0].reason == "malformed"


def test_a_name_that_is_written_with_escapes_is_the_same_name() -> None:
    text = report((2, 3)).to_json().replace('"row"', '"\\u0072ow"').encode()
    assert stored(check([text]))[0][1:] == (2, 3)


def test_reports_of_several_collections_are_told_apart() -> None:
    third = Collection.create("two in Berlin", COLLECTION.grid, 3.5)
    known = {**KNOWN, **dict([taking(third, 3)])}
    sent = [report((1, k % 5), (COLLECTION, third)[k % 2]) for k in range(50)]
    upload = sort_out(read_body(lines(sent)), known)
    assert upload.refused == []
    for number, parity in ((1, 0), (3, 1)):
        records, at = upload.arrived[number]
        assert at == list(range(1 + parity, 51, 2))
        assert [row["id"].tobytes().hex() for row in records] == [r.id for r in sent[parity::2]]


def test_the_work_on_a_body_does_not_grow_with_the_collections_that_it_names() -> None:
    """Each name is looked at once, not once for every other name."""

    class Names(tuple[bytes, ...]):
        passes = 0

        def __iter__(self) -> Iterator[bytes]:
            Names.passes += 1
            return super().__iter__()

    sent = [Report(f"{k:064x}", f"{k:032x}", 0, 0) for k in range(300)] + [report()]
    texts = read_body(lines(sent))
    upload = sort_out(replace(texts, collections=Names(texts.collections)), KNOWN)
    assert [refusal.line for refusal in upload.refused] == list(range(1, 301))
    assert {refusal.reason for refusal in upload.refused} == {"foreign"}
    assert upload.arrived[1][1] == [301]
    assert Names.passes <= 2


def test_json_and_numpy_agree_on_the_cell() -> None:
    sent = [report(cell) for cell in CELLS]
    upload = sorted_out(lines(sent))
    expected = [(r["row"], r["col"]) for r in map(json.loads, lines(sent).splitlines())]
    assert [cell[1:] for cell in stored(upload)] == expected
    assert len(np.unique(upload.arrived[1][0]["place"])) == len(CELLS)
