"""Pages of the docs as a reader follows them: their blocks, in order, in one folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(sh|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def environment() -> dict[str, str]:
    """Return the environment with these tests' own Python and commands on the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path}


def run(language: str, block: str, folder: Path) -> str:
    """Run a block as a reader does, and return what it prints; it must succeed."""
    command = ["sh", "-e", "-c", block]
    if language == "python":
        command = [sys.executable, "-W", "error", "-c", block]
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, f"{block}\n{done.stderr}"
    return done.stdout
