"""Tokens of operators: shown once, held as hashes, revocable by name."""

import hashlib
import hmac
import secrets

from ldpspatial.errors import InputError
from ldpspatial.service.database import Statement
from ldpspatial.service.store import Store
from ldpspatial.validate import shown

TOKEN_BYTES = 32
LONGEST_NAME = 100


async def make_token(store: Store, name: str) -> str:
    """Return a new token, which is not stored, and store its hash under a name.

    Raises
    ------
    InputError
        The name is taken, empty or too long.
    """
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise InputError(
            f"name must be a text of 1 to {LONGEST_NAME} printable characters, got {shown(name)}"
        )
    if name in await token_names(store):
        raise InputError(f"name must be new, but there is a token {shown(name)}")
    token = secrets.token_urlsafe(TOKEN_BYTES)
    sql = "INSERT INTO tokens (name, hash) VALUES ($1, $2)"
    await store.database.run([Statement(sql, [(name, _hash(token))])])
    return token


async def token_names(store: Store) -> list[str]:
    """Return the names of all tokens."""
    return [name for (name,) in await store.database.read("SELECT name FROM tokens ORDER BY name")]


async def revoke_token(store: Store, name: str) -> None:
    """Make a token useless from the next request on.

    Raises
    ------
    InputError
        There is no token of this name.
    """
    sql = "DELETE FROM tokens WHERE name = $1"
    if await store.database.run([Statement(sql, [(name,)])]) == [0]:
        raise InputError(f"name must be that of a token, got {shown(name)}")


async def is_token(store: Store, token: str) -> bool:
    """Tell whether a token is one of the store, in a time that does not depend on how near it is.

    A token has 256 random bits, so that a plain hash of it cannot be reversed by guessing.
    """
    given = _hash(token)
    rows = await store.database.read("SELECT hash FROM tokens")
    return any([hmac.compare_digest(bytes(stored), given) for (stored,) in rows])  # noqa: C419


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
