"""Device: what an app holds.

It is installed once in a folder of its own and opened from then on. It takes part in collections
and series that the app pins by their digest, never in others; every report is debited from its
ledger before it exists outside; and a reading of the position has a name, so that asking again
for the same one gives the same report and never a second draw.
"""

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from client_sdk import canonical, entropy, series
from client_sdk.collection import Collection
from client_sdk.errors import (
    CollectionError,
    LedgerError,
    LedgerUnavailableError,
    NotAskedError,
    ParameterError,
)
from client_sdk.ledger import Ledger, caps_of
from client_sdk.randomizer import draw_report
from client_sdk.report import Report
from client_sdk.sampling import Sampler
from client_sdk.series import Series
from client_sdk.validate import path_text, written_epsilon

LEDGER = "ledger.db"
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class _Task:
    """What this device takes part in, ready to draw."""

    what: Collection | Series
    sampler: Sampler
    windows: tuple[int, ...]  # those that it answers, of a series


class Device:
    """The one object that an app needs: made by :meth:`install`, later by :meth:`open`.

    Threads and processes may share a folder. Nothing that a method raises or returns repeats a
    position.

    Examples
    --------
    >>> import tempfile
    >>> from client_sdk import Grid
    >>> grid = Grid.from_center(lat=52.52, lon=13.405, side_m=20_000, cells=15)
    >>> document = Collection.create("noon in Berlin", grid, epsilon=3.5).to_json()
    >>> digest = Collection.from_json(document).digest  # shipped with the app
    >>> folder = tempfile.TemporaryDirectory()
    >>> device = Device.install(folder.name, cap_epsilon=8)
    >>> noon = device.join(document, digest=digest, max_epsilon=4)
    >>> report = device.report(noon, 52.5163, 13.3777, event="visit 41")
    >>> device.report(digest, 52.5163, 13.3777, event="visit 41") == report  # a retry
    True
    >>> device.spent(), device.remaining()
    (3500000, 4500000)
    >>> folder.cleanup()
    """

    def __init__(self, ledger: Ledger):
        self._ledger = ledger  # client_sdk.rounds spends from it, too; apps do not reach it
        self._tasks: dict[str, _Task] = {}

    @classmethod
    def install(
        cls,
        folder: "str | os.PathLike[str]",
        cap_epsilon: object,
        collection_cap_epsilon: object = None,
        *,
        lasting: bool = False,
    ) -> "Device":
        """Make the device's ledger: once, when the app is installed, and never again.

        A process killed in here leaves a device that can be opened, or none: then call it again.

        Parameters
        ----------
        folder : str or os.PathLike
            A folder of the device's own, on a local disk; it is made if it is not there. Keep it
            out of backups and of what "clear app data" reaches, *before* this call: a ledger
            whose files were touched from outside takes itself for a copy.
        cap_epsilon : int, float, Decimal or str
            What the device may spend over all collections and all time, 1e-6 to 1e6.
        collection_cap_epsilon : int, float, Decimal or str, optional
            What it may spend on any one collection or series; by default all of it.
        lasting : bool
            The app's word that the folder outlives the page, that what is written to it is saved
            (``syncfs``) before a report is sent, and that one page at a time uses it. Needed in a
            browser (Pyodide), where files are memory; no effect elsewhere.

        Raises
        ------
        ParameterError
            A cap or the folder's name breaks its rule.
        LedgerError
            The folder holds a ledger, cannot be written, or does not last.
        """
        path = _ledger_in(folder)
        caps_of(cap_epsilon, collection_cap_epsilon)  # before a folder is made for nothing
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            is_lasting = isinstance(error, (FileExistsError, NotADirectoryError))
            kind = LedgerError if is_lasting else LedgerUnavailableError
            raise kind(
                f"folder {path.parent} cannot be made: {error.strerror}; name one that can be "
                "written, on a disk that has room"
            ) from error
        return cls(Ledger.create(path, cap_epsilon, collection_cap_epsilon, lasting=lasting))

    @classmethod
    def open(cls, folder: "str | os.PathLike[str]") -> "Device":
        """Open the device that was installed in a folder.

        Raises
        ------
        LedgerError
            There is no device, or its ledger is damaged, a copy or locked. Stop reporting then, and
            do not install anew: that would refill the budget.
        """
        return cls(Ledger(_ledger_in(folder)))

    def join(self, document: str, *, digest: str, max_epsilon: object) -> Collection | Series:
        """Take part in a collection or series, and return it.

        The document is verified and kept, so that :meth:`report` needs the digest alone from then
        on. Of a series this draws which windows the device answers, and writes that down; joining
        again changes nothing.

        Parameters
        ----------
        document : str
            The text of the document, from whichever source, at most 2^22 characters.
        digest : str
            Its id as the app ships it: any other document is refused.
        max_epsilon : number
            The most that one report may cost, 1e-6 to 20.

        Raises
        ------
        CollectionError
            The document is malformed, another one, not private, or beyond ``max_epsilon``.
        ParameterError
            ``digest`` or ``max_epsilon`` breaks its rule.
        LedgerError
            It could not be written down; the device has not joined.
        """
        if not isinstance(digest, str):
            raise ParameterError(f"digest must be a text, got {type(digest).__name__}")
        written_epsilon("max_epsilon", max_epsilon)  # elsewhere None means no limit
        what = _read(document, digest, max_epsilon)
        draw = partial(what.choose, entropy.system) if isinstance(what, Series) else None
        self._ledger.join(digest, what.to_json(), draw)
        return what

    def report(
        self,
        collection: Collection | Series | str,
        lat: float,
        lon: float,
        *,
        event: str | None = None,
    ) -> Report:
        """Return the report for a position in degrees (y, x on a plane grid).

        It is in the ledger, with its debit, before it is returned; an :class:`Uploader` sends it.
        A position outside the square counts as the nearest cell of the square.

        Parameters
        ----------
        collection : Collection, Series or str
            What was joined, or its digest.
        lat, lon : float
        event : str, optional
            The app's name for this reading of the position, such as "visit 41". The same event
            gives the stored report again, whatever the position is by then. Without one each call
            is a reading of its own. The windows of a series name the readings themselves.

        Raises
        ------
        PositionError
            The position is not a finite latitude and longitude.
        AlreadyGivenError
            The report of this event, or window, was acknowledged or discarded.
        NotAskedError
            The device does not answer the window that is open now; see :meth:`is_asked`.
        BudgetError
            The device has given what it may give; nothing was drawn.
        CollectionError
            The device has not joined this collection.
        LedgerError
            The spending could not be written down; no report is handed out.
        """
        task = self._task(collection)
        what = task.what
        if isinstance(what, Series):
            if event is not None:
                raise ParameterError("event must be left out: the window of a series names it")
            window = _open_window(what, task.windows)
            if window is None:
                raise NotAskedError(
                    "no window that this device answers is open: ask is_asked before a position "
                    "is read; nothing was drawn"
                )
            target = what.collection(window)
            limit = what.answers
            event = _event_of(window)
        else:
            target = what
            limit = what.max_reports
        cell = target.grid.cell(lat, lon)

        def draw() -> tuple[str, str]:
            report = draw_report(task.sampler, target.digest, cell)
            return report.id, report.to_body()

        debit = what.digest, what.micro_epsilon, what.micro_epsilon * limit, draw
        spend = self._ledger
        text = spend.spend(*debit) if event is None else spend.spend_once(event, *debit)
        return Report.from_json(text)

    def is_asked(self, series: Series | str) -> bool:
        """Tell whether the device would answer now: a window of its own, not yet answered.

        Ask before reading a position: at all other times none is needed, nor where the budget no
        longer pays for the report (:meth:`remaining`).
        """
        what, answered = self._series(series)
        window = _open_window(what, answered)
        return window is not None and self._ledger.would_draw(
            _event_of(window), what.digest, what.micro_epsilon, what.micro_epsilon * what.answers
        )

    def windows(self, series: Series | str) -> tuple[int, ...]:
        """Return the windows of a series that this device answers, to wake up for them.

        Keep them on the device: together with the reports they would identify it.
        """
        return self._series(series)[1]

    def pending(self, limit: int | None = None) -> list[str]:
        """Return reports that are not yet acknowledged, as they are sent: 192 bytes each."""
        return self._ledger.pending(limit)

    def outbox(self) -> list[tuple[str, str]]:
        """Return id and text of all reports that are not yet acknowledged."""
        return self._ledger.outbox()

    def is_pending(self, report_id: str) -> bool:
        """Tell whether a report is not yet acknowledged or discarded."""
        return self._ledger.is_pending(report_id)

    @property
    def folder(self) -> Path:
        """Where the device was installed."""
        return self._ledger.folder

    def waiting(self) -> int:
        """Return how many reports are not yet acknowledged."""
        return self._ledger.waiting()

    def acknowledge(self, report_ids: str | Iterable[str]) -> None:
        """Forget reports that have arrived, in one transaction; their spending stays."""
        self._ledger.acknowledge(report_ids)

    def discard(self, report_ids: str | Iterable[str]) -> None:
        """Forget reports that are not to be sent again; their spending stays."""
        self._ledger.discard(report_ids)

    def discard_newest(self, keep: int) -> int:
        """Discard what waits beyond ``keep`` reports, the newest first; return how many."""
        return self._ledger.discard_newest(keep)

    def discarded(self) -> int:
        """Return how many reports were discarded so far."""
        return self._ledger.discarded()

    def spent(self, collection: Collection | Series | str | None = None) -> int:
        """Return the micro-epsilons spent on a collection or series, or on all of them."""
        return self._ledger.spent(None if collection is None else _digest_of(collection))

    def remaining(self, collection: Collection | Series | str | None = None) -> int:
        """Return the micro-epsilons left under the caps, for one collection or over all."""
        return self._ledger.remaining(None if collection is None else _digest_of(collection))

    def _task(self, collection: Collection | Series | str) -> _Task:
        digest = _digest_of(collection)
        if digest not in self._tasks:
            kept = self._ledger.joined(digest)
            if kept is None:
                named = f"{digest[:12]}..." if _DIGEST.fullmatch(digest) else "this collection"
                raise CollectionError(  # what is no digest may be a position by mistake
                    f"the device has not joined {named}: call join with its document, the digest "
                    "that the app ships and a largest epsilon"
                )
            document, windows = kept
            what = _read(document, digest, None)
            table = what.template.table if isinstance(what, Series) else what.table
            self._tasks[digest] = _Task(what, Sampler(table), tuple(windows or ()))
        return self._tasks[digest]

    def _series(self, series: Series | str) -> tuple[Series, tuple[int, ...]]:
        """Return a series that was joined, with the windows that this device answers."""
        task = self._task(series)
        if not isinstance(task.what, Series):
            raise ParameterError("series must be a series, got a collection")
        return task.what, task.windows


def _read(document: str, digest: str, max_epsilon: object | None) -> Collection | Series:
    """Return the collection or series of a document, verified."""
    schema = canonical.loads(document, "the document", canonical.LONGEST_JOINED).get("schema")
    kind = Series if schema == series.SCHEMA else Collection
    return kind.from_json(document, digest, max_epsilon)


def _open_window(series: Series, answered: tuple[int, ...]) -> int | None:
    """Return the window that is open by the device's clock, if it is one of those."""
    window = series.window_at(time.time())
    return window if window in answered else None


def _event_of(window: int) -> str:
    return f"window {window}"


def _digest_of(collection: Collection | Series | str) -> str:
    if isinstance(collection, (Collection, Series)):
        return collection.digest
    if isinstance(collection, str) and collection:
        return collection
    raise ParameterError(
        f"collection must be a Collection, a Series or a digest, got {type(collection).__name__}"
    )


def _ledger_in(folder: object) -> Path:
    return Path(path_text("folder", "folder", folder)) / LEDGER
