"""The TypeScript client, installed and built by npm: once for its present sources."""

import fcntl
import hashlib
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.npm import install, npm

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "client_sdk" / "typescript"
VECTORS = ROOT / "client_sdk" / "vectors"
NOT_BUILT = ("node_modules", "dist", "build")


def built_client() -> Path:
    """Return the folder of the client, installed and built; other processes may ask at once."""
    npm()
    with alone():
        lock = FOLDER / "package-lock.json"
        once(
            "node_modules/installed",
            digest([lock]),
            lambda: install("TypeScript's compiler", FOLDER),
        )
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


def build() -> None:
    run = subprocess.run(
        ["npm", "run", "build"], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
