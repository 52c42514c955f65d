"""The bridge to ports: it answers as the vectors do, and compares what others answer."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from client_sdk.conformance.answers import OPERATIONS, answer
from client_sdk.conformance.cases import cases
from client_sdk.conformance.comparison import compare
from client_sdk.conformance.documents import plane_grid

VECTORS = Path(__file__).parents[2] / "client_sdk" / "vectors"
COMMAND = [sys.executable, "-m", "client_sdk.conformance"]
Json = dict[str, Any]


def load(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="ascii"))


def ask(op: str, **fields: Any) -> Json:
    return answer(json.dumps({"op": op, **fields}))


# The vectors


def test_it_answers_the_documents_of_the_vectors() -> None:
    vectors = load("documents")
    for entry in vectors["good"]:
        right = {"ok": True, "digest": entry["digest"], "canonical": entry["canonical"]}
        assert ask("collection", text=entry["text"], digest=entry["digest"]) == right
        assert ask("collection", hex=entry["text"].encode().hex()) == right
    for entry in vectors["bad"]:
        fields = {k: v for k, v in entry.items() if k not in ("kind", "reason")}
        assert ask("collection", **fields)["ok"] is False
    for entry in vectors["bytes"]:
        assert ask("collection", hex=entry["hex"])["ok"] is False
    for entry in vectors["long"]:
        told = ask("collection", text="".join(part * times for part, times in entry["parts"]))
        assert (told["ok"], told.get("digest")) == (entry["digest"] is not None, entry["digest"])


def test_it_answers_the_series_of_the_vectors() -> None:
    vectors = load("series")
    for entry in vectors["good"]:
        right = {"ok": True, "digest": entry["digest"], "canonical": entry["canonical"]}
        assert ask("series", text=entry["text"], digest=entry["digest"]) == right
        assert ask("series", hex=entry["text"].encode().hex()) == right
        assert ask("collection", text=entry["text"])["ok"] is False
    for entry in vectors["bad"]:
        fields = {k: v for k, v in entry.items() if k not in ("kind", "reason")}
        assert ask("series", **fields)["ok"] is False
    for entry in vectors["long"]:
        text = "".join(part * times for part, times in entry["parts"])
        assert ask("series", text=text)["ok"] is False


def test_it_answers_the_windows_of_the_vectors() -> None:
    vectors = load("series")
    texts = [entry["text"] for entry in vectors["good"]]
    for entry in vectors["windows"]:
        told = ask("window", text=texts[entry["series"]], window=entry["window"])
        assert (told["ok"], told["digest"]) == (True, entry["digest"])
        assert told["canonical"] == entry.get("canonical", told["canonical"])
        assert set(told) == {"ok", "digest", "canonical"}
    for entry in vectors["bad_windows"]:
        told = ask("window", text=texts[entry["series"]], window=entry["window"])
        assert told["ok"] is False


def test_it_answers_the_choices_of_the_vectors() -> None:
    for entry in load("series")["choices"]:
        fields = {field: entry[field] for field in ("windows", "answers", "entropy")}
        right = {"ok": True, "windows": entry["chosen"], "bytes": entry["bytes"]}
        assert ask("windows", **fields) == right


def test_it_answers_the_events_of_the_vectors() -> None:
    vectors = load("events")
    for entry in vectors["events"]:
        fields = {field: entry[field] for field in ("key", "digest", "event")}
        assert ask("event", **fields) == {"ok": True, "name": entry["name"]}
    for entry in vectors["bad"]:
        assert ask("event", **entry)["ok"] is False


def test_it_answers_the_positions_of_the_vectors() -> None:
    vectors = load("positions")
    fields = ("kind", "south_e7", "west_e7", "height_e7", "width_e7", "cells")
    of_kind = {}
    for entry in vectors["grids"]:
        square = of_kind[entry["kind"]] = {field: entry[field] for field in fields}
        for at in entry["positions"]:
            right = {"ok": True, "cell": at["cell"], "inside": at["inside"]}
            assert ask("cell", grid=square, at=at["at"]) == right
    for entry in vectors["bad"]:
        assert ask("cell", grid=of_kind[entry["kind"]], at=entry["at"])["ok"] is False


def test_it_answers_the_draws_of_the_vectors() -> None:
    vectors = load("draws")
    for entry in [*vectors["draws"], *vectors["bad"]]:
        document = vectors["documents"][entry["document"]]
        told = ask("draw", document=document, cell=entry["cell"], entropy=entry.get("entropy", ""))
        if "entropy" in entry:
            assert told == {"ok": True, "output": entry["output"], "bytes": entry["bytes"]}
        else:
            assert told["ok"] is False


def test_it_answers_the_reports_of_the_vectors() -> None:
    vectors = load("reports")
    for entry in vectors["good"]:
        right = {"ok": True, "canonical": entry["canonical"]}
        assert ask("report", text=entry["text"], document=vectors["document"]) == right
        assert ask("report", hex=entry["text"].encode().hex()) == right
    for text in vectors["bad"]:
        assert ask("report", text=text)["ok"] is False
    for text in vectors["foreign"]:
        assert ask("report", text=text)["ok"] is True
        assert ask("report", text=text, document=vectors["document"])["ok"] is False
        assert ask("body", text=text)["ok"] is True
    for text in vectors["bad"]:
        assert ask("body", text=text)["ok"] is False
    for entry in vectors["bodies"]:
        assert ask("body", text=entry["text"]) == {"ok": True, "body": entry["body"]}
        assert ask("body", hex=entry["text"].encode().hex())["body"] == entry["body"]


def test_it_answers_the_bounds_of_the_vectors() -> None:
    for entry in load("tables")["bounds"]:
        assert ask("bound", micro_epsilon=entry["micro_epsilon"])["bound"] == entry["bound"]


# Requests


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("", "not valid JSON"), ('{"op": "label", "op": "label", "text": "a"}', "repeats a field"),
        ("nonsense", "not valid JSON"), ("{", "not valid JSON"),
        (b"\xff", "not valid JSON"), ("[" * 10**5, "not valid JSON"), ("7" * 5000, "JSON"),
        ("[]", "must be a JSON object"), ("null", "must be a JSON object"),
        ("{}", "op must be one of collection, series, window, windows, report, body, cell, draw, "
         "bound, label, event, got None"),
        ('{"op":"x"}', "op must be one of"), ('{"op":["cell"]}', "op must be one of"),
        ('{"op":"label"}', "a request of label must have the field 'text'"),
        ('{"op":"label","text":"a","x":1}', "a request of label has no field 'x'"),
        ('{"op":"label","text":5}', "text must be a text, got 5"),
        ('{"op":"label","text":"a","hex":"61"}', "text or hex, not both"),
        ('{"op":"label","hex":"6"}', "hex must be bytes in hexadecimal"),
        ('{"op":"label","hex":"ff"}', "text is not UTF-8"),
        ('{"op":"collection","text":"{}","digest":5}', "digest must be a text"),
        ('{"op":"collection","text":"{}","max_micro_epsilon":0}', "max_micro_epsilon must be"),
        ('{"op":"bound","micro_epsilon":1.0}', "micro_epsilon must be a whole number"),
        ('{"op":"bound","micro_epsilon":NaN}', 'NaN is not JSON: write the text "NaN"'),
        ('{"op":"cell","grid":{},"at":[0,0]}', "grid must be an object of kind, south_e7"),
        ('{"op":"cell","grid":[],"at":[0,0]}', "grid must be an object"),
        ('{"op":"draw","document":"{}","cell":[0,0],"entropy":""}', "schema must be"),
        ('{"op":"series","text":"{}"}', "schema must be 'ldpspatial/series/1'"),
        ('{"op":"series","text":5}', "text must be a text, got 5"),
        ('{"op":"window","text":"{}","window":1}', "schema must be"),
        ('{"op":"window","text":"{}"}', "a request of window must have the field 'window'"),
        ('{"op":"windows","windows":2,"answers":3,"entropy":""}', "answers must be at most"),
        ('{"op":"windows","windows":[2],"answers":1,"entropy":""}', "windows must be a whole"),
        ('{"op":"windows","windows":2,"answers":1.0,"entropy":""}', "answers must be a whole"),
        ('{"op":"windows","windows":2,"answers":1,"entropy":"x"}', "entropy must be bytes"),
        ('{"op":"body","text":"{}"}', "schema must be 'ldpspatial/report/1'"),
        ('{"op":"event","key":"00","digest":"a","event":"b"}', "key must be 32 bytes"),
        ('{"op":"event","key":5,"digest":"a","event":"b"}', "key must be bytes in hexadecimal"),
        ('{"op":"event","key":"","digest":"\\u00e9","event":"b"}', "digest must be ASCII"),
        ('{"op":"label","text":"a","id":1e400}', "id must hold finite numbers"),
        (f'{{"op":"event","key":"{"00" * 32}","digest":"a","event":"\\ud83d"}}',
         "event must hold no half of a surrogate pair"),
    ],
)  # fmt: skip
def test_what_is_no_request_is_answered_by_an_error(line: str | bytes, rule: str) -> None:
    told = answer(line)
    assert told["ok"] is False
    assert rule in told["error"]


PLANE = plane_grid(2)


@pytest.mark.parametrize("at", [None, 5, [], [1], [1, 2, 3], [None, 1], [True, 1], ["x", 1], {}])
def test_what_is_no_position_is_refused(at: Any) -> None:
    assert ask("cell", grid=PLANE, at=at)["ok"] is False


@pytest.mark.parametrize("field", list(PLANE))
@pytest.mark.parametrize("value", [None, True, 0.5, "x", [], 0, -1, 10**30])
def test_what_is_no_grid_is_refused(field: str, value: Any) -> None:
    if (field, value) in (("south_e7", 0), ("south_e7", -1), ("west_e7", 0), ("west_e7", -1)):
        return
    assert ask("cell", grid={**PLANE, field: value}, at=[0, 0])["ok"] is False


def test_an_id_comes_back_whatever_it_is() -> None:
    for name in (None, 0, "a", [1, {"b": 2}]):
        assert ask("label", text="a", id=name) == {"id": name, "ok": True}
        assert ask("nothing", id=name)["id"] == name


def test_a_fault_of_the_client_itself_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPERATIONS, "label", lambda text: 1 / 0)
    told = ask("label", text="a")
    assert told["ok"] is None
    assert "internal error: ZeroDivisionError" in told["error"]


def test_it_can_be_driven_line_by_line() -> None:
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, text in enumerate(("noon in town", "a\u200b", "\U0001f6b2")):
            process.stdin.write(json.dumps({"op": "label", "id": number, "text": text}).encode())
            process.stdin.write(b"\n")
            process.stdin.flush()
            told = json.loads(process.stdout.readline())
            assert (told["id"], told["ok"]) == (number, number != 1)


# The comparison


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)


WRONG = """
import sys
from client_sdk import canonical
from client_sdk.conformance.answers import serve
canonical._unique = dict  # accepts repeated fields
serve(sys.stdin.buffer, sys.stdout)
"""


def test_the_client_agrees_with_itself() -> None:
    told = run("compare", "--count", "300", "--seed", "5", "--", *COMMAND)
    assert told.returncode == 0, told.stdout
    assert re.search(r"300 requests of seed 5, \d\d% accepted. All answers agree.\n$", told.stdout)
    assert "300 of 300 requests, 0 differ" in told.stderr


def test_a_port_that_accepts_repeated_fields_is_named_with_its_first_differences() -> None:
    arguments = ("--count", "1500", "--seed", "5", "--show", "1", "--", sys.executable, "-c", WRONG)
    told = run("compare", *arguments)
    assert told.returncode == 1
    request, ours, theirs = (
        line.partition(" ")[2].strip() for line in told.stdout.splitlines()[:3]
    )
    assert "twice" in json.loads(ours)["error"]
    assert json.loads(theirs)["ok"] is True
    assert json.loads(request)["id"] == json.loads(theirs)["id"]
    assert told.stdout.count("request  ") == 1
    assert told.stdout.endswith("The answers differ.\n")


@pytest.mark.parametrize(
    "script",
    ["", "import sys; sys.stdin.readline(); print('{}')", "import sys; sys.stdin.read()",
     "import sys; print(*['[]'] * (1 + len(sys.stdin.readlines())), sep='\\n')"],
)  # fmt: skip
def test_a_port_that_stops_or_babbles_does_not_agree(script: str) -> None:
    told = run("compare", "--count", "50", "--", sys.executable, "-c", script)
    assert told.returncode == 1
    assert "did not answer each request once" in told.stdout


def test_a_command_that_does_not_exist_is_an_error_of_its_own() -> None:
    told = run("compare", "--", "/no/such/command")
    assert (told.returncode, told.stdout) == (2, "")
    assert "/no/such/command does not run" in told.stderr


def test_answers_are_compared_but_for_their_errors() -> None:
    requests = ['{"op":"label","text":"a"}', '{"op":"label","text":"  "}']
    assert compare(requests, ['{"ok":true}', '{"error":"spaces","ok":false}']).agrees
    for theirs in ("{}", "no", "[]", "1", '{"ok":1}', '{"ok":true,"digest":""}', '{"ok":false}'):
        found = compare(requests, [theirs, '{"ok":false}'])
        assert not found.agrees
        assert [difference.theirs for difference in found.first] == [theirs]
    assert compare(requests, ["{}", "{}"], shown=1).differing["label"] == 2


def test_cases_are_written_as_they_are_made() -> None:
    told = run("cases", "--count", "40", "--seed", "9")
    assert told.stdout.splitlines() == list(cases(40, 9))
    assert run("cases", "--count", "0").returncode == 2


def test_the_help_teaches_every_operation() -> None:
    told = run("--help").stdout
    for name in OPERATIONS:
        assert f'"op": "{name}"' in told
    assert "exit status 1" in " ".join(run("compare", "--help").stdout.lower().split())
