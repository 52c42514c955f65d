"""Stores on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres import PostgresServer, missing


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    if why := missing():
        pytest.skip(why)
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return where a new store can be made."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()
