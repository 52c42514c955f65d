"""File systems of a test's own: small, and such that go read-only; mounted where root may."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def _must(*command: object) -> None:
    """Run a command, or skip the test."""
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not here: this failure of a disk was not tested")
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{command[0]} may not be used here ({done.stderr.strip()[:80]}): not tested")


class Disk:
    """A mounted file system.

    Attributes
    ----------
    folder : Path
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def fill(self) -> None:
        """Use all room that is left."""
        with (self.folder / "filler").open("ab", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                return

    def empty(self) -> None:
        """Give back what :meth:`fill` used."""
        (self.folder / "filler").unlink()

    def remount(self, options: str) -> None:
        """Change how it is mounted."""
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.folder)], check=True)


@contextmanager
def memory_disk(folder: Path, size: str) -> Iterator[Disk]:
    """Mount a file system of some size in memory."""
    folder.mkdir()
    _must("mount", "-t", "tmpfs", "-o", f"size={size},mode=777", "none", folder)
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def file_disk(folder: Path, image: Path) -> Iterator[Disk]:
    """Mount an ext4 file system from a file; after an error it is read-only, as disks are."""
    folder.mkdir(exist_ok=True)
    if not image.exists():
        with image.open("wb") as file:
            file.truncate(16 << 20)
        _must("mkfs.ext4", "-q", image)
    _must("mount", "-o", "loop", image, folder)
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        _await_release(image)


def _await_release(image: Path) -> None:
    """Wait until an image is mounted nowhere.

    A sandbox of a browser that another test starts meanwhile holds a copy of every mount for a
    while; mounted again until then, the file system would still be read-only.
    """
    for _ in range(300):
        looked = subprocess.run(
            ["losetup", "--associated", str(image)], capture_output=True, text=True, check=False
        )
        if not looked.stdout:
            return
        time.sleep(0.1)
