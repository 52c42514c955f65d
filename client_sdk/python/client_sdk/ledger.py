"""What this device has spent, kept across restarts.

A report and its spending enter one SQLite file in one transaction, and the report is handed out
only once that transaction is on the disk. Whatever happens in between (an error, a crash, a full
disk, a lost battery), no report leaves the device uncounted; at worst one is counted and waits
in :meth:`Ledger.pending`. An uploader sends those stored bytes until they are acknowledged: a
second draw for the same position would be a second disclosure.

The file holds integer micro-epsilons, the names of collections, keyed hashes of the readings that
were answered, what the device joined, the reports not yet acknowledged, and the state of rounds,
with the identity that the device has drawn for each campaign. It holds no clock
(setting one back would refill the budget), no other identifier of the device or its user and no
position. Checksums find damage that SQLite, which has none, would read as data; a damaged ledger
refuses to work. They have no key: they stop accidents, not a person who edits the file.

A copy refuses to work as well, as does an older state of the files that was put back
(:mod:`client_sdk.ledger_file`). Not protected: whoever deletes them all and creates another ledger
has refilled the budget, and so has an image of the whole disk. The embedding app must keep the
folder out of storage that "clear app data" or a second installation reaches, and must call
:meth:`Ledger.create` only when it is installed. That is why opening never creates: an app that
made a new ledger whenever it found none would do the refilling itself.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from math import floor
from pathlib import Path

from client_sdk import ledger_file, ledger_making, ledger_upgrade
from client_sdk.errors import AlreadyGivenError, BudgetError, ParameterError
from client_sdk.events import event_name
from client_sdk.lasting import check_lasting
from client_sdk.ledger_errors import explained
from client_sdk.ledger_file import Head, Transaction
from client_sdk.uninterrupted import uninterrupted
from client_sdk.validate import (
    MICRO,
    path_text,
    unicode_text,
    whole_number,
    written_epsilon,
)

MAX_SPENDING = 10**9  # micro-epsilons in one report
MAX_CAP = 10**12  # micro-epsilons; every sum stays far below the 2**63 of SQLite
MAX_LIMIT = 10**18  # micro-epsilons; never stored

_DECIMAL = re.compile(r"[0-9]{1,30}(\.[0-9]{1,30})?(e[-+]?[0-9]{1,3})?", re.IGNORECASE)

Draw = Callable[[], tuple[str, str]]
Advance = Callable[["str | None"], tuple[str, int]]  # state so far -> new state, micro-epsilons


class Ledger:
    """The record of spending of one device; safe to share by threads and processes.

    Every call opens the files anew, takes the lock, verifies what it reads and closes them again,
    so that files which were deleted, replaced or damaged in the meantime are noticed. What a call
    costs does not depend on how many reports wait. A process must not fork inside ``draw``. The
    handler of a signal may use the ledger, but must not wait for another thread that does: it may
    have come in the middle of a call of this thread.

    Parameters
    ----------
    path : str or os.PathLike
        An existing ledger file, made by :meth:`create`, with ``.lock`` and ``.count`` beside it;
        SQLite puts a journal there too. All of it is read and verified here. A ledger of the
        first version is brought to this one.

    Raises
    ------
    LedgerError
        From every method: the file is missing, empty, damaged, a copy, not a ledger, on a file
        system without locks, or used by others all the time (LedgerBusyError); also when it cannot
        be written. The message says what to do.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(os.path.join(folder.name, "ledger.db"), cap_epsilon=8)
    >>> ledger.spend("c0ffee", 3_500_000, None, lambda: ("01", "report 01"))
    'report 01'
    >>> ledger.pending(), ledger.remaining()
    (['report 01'], 4500000)
    >>> folder.cleanup()
    """

    @uninterrupted
    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self._path = _absolute(path)
        ledger_upgrade.upgrade(self._file)
        with ledger_file.transaction(self._file, verify=True):
            pass

    @property
    def folder(self) -> Path:
        """Where the ledger lies."""
        return self._path.parent

    @property
    def _file(self) -> Path:
        """The file itself: what protects it lies beside it and not beside a link to it."""
        return Path(os.path.realpath(self._path))

    @classmethod
    @uninterrupted
    def create(
        cls,
        path: "str | os.PathLike[str]",
        cap_epsilon: object,
        collection_cap_epsilon: object = None,
        *,
        lasting: bool = False,
    ) -> "Ledger":
        """Make a new, unspent ledger: once, when the app is installed.

        A process killed in here leaves a ledger, or none: then this may be called again.

        Parameters
        ----------
        path : str or os.PathLike
            Where there is no file yet, not even an empty one, and no count of a used ledger.
        cap_epsilon : int, float, Decimal or str
            What the device may spend over all collections and all time, in epsilon; read by its
            shortest decimal text and rounded down to a micro-epsilon.
        collection_cap_epsilon : int, float, Decimal or str, optional
            What it may spend on any one collection; by default all of it.
        lasting : bool
            Needed on Emscripten, see :meth:`Device.install`; no effect elsewhere.

        Raises
        ------
        ParameterError
            A cap is not a number from 1e-6 to 1e6, or the second exceeds the first.
        LedgerError
            The path is taken, cannot be written or does not last.
        """
        file = _absolute(path)
        caps = caps_of(cap_epsilon, collection_cap_epsilon)
        check_lasting(file.parent, lasting)
        ledger_making.create(file, caps)
        return cls(file)

    def spend(
        self,
        collection: str,
        micro_epsilon: int,
        collection_limit: int | None,
        draw: Draw,
    ) -> str:
        """Debit one report, draw it, store both durably, and only then return the report.

        Parameters
        ----------
        collection : str
            Name of the collection (its digest).
        micro_epsilon : int
            What the report costs, 1 to 10**9 micro-epsilons.
        collection_limit : int or None
            What the collection itself lets one device spend on it, in micro-epsilons.
        draw : callable
            Takes nothing, returns (report id, report text). It is called at most once, in the
            thread of the caller and while the ledger is locked, so it should be quick and must not
            use this ledger.

        Returns
        -------
        str
            The report text, which :meth:`pending` repeats until it is acknowledged.

        Raises
        ------
        BudgetError
            A cap would be exceeded. Nothing is drawn or spent.
        LedgerError
            Nothing is handed out. If the disk failed in the very last step, the report may be
            counted and stored all the same; it then is in :meth:`pending`.
        Exception
            What ``draw`` raises passes through; nothing is spent.
        """
        return self._spend(None, collection, micro_epsilon, collection_limit, draw)

    def spend_once(
        self,
        event: str,
        collection: str,
        micro_epsilon: int,
        collection_limit: int | None,
        draw: Draw,
    ) -> str:
        """Do what :meth:`spend` does, and never a second time for the same event.

        Parameters
        ----------
        event : str
            The app's name for one reading of the position. Only a hash of it is kept, under a key
            of this ledger, together with that of the collection, for as long as the ledger lives.
        collection, micro_epsilon, collection_limit, draw
            As in :meth:`spend`.

        Returns
        -------
        str
            The report of this event: the stored one while it waits, or else a new one.

        Raises
        ------
        AlreadyGivenError
            The report of this event was acknowledged or discarded. Nothing is drawn or spent.
        BudgetError, LedgerError
            As in :meth:`spend`.
        """
        return self._spend(
            unicode_text("event", event), collection, micro_epsilon, collection_limit, draw
        )

    @uninterrupted
    def _spend(
        self, event: str | None, collection: str, micro: int, limit: int | None, draw: Draw
    ) -> str:
        collection = unicode_text("collection", collection)
        asked = whole_number("micro_epsilon", micro, 1, MAX_SPENDING)
        if limit is not None:
            limit = whole_number("collection_limit", limit, 0, MAX_LIMIT)
        file = self._file
        with ledger_file.transaction(file) as books:
            with explained(file):
                name = None if event is None else event_name(books.head.key, collection, event)
                if name is not None and (given := books.get("events", name)):
                    return _stored(books, given[1])
                here = self._spent_on(books, collection)
            _check_budget(books.head, here, asked, limit)
            report_id, report = books.ask(draw)
            report_id = unicode_text("report id", report_id)
            report = unicode_text("report", report)
            with explained(file):
                if books.get("pending", report_id) is not None:
                    raise ParameterError("report id must be new, got one that waits for its upload")
                books.put("spending", collection, here + asked)
                books.put("pending", report_id, books.head.drawn, report, name)
                if name is not None:
                    books.put("events", name, report_id)
                head = books.head
                books.head = head._replace(
                    spent=head.spent + asked, drawn=head.drawn + 1, waiting=head.waiting + 1
                )
                books.commit()
        return report

    @uninterrupted
    def pending(self, limit: int | None = None) -> list[str]:
        """Return the reports not yet acknowledged, at most ``limit``, in the order of their ids.

        The ids are random, so the order is not that of drawing.
        """
        if limit is not None:
            limit = whole_number("limit", limit, 0, MAX_LIMIT)
        with self._books() as books:
            return [row[2] for row in books.pending(limit)]

    @uninterrupted
    def outbox(self) -> list[tuple[str, str]]:
        """Return id and text of all reports not yet acknowledged, in the order of the ids."""
        with self._books() as books:
            return [(row[0], row[2]) for row in books.pending(None)]

    @uninterrupted
    def is_pending(self, report_id: str) -> bool:
        """Tell whether a report is not yet acknowledged or discarded."""
        report_id = unicode_text("report id", report_id)
        with self._books() as books:
            return books.get("pending", report_id) is not None

    @uninterrupted
    def waiting(self) -> int:
        """Return how many reports are not yet acknowledged."""
        with self._books() as books:
            return books.head.waiting

    @uninterrupted
    def discarded(self) -> int:
        """Return how many reports were discarded so far."""
        with self._books() as books:
            return books.head.discarded

    def acknowledge(self, report_ids: str | Iterable[str]) -> None:
        """Forget the texts of reports that have arrived, in one transaction; spending stays.

        An id that is not pending is not an error: acknowledged ids are not kept, and an upload may
        be confirmed twice.
        """
        self._forget(_ids(report_ids), discarded=False)

    def discard(self, report_ids: str | Iterable[str]) -> None:
        """Forget the texts of reports that are not to be sent again; their spending stays.

        For reports that were refused for good, or that nobody has room for. They are counted in
        :meth:`discarded`.
        """
        self._forget(_ids(report_ids), discarded=True)

    @uninterrupted
    def discard_newest(self, keep: int) -> int:
        """Discard what waits beyond ``keep`` reports, the newest first; return how many."""
        keep = whole_number("keep", keep, 0, MAX_LIMIT)
        with self._books() as books:
            surplus = max(books.head.waiting - keep, 0)
            if surplus:
                _remove_reports(books, books.newest(surplus), discarded=True)
                books.commit()
            return surplus

    @uninterrupted
    def _forget(self, ids: list[str], discarded: bool) -> None:
        with self._books() as books:
            if _remove_reports(books, ids, discarded):
                books.commit()

    @uninterrupted
    def join(self, digest: str, document: str, choose: Callable[[], list[int]] | None) -> None:
        """Keep a document that this device takes part in, with the windows that it answers.

        Parameters
        ----------
        digest, document : str
            Digest and text of a collection or series, verified by the caller.
        choose : callable or None
            For a series: draws the numbers of the windows to answer. It is called only if this
            ledger has not kept that digest before, so nobody can have them drawn again.
        """
        digest = unicode_text("digest", digest)
        document = unicode_text("document", document)
        with self._books() as books:
            if books.get("joined", digest) is None:
                windows = None if choose is None else " ".join(map(str, books.ask(choose)))
                books.put("joined", digest, document, windows)
                books.commit()

    @uninterrupted
    def joined(self, digest: str) -> tuple[str, list[int] | None] | None:
        """Return document and windows of what was joined under a digest, or None."""
        digest = unicode_text("digest", digest)
        with self._books() as books:
            row = books.get("joined", digest)
        if row is None:
            return None
        return row[1], None if row[2] is None else [int(k) for k in row[2].split()]

    @uninterrupted
    def advance(
        self,
        name: str,
        step: Advance,
        limit: int,
        room: int = 0,
        document: tuple[str, str] | None = None,
    ) -> str:
        """Move what is kept under a name one step on, with what that spends, in one transaction.

        For whoever answers a server in several messages, one of which spends (client_sdk.rounds).
        What is kept has all the protections of the reports: it is not a copy, no older state, and
        on the disk before this returns.

        Parameters
        ----------
        name : str
            Under which it is kept, and the account on which it is spent.
        step : callable
            Takes the state so far, None at first; returns the new one and what it spends, 0 or
            more micro-epsilons. Called at most once, as ``draw`` of :meth:`spend`.
        limit : int
            Most that may ever be spent under this name.
        room : int
            What must be left to spend, besides, if the state changes: for what comes later.
        document : (str, str), optional
            Digest and text of what is to be kept with the new state, as :meth:`join` keeps it.

        Returns
        -------
        str
            The new state.

        Raises
        ------
        BudgetError
            A cap would be exceeded. Nothing is kept or spent.
        LedgerError
            As :meth:`spend`: in the very last step it may be kept and spent all the same.
        Exception
            What ``step`` raises passes through; nothing is kept or spent. Nor is anything where it
            returns the state that it was given.
        """
        name = unicode_text("name", name)
        limit = whole_number("limit", limit, 0, MAX_LIMIT)
        file = self._file
        with ledger_file.transaction(file) as books:
            with explained(file):
                row = books.get("rounds", name)
            before = None if row is None else str(row[1])
            state, asked = books.ask(lambda: step(before))
            state = unicode_text("state", state)
            asked = whole_number("micro_epsilon", asked, 0, MAX_SPENDING)
            if state == before:
                return state
            if asked or room:
                with explained(file):
                    here = self._spent_on(books, name)
                _check_budget(books.head, here, max(asked, room), limit)
            with explained(file):
                if asked:
                    books.put("spending", name, here + asked)
                    books.head = books.head._replace(spent=books.head.spent + asked)
                if document is not None and books.get("joined", document[0]) is None:
                    books.put("joined", *document, None)
                books.put("rounds", name, state)
                books.commit()
        return state

    @uninterrupted
    def state(self, name: str) -> str | None:
        """Return what :meth:`advance` has kept under a name, or None."""
        name = unicode_text("name", name)
        with self._books() as books:
            row = books.get("rounds", name)
        return None if row is None else str(row[1])

    @uninterrupted
    def would_draw(
        self, event: str, collection: str, micro_epsilon: int, collection_limit: int | None
    ) -> bool:
        """Tell whether :meth:`spend_once` would draw: a new event, and budget for it."""
        event = unicode_text("event", event)
        collection = unicode_text("collection", collection)
        with self._books() as books:
            if books.get("events", event_name(books.head.key, collection, event)) is not None:
                return False
            here = self._spent_on(books, collection)
            _, left = _tightest(books.head, here, collection_limit)
            return micro_epsilon <= left

    @uninterrupted
    def spent(self, collection: str | None = None) -> int:
        """Return the micro-epsilons spent on one collection, or on all of them."""
        with self._books() as books:
            return books.head.spent if collection is None else self._spent_on(books, collection)

    @uninterrupted
    def remaining(self, collection: str | None = None) -> int:
        """Return the micro-epsilons left under the caps, for one collection or over all.

        A limit that the collection sets itself is not known here; :meth:`spend` is told of it.
        """
        with self._books() as books:
            head = books.head
            left = head.device_cap - head.spent
            if collection is None:
                return left
            return min(left, head.collection_cap - self._spent_on(books, collection))

    def _spent_on(self, books: Transaction, collection: str) -> int:
        row = books.get("spending", unicode_text("collection", collection))
        return 0 if row is None else int(row[1])

    @contextmanager
    def _books(self) -> Iterator[Transaction]:
        file = self._file
        with ledger_file.transaction(file) as books, explained(file):
            yield books


def caps_of(cap_epsilon: object, collection_cap_epsilon: object) -> tuple[int, int]:
    """Return the caps of a device and of one collection on it, in micro-epsilons.

    Raises
    ------
    ParameterError
        A cap is not a number from 1e-6 to 1e6, or the second exceeds the first.
    """
    cap = _cap("cap_epsilon", cap_epsilon)
    if collection_cap_epsilon is None:
        return cap, cap
    collection_cap = _cap("collection_cap_epsilon", collection_cap_epsilon)
    if collection_cap > cap:
        rule = "collection_cap_epsilon must not exceed cap_epsilon"
        raise ParameterError(f"{rule} = {_epsilon(cap)}, got {_epsilon(collection_cap)}")
    return cap, collection_cap


def _ids(report_ids: str | Iterable[str]) -> list[str]:
    if isinstance(report_ids, str) or not isinstance(report_ids, Iterable):
        report_ids = [report_ids]
    try:
        return [unicode_text("report id", report_id) for report_id in report_ids]
    except TypeError:  # what claims to be iterable, and is not
        raise ParameterError("report ids must be texts") from None


def _stored(books: Transaction, report_id: str | None) -> str:
    row = None if report_id is None else books.get("pending", report_id)
    if row is None:
        raise AlreadyGivenError("the report of this event was given before and has been dealt with")
    return str(row[2])


def _remove_reports(books: Transaction, ids: Iterable[str], discarded: bool) -> int:
    """Delete reports that wait; their events record only that they were given, no id."""
    forgotten = 0
    for report_id in ids:
        row = books.remove("pending", report_id)
        if row is not None:
            forgotten += 1
            if row[3] is not None:
                books.put("events", row[3], None)
    head = books.head
    books.head = head._replace(
        waiting=head.waiting - forgotten,
        discarded=head.discarded + (forgotten if discarded else 0),
    )
    return forgotten


def _tightest(head: Head, here: int, limit: int | None) -> tuple[tuple[str, int, int], int]:
    """Return the bound that leaves least (name, value, what is spent), and what is left."""
    bounds = [
        ("the cap over all collections", head.device_cap, head.spent),
        ("the cap of one collection", head.collection_cap, here),
    ]
    if limit is not None:
        bounds.append(("the limit that the collection sets for a device", limit, here))
    tightest = min(bounds, key=lambda entry: entry[1] - entry[2])
    return tightest, max(tightest[1] - tightest[2], 0)


def _check_budget(head: Head, here: int, asked: int, limit: int | None) -> None:
    (name, bound, spent), left = _tightest(head, here, limit)
    if asked > left:
        raise BudgetError(
            f"{name} is {_epsilon(bound)} epsilon: {_epsilon(spent)} spent, "
            f"{_epsilon(asked)} asked, {_epsilon(left)} left; no report was given"
        )


def _absolute(path: object) -> Path:
    if path == ":memory:":  # what it means to SQLite
        raise ParameterError(f"path must name a file, got {path!r}")
    try:
        return Path(path_text("path", "file", path)).absolute()
    except FileNotFoundError:
        raise ParameterError("path must be absolute where the working directory is gone") from None


def _cap(field: str, epsilon: object) -> int:
    """Return a cap in micro-epsilons, rounded down: a cap must not grow by rounding."""
    if isinstance(epsilon, str) and _DECIMAL.fullmatch(epsilon):
        epsilon = Decimal(epsilon)
    return floor(written_epsilon(field, epsilon, MAX_CAP // MICRO) * MICRO)


def _epsilon(micro_epsilon: int) -> str:
    whole, part = divmod(micro_epsilon, MICRO)
    return f"{whole}.{part:06d}".rstrip("0").rstrip(".")
