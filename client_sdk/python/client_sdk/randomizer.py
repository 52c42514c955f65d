"""Randomizer: a position in, a report out, and no account of what that spends."""

import operator
import os

from client_sdk import entropy
from client_sdk.collection import Collection
from client_sdk.errors import ParameterError
from client_sdk.report import Report
from client_sdk.sampling import Sampler


class Randomizer:
    """Randomises positions and keeps no account of it: for simulation and research, not for apps.

    Every call spends epsilon again, whatever was spent before. An app takes
    :class:`client_sdk.Device`, which holds a cap.

    Parameters
    ----------
    collection : Collection
        Verified again here: a table that is not epsilon-LDP never reaches the sampler.

    Examples
    --------
    >>> from client_sdk import Grid
    >>> grid = Grid.from_center(lat=52.52, lon=13.405, side_m=20_000, cells=15)
    >>> collection = Collection.create("noon in Berlin", grid, epsilon=3.5)
    >>> report = Randomizer(collection).report(52.5163, 13.3777)
    >>> collection.table.is_output(report.row, report.col)
    True
    """

    def __init__(self, collection: Collection):
        if not isinstance(collection, Collection):
            raise ParameterError(
                f"collection must be a Collection, got {type(collection).__name__}"
            )
        collection.verify()
        self.collection = collection
        self._sampler = Sampler(collection.table)

    def report(self, lat: float, lon: float) -> Report:
        """Return a report for a position in degrees (y, x on a plane grid).

        A position outside the square counts as the nearest cell of the square.

        Raises
        ------
        PositionError
            The position is not a finite latitude and longitude.
        """
        cell = self.collection.grid.cell(lat, lon)
        return draw_report(self._sampler, self.collection.digest, cell)

    def randomize(self, cell: tuple[int, int]) -> tuple[int, int]:
        """Return the reported (row, col) for an input cell (row, col) of the square.

        Raises
        ------
        ParameterError
            The cell is not a pair of whole numbers in the square. It is never repeated.
        """
        return self._sampler.draw(*_pair(cell), entropy.system)


def draw_report(sampler: Sampler, digest: str, cell: tuple[int, int]) -> Report:
    """Draw the report of an input cell, with an id of its own, from the operating system."""
    row, col = sampler.draw(*cell, entropy.system)
    return Report(digest, os.urandom(16).hex(), row, col)


def _pair(cell: object) -> tuple[int, int]:
    """Return two ints. A fraction would survive in some reports and give the input away."""
    try:
        row, col = map(operator.index, cell)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise ParameterError("cell must be a pair (row, col) of whole numbers") from None
    return row, col
