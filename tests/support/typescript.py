"""The TypeScript client, installed and built by npm: once for its present sources."""

import fcntl
import hashlib
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "client_sdk" / "typescript"
VECTORS = ROOT / "client_sdk" / "vectors"
OLDEST_NODE = 20
OURS = {"EINTEGRITY", "EUSAGE", "EJSONPARSE"}  # npm's codes for a wrong file or lock
NOT_BUILT = ("node_modules", "dist", "build")


def built_client() -> Path:
    """Return the folder of the client, installed and built; other processes may ask at once."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("npm is not installed: the tests of the TypeScript client did not run")
    told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.match(r"v(\d+)\.", told)
    if version is None or int(version[1]) < OLDEST_NODE:
        pytest.skip(f"node {OLDEST_NODE} or later is not installed: the TypeScript client's tests "
                    "did not run")  # fmt: skip
    with alone():
        lock = FOLDER / "package-lock.json"
        once("node_modules/installed", digest([lock]), lambda: install(npm))
        sources = [
            path
            for path in sorted(FOLDER.rglob("*"))
            if path.is_file() and path.relative_to(FOLDER).parts[0] not in NOT_BUILT
        ]
        once("build/built", digest([*sources, *sorted(VECTORS.glob("*.json"))]), build)
    return FOLDER


@contextmanager
def alone() -> Iterator[None]:
    """Keep other processes from building at the same time."""
    with (FOLDER / "package.json").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def digest(files: list[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def once(name: str, state: str, make: Callable[[], None]) -> None:
    """Make what a file says to be of another state, and write down its state."""
    stamp = FOLDER / name
    if not stamp.exists() or stamp.read_text() != state:
        make()
        stamp.write_text(state)


def install(npm: str) -> None:
    command = [npm, "ci", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=30000"]
    try:
        run = subprocess.run(
            command, cwd=FOLDER, capture_output=True, text=True, check=False, timeout=300
        )
    except subprocess.TimeoutExpired:
        pytest.skip("npm could not install TypeScript's compiler within 300 seconds")
    if run.returncode:
        code = re.search(r"\b(?:code|ERR!) (E[A-Z_]+)", run.stderr)
        assert code is None or code[1] not in OURS, run.stderr
        pytest.skip(f"npm cannot install TypeScript's compiler here: {code and code[1]}")


def build() -> None:
    run = subprocess.run(
        ["npm", "run", "build"], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
