"""The service ends what it began, wherever a start or an end fails."""

import asyncio
from pathlib import Path

import pytest

from ldpspatial.service import app as module
from ldpspatial.service.app import make_app
from ldpspatial.service.database import StoreError
from ldpspatial.service.group_commit import GroupCommit
from ldpspatial.service.limits import Limits
from ldpspatial.service.maps import Maps
from ldpspatial.service.store import Store, make_store
from ldpspatial.service.windows import Clock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    async def made() -> None:
        await (await make_store(tmp_path / "store.db")).close()

    asyncio.run(made())
    return tmp_path / "store.db"


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what was ended, in this order."""
    names: list[str] = []

    def noted(kind: type, method: str) -> None:
        plain = getattr(kind, method)

        async def end(self: object) -> None:
            names.append(kind.__name__)
            await plain(self)

        monkeypatch.setattr(kind, method, end)

    noted(Store, "close")
    noted(Maps, "close")
    noted(GroupCommit, "stop")
    noted(Clock, "stop")
    return names


def serve(path: Path) -> None:
    async def whole() -> None:
        app = make_app(path, Limits())
        async with app.router.lifespan_context(app):
            pass

    asyncio.run(whole())


def test_all_is_ended_last_things_first(path: Path, ended: list[str]) -> None:
    serve(path)
    assert ended == ["Clock", "GroupCommit", "Maps", "Store"]


def test_a_start_that_fails_leaves_nothing_open(
    path: Path, ended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        raise StoreError("the rounds must be of version 3")

    monkeypatch.setattr(module, "has_rounds", fails)
    with pytest.raises(StoreError):
        serve(path)
    assert ended == ["Maps", "Store"]


def test_an_end_that_fails_keeps_no_other_from_ending(
    path: Path, ended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(self: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Clock, "stop", fails)
    with pytest.raises(ZeroDivisionError):
        serve(path)
    assert ended == ["GroupCommit", "Maps", "Store"]
