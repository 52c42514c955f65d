"""What commands on a store share; without the imports that only some of them need."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ldpspatial.errors import InputError

if TYPE_CHECKING:
    from ldpspatial.service.store import Store

Result = TypeVar("Result")

SQLITE = b"SQLite format 3\0"  # how each file of SQLite begins
store_argument = click.argument("store", metavar="STORE")


@contextmanager
def needs_extra() -> Iterator[None]:
    """Say what to install where a package is missing."""
    try:
        yield
    except ImportError as error:
        extra = "postgres" if error.name == "asyncpg" else "serve"
        raise InputError(
            f"the service needs {error.name}: install it with pip install 'ldpspatial[{extra}]'"
        ) from None


def is_store(location: str) -> bool:
    """Tell whether this is the address of a database, or a file that SQLite made.

    To be asked before the store is opened: SQLite's locks fall when its file is closed here.
    """
    if location.startswith(("postgresql://", "postgres://")):
        return True
    try:
        with Path(location).open("rb") as stream:
            return stream.read(len(SQLITE)) == SQLITE
    except (OSError, ValueError):  # who reads it next says what is wrong
        return False


def with_store(location: str, act: "Callable[[Store], Coroutine[Any, Any, Result]]") -> Result:
    """Open a store, act on it, and close it."""

    async def run() -> Result:
        with needs_extra():
            from ldpspatial.service.store import open_store  # noqa: PLC0415

            store = await open_store(location)
        try:
            return await act(store)
        finally:
            await store.close()

    return asyncio.run(run())
