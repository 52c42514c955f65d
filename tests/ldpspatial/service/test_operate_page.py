"""docs/operate.md, played from top to bottom in one shell, as an operator does."""

import http.client
import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from client_sdk import Collection
from tests.support.postgres import PostgresServer
from tests.support.service import NDJSON, free_port, lines, report

PAGE = Path(__file__).parents[3] / "docs" / "operate.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
POSTGRES = "postgresql://collector@localhost"


class Shell:
    """One shell, so that what a block sets or starts is there for the next."""

    def __init__(self, folder: Path, *more_path: str):
        path = os.pathsep.join([str(Path(sys.executable).parent), *more_path, os.environ["PATH"]])
        self._errors = folder / "errors"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                ["sh", "-e"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                cwd=folder, env={**os.environ, "PATH": path}, text=True, start_new_session=True,
            )  # fmt: skip
        # The service, which goes on, would keep the end of a failed shell from being seen.
        assert self._process.stdin is not None
        self._process.stdin.write("trap 'printf \"\\nFAILED\\n\"' EXIT\n")

    def run(self, block: str) -> str:
        """Run a block; return what it printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{block}\nprintf '\\nEND OF BLOCK\\n'\n")
        self._process.stdin.flush()
        printed = []
        while (line := self._process.stdout.readline()) != "END OF BLOCK\n":
            assert line not in ("", "FAILED\n"), f"{block}\n{self._errors.read_text()}"
            printed.append(line)
        return "".join(printed).removesuffix("\n")

    def end(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)  # and the service, where a block failed
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def send(port: int, document: Path, number: int) -> None:
    """Send so many reports, as devices would."""
    collection = Collection.from_json(document.read_text())
    cells = collection.table.output_cells()
    body = lines([report(cells[k % len(cells)], collection) for k in range(number)])
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("POST", "/reports", body, {"Content-Type": NDJSON})
        assert connection.getresponse().status == 204


def test_every_command_of_the_page_runs(tmp_path: Path) -> None:
    port = free_port()
    shell = Shell(tmp_path)
    printed = {}
    try:
        for block in BLOCKS:
            if POSTGRES in block:
                continue
            if "store close" in block:  # what the page leaves to devices
                send(port, tmp_path / "berlin.json", 1500)
            first = block.partition("\n")[0]
            printed[first] = shell.run(block.replace("8000", str(port)))
    finally:
        shell.end()
    assert '"state":"open"' in printed["token=$(ldpspatial store token berlin.db laptop)"]
    assert (tmp_path / "map" / "heatmap.png").stat().st_size > 0
    restored = next(text for first, text in printed.items() if first.startswith("kill -TERM"))
    assert "released, released from 1000 reports on" in restored
    assert not (tmp_path / "berlin.db-wal").exists()  # it was stopped in good order


def test_the_commands_for_postgresql_run(tmp_path: Path, postgres: PostgresServer) -> None:
    berlin = postgres.new_database()
    restored = postgres.new_database()
    shell = Shell(tmp_path, str(Path(postgres.program("pg_dump")).parent))
    try:
        shell.run(f"ldpspatial store new '{berlin}'")
        (block,) = [block for block in BLOCKS if POSTGRES in block]
        block = block.replace(f"{POSTGRES}/berlin", f"'{berlin}'")
        printed = shell.run(block.replace(f"{POSTGRES}/restored", f"'{restored}'"))
    finally:
        shell.end()
    assert printed == f"{restored} holds no collection: add one with ldpspatial store add\n"
