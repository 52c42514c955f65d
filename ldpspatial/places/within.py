"""Where people may be inside cells: a public map on finer cells of the same square.

A report tells the cell at most. Of a cell that a region cuts, the region holds the covered part of
its area if people are spread evenly in it; streets, buildings or venues say more. So each cell is
divided by public weights instead, and by area where it has none.

One venue in a cell says little of where its people are, and a thousand say much. Area therefore
counts for as much as ``EVEN`` places beside the places of the cell, whose effective number is
(sum p)^2 / sum p^2 (Kish 1965), p the weights of its finer cells. On eleven squares of six cities
1 was best or nearly so for all places of a city as well as for a hundred of them.

The public map must not be made of the reports that it is to divide: they would count twice.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid
from ldpspatial.errors import InputError
from ldpspatial.places.regions import Region, cut_cells, holds
from ldpspatial.validate import MAX_CELLS, instance, number_array

Array = NDArray[np.float64]

FINE = 1024  # cells a side of the finer grid, about: half as many err by 2 % more, a sixth by 22 %
EVEN = 1.0  # places for which the area of a cell counts
NEXT = 2  # cells a side of the blocks by which a public map is tried
EQUAL = 1e-9  # rounding, over the weight of a cell


@dataclass(frozen=True, eq=False)
class Within:
    """Public weights of where people are inside the cells of a grid.

    Attributes
    ----------
    grid : client_sdk.Grid
    people : (f, f) array of numbers >= 0
        Of finer cells of the same square; f is a multiple of the grid's cells. Only ratios count,
        and are kept.

    Raises
    ------
    InputError
        An attribute breaks its rule, or the weights are even inside every cell.

    Examples
    --------
    >>> from ldpspatial.places.regions import Region
    >>> grid = Grid.plane(0, 0, 2, 1)
    >>> west = Region.rectangle("west", grid, 0, 0, 2, 1)
    >>> venues = Within(grid, np.array([[1.0, 0.0], [2.0, 0.0]]))  # all of them in the west
    >>> west.weights.tolist(), venues.parts(west).round(2).tolist()
    ([[0.5]], [[0.82]])
    """

    grid: Grid
    people: Array

    def __post_init__(self) -> None:
        cells = instance("grid", self.grid, Grid).cells
        people = number_array("people", self.people, ("f", "f"), "[0, inf)")
        if len(people) % cells or len(people) == cells:
            raise InputError(
                f"people must have a multiple of {cells} finer cells a side, got {len(people)}"
            )
        object.__setattr__(self, "people", people / (people.max() or 1.0))  # squares stay finite
        if np.ptp(self._blocks, axis=(1, 3)).max() <= EQUAL:
            raise InputError(
                "people must tell where in a cell people are, but all cells are even inside"
            )

    @property
    def _blocks(self) -> Array:
        """(d, s, d, s) array: the finer cells of each cell."""
        cells = self.grid.cells
        finer = len(self.people) // cells
        return self.people.reshape(cells, finer, cells, finer)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """(d, d) bool array, which cells have public weights."""
        return np.asarray(self._blocks.any(axis=(1, 3)))

    def parts(self, region: Region) -> Array:
        """Return which part of each cell's people is in a region, as far as public weights tell.

        Parameters
        ----------
        region : Region
            One without a geometry is divided by area.

        Returns
        -------
        (d, d) array in [0, 1]
            The region's own weights except in cells that it cuts
            (:func:`ldpspatial.places.regions.cut_cells`).

        Raises
        ------
        InputError
            The region is none or of another grid, its geometry cannot be read, or shapely is
            missing: install ``ldpspatial[regions]``.
        """
        given = instance("region", region, Region).weights
        area = number_array("region", given, (self.grid.cells,) * 2, "[0, 1]", bools=True)
        rows, columns = np.nonzero(cut_cells(area) & self.known)
        if region.geometry is None or not len(rows):
            return area
        people = self._blocks[rows, :, columns]  # (k, s, s)
        inside = self._inside(region.geometry, rows, columns)
        even = area[rows, columns]
        total = people.sum((1, 2))
        # Finer cells are in or out by their centres. What all have alike is divided by area, so
        # that weights which are even in a cell give its covered part exactly.
        alike = people.min((1, 2))
        held = ((people - alike[:, None, None]) * inside).sum((1, 2))
        by_people = (held + alike * people[0].size * even) / total
        places = total**2 / (people**2).sum((1, 2))
        area[rows, columns] = (places * by_people + EVEN * even) / (places + EVEN)
        return area

    def _inside(
        self, geometry: object, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return (k, s, s): which centres of the finer cells of k cells lie in a geometry."""
        finer = len(self.people) // self.grid.cells
        centres = (np.arange(finer) + 0.5) / finer
        y = rows[:, None, None] + centres[:, None]
        x = columns[:, None, None] + centres
        y, x = np.broadcast_arrays(y, x)
        return holds(self.grid, geometry, y.ravel(), x.ravel()).reshape(y.shape)

    def block_parts(self) -> Array:
        """Return how public weights divide blocks of 2 x 2 cells among their cells.

        Reports tell that themselves, so whether the weights are right can be tried there.

        Returns
        -------
        (e, e) array in (0, 1)
            Part of each cell in the people of its block; e is the cells a side, or one less where
            that is odd.
        """
        end = self.grid.cells // NEXT * NEXT
        blocks = self._blocks[:end, :, :end]
        people = gathered(blocks.sum((1, 3)))
        squares = gathered((blocks**2).sum((1, 3))).sum((1, 3), keepdims=True)
        total = people.sum((1, 3), keepdims=True)
        # As in `parts`: places * part of the people, with places = total^2 / squares.
        crowd = np.divide(total, squares, out=np.zeros_like(total), where=squares > 0)
        parts = (crowd * people + EVEN / NEXT**2) / (crowd * total + EVEN)
        return np.asarray(parts.reshape(end, end))


def gathered(cells: Array) -> Array:
    """Return (e / 2, 2, e / 2, 2) numbers of (e, e) cells, by the blocks of 2 x 2 they are in."""
    side = len(cells) // NEXT
    return cells.reshape(side, NEXT, side, NEXT)


def finer_grid(grid: Grid) -> Grid:
    """Return the grid of the finer cells on which a public map is read.

    The same square, about 1024 cells a side, each cell of the grid divided into s x s, s >= 2.

    Raises
    ------
    InputError
        The grid has too many cells, or its cells are too small to be divided.

    Examples
    --------
    >>> finer_grid(Grid.from_bounds(52.0, 13.0, 0.4, 20)).cells
    1020
    """
    cells = instance("grid", grid, Grid).cells
    room = min(grid.height, grid.width) // 2  # cells a side that are not too small
    most = min(room, MAX_CELLS) // cells
    if most < NEXT:
        raise InputError(
            f"grid must have cells that can be divided for public weights, but {cells} a side "
            "are too many"
        )
    return replace(grid, cells=cells * min(max(FINE // cells, NEXT), most))
