"""Grid: a public square cut into cells, and which cell a position falls in.

Edges are whole numbers of 1e-7 degree (about a centimetre), or of 1e-7 plane units, so that
every language puts a position into the same cell: the position is rounded to that unit and the
rest is integer arithmetic. Rows run south to north, columns west to east.

A position outside the square belongs to the nearest cell of the square. The device still
reports: staying silent would tell the server that the user is elsewhere. People outside thus
count at the edge; invite devices by what is public about them, never by where they are.
"""

import math
from dataclasses import dataclass

from client_sdk.errors import ParameterError, PositionError
from client_sdk.validate import MAX_CELLS, finite_number, is_number, whole_number

UNIT = 10**7  # grid units per degree or per plane unit
TURN = 360 * UNIT
MAX_LATITUDE = 85  # beyond it a local projection is not a useful map
# Corners of plane squares. A side is at most twice this, and 4096 times a side is below 2**63 in
# units of 1e-7, so that 64-bit integers hold every step.
PLANE_LIMIT = 10**8
# Every plane square ends at 3e8, so a position limited to this has the cell that it had before.
PLANE_FAR = 4 * 10**8

KINDS = ("geographic", "plane")


@dataclass(frozen=True)
class Grid:
    """A square (or box) of cells x cells cells; make one with a ``from_`` or ``plane`` method.

    Attributes
    ----------
    kind : {"geographic", "plane"}
        Latitude and longitude in degrees, or y and x of any plane.
    south, west : int
        Corner in units of 1e-7 degree or plane unit; west in [-180, 180) degrees.
    height, width : int
        Extent in the same units; a cell is at least 2 units, so that its centre lies in it.
    cells : int in [1, 4096]
        Side d of the grid in cells.
    """

    kind: str
    south: int
    west: int
    height: int
    width: int
    cells: int

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        self._whole("cells", 1, MAX_CELLS)
        least = 2 * self.cells
        if self.kind == "geographic":
            limit = MAX_LATITUDE * UNIT
            self._whole("south", -limit, limit)
            self._whole("west", -TURN // 2, TURN // 2 - 1)
            self._whole("height", least, limit - self.south)
            self._whole("width", least, TURN // 2)
        else:
            limit = PLANE_LIMIT * UNIT
            self._whole("south", -limit, limit)
            self._whole("west", -limit, limit)
            self._whole("height", least, 2 * limit)
            self._whole("width", least, 2 * limit)

    def _whole(self, field: str, low: int, high: int) -> None:
        """Check a field and keep it as an int, which numpy's integers are not."""
        object.__setattr__(self, field, whole_number(field, getattr(self, field), low, high))

    @classmethod
    def from_center(cls, lat: float, lon: float, side_m: float, cells: int) -> "Grid":
        """Return a square of ``side_m`` metres around (lat, lon) in degrees.

        Local equirectangular projection with the WGS 84 radii of curvature at the centre: a
        50 km square at latitude 60 is off by less than 1 % of its side at its north edge.
        """
        lat = _latitude("lat", lat)
        lon = _longitude("lon", lon)
        side = finite_number("side_m", side_m)
        if not 0 < side <= 2e7:
            raise ParameterError(f"side_m must be above 0 and at most 20000000, got {side_m}")
        if abs(lat) >= MAX_LATITUDE:
            raise ParameterError(f"lat must lie within {MAX_LATITUDE} degrees of the equator")
        per_lat, per_lon = metres_per_degree(lat)
        height = side / per_lat
        width = side / per_lon
        return cls._from_degrees(lat - height / 2, lon - width / 2, height, width, cells)

    @classmethod
    def from_bounds(cls, south: float, west: float, side_deg: float, cells: int) -> "Grid":
        """Return the box north-east of a corner, ``side_deg`` degrees of latitude and longitude.

        Square in degrees, as the squares of the papers are; on the ground its cells are
        narrower than high by the cosine of the latitude (see :attr:`cell_size`).
        """
        side = finite_number("side_deg", side_deg)
        if not 0 < side <= 180:
            raise ParameterError(f"side_deg must be above 0 and at most 180, got {side_deg}")
        corner = _latitude("south", south), _longitude("west", west)
        return cls._from_degrees(*corner, side, side, cells)

    @classmethod
    def _from_degrees(
        cls, south: float, west: float, height: float, width: float, cells: int
    ) -> "Grid":
        top = MAX_LATITUDE
        if not -top <= south <= south + height <= top:
            raise ParameterError(
                f"the square must stay within {top} degrees of the equator, "
                f"got latitudes {south:.6g} to {south + height:.6g}"
            )
        if width > 180:
            raise ParameterError(
                f"the square must span at most 180 degrees of longitude, got {width:.6g}"
            )
        _check_room(min(height, width), "degrees", cells)
        west_units = (_units(west) + TURN // 2) % TURN - TURN // 2
        return cls("geographic", _units(south), west_units, _units(height), _units(width), cells)

    @classmethod
    def plane(cls, y0: float, x0: float, side: float, cells: int) -> "Grid":
        """Return the square with corner (y0, x0) in plane coordinates of any unit."""
        corner = finite_number("y0", y0), finite_number("x0", x0)
        length = finite_number("side", side)
        for field, value in zip(("y0", "x0"), corner, strict=True):
            if abs(value) > PLANE_LIMIT:
                raise ParameterError(f"{field} must be within {PLANE_LIMIT}, got {value}")
        if not 0 < length <= 2 * PLANE_LIMIT:
            raise ParameterError(f"side must be above 0 and at most {2 * PLANE_LIMIT}, got {side}")
        _check_room(length, "plane units", cells)
        south = _units(corner[0])
        west = _units(corner[1])
        extent = _units(length)
        return cls("plane", south, west, extent, extent, cells)

    def cell(self, lat: float, lon: float) -> tuple[int, int]:
        """Return (row, col) of the cell nearest to a position; on a plane grid pass y, x.

        Cells are half open, [south, north) x [west, east); the outer edge belongs to the square.
        On a plane grid every finite position has a cell, however far away it is: silence would
        tell that the user is elsewhere.

        Raises
        ------
        PositionError
            The position is not finite, or not a latitude and longitude. It is never repeated.
        """
        row, col = self._line(lat, lon)
        last = self.cells - 1
        return min(max(row, 0), last), min(max(col, 0), last)

    def contains(self, lat: float, lon: float) -> bool:
        """Tell whether a position lies in the square, its outer edge included."""
        y, x = self._offset(lat, lon)
        return 0 <= y <= self.height and 0 <= x <= self.width

    def _line(self, lat: float, lon: float) -> tuple[int, int]:
        y, x = self._offset(lat, lon)
        return y * self.cells // self.height, x * self.cells // self.width

    def _offset(self, lat: float, lon: float) -> tuple[int, int]:
        """Return the position relative to the south-west corner, in units.

        Longitudes are taken on the turn that is centred on the square, so that a square across
        the antimeridian works and a position beyond the west edge is nearest to the west edge.
        """
        y, x = check_position(lat, lon, self.kind)
        dy = _units(y) - self.south
        dx = _units(x) - self.west
        if self.kind == "geographic":
            # [-half, TURN - half) with half = the free part of the turn, split evenly.
            half = (TURN - self.width) // 2
            dx = (dx + half) % TURN - half
        return dy, dx

    def center(self, row: int, col: int) -> tuple[float, float]:
        """Return (lat, lon), or (y, x), of the centre of a cell, in the margin too."""
        y = self.south + (2 * row + 1) * self.height / (2 * self.cells)
        x = self.west + (2 * col + 1) * self.width / (2 * self.cells)
        if self.kind == "geographic":
            x = (x + TURN / 2) % TURN - TURN / 2
        return y / UNIT, x / UNIT

    @property
    def cell_size(self) -> tuple[float, float]:
        """(height, width) of a cell: in metres at the centre of the square, or in plane units."""
        height = self.height / UNIT / self.cells
        width = self.width / UNIT / self.cells
        if self.kind == "plane":
            return height, width
        per_lat, per_lon = metres_per_degree((self.south + self.height / 2) / UNIT)
        return height * per_lat, width * per_lon


def metres_per_degree(lat: float) -> tuple[float, float]:
    """Return metres per degree of latitude and of longitude on WGS 84 at a latitude."""
    equator = 6_378_137.0
    eccentricity2 = 0.00669437999014
    phi = math.radians(lat)
    bend = 1 - eccentricity2 * math.sin(phi) ** 2
    meridian = equator * (1 - eccentricity2) / bend**1.5
    normal = equator / math.sqrt(bend)
    return math.radians(meridian), math.radians(normal * math.cos(phi))


def check_position(lat: float, lon: float, kind: str) -> tuple[float, float]:
    """Return the two numbers, or say what is wrong with them without repeating them.

    Those of a plane are limited to PLANE_FAR, which changes neither cell nor inside and keeps
    their units within 2**53.
    """
    geographic = kind == "geographic"
    names = ("latitude", "longitude") if geographic else ("y", "x")
    limits = (90.0, 360.0) if geographic else (float(PLANE_FAR),) * 2
    numbers = []
    for name, limit, value in zip(names, limits, (lat, lon), strict=True):
        # Not left to float(): its own error, kept as the context of ours, quotes the value.
        if not is_number(value):
            raise PositionError(f"{name} must be a number")
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if geographic and not abs(number) <= limit:  # NaN fails too
            raise PositionError(f"{name} must be a number from -{limit:g} to {limit:g}")
        if not math.isfinite(number):
            raise PositionError(f"{name} must be a finite number")
        numbers.append(min(max(number, -limit), limit))
    return numbers[0], numbers[1]


def _check_room(side: float, unit: str, cells: int) -> None:
    if _units(side) < 2 * whole_number("cells", cells, 1, MAX_CELLS):
        raise ParameterError(
            f"the side of the square must be at least {2 / UNIT:g} {unit} a cell, "
            f"got {side:.6g} for {cells} cells"
        )


def _units(value: float) -> int:
    """Round half up to grid units; one multiplication in float64, the same everywhere."""
    return math.floor(value * UNIT + 0.5)


def _latitude(field: str, value: object) -> float:
    number = finite_number(field, value)
    if abs(number) > 90:
        raise ParameterError(f"{field} must be a latitude from -90 to 90 degrees, got {number}")
    return number


def _longitude(field: str, value: object) -> float:
    number = finite_number(field, value)
    if abs(number) > 360:
        raise ParameterError(f"{field} must be a longitude from -360 to 360 degrees, got {number}")
    return number
