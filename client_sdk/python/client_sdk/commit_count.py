"""How many commits a ledger has had, kept beside it: it exposes an older ledger.

A folder with one empty file, whose name is the number. To write the next one is to rename the
file, which is atomic and takes no room. And a name cannot be overwritten by an older one: whoever
copies an older state back leaves two names, whichever way it is copied.
"""

import os
from contextlib import suppress
from pathlib import Path

from client_sdk import file_lock
from client_sdk.file_identity import Mark, mark_of

DIGITS = 20


class CountError(ValueError):
    """The count is not as this module left it; the message says what it is instead."""


def read(folder: Path) -> int:
    """Return the number of commits; CountError unless there is one name, which is a number."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        raise CountError("copied or moved: its count is missing") from None
    except NotADirectoryError:
        raise CountError("its count is damaged") from None
    # Programs that show folders leave files of their own in them, which say nothing.
    numbers = [name for name in names if len(name) == DIGITS and name.isascii() and name.isdigit()]
    if names and not numbers:
        raise CountError("its count is damaged")
    if len(numbers) != 1:
        state = "another state of its count was put in place" if numbers else "its count is missing"
        raise CountError(f"copied, moved or restored: {state}")
    return int(numbers[0])


def write(folder: Path, before: int, commits: int) -> None:
    """Put a number in the place of another, and wait until it is on the disk."""
    try:
        os.rename(_entry(folder, before), _entry(folder, commits))
    except FileNotFoundError:
        raise CountError("copied, moved or restored: its count was removed in a call") from None
    file_lock.synchronise_folder(folder)


def make(folder: Path, commits: int) -> None:
    """Make the count where there is none, or where a call that was killed left it empty."""
    folder.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(_entry(folder, commits), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    file_lock.synchronise_folder(folder)


def is_begun(folder: Path) -> bool:
    """Tell whether there is a count with a number, or with whatever else."""
    try:
        return bool(os.listdir(folder))
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        return True


def remove(folder: Path) -> None:
    """Delete a count that was made and never used."""
    with suppress(FileNotFoundError):
        for name in os.listdir(folder):
            (folder / name).unlink()
        folder.rmdir()


def mark(folder: Path) -> Mark:
    """Return the mark of the file, which stays when it is renamed."""
    return mark_of(_entry(folder, read(folder)))


def _entry(folder: Path, commits: int) -> Path:
    return folder / f"{commits:0{DIGITS}d}"
