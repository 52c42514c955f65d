"""The tables of rounds in a store; they are made when the first campaign is opened."""

import hashlib

from client_sdk.rounds import Campaign
from ldpspatial.service.database import DamagedStoreError, Database, Statement, StoreError
from ldpspatial.service.tables import checked

VERSION = 3

TABLES = (
    "CREATE TABLE round_store (version {whole} NOT NULL)",
    # What a directory signs with; its public key is what clients are given.
    "CREATE TABLE round_directory (campaign TEXT NOT NULL UNIQUE, private {bytes} NOT NULL, "
    "most {whole} NOT NULL)",
    "CREATE TABLE round_identities (campaign TEXT NOT NULL, number {whole} NOT NULL, "
    "identity {bytes} NOT NULL, UNIQUE (campaign, identity), UNIQUE (campaign, number))",
    # people, tolerated_ppm and release are those of the plan.
    "CREATE TABLE round_campaigns (digest TEXT NOT NULL UNIQUE, document TEXT NOT NULL, "
    "directory {bytes} NOT NULL, people {whole} NOT NULL, tolerated_ppm {whole} NOT NULL, "
    "release TEXT NOT NULL)",
    # state is gathering, summing or over; came is how many asked for seats, once these are dealt.
    "CREATE TABLE round_rounds (campaign TEXT NOT NULL, number {whole} NOT NULL, "
    "document TEXT NOT NULL, state TEXT NOT NULL, came {whole} NOT NULL DEFAULT 0, "
    "UNIQUE (campaign, number))",
    # One round a person; the certificate is empty once seats are dealt.
    "CREATE TABLE round_requests (campaign TEXT NOT NULL, round {whole} NOT NULL, "
    "person {whole} NOT NULL, certificate {bytes} NOT NULL, UNIQUE (campaign, person))",
    # state is running, summed or aborted; secret is what seats' tokens and the circle come from.
    "CREATE TABLE round_sessions (session TEXT NOT NULL UNIQUE, campaign TEXT NOT NULL, "
    "round {whole} NOT NULL, state TEXT NOT NULL, step {whole} NOT NULL, heard {whole} NOT NULL, "
    "secret {bytes} NOT NULL, asked {whole} NOT NULL, survivors {whole} NOT NULL, total {bytes})",
    # How many were heard in each step that is closed.
    "CREATE TABLE round_steps (session TEXT NOT NULL, step {whole} NOT NULL, "
    "heard {whole} NOT NULL, UNIQUE (session, step))",
    "CREATE TABLE round_seats (session TEXT NOT NULL, number {whole} NOT NULL, "
    "certificate {bytes} NOT NULL, UNIQUE (session, number))",
    "CREATE TABLE round_messages (session TEXT NOT NULL, step {whole} NOT NULL, "
    "number {whole} NOT NULL, body {bytes} NOT NULL, UNIQUE (session, step, number))",
)


async def has_rounds(database: Database) -> bool:
    """Tell whether a store has the tables of rounds.

    Raises
    ------
    StoreError
        It has those of another version, or cannot be read: whoever took that for a store without
        campaigns would send their people away for good.
    """
    if not await database.has_table("round_store"):
        return False
    rows = await database.read("SELECT version FROM round_store")
    if rows != [(VERSION,)]:
        found = ", ".join(str(version) for (version,) in rows) or "none"
        raise StoreError(
            f"the rounds of {database.name} must be of version {VERSION}, got {found}: open new "
            "campaigns in a new store"
        )
    return True


async def make_round_tables(database: Database) -> None:
    """Make the tables in a store that has none of them."""
    statements = [Statement(sql.format(**database.types)) for sql in TABLES]
    version = Statement("INSERT INTO round_store (version) VALUES ($1)", [(VERSION,)])
    await database.run([*statements, version])


async def end_rounds(database: Database) -> None:
    """End what runs, without a sum, and delete all that people sent for it.

    For a copy of a store: what was masked is not to lie in back-ups, and a session that goes on
    from a copy would ask people who have long gone on. Which round each person asked for stays, as
    long as the campaign has another.
    """
    if not await has_rounds(database):
        return
    asked = "SELECT DISTINCT campaign, round FROM round_requests"
    statements = [
        Statement("UPDATE round_sessions SET state = 'aborted', secret = $1 "
                  "WHERE state = 'running'", [(b"",)]),
        Statement("UPDATE round_rounds SET came = (SELECT COUNT(*) FROM round_requests AS q "
                  "WHERE q.campaign = round_rounds.campaign AND q.round = number) "
                  "WHERE state = 'gathering'"),
        Statement("UPDATE round_rounds SET state = 'over' WHERE state <> 'over'"),
        *(Statement(sql) for sql in ("DELETE FROM round_messages", "DELETE FROM round_seats")),
    ]  # fmt: skip
    for digest, number in await checked(database, (str, int), asked):
        statements += only_who_asked(digest, number)
    campaigns = (
        "SELECT digest, c.document, MAX(number) FROM round_campaigns AS c "
        "JOIN round_rounds ON campaign = digest GROUP BY digest, c.document"
    )
    for digest, text, number in await checked(database, (str, str, int), campaigns):
        check_document(database, text, digest)
        statements += forgotten(Campaign.from_json(text), number)
    await database.run(statements)


def only_who_asked(digest: str, number: int) -> list[Statement]:
    """Return what keeps of the requests for a round who made them, and not in which order.

    The rows are made anew, by person: a table keeps the order in which its rows came. As two rows
    cannot be of one person, the new ones are of persons below zero until the old ones are gone.
    """
    one = (digest, number)
    anew = (
        "INSERT INTO round_requests (campaign, round, person, certificate) "
        "SELECT campaign, round, -1 - person, $3 FROM round_requests "
        "WHERE campaign = $1 AND round = $2 ORDER BY person"
    )
    # Not of somebody who asked just now, through another process: that they asked has to stay.
    old = (
        "DELETE FROM round_requests WHERE campaign = $1 AND round = $2 AND person >= 0 "
        "AND -1 - person IN (SELECT person FROM round_requests WHERE campaign = $1 AND round = $2)"
    )
    named = (
        "UPDATE round_requests SET certificate = $3, "
        "person = CASE WHEN person < 0 THEN -1 - person ELSE person END "
        "WHERE campaign = $1 AND round = $2"
    )
    return [
        Statement(anew, [(*one, b"")]), Statement(old, [one]), Statement(named, [(*one, b"")])
    ]  # fmt: skip


def forgotten(campaign: Campaign, number: int) -> list[Statement]:
    """Return what deletes who asked for which round, once a campaign's last round is over."""
    sql = "DELETE FROM round_requests WHERE campaign = $1"
    return [Statement(sql, [(campaign.digest,)])] if number == campaign.rounds else []


def check_document(database: Database, text: str, digest: str) -> None:
    """Refuse a document that is not the one that was stored."""
    if hashlib.sha256(text.encode()).hexdigest() != digest:
        raise DamagedStoreError(database.name, "a campaign is not what was opened")
