"""Randomizer: a position in, a report out. The one object that an app talks to."""

import operator
import os
from typing import TYPE_CHECKING

from client_sdk import entropy
from client_sdk.collection import Collection
from client_sdk.errors import ParameterError
from client_sdk.report import Report
from client_sdk.sampling import Sampler

if TYPE_CHECKING:
    from client_sdk.ledger import Ledger


class Randomizer:
    """Randomises positions for one collection.

    Parameters
    ----------
    collection : Collection
        Verified again here: a table that is not epsilon-LDP never reaches the sampler.
    ledger : Ledger, optional
        Where spending is written down before a report is handed out. Without one nothing is
        remembered: every call spends epsilon again and the caller keeps the account.

    Examples
    --------
    >>> from client_sdk import Grid
    >>> grid = Grid.from_center(lat=52.52, lon=13.405, side_m=20_000, cells=15)
    >>> collection = Collection.create("noon in Berlin", grid, epsilon=3.5)
    >>> report = Randomizer(collection).report(52.5163, 13.3777)
    >>> collection.table.is_output(report.row, report.col)
    True
    """

    def __init__(self, collection: Collection, ledger: "Ledger | None" = None):
        collection.verify()
        if ledger is not None and not hasattr(ledger, "spend"):
            raise ParameterError(f"ledger must be a Ledger or None, got {type(ledger).__name__}")
        self.collection = collection
        self.ledger = ledger
        self._sampler = Sampler(collection.table)

    def report(self, lat: float, lon: float) -> Report:
        """Return the report for a position in degrees (y, x on a plane grid).

        A position outside the square counts as the nearest cell of the square.

        Raises
        ------
        PositionError
            The position is not a finite latitude and longitude.
        BudgetError
            The device has given what it may give; nothing was drawn.
        LedgerError
            The spending could not be written down; no report is handed out.
        """
        return self._report(*self.collection.grid.cell(lat, lon))

    def randomize(self, cell: tuple[int, int]) -> tuple[int, int]:
        """Return the reported (row, col) for an input cell (row, col) of the square.

        With a ledger the draw is debited and kept like any report.

        Raises
        ------
        ParameterError
            The cell is not a pair of whole numbers in the square. It is never repeated.
        BudgetError, LedgerError
            As in :meth:`report`.
        """
        row, col = _pair(cell)
        if self.ledger is None:
            return self._sampler.draw(row, col, entropy.system)
        report = self._report(row, col)
        return report.row, report.col

    def _report(self, row: int, col: int) -> Report:
        if self.ledger is None:
            return self._draw(row, col)
        collection = self.collection
        # Drawn inside the ledger's transaction: the debit is on disk before the report exists
        # outside, and a failed write takes the drawn report with it.
        text = self.ledger.spend(
            collection.digest,
            collection.micro_epsilon,
            collection.micro_epsilon * collection.max_reports,
            lambda: self._drawn(row, col),
        )
        return Report.from_json(text)

    def _draw(self, row: int, col: int) -> Report:
        out_row, out_col = self._sampler.draw(row, col, entropy.system)
        return Report(self.collection.digest, os.urandom(16).hex(), out_row, out_col)

    def _drawn(self, row: int, col: int) -> tuple[str, str]:
        report = self._draw(row, col)
        return report.id, report.to_json()


def _pair(cell: object) -> tuple[int, int]:
    """Return two ints. A fraction would survive in some reports and give the input away."""
    try:
        row, col = map(operator.index, cell)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise ParameterError("cell must be a pair (row, col) of whole numbers") from None
    return row, col
