"""What a store asks of a database: transactions that are durable when they return.

The SQL of :mod:`ldpspatial.service.store` is the same for SQLite and PostgreSQL, with parameters
written $1, $2 and so on. A transaction is a list of statements, sent together, so that it never
waits for what runs between two of them; what it must find is said beforehand (``expected``) and
holds, or nothing of it is done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ldpspatial.errors import LdpSpatialError

Row = tuple[Any, ...]


class StoreError(LdpSpatialError):
    """The store did not do it, and has done nothing of it: a full disk, a lost connection.

    What is stored stays stored; the same call may succeed later.
    """


class DamagedStoreError(StoreError):
    """What the store holds is not what was written to it.

    Parameters
    ----------
    store : str
        Which store: :attr:`Database.name`.
    what : str
        What does not fit, without anything that a report holds.
    """

    def __init__(self, store: str, what: str):
        super().__init__(
            f"{store} is damaged ({what}): stop the service, keep what is there, and restore a "
            "back-up; devices send again what was not acknowledged"
        )


class ChangedStoreError(StoreError):
    """Another process changed what this transaction builds on: read again, and repeat it."""


@dataclass(frozen=True)
class Statement:
    """One statement of a transaction.

    Attributes
    ----------
    sql : str
        With parameters $1, $2, ...
    rows : sequence of tuples
        Parameters; the statement is carried out once with each of them.
    expected : int, optional
        Rows of tables that it must change in all, else the transaction is undone
        (:class:`ChangedStoreError`).
    follows : bool
        Leave it out where the statement before it changed no row.
    """

    sql: str
    rows: Sequence[Row] = field(default=((),))
    expected: int | None = None
    follows: bool = False


class Database(Protocol):
    """A connection that a store works with; every method may raise :class:`StoreError`.

    Attributes
    ----------
    name : str
        The store in the words of a message: "the store at berlin.db".
    types : mapping
        What ``serial`` (a key that counts up by itself), ``bytes`` and ``whole`` (64 bits) are
        called in its SQL.
    """

    @property
    def name(self) -> str:
        """See above."""

    @property
    def types(self) -> Mapping[str, str]:
        """See above."""

    async def run(self, statements: Sequence[Statement]) -> list[int]:
        """Carry out one transaction; return how many rows each statement changed.

        It is durable when this returns.
        """

    async def read(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows that a query finds."""

    async def has_table(self, name: str) -> bool:
        """Tell whether there is a table of this name."""

    async def tidy(self, everything: bool = False) -> bool:
        """Give up what the database keeps of rows that were deleted, as far as it can.

        Parameters
        ----------
        everything : bool
            Also what takes time in proportion to all reports that it holds.

        Returns
        -------
        bool
            False where somebody is reading what was deleted: to be done again later. It waits for
            nobody, and costs next to nothing where there is nothing to do.
        """

    async def close(self) -> None:
        """End the connection."""
