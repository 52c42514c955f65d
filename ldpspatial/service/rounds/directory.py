"""The directory of a campaign: it enrols identities, each once, and signs what it has enrolled.

It needs nothing of the rounds and may run on another store, of another party; where clients trust
the server of the rounds to follow the protocol, one store may do for both.
"""

import secrets

from client_sdk.rounds.shared import KEY_BYTES, Certificate, SigningKey, check_identity
from ldpspatial.errors import InputError
from ldpspatial.service.database import ChangedStoreError, Database, Statement
from ldpspatial.service.tables import checked
from ldpspatial.validate import whole_number

MOST_IDENTITIES = 1 << 24
TRIES = 100  # when others enrol at the same moment


class FullDirectoryError(Exception):
    """The directory has enrolled as many as it may."""


async def open_directory(database: Database, campaign: str, most: int) -> bytes:
    """Make the directory of a campaign; return its public key.

    Parameters
    ----------
    database : Database
        With the tables of rounds.
    campaign : str
        Digest of the campaign.
    most : int
        Most identities that it enrols.

    Raises
    ------
    InputError
        There is one.
    """
    most = whole_number("most", most, 2, MOST_IDENTITIES)
    if await _row(database, campaign) is not None:
        raise InputError("directory must be new, but the store has that of the campaign")
    private = secrets.token_bytes(KEY_BYTES)
    sql = "INSERT INTO round_directory (campaign, private, most) VALUES ($1, $2, $3)"
    await database.run([Statement(sql, [(campaign, private, most)])])
    return SigningKey(lambda _: private).public


async def enrol(database: Database, campaign: str, identity: bytes) -> Certificate | None:
    """Enrol an identity, or find it; None where the store has no directory of the campaign.

    Raises
    ------
    FullDirectoryError
        As many as may be are enrolled.
    client_sdk.ParameterError
        It is no identity.
    """
    check_identity(identity)
    row = await _row(database, campaign)
    if row is None:
        return None
    private, most = row
    key = SigningKey(lambda _: private)
    for _ in range(TRIES):
        found = await checked(
            database, (int,),
            "SELECT number FROM round_identities WHERE campaign = $1 AND identity = $2",
            campaign, identity,
        )  # fmt: skip
        if found:
            return Certificate.issue(key, campaign, found[0][0], identity)
        number = await enrolled(database, campaign)
        if number >= most:
            raise FullDirectoryError
        sql = (
            "INSERT INTO round_identities (campaign, number, identity) VALUES ($1, $2, $3) "
            "ON CONFLICT DO NOTHING"
        )
        try:
            await database.run([Statement(sql, [(campaign, number, identity)], expected=1)])
        except ChangedStoreError:
            continue  # somebody else has the number
    raise ChangedStoreError("others enrol all the time")


async def enrolled(database: Database, campaign: str) -> int:
    """Return how many identities a campaign has."""
    sql = "SELECT COUNT(*) FROM round_identities WHERE campaign = $1"
    ((number,),) = await checked(database, (int,), sql, campaign)
    return int(number)


async def _row(database: Database, campaign: str) -> tuple[bytes, int] | None:
    sql = "SELECT private, most FROM round_directory WHERE campaign = $1"
    rows = await checked(database, (bytes, int), sql, campaign)
    return (rows[0][0], rows[0][1]) if rows else None
