"""A new ledger: complete under its name, or not there."""

import os
from contextlib import closing, suppress
from pathlib import Path

from client_sdk import commit_count, file_lock
from client_sdk.file_lock import HeldLock
from client_sdk.ledger_errors import explained
from client_sdk.ledger_file import (
    connect,
    count_of,
    lock_of,
    make_durable,
    make_tables,
    new_head,
)


def create(file: Path, caps: tuple[int, int]) -> None:
    """Write a new ledger where there is none; what a killed call left is taken over.

    The ledger appears under its name when it is complete. Until then the count says 0, so nothing
    can have been spent.
    """
    with explained(file):
        _check_free(file)
        with suppress(FileExistsError):
            file_lock.make(lock_of(file))
        with file_lock.locked(lock_of(file)) as lock:
            _check_free(file)  # another process may have been quicker
            if commit_count.is_begun(count_of(file)) and commit_count.read(count_of(file)):
                raise FileExistsError("a ledger was here: its count exists")
            try:
                _write(file, caps, lock)
            except BaseException:
                if not os.path.lexists(file):  # or else it is complete, and needs all three
                    _new_of(file).unlink(missing_ok=True)
                    commit_count.remove(count_of(file))
                    lock_of(file).unlink(missing_ok=True)
                raise


def _check_free(file: Path) -> None:
    if os.path.lexists(file):
        raise FileExistsError("File exists")
    if os.path.lexists(lock_of(_new_of(file))):  # of a ledger, which would be deleted
        raise FileExistsError(f"the file {_new_of(file).name} exists, under which it is made")


def _write(file: Path, caps: tuple[int, int], lock: HeldLock) -> None:
    new = _new_of(file)
    for left in (new, _journal_of(new), _journal_of(file)):
        left.unlink(missing_ok=True)  # of a call that was killed, or of a ledger that is gone
    commit_count.remove(count_of(file))
    commit_count.make(count_of(file), 0)
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with closing(connect(new, holds_off=False)) as connection:
        make_durable(connection)
        connection.execute("BEGIN EXCLUSIVE")
        make_tables(connection, new_head(caps, lock.identity, new, file))
        connection.execute("COMMIT")
    new.rename(file)
    file_lock.synchronise_folder(file.parent)


def _new_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.new")


def _journal_of(file: Path) -> Path:
    return file.with_name(f"{file.name}-journal")
