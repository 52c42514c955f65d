"""Folders in memory, where there is room: for tests that test no disk."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108
ROOM = 1 << 30  # bytes


def quick_place() -> str | None:
    """Return where files are quick, or None where that is on a disk."""
    is_roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
    return str(MEMORY) if is_roomy else None


@contextmanager
def quick_folder() -> Iterator[Path]:
    """Make a folder there, and delete it."""
    with tempfile.TemporaryDirectory(dir=quick_place()) as folder:
        yield Path(folder)
