"""What forgers may send: reports that no device drew from where its user was.

Each forger takes a table, a place and a number of reports, and returns the counts of its reports by
output cell, (d + 2b, d + 2b). A place is an input cell, (row, col).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from client_sdk import ResponseTable
from ldpspatial import StampChannel
from ldpspatial.channels.playing import count_outputs, play

Ints = NDArray[np.int64]
Array = NDArray[np.float64]
Cell = tuple[int, int]
Forger = Callable[[ResponseTable, Cell, int, np.random.Generator], Ints]


def unrandomised(table: ResponseTable, place: Cell, n: int, rng: np.random.Generator) -> Ints:
    """Send the cell of the place itself, as an app whose randomisation was switched off does."""
    return count_outputs(table, *_everybody_at(place, n))


def disk_alone(table: ResponseTable, place: Cell, n: int, rng: np.random.Generator) -> Ints:
    """Send what is likelier at the place than anywhere else: its disk, without the base below.

    Of an honest report only a part tells of the place, and estimation makes up for the rest. These
    are all of that part, in the shape that honest ones have.
    """
    channel = StampChannel(table)
    law = channel.forward(_all_at(place, table.cells))
    above = np.where(channel.support, law - law[channel.support].min(), 0)
    return _drawn(above, n, rng)


def drawn(table: ResponseTable, place: Cell, n: int, rng: np.random.Generator) -> Ints:
    """Send honest reports of the place, where the forger never was."""
    return play(table, *_everybody_at(place, n), rng)


def noise(table: ResponseTable, place: Cell, n: int, rng: np.random.Generator) -> Ints:
    """Send any output cell, all equally likely."""
    return _drawn(StampChannel(table).support.astype(np.float64), n, rng)


FORGERS: Mapping[str, Forger] = MappingProxyType(
    {"unrandomised": unrandomised, "disk alone": disk_alone, "drawn": drawn, "noise": noise}
)


def farthest(density: Array) -> Cell:
    """Return the cell that is farthest from everybody, in mean squared distance: a corner."""
    side = len(density)
    middle = [float((density.sum(axis=1 - axis) * np.arange(side)).sum()) for axis in (0, 1)]
    row, col = (0 if at > (side - 1) / 2 else side - 1 for at in middle)
    return row, col


def busiest(density: Array) -> Cell:
    """Return the cell where most people are."""
    row, col = np.unravel_index(density.argmax(), density.shape)
    return int(row), int(col)


def _everybody_at(place: Cell, n: int) -> tuple[Ints, Ints]:
    row, col = place
    return np.full(n, row, np.int64), np.full(n, col, np.int64)


def _all_at(place: Cell, cells: int) -> Array:
    density = np.zeros((cells, cells))
    density[place] = 1
    return density


def _drawn(law: Array, n: int, rng: np.random.Generator) -> Ints:
    """Draw n output cells from a law that need not sum to 1."""
    probabilities = law.ravel() / law.sum()
    return np.asarray(rng.multinomial(n, probabilities).reshape(law.shape))
