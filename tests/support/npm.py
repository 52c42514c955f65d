"""Node and npm for tests: found, or the tests that need them are skipped and say so."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

OLDEST_NODE = 20
OURS = {"EINTEGRITY", "EUSAGE", "EJSONPARSE"}  # npm's codes for a wrong file or lock


def npm() -> str:
    """Return the path of npm, where it and a Node that is not too old are installed."""
    node, found = shutil.which("node"), shutil.which("npm")
    if node is None or found is None:
        pytest.skip("needs node and npm")
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.", told)
    if version is None or int(version[1]) < OLDEST_NODE:
        pytest.skip(f"needs node {OLDEST_NODE} or later")
    return found


def install(what: str, folder: Path) -> None:
    """Install the packages that the lock in a folder names."""
    command = [npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    command += ["--fetch-retries=1", "--fetch-timeout=30000"]
    try:
        run = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=300
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm could not install {what} within 300 seconds")
    if run.returncode:
        code = re.search(r"\b(?:code|ERR!) (E[A-Z_]+)", run.stderr)
        assert code is None or code[1] not in OURS, run.stderr
        pytest.skip(f"npm cannot install {what} here: {code[1] if code else run.returncode}")
