"""Where the grid of a map lies, as far as its file says."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid
from client_sdk.shared import UNIT, metres_per_degree
from ldpspatial.errors import InputError

Array = NDArray[np.float64]

MOST_LATITUDE = 90.0

CLOSE = 0.01
"""Parts of a cell by which two grids may differ: files round their coordinates."""


@dataclass(frozen=True)
class Place:
    """South-west corner and extent of a map, in degrees or plane units.

    Attributes
    ----------
    kind : {"geographic", "plane"}
    south, west, height, width : float
    """

    kind: str
    south: float
    west: float
    height: float
    width: float

    @classmethod
    def of_grid(cls, grid: Grid) -> "Place":
        """Return the place of a grid."""
        return cls(grid.kind, *(v / UNIT for v in (grid.south, grid.west, grid.height, grid.width)))

    @classmethod
    def of_centers(cls, name: str, kind: str, y: Array, x: Array) -> "Place | None":
        """Return the place of cells from their centres (R, C) in the file `name`.

        None for a single row or column, whose cells may have any height or width.

        Raises
        ------
        InputError
            The centres are not those of a grid whose rows run north and columns east.
        """
        rows, columns = y.shape
        if min(rows, columns) == 1:
            return None
        row, column = np.indices(y.shape)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not a number is refused below
            if kind == "geographic":
                x = np.unwrap(x, period=360.0, axis=1)  # across the antimeridian
            height = (y[-1, 0] - y[0, 0]) / (rows - 1)
            width = (x[0, -1] - x[0, 0]) / (columns - 1)
            off_y = abs(y - (y[0, 0] + height * row)).max() if height > 0 else np.inf
            off_x = abs(x - (x[0, 0] + width * column)).max() if width > 0 else np.inf
        for what, line, off, side in (
            ("latitude (y)", "rows", off_y, height),
            ("longitude (x)", "columns", off_x, width),
        ):
            if not off <= CLOSE * side:  # not >: what is NaN is to fail
                raise InputError(
                    f"{what} must rise evenly with the {line}, from 0 on, but in {name!r} does not"
                )
        south = float(y[0, 0] - height / 2)  # from the centre of a cell to its edge
        west = float(x[0, 0] - width / 2)
        return cls(kind, south, west, float(rows * height), float(columns * width))

    @property
    def unit(self) -> str:
        """Unit of `cell_size`."""
        return "m" if self.kind == "geographic" else "plane units"

    @property
    def middle(self) -> float:
        """Latitude, or y, of the centre."""
        return self.south + self.height / 2

    @property
    def is_between_poles(self) -> bool:
        """Whether a degree of longitude has a length at the centre; on a plane there is no pole."""
        return self.kind == "plane" or abs(self.middle) < MOST_LATITUDE

    def cell_size(self, shape: tuple[int, ...]) -> tuple[float, float]:
        """Return height and width of each of (rows, columns) cells: in metres, or plane units.

        Metres are those at the centre of the map.
        """
        height = self.height / shape[0]
        width = self.width / shape[1]
        if self.kind == "plane":
            return height, width
        per_latitude, per_longitude = metres_per_degree(self.middle)
        return height * per_latitude, width * per_longitude

    def is_close(self, other: "Place", shape: tuple[int, ...]) -> bool:
        """Tell whether the cells of two maps of one shape lie in the same places."""
        west = self.west - other.west
        if self.kind == "geographic":
            west = (west + 180.0) % 360.0 - 180.0  # the short way round
        height = self.height / shape[0]
        width = self.width / shape[1]
        return (
            self.kind == other.kind
            and max(abs(self.south - other.south), abs(self.height - other.height)) < CLOSE * height
            and max(abs(west), abs(self.width - other.width)) < CLOSE * width
        )
