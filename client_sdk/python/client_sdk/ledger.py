"""What this device has spent, kept across restarts.

A report and its spending enter one SQLite file in one transaction, and the report is handed out
only once that transaction is on the disk. Whatever happens in between (an error, a crash, a full
disk, a lost battery), no report leaves the device uncounted; at worst one is counted and waits
in :meth:`Ledger.pending`. An uploader sends those stored bytes until they are acknowledged: a
second draw for the same position would be a second disclosure.

The file holds integer micro-epsilons, the names of collections and the reports not yet
acknowledged. It holds no clock (setting one back would refill the budget), no identifier of the
device or its user and no position. A SHA-256 over everything in it finds damage that SQLite,
which has no checksums, would read as data; a damaged ledger refuses to work. The checksum has no
key: it stops accidents, not a person who edits the file.

Not protected: whoever deletes the file and creates another, or puts an old copy back, has
refilled the budget. The embedding app must keep the file out of storage that "clear app data",
a restored backup or a second installation reaches, and must call :meth:`Ledger.create` only when
it is installed. That is why opening never creates: an app that made a new ledger whenever it
found none would do the refilling itself.
"""

import os
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import floor
from pathlib import Path

from client_sdk import ledger_file
from client_sdk.errors import BudgetError, ParameterError
from client_sdk.ledger_file import State
from client_sdk.validate import MICRO, whole_number

MAX_SPENDING = 10**9  # micro-epsilons in one report
MAX_CAP = 10**12  # micro-epsilons; every sum stays far below the 2**63 of SQLite
MAX_LIMIT = 10**18  # micro-epsilons; never stored


class Ledger:
    """The record of spending of one device; safe to share by threads and processes.

    Every call opens the file anew, takes its write lock, verifies it and closes it again, so that
    a file that was deleted, replaced or damaged in the meantime is noticed. (As with SQLite in
    general, a process must not fork while another of its threads is inside a call.)

    Parameters
    ----------
    path : str or os.PathLike
        An existing ledger file, made by :meth:`create`; SQLite puts a journal beside it.

    Raises
    ------
    LedgerError
        From every method: the file is missing, empty, damaged, not a ledger, or locked by
        another process for five seconds; from :meth:`spend` and :meth:`acknowledge` also when
        it cannot be written. The message says what to do.

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

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self._file = _absolute(path)
        with ledger_file.transaction(self._file):
            pass

    @classmethod
    def create(
        cls,
        path: "str | os.PathLike[str]",
        cap_epsilon: object,
        collection_cap_epsilon: object = None,
    ) -> "Ledger":
        """Make a new, unspent ledger: once, when the app is installed.

        A process killed in here may leave an empty file, which every later call refuses. Only
        an installer that knows that this call never returned may delete it and try again.

        Parameters
        ----------
        path : str or os.PathLike
            Where no file is yet, an empty one included.
        cap_epsilon : int, float, Decimal or str
            What the device may spend over all collections and all time, in epsilon; read by its
            shortest decimal text and rounded down to a micro-epsilon.
        collection_cap_epsilon : int, float, Decimal or str, optional
            What it may spend on any one collection; by default all of it.

        Raises
        ------
        ParameterError
            A cap is not a number from 1e-6 to 1e6, or the second exceeds the first.
        LedgerError
            The path is taken or cannot be written.
        """
        file = _absolute(path)
        cap = _cap("cap_epsilon", cap_epsilon)
        collection_cap = cap
        if collection_cap_epsilon is not None:
            collection_cap = _cap("collection_cap_epsilon", collection_cap_epsilon)
        if collection_cap > cap:
            rule = "collection_cap_epsilon must not exceed cap_epsilon"
            raise ParameterError(f"{rule} = {_epsilon(cap)}, got {_epsilon(collection_cap)}")
        ledger_file.create(file, State(cap, collection_cap, {}, {}))
        return cls(file)

    def spend(
        self,
        collection: str,
        micro_epsilon: int,
        collection_limit: int | None,
        draw: Callable[[], tuple[str, str]],
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
            Takes nothing, returns (report id, report text). It is called at most once, while the
            ledger is locked, so it should be quick and must not use this ledger.

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
        collection = _text("collection", collection)
        asked = whole_number("micro_epsilon", micro_epsilon, 1, MAX_SPENDING)
        if collection_limit is not None:
            collection_limit = whole_number("collection_limit", collection_limit, 0, MAX_LIMIT)
        with ledger_file.transaction(self._file) as (connection, state):
            _check_budget(state, collection, asked, collection_limit)
            report_id, report = draw()
            report_id, report = _text("report id", report_id), _text("report", report)
            if report_id in state.pending:
                raise ParameterError("report id must be new, got one that waits for its upload")
            state.spending[collection] = state.spending.get(collection, 0) + asked
            state.pending[report_id] = report
            debit = "INSERT OR REPLACE INTO spending VALUES (?, ?)"
            store = "INSERT INTO pending VALUES (?, ?)"
            ledger_file.commit(
                self._file,
                connection,
                state,
                (debit, (collection, state.spending[collection])),
                (store, (report_id, report)),
            )
        return report

    def pending(self) -> list[str]:
        """Return the reports not yet acknowledged, in the order of their ids."""
        with ledger_file.transaction(self._file) as (_, state):
            return [report for _, report in sorted(state.pending.items())]

    def acknowledge(self, report_id: str) -> None:
        """Forget the text of a report that has arrived; its spending stays.

        An id that is not pending is no error: acknowledged ids are not kept, and an upload may
        be confirmed twice.
        """
        report_id = _text("report id", report_id)
        with ledger_file.transaction(self._file) as (connection, state):
            if state.pending.pop(report_id, None) is not None:
                delete = "DELETE FROM pending WHERE report_id = ?"
                ledger_file.commit(self._file, connection, state, (delete, (report_id,)))

    def spent(self, collection: str | None = None) -> int:
        """Return the micro-epsilons spent on one collection, or on all of them."""
        with ledger_file.transaction(self._file) as (_, state):
            return state.spent(collection)

    def remaining(self, collection: str | None = None) -> int:
        """Return the micro-epsilons left under the caps, for one collection or over all.

        A limit that the collection sets itself is not known here; :meth:`spend` is told of it.
        """
        with ledger_file.transaction(self._file) as (_, state):
            left = state.cap - state.spent()
            if collection is None:
                return left
            return min(left, state.collection_cap - state.spent(collection))


def _check_budget(state: State, collection: str, asked: int, limit: int | None) -> None:
    here = state.spent(collection)
    bounds = [
        ("the cap over all collections", state.cap, state.spent()),
        ("the cap of one collection", state.collection_cap, here),
    ]
    if limit is not None:
        bounds.append(("the limit that the collection sets for a device", limit, here))
    name, bound, spent = min(bounds, key=lambda entry: entry[1] - entry[2])
    left = max(bound - spent, 0)
    if asked > left:
        raise BudgetError(
            f"{name} is {_epsilon(bound)} epsilon: {_epsilon(spent)} spent, "
            f"{_epsilon(asked)} asked, {_epsilon(left)} left; no report was given"
        )


def _absolute(path: object) -> Path:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str) or name in ("", ":memory:") or "\0" in name:
        raise ParameterError(f"path must name a file, got {path!r}")
    return Path(name).absolute()


def _text(field: str, value: object) -> str:
    try:
        if isinstance(value, str) and value.encode():
            return value
    except UnicodeEncodeError:  # half of a surrogate pair: SQLite cannot hold it
        pass
    raise ParameterError(f"{field} must be a non-empty text in Unicode, got {type(value).__name__}")


def _cap(field: str, epsilon: object) -> int:
    """Return a cap in micro-epsilons, rounded down: a cap must not grow by rounding."""
    try:
        exact = Decimal("NaN") if isinstance(epsilon, bool) else Decimal(str(epsilon))
    except ArithmeticError:
        exact = Decimal("NaN")
    # adjusted() is the power of ten of the first digit: 1e999999 is not written out.
    if exact.is_finite() and abs(exact.adjusted()) < 7:
        cap = floor(Fraction(exact) * MICRO)
        if 1 <= cap <= MAX_CAP:
            return cap
    raise ParameterError(f"{field} must be a number from 1e-6 to 1e6, got {epsilon!r}")


def _epsilon(micro_epsilon: int) -> str:
    whole, part = divmod(micro_epsilon, MICRO)
    return f"{whole}.{part:06d}".rstrip("0").rstrip(".")
