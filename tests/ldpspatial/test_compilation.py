"""What compiled code leaves on disk: nothing at import, nothing broken after a kill."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

SOLVE = (
    "from ldpspatial import wasserstein\n"
    "print(wasserstein([[1, 0, 3], [2, 2, 0]], [[0, 4, 1], [1, 0, 2]]))"
)


def start(code: str, cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True
    )


def test_import_compiles_nothing(tmp_path: Path) -> None:
    with start("import ldpspatial", tmp_path) as run:
        assert run.wait() == 0
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_no_broken_cache(tmp_path: Path) -> None:
    for wanted in (1, 4):  # while this many compiled functions are on disk
        run = start(SOLVE, tmp_path)
        while run.poll() is None and len(list(tmp_path.rglob("*.nbc"))) < wanted:
            time.sleep(0.01)
        run.kill()
        run.communicate()
    answer, _ = start(SOLVE, tmp_path).communicate()
    again, _ = start(SOLVE, tmp_path).communicate()
    assert answer == again
    assert float(answer) > 0
