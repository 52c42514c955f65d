"""The page for app teams, run: every block in order, its server beside it, and what comes of it."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from client_sdk import Collection
from tests.support.pages import BLOCK, environment, run
from tests.support.service import free_port

PAGE = Path(__file__).parents[1] / "docs" / "embed.md"
TEXT = PAGE.read_text(encoding="utf-8")
PORT = "8000"
PHONES = 60
FILE = re.compile(r"# (\w+\.py)\n")


@contextmanager
def serving(command: str, folder: Path) -> Iterator[None]:
    """Run the server's block beside the others, and interrupt it in the end."""
    server = subprocess.Popen(
        command.split(), cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stderr is not None
        assert server.stderr.readline().startswith("Serving store.db at http://127.0.0.1:")
        yield
    finally:
        server.send_signal(signal.SIGINT)
        _, told = server.communicate(timeout=60)
    assert (server.returncode, told) == (0, "")


def play(folder: Path) -> list[str]:
    """Run the page; return what each block but the server's printed."""
    blocks = BLOCK.findall(TEXT.replace(PORT, str(free_port())))
    at = next(k for k, (_, block) in enumerate(blocks) if block.startswith("ldpspatial serve"))
    printed = [*played(blocks[:at], folder)]
    with serving(blocks[at][1], folder):
        printed += played(blocks[at + 1 :], folder)
    return printed


def played(blocks: list[tuple[str, str]], folder: Path) -> Iterator[str]:
    for language, block in blocks:
        if file := FILE.match(block):
            (folder / file[1]).write_text(block)
        yield run(language, block, folder)


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The folder after the page was followed once, and what was printed."""
    folder = tmp_path_factory.mktemp("app")
    return folder, play(folder)


def test_the_digest_in_the_app_is_that_of_the_document(
    followed: tuple[Path, list[str]],
) -> None:
    folder, printed = followed
    collection = Collection.from_json((folder / "collection.json").read_text())
    assert f'DIGEST = "{collection.digest}"' in TEXT
    assert printed[0].endswith(f"Open: {collection.digest}\n")
    assert set(re.findall(r"store\.db ([0-9a-f]{8})\b", TEXT)) == {collection.digest[:8]}


def test_every_phone_is_counted_once(followed: tuple[Path, list[str]]) -> None:
    folder, printed = followed
    counted = rf"counted +{PHONES} \(0 repeated, 0 conflicting\)"
    assert any(re.search(counted, text) for text in printed)
    summary = json.loads((folder / "map" / "summary.json").read_text())
    assert (summary["n"], summary["received"]) == (PHONES, PHONES)
    assert summary["fit"]["p_value"] >= 1e-6  # its rate of false alarms


def test_the_other_client_agrees(followed: tuple[Path, list[str]]) -> None:
    assert followed[1][-1].endswith("All answers agree.\n")
