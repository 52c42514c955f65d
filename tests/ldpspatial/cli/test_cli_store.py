"""``store`` and ``serve``: from an empty file to a map, as an operator does it."""

import http.client
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from client_sdk import Collection
from tests.support.command_line import refusal, succeed
from tests.support.service import COLLECTION, NDJSON, OTHER, free_port, lines, report


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    (tmp_path / "berlin.json").write_text(COLLECTION.to_json())
    (tmp_path / "other.json").write_text(OTHER.to_json())
    assert succeed("store", "new", path).output == f"Made {path}\n"
    return path


def add(store: Path, name: str = "berlin.json", minimum: int = 3) -> None:
    succeed("store", "add", store, store.with_name(name), "--minimum", minimum)


def post(port: int, body: bytes) -> int:
    """Send reports, once the server answers; return the status."""
    deadline = time.monotonic() + 120
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        try:
            connection.request("POST", "/reports", body, {"Content-Type": NDJSON})
            return connection.getresponse().status
        except ConnectionError:
            assert time.monotonic() < deadline, "the server did not start"
        finally:
            connection.close()


def test_from_an_empty_store_to_a_map(store: Path, tmp_path: Path) -> None:
    assert "holds no collection: add one" in succeed("store", "list", store).output
    add(store)
    port = free_port()
    command = [sys.executable, "-W", "error", "-m", "ldpspatial", "serve", store]
    server = subprocess.Popen([*command, "--port", str(port)], stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        assert server.stderr.readline() == f"Serving {store} at http://127.0.0.1:{port}\n"
        sent = [report((k % 15, 3)) for k in range(200)]
        body = lines(sent) + lines(sent[:50])
        assert post(port, body) == 204
    finally:
        server.send_signal(signal.SIGINT)
        _, told = server.communicate(timeout=60)
    assert (server.returncode, told) == (0, "")
    digest = COLLECTION.digest[:8]
    shown = succeed("store", "list", store).output
    assert re.search(r"received +250\n", shown)
    closed = succeed("store", "close", store, digest).output
    assert re.search(r"counted +200 \(50 repeated, 0 conflicting\)", closed)
    parquet = tmp_path / "reports.parquet"
    export = ("store", "export", store, digest, "--out", parquet)
    assert "200 reports" in succeed(*export).output
    assert "--out must be a new file" in refusal(*export)
    assert "200 reports" in succeed(*export, "--overwrite").output
    (tmp_path / "link.parquet").symlink_to(store)
    onto_store = (*export[:-1], tmp_path / "link.parquet", "--overwrite")
    assert "--out must not replace an input" in refusal(*onto_store)
    assert "counted" in succeed("store", "list", store).output
    one, two = tmp_path / "one", tmp_path / "two"
    document = tmp_path / "berlin.json"
    succeed("estimate", document, parquet, "--intervals", "none", "--out", one)
    succeed("store", "release", store, digest)
    told = succeed("store", "estimate", store, digest, "--intervals", "none", "--out", two).stdout
    assert re.search(r"W2 about [\d,.]+ m, as if this .* plans, [\d,.]+ m is foretold", told)
    assert (one / "estimate.csv").read_bytes() == (two / "estimate.csv").read_bytes()
    summary = json.loads((two / "summary.json").read_text())
    assert (summary["received"], summary["repeated"], summary["conflicting"]) == (250, 50, 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["release", "{store}", "{digest}"], "must be closed to be released, and is open"),
        (["estimate", "{store}", "{digest}", "--out", "{new}"], "must be released before"),
        (["export", "{store}", "{digest}", "--out", "{new}.parquet"], "must be closed to give"),
        (["close", "{store}", "a9"], "DIGEST must be the first 8 digits or more of one collection"),
        (["close", "{store}", "00000000"], "got '00000000', which fits 0"),
        (["close", "{new}", "{digest}"], "STORE must be a file, found none at"),
        (["new", "{store}"], "STORE must be a new file"),
        (["add", "{store}", "{document}", "--minimum", "3"], "collection must be new"),
        (["token", "{store}", "x", "--revoke"], "NAME must be that of a token"),
        (["list", "{document}"], "must be a file that ldpspatial made, and .* is no file"),
    ],
)
def test_what_cannot_be_done_is_one_line(store: Path, words: list[str], message: str) -> None:
    add(store)
    given = {"store": store, "digest": COLLECTION.digest, "new": store.with_name("new"),
             "document": store.with_name("berlin.json")}  # fmt: skip
    assert re.search(message, refusal("store", *(word.format(**given) for word in words)))


def test_tokens_are_shown_once(store: Path) -> None:
    token = succeed("store", "token", store, "laptop").output.strip()
    assert len(token) == 43
    assert succeed("store", "token", store).output == "laptop\n"
    assert succeed("store", "token", store, "laptop", "--revoke").output == "Revoked laptop\n"
    assert succeed("store", "token", store).output == ""


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, store: Path) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    for module in [name for name in sys.modules if name.startswith("ldpspatial.service.postgres")]:
        monkeypatch.delitem(sys.modules, module)
    told = refusal("store", "list", "postgresql://nobody@localhost:1/none")
    assert "install it with pip install 'ldpspatial[postgres]'" in told


def test_a_collection_is_shown_by_its_name(store: Path) -> None:
    add(store)
    add(store, "other.json", 7)
    shown = succeed("store", "list", store).output
    for collection in (COLLECTION, OTHER):
        assert isinstance(collection, Collection)
        assert f"{collection.name}\n" in shown
    assert "open, released from 7 reports on" in shown
