"""What operators do over HTTP, and who may."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from client_sdk import Collection
from ldpspatial.errors import InputError
from ldpspatial.service.store import Store, make_store, open_store
from ldpspatial.service.tokens import is_token, make_token, revoke_token, token_names
from tests.support.command_line import succeed
from tests.support.service import COLLECTION, OTHER, Server, lines, report, serving


async def _prepared(path: Path) -> str:
    store = await make_store(path)
    token = await make_token(store, "laptop")
    await store.close()
    return token


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def token(path: Path) -> str:
    return asyncio.run(_prepared(path))


@pytest.fixture
def server(path: Path, token: str) -> Iterator[Server]:
    with serving(path) as found:
        yield found


def ask(server: Server, token: str, method: str, path: str, content: Any = None) -> tuple[int, Any]:
    body = b"" if content is None else json.dumps(content).encode()
    status, headers, answer = server.request(
        method, f"/operator/collections{path}", body, Authorization=f"Bearer {token}"
    )
    assert status >= 400 or headers["cache-control"] == "no-store"
    return status, json.loads(answer)


def test_a_collection_from_its_document_to_its_counts(server: Server, token: str) -> None:
    at = f"/{COLLECTION.digest}"
    new = {"document": COLLECTION.to_json(), "minimum": 3}
    status, told = ask(server, token, "POST", "", new)
    assert (status, told["state"], told["received"], told["counted"]) == (201, "open", 0, None)
    sent = [report((1, 1)), report((2, 2)), report((2, 2))]
    assert server.post(lines(sent))[0] == 204  # at once
    assert server.post(lines([sent[0], report((999, 0))]))[0] == 200
    status, told = ask(server, token, "GET", at)
    assert (told["received"], told["refused"]) == (4, {"foreign": 1})
    assert ask(server, token, "POST", f"{at}/release")[0] == 422
    assert ask(server, token, "GET", f"{at}/counts")[0] == 422
    status, told = ask(server, token, "POST", f"{at}/close")
    assert (status, told["state"], told["counted"], told["repeated"]) == (200, "closed", 3, 1)
    assert server.post(lines([report()]))[0] == 410
    status, told = ask(server, token, "POST", f"{at}/release")
    assert (status, told["state"]) == (200, "released")
    status, told = ask(server, token, "GET", f"{at}/counts")
    radius = COLLECTION.table.radius
    assert told["counts"][2 + radius][2 + radius] == 2
    assert sum(map(sum, told["counts"])) == 3
    status, told = ask(server, token, "GET", "")
    assert [each["digest"] for each in told] == [COLLECTION.digest]
    assert ask(server, token, "POST", f"{at}/release")[0] == 422  # once


def test_refusals_that_name_no_collection_have_a_place(
    server: Server, token: str, path: Path
) -> None:
    def refused() -> Any:
        named = {"Authorization": f"Bearer {token}"}
        return json.loads(server.request("GET", "/operator/refused", **named)[2])

    assert server.request("GET", "/operator/refused")[0] == 401
    assert refused() == {}
    assert server.post(b"hello\n{}\n")[0] == 422
    assert server.post(lines([report()]))[0] == 422  # of a collection that the store has not
    assert refused() == {"malformed": 2, "foreign": 1}
    server.stop()
    shown = succeed("store", "list", path).output
    assert shown.startswith("Reports of no collection here\n")
    assert re.search(r"refused +1 foreign, 2 malformed\n", shown)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "document"),
        ({"document": "x", "minimum": 3}, "not valid JSON"),
        ({"document": COLLECTION.to_json(), "minimum": 0}, "minimum must be"),
        ({"document": COLLECTION.to_json(), "minimum": "3"}, "minimum"),
        ({"document": COLLECTION.to_json(), "minimum": 3, "x": 1}, "unknown field"),
        ([], "Expected `object`"),
    ],
)
def test_a_bad_collection_is_refused_with_a_reason(
    server: Server, token: str, content: Any, message: str
) -> None:
    status, told = ask(server, token, "POST", "", content)
    assert (status, message in told["detail"]) == (422, True), told
    assert ask(server, token, "GET", "")[1] == []


def test_a_collection_is_added_once(server: Server, token: str) -> None:
    new = {"document": OTHER.to_json(), "minimum": 3}
    assert ask(server, token, "POST", "", new)[0] == 201
    status, told = ask(server, token, "POST", "", new)
    assert (status, "must be new" in told["detail"]) == (422, True)
    assert ask(server, token, "GET", "/" + "0" * 64)[0] == 404


@pytest.mark.parametrize(
    "sent", ["", "Bearer", "Bearer ", "Basic {}", "{}", "Bearer {}x", "Bearer x{}", "bearer \xe9"]
)
def test_only_the_token_opens_the_operators_part(server: Server, token: str, sent: str) -> None:
    status, headers, content = server.request(
        "GET", "/operator/collections", Authorization=sent.format(token)
    )
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    assert token.encode() not in content


def test_a_revoked_token_is_refused_from_the_next_request_on(
    server: Server, token: str, path: Path
) -> None:
    assert ask(server, token, "GET", "")[0] == 200

    async def revoke() -> None:
        store = await open_store(path)
        await revoke_token(store, "laptop")
        await store.close()

    asyncio.run(revoke())
    assert ask(server, token, "GET", "")[0] == 401


def test_tokens_are_held_as_hashes_under_names(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def act() -> str:
        store: Store = await make_store(path)
        first = await make_token(store, "laptop")
        second = await make_token(store, "cron")
        assert first != second
        assert await token_names(store) == ["cron", "laptop"]
        assert [await is_token(store, each) for each in (first, second)] == [True, True]
        for wrong in ("", first[:-1], f"{first} ", first.swapcase(), "\ud800", "a" * 10**6):
            assert not await is_token(store, wrong)
        for name in ("laptop", "", "x" * 101, "a\nb", None, 3):
            with pytest.raises(InputError, match="name must be"):
                await make_token(store, name)  # type: ignore[arg-type]
        await revoke_token(store, "laptop")
        assert not await is_token(store, first)
        with pytest.raises(InputError, match="name must be that of a token"):
            await revoke_token(store, "laptop")
        await store.close()
        return second

    token = asyncio.run(act())
    assert token.encode() not in path.read_bytes()


def test_documents_that_devices_fetch_are_those_that_operators_added(
    server: Server, token: str
) -> None:
    ask(server, token, "POST", "", {"document": COLLECTION.to_json(), "minimum": 3})
    _, _, content = server.request("GET", f"/collections/{COLLECTION.digest}")
    assert Collection.from_json(content.decode(), COLLECTION.digest).digest == COLLECTION.digest
