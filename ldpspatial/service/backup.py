"""Copies a store while it is used: to back it up, and to make a store of a back-up.

The copy is of one moment. In it every report was gathered, so that it does not keep the order of
arrival for as long as a back-up lives, and everything was checked: a back-up of a damaged store is
none. It holds no token, so that one that is revoked later does not come back with it.
"""

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ldpspatial.errors import InputError
from ldpspatial.service.closing import check_reports
from ldpspatial.service.database import Statement
from ldpspatial.service.group_commit import SETTLED_ON_STOP
from ldpspatial.service.rounds.tables import end_rounds
from ldpspatial.service.sqlite import SqliteDatabase, new_file
from ldpspatial.service.store import Store, open_store
from ldpspatial.service.upkeep import forget, settle
from ldpspatial.validate import file_path

BESIDE = ("-wal", "-shm", "-journal")  # files that SQLite would take for those of the copy


async def back_up(store: Store, path: str | os.PathLike[str]) -> None:
    """Write a copy of a store in a SQLite file, whole or not at all, for the owner's eyes alone.

    Parameters
    ----------
    store : Store
        Others may write to it meanwhile.
    path : path or str
        A file that is not there.

    Raises
    ------
    InputError
        The file is there, or the store is in PostgreSQL.
    StoreError
        There is no room for it, or the store is damaged.
    """
    target = file_path("path", path)
    if not isinstance(store.database, SqliteDatabase):
        raise InputError("store must be a file, got a PostgreSQL database: copy it with pg_dump")
    for name in (target, *(target.with_name(target.name + end) for end in BESIDE)):
        if os.path.lexists(name):
            raise InputError(f"path must be a new file, but {name} is there")
    if not target.absolute().parent.is_dir():
        raise InputError(f"path must lie in a folder that exists, got {str(target)!r}")
    async with _unfinished(target) as copy:
        await store.database.copy_to(copy)
        await _put_in_order(copy)
        _sync(copy)
        try:
            os.link(copy, target)  # unlike renaming, this replaces nothing
        except OSError as error:
            raise InputError(f"path must be a new file, got {target}: {error.strerror}") from None
        _sync(target.parent)


@asynccontextmanager
async def _unfinished(target: Path) -> AsyncIterator[Path]:
    """Yield an empty file beside the target, which is removed again."""
    copy = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    new_file(copy)
    try:
        yield copy
    finally:
        for end in ("", *BESIDE):
            copy.with_name(copy.name + end).unlink(missing_ok=True)


async def _put_in_order(copy: Path) -> None:
    store = await open_store(copy)
    try:
        await store.database.run([Statement("DELETE FROM tokens")])
        await end_rounds(store.database)
        await forget(store.database)
        await settle(store.database, SETTLED_ON_STOP)
        for held in await store.collections():
            await check_reports(store, held)
    finally:
        await store.close()


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
