"""Regions as weights of cells: the share of each cell's area that a rectangle or a polygon covers.

A map says how many people are in a cell and not where, so people are taken as spread evenly
inside each cell: a region that covers half of a cell holds half of its people. Where a region
follows the cells' edges nothing is assumed.

All is measured in the grid's own plane, latitude upwards and longitude to the right (y and x of a
plane grid), where cells are rectangles and the sides of a polygon are straight between its
corners. What lies outside the square counts for nothing; devices out there report an edge cell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from client_sdk import Grid
from client_sdk.shared import TURN, UNIT
from ldpspatial.errors import InputError
from ldpspatial.places.shapes import (
    MOST_PLANE,
    NO_AREA,
    areas_of,
    as_geojson,
    cell_units,
    check_shape,
    coordinate,
    copies_of,
    in_cells,
    limits,
    loaded,
    shape_of,
    turns,
    weights_of,
    window_of,
)
from ldpspatial.validate import instance, number_array, number_in, shown

Array = NDArray[np.float64]

CUT = 1e-3  # cells of which less is out, or in beside whole ones, are not cut: files round edges


@dataclass(frozen=True, eq=False)
class Region:
    """A region with a name.

    Attributes
    ----------
    name : str
    weights : (d, d) array in [0, 1]
        The share of each cell's area that it covers.
    geometry : mapping, optional
        As GeoJSON, where it is known; its weights need none.
    on_map : float in [0, 1]
        The share of its area that lies in the square: nothing is known of the people elsewhere.
    """

    name: str
    weights: Array
    geometry: Mapping[str, Any] | None = None
    on_map: float = 1.0

    @classmethod
    def rectangle(
        cls, name: str, grid: Grid, south: float, west: float, north: float, east: float
    ) -> "Region":
        """Return a rectangle, which may lie outside of the square in part or as a whole.

        Parameters and errors are else those of :func:`rectangle`.
        """
        weights, area = _rectangle(grid, south, west, north, east)
        east += TURN / UNIT if west > east else 0.0
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        geometry = {"type": "Polygon", "coordinates": [ring]}
        return cls(name, weights, geometry, _part(weights, area))

    @classmethod
    def polygon(cls, name: str, grid: Grid, geometry: Any) -> "Region":
        """Return a polygon, of GeoJSON or shapely, which may leave the square or miss it.

        Parameters and errors are else those of :func:`polygon`.
        """
        weights, area = _polygon(grid, geometry)
        if not isinstance(geometry, Mapping):
            shapely = loaded()
            geometry = shapely.geometry.mapping(shape_of(shapely, geometry))
        return cls(name, weights, geometry, _part(weights, area))


def rectangle(grid: Grid, south: float, west: float, north: float, east: float) -> Array:
    """Return the weights of a rectangle between two latitudes and two longitudes.

    Parameters
    ----------
    grid : client_sdk.Grid
    south, west, north, east : float
        Degrees, or plane units (y of the south and north, x of the west and east). A west beyond
        the east is a rectangle across the antimeridian.

    Returns
    -------
    (d, d) array in [0, 1]

    Raises
    ------
    InputError
        A side is not a number or out of range, the rectangle is empty or misses the map.

    Examples
    --------
    >>> rectangle(Grid.plane(0, 0, 4, 2), south=0, west=0, north=1, east=3).tolist()
    [[0.5, 0.25], [0.0, 0.0]]
    """
    weights, _ = _rectangle(grid, south, west, north, east)
    return _on_map(weights, "rectangle")


def _rectangle(
    grid: Grid, south: float, west: float, north: float, east: float
) -> tuple[Array, float]:
    """Return the weights of a rectangle, and its area in cells."""
    instance("grid", grid, Grid)
    geographic = grid.kind == "geographic"
    sides = {"south": south, "west": west, "north": north, "east": east}
    for name, value in sides.items():
        sides[name] = coordinate(name, value, limits(grid)[name in ("west", "east")])
    south, west, north, east = sides.values()
    if not south < north:
        raise InputError(f"south must lie below north, got {south} and {north}")
    if geographic and west > east:
        east += 360.0
    if not west < east:
        raise InputError(f"west must lie before east, got {west} and {east}")
    (x0, x1), (y0, y1) = cell_units(grid, np.array([west, east]), np.array([south, north]))
    columns = sum(_covered(x0 + turn, x1 + turn, grid.cells) for turn in turns(grid))
    # A rectangle wider than a turn covers some columns twice.
    weights = np.outer(_covered(y0, y1, grid.cells), np.minimum(columns, 1.0))
    return weights, float((y1 - y0) * (x1 - x0))


def polygon(grid: Grid, geometry: Any) -> Array:
    """Return the weights of a polygon, which may have holes and several parts.

    Parameters
    ----------
    grid : client_sdk.Grid
    geometry : sequence, mapping or shapely geometry
        A sequence of corners (latitude, longitude), or (y, x), the last one joined to the first.
        A GeoJSON Polygon or MultiPolygon (RFC 7946), whose positions are the other way round:
        longitude, latitude. A shapely Polygon or MultiPolygon, with longitude as x. A polygon
        across the antimeridian runs on past 180, or comes in two parts.

    Returns
    -------
    (d, d) array in [0, 1]

    Raises
    ------
    InputError
        The geometry is none of these, has a coordinate that is not finite or out of range, crosses
        itself, is empty or misses the map; or shapely is missing: install ``ldpspatial[regions]``.

    Examples
    --------
    >>> polygon(Grid.plane(0, 0, 2, 2), [(0, 0), (0, 2), (2, 0)]).tolist()
    [[1.0, 0.5], [0.5, 0.0]]
    """
    weights, _ = _polygon(grid, geometry)
    return _on_map(weights, "polygon")


def polygon_window(grid: Grid, geometry: Any) -> tuple[slice, slice, Array, float]:
    """Return the weights of a polygon in the rows and columns around it, and its area.

    On fine grids that is much less than all cells: thousands of buildings take seconds.

    Parameters
    ----------
    grid : client_sdk.Grid
    geometry : sequence, mapping or shapely geometry
        As of :func:`polygon`; it may miss the map.

    Returns
    -------
    rows, columns : slice
        Without any where it misses the map.
    weights : array in [0, 1] of these rows and columns
    area : float
        In cells, with what lies outside of the square.

    Raises
    ------
    InputError
        As :func:`polygon`.

    Examples
    --------
    >>> rows, columns, weights, area = polygon_window(
    ...     Grid.plane(0, 0, 9, 9), [(3, 4), (3, 5), (5, 4)]
    ... )
    >>> rows, columns, weights.tolist(), area
    (slice(3, 5, None), slice(4, 5, None), [[0.75], [0.25]], 1.0)
    """
    instance("grid", grid, Grid)
    shapely = loaded()
    with np.errstate(invalid="ignore"):  # what is not a number is refused below
        shape = shape_of(shapely, geometry)
    check_shape(shapely, shape, limits(grid))
    shape = in_cells(shapely, grid, shape)
    copies = copies_of(shapely, grid, shape)
    rows, columns = window_of(copies, grid.cells)
    weights = np.zeros((len(rows), len(columns)))
    for copy in copies:
        weights += areas_of(shapely, copy, rows, columns)
    # A polygon wider than a turn covers some cells twice.
    weights = np.minimum(weights, 1.0)
    area = float(shape.area)
    return slice(rows.start, rows.stop), slice(columns.start, columns.stop), weights, area


def holds(grid: Grid, geometry: Any, rows: ArrayLike, columns: ArrayLike) -> NDArray[np.bool_]:
    """Tell which points of the square lie in a polygon.

    Parameters
    ----------
    grid : client_sdk.Grid
    geometry : sequence, mapping or shapely geometry
        As of :func:`polygon`.
    rows, columns : (n,) arrays
        Of the points, in cells northwards and eastwards from the south-west corner of the square.

    Returns
    -------
    (n,) bool array

    Raises
    ------
    InputError
        The geometry is none, is not finite or crosses itself, a number is not finite, lengths
        differ, or shapely is missing.

    Examples
    --------
    >>> holds(Grid.plane(0, 0, 4, 2), [(0, 0), (0, 2), (2, 0)], [0.2, 0.8], [0.2, 0.8]).tolist()
    [True, False]
    """
    instance("grid", grid, Grid)
    y = number_array("rows", rows, ("n",))
    x = number_array("columns", columns, (len(y),))
    shapely = loaded()
    with np.errstate(invalid="ignore"):
        shape = shape_of(shapely, geometry)
    # Corners of a rectangle across the antimeridian may be beyond the limits of a given polygon.
    check_shape(shapely, shape, (MOST_PLANE, MOST_PLANE))
    found = np.zeros(len(y), bool)
    for copy in copies_of(shapely, grid, in_cells(shapely, grid, shape)):
        shapely.prepare(copy)
        found |= shapely.contains_xy(copy, x, y)
    return found


def _polygon(grid: Grid, geometry: Any) -> tuple[Array, float]:
    """Return the weights of a polygon, and its area in cells."""
    rows, columns, part, area = polygon_window(grid, geometry)
    weights = np.zeros((grid.cells, grid.cells))
    weights[rows, columns] = part
    return weights, area


def cells(grid: Grid, rows: range, columns: range) -> Array:
    """Return the weights of whole cells: 1 in these rows and columns, else 0.

    Parameters
    ----------
    grid : client_sdk.Grid
    rows, columns : range
        From 0, counted from the south and from the west.

    Raises
    ------
    InputError
        A range is empty, or leaves the grid.

    Examples
    --------
    >>> cells(Grid.plane(0, 0, 2, 2), range(1), range(2)).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    instance("grid", grid, Grid)
    for name, chosen in (("rows", rows), ("columns", columns)):
        inside = isinstance(chosen, range) and len(chosen) > 0
        if not inside or min(chosen) < 0 or max(chosen) >= grid.cells:
            raise InputError(
                f"{name} must be a range within 0 to {grid.cells - 1}, got {shown(chosen)}"
            )
    weights = np.zeros((grid.cells, grid.cells))
    weights[np.ix_(rows, columns)] = 1.0
    return weights


def cut_cells(weights: ArrayLike) -> NDArray[np.bool_]:
    """Return which cells a region cuts: those neither wholly in it nor wholly out of it.

    Where people are in such a cell no map tells, so they count as spread evenly in it. A cell of
    which less than a thousandth is out is not cut, nor one of which less than a thousandth of the
    most covered cell is in: files round the edges of their regions.

    Parameters
    ----------
    weights : (d, d) array in [0, 1]
        As :func:`rectangle`, :func:`polygon` and :func:`cells` return them.

    Returns
    -------
    (d, d) bool array

    Raises
    ------
    InputError
        ``weights`` is not such an array.

    Examples
    --------
    >>> cut_cells(rectangle(Grid.plane(0, 0, 4, 2), 0, 0, 2, 3)).tolist()
    [[False, True], [False, False]]
    """
    share = number_array("weights", weights, ("d", "d"), "[0, 1]", bools=True)
    least = CUT * share.max()  # a region may be a speck of one cell
    held = (share >= least) & (share > 0)
    return np.asarray(held & (1 - share >= CUT))


def united(grid: Grid, regions: Sequence[Region]) -> Region:
    """Return the union of regions: what several of them cover counts once.

    Parameters
    ----------
    grid : client_sdk.Grid
        Of their weights.
    regions : sequence of Region
        At least one, with geometries. A single one is returned as it is.

    Returns
    -------
    Region
        With the first one's name, and the geometry of what may lie on the map.

    Raises
    ------
    InputError
        An argument is of another kind, a region has no geometry, or shapely is missing.

    Examples
    --------
    >>> plane = Grid.plane(0, 0, 4, 2)
    >>> west = Region.rectangle("west", plane, south=0, west=0, north=4, east=1)
    >>> south = Region.rectangle("south", plane, south=0, west=0, north=1, east=4)
    >>> united(plane, [west, south]).weights.tolist()
    [[0.75, 0.5], [0.5, 0.0]]
    """
    instance("grid", grid, Grid)
    check_regions(regions)
    if len(regions) == 1:
        return regions[0]
    if any(region.geometry is None for region in regions):
        raise InputError("regions must have geometries, got one without")
    shapely = loaded("areas of several regions")
    union = shapely.union_all([_on_grid(shapely, grid, each) for each in regions])
    if union.is_empty:
        return regions[0]
    weights = weights_of(shapely, grid, union)
    geometry = as_geojson(shapely, grid, union)
    return Region(regions[0].name, weights, geometry, _part(weights, float(union.area)))


def clipped(grid: Grid, region: Region, area: Region) -> Region:
    """Return the part of a region that lies in an area.

    Parameters
    ----------
    grid : client_sdk.Grid
        Of their weights.
    region, area : Region
        With geometries where both cut one and the same cell: weights do not tell whether they cut
        the same part of it.

    Returns
    -------
    Region
        Named like the region, and as much on the map. Its geometry is that of the part, or of the
        region where no cell is cut by both; None where they cut cells and do not meet.

    Raises
    ------
    InputError
        An argument is of another kind or grid; or both cut a cell, and one has no geometry or
        shapely is missing.

    Examples
    --------
    >>> plane = Grid.plane(0, 0, 4, 2)
    >>> west = Region.rectangle("west", plane, south=0, west=0, north=4, east=1)
    >>> beside = Region.rectangle("beside", plane, south=0, west=1, north=4, east=3)
    >>> [clipped(plane, each, west).weights.tolist() for each in (beside, west)]
    [[[0.0, 0.0], [0.0, 0.0]], [[0.5, 0.0], [0.5, 0.0]]]
    """
    instance("grid", grid, Grid)
    shape = (grid.cells, grid.cells)
    both = []
    for name, each in (("region", region), ("area", area)):
        given = instance(name, each, Region).weights
        both.append(number_array(f"{name}: weights", given, shape, "[0, 1]", bools=True))
    least = np.minimum(*both)
    if not (cut_cells(both[0]) & cut_cells(both[1])).any():
        return Region(region.name, least, region.geometry, region.on_map)
    if region.geometry is None or area.geometry is None:
        raise InputError(
            "region and area must have geometries where both cut one and the same cell, got one "
            "without"
        )
    shapely = loaded("regions and an area that cut the same cells")
    common = shapely.intersection(*(_on_grid(shapely, grid, each) for each in (region, area)))
    # Where edges run along each other it holds lines besides.
    common = shapely.union_all([part for part in shapely.get_parts(common) if part.area])
    found = np.minimum(weights_of(shapely, grid, common), least)
    # Slivers: files round the edges that two share. A corner that one has in a cell is none.
    found[(found < CUT * both[0].max()) & (found < least / 2)] = 0.0
    found = np.where(found > (1 - NO_AREA) * least, least, found)
    geometry = None if common.is_empty else as_geojson(shapely, grid, common)
    return Region(region.name, found, geometry, region.on_map)


def check_regions(regions: object) -> Sequence[Region]:
    """Check that regions are a sequence of at least one :class:`Region`, and return them."""
    rule = "regions must be a sequence of at least one Region"
    if not isinstance(regions, Sequence) or isinstance(regions, str) or not regions:
        raise InputError(f"{rule}, got {shown(regions)}")
    for each in regions:
        if not isinstance(each, Region):
            raise InputError(f"{rule}, got one with a {type(each).__name__}")
        instance("regions: name", each.name, str)
        number_in("regions: on_map", each.on_map, "[0, 1]")
    return regions


def _covered(low: float, high: float, cells: int) -> Array:
    """Return which part of each of the unit intervals from 0 to ``cells`` lies in [low, high]."""
    # Each edge is moved to the nearest point of [low, high]: what stays between two is covered.
    edges = np.clip(np.arange(cells + 1.0), low, high)
    return np.asarray(np.diff(edges))


def _part(weights: Array, area: float) -> float:
    """Return how much of an area in cells is in the square."""
    return min(float(weights.sum()) / area, 1.0) if area > 0 else 0.0


def _on_map(weights: Array, what: str) -> Array:
    if not weights.any():
        raise InputError(f"the {what} must overlap the map, but lies outside of its square")
    return weights


def _on_grid(shapely: Any, grid: Grid, region: Region) -> Any:
    """Return a region in units of cells, in all turns in which it may lie on the map.

    Only there do two regions cover each other.
    """
    shape = in_cells(shapely, grid, shape_of(shapely, region.geometry))
    return shapely.union_all(copies_of(shapely, grid, shape))
