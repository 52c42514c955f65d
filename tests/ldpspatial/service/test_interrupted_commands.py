"""Commands on a store that SIGTERM ends: reports lie in no file that nobody knows of."""

import asyncio
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.senders import new_store
from tests.support.service import COLLECTION

# A command that comes to its work, says so, and does not end.
ENDLESS = """
import asyncio, sys
from ldpspatial.cli import main
from ldpspatial.service import backup, exporting

async def endless(*arguments):
    print("begun", flush=True)
    await asyncio.sleep(3600)

async def endless_reports(*arguments):
    await endless()
    yield

backup._put_in_order = endless
exporting.stored_reports = endless_reports
main(sys.argv[1:])
"""


@pytest.mark.parametrize("verb", ["export", "backup"])
def test_a_command_that_is_told_to_end_leaves_no_file(tmp_path: Path, verb: str) -> None:
    path = tmp_path / "store.db"
    asyncio.run(new_store(str(path)))
    out = tmp_path / "out.parquet"
    arguments = {"export": [path, COLLECTION.digest, "--out", out], "backup": [path, out]}[verb]
    command = [sys.executable, "-c", ENDLESS, "store", verb, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        (unfinished,) = (each for each in tmp_path.rglob(".*.part") if each.is_file())
        assert stat.S_IMODE(unfinished.stat().st_mode) == 0o600
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]
