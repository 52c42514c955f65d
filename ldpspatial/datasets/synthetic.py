"""Maps drawn from known laws: the three of the DAM paper, and a city for demonstrations.

Du et al. (arXiv 2412.06541), section VII: Normal, SZipf and MNormal. The first coordinate of a
pair, of a centre or of a box is y, the second x, as in a pair (latitude, longitude). The paper's
own order cannot be told; the other one transposes the maps and leaves every distance as it is.
Boxes, and the three centres of MNormal, are those of the published code: the paper's text puts
all three centres at the origin.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import metres_per_degree
from ldpspatial.validate import check_generator, whole_number

Array = NDArray[np.float64]
Draw = Callable[[int, np.random.Generator], Array]

# Corner (y0, x0) and side.
NORMAL_BOX = (-4.44, -4.87, 9.45)
SZIPF_BOX = (0.0, 0.0, 1.0)
MNORMAL_BOX = (-4.25, -4.32, 10.76)

CITY_CENTER = (48.0, 11.0)  # latitude and longitude of the market square of a city that is not
CITY_SIDE_M = 12_000.0

# Metres north and east of the market square: from, to, spread, share of the people.
# Each quarter is a street from one end to the other, blurred by a round normal law.
_QUARTERS = np.array(
    [
        (250, -200, -250, 350, 420, 0.150),  # old town
        (600, -900, -700, 1200, 1150, 0.220),  # inner city
        (3700, -200, 2600, 500, 480, 0.060),  # ring of neighbourhoods, clockwise from the north
        (1300, 3900, -300, 3500, 430, 0.060),
        (-1300, 2900, -2100, 1900, 380, 0.060),
        (-3300, 900, -3700, -400, 460, 0.050),
        (-2600, -2000, -1700, -3300, 420, 0.060),
        (-600, -3900, 900, -3500, 520, 0.050),
        (1900, -3000, 2900, -2000, 430, 0.050),
        (-4600, 4200, -4100, 4700, 380, 0.085),  # satellite town
        (600, 100, 5800, 1300, 150, 0.040),  # corridor to the north
        (-500, 500, -4300, 4300, 150, 0.055),  # corridor to the satellite town
        (0, 0, 0, 0, 3400, 0.060),  # scattered houses
    ]
)
_RIVER_HALF_WIDTH = 220.0
_LAKE_CENTER = (2100.0, 2300.0)
_LAKE_AXES = (850.0, 1250.0)


@dataclass(frozen=True)
class SyntheticMap:
    """A law of points and the square that they are collected in.

    Attributes
    ----------
    name : str
    y0, x0 : float
        Corner of the square with the smallest coordinates, plane units.
    side : float
        Side of the square, plane units; points lie in [y0, y0 + side) x [x0, x0 + side).
    draw : callable
        ``draw(n, rng)`` returns (n, 2) float64, rows of y, x, all inside the square.
    """

    name: str
    y0: float
    x0: float
    side: float
    draw: Draw


def synthetic_maps() -> Mapping[str, SyntheticMap]:
    """Return the maps of the DAM paper by name: normal, szipf, mnormal.

    Examples
    --------
    >>> import numpy as np
    >>> szipf = synthetic_maps()["szipf"]
    >>> szipf.side, szipf.draw(1000, np.random.default_rng(1)).shape
    (1.0, (1000, 2))
    """
    rows = (
        ("normal", NORMAL_BOX, normal),
        ("szipf", SZIPF_BOX, skew_zipf),
        ("mnormal", MNORMAL_BOX, multi_normal),
    )
    return MappingProxyType({name: SyntheticMap(name, *box, draw) for name, box, draw in rows})


def city_map() -> SyntheticMap:
    """Return :func:`city` in metres from its market square: a map as rough as real cities are.

    W2 of what is recommended is on eleven real maps .8 to 1.5 times what it is on this one
    (docs/how-to/choose-a-grid.md), and twice what it is on the smooth ones of
    :func:`synthetic_maps`.

    Examples
    --------
    >>> import numpy as np
    >>> bool(abs(city_map().draw(100, np.random.default_rng(1))).max() < 6000)
    True
    """

    def in_metres(n: int, rng: np.random.Generator) -> Array:
        metres: Array = (city(n, rng) - CITY_CENTER) * metres_per_degree(CITY_CENTER[0])
        return metres

    half = CITY_SIDE_M / 2
    return SyntheticMap("city", -half, -half, CITY_SIDE_M, in_metres)


def normal(n: int, rng: np.random.Generator) -> Array:
    """Draw n points of "Normal": mean 0, unit variances, covariance 0.5.

    Points outside the box (y0, x0) = (-4.44, -4.87), side 9.45, are drawn again: about
    1 in 130,000.

    Parameters
    ----------
    n : int >= 1
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (n, 2)
        Rows of y, x.

    Raises
    ------
    InputError
        ``n`` is not a positive whole number, or ``rng`` not a Generator.
    """
    check_generator(rng)
    return _draw_until(
        n,
        lambda rows: _correlated(np.full(len(rows), 0.5), rng),
        lambda at: _inside(at, NORMAL_BOX),
    )


def skew_zipf(n: int, rng: np.random.Generator) -> Array:
    """Draw n points of "SZipf": y and x independent with distribution function log2(1 + t).

    Both are 2^U - 1 with U uniform, in the box [0, 1) x [0, 1).

    Parameters
    ----------
    n : int >= 1
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (n, 2)
        Rows of y, x.

    Raises
    ------
    InputError
        ``n`` is not a positive whole number, or ``rng`` not a Generator.
    """
    check_generator(rng)
    return _draw_until(
        n,
        lambda rows: np.expm1(np.log(2) * rng.random((len(rows), 2))),  # 2^U - 1, exact near 0
        lambda at: _inside(at, SZIPF_BOX),
    )


def multi_normal(n: int, rng: np.random.Generator) -> Array:
    """Draw n points of "MNormal": three normal clouds with unit variances, a third of n each.

    Centres (y, x) and covariances: (0, 0) and 0.5; (1, 2) and 0; (2, 0) and -0.2. The clouds
    take turns row by row, so that their shares differ by at most one point. Points outside the
    box (y0, x0) = (-4.25, -4.32), side 10.76, are drawn again from their own cloud.

    Parameters
    ----------
    n : int >= 1
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (n, 2)
        Rows of y, x.

    Raises
    ------
    InputError
        ``n`` is not a positive whole number, or ``rng`` not a Generator.
    """
    check_generator(rng)
    centers = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 0.0]])
    covariances = np.array([0.5, 0.0, -0.2])
    return _draw_until(
        n,
        lambda rows: centers[rows % 3] + _correlated(covariances[rows % 3], rng),
        lambda at: _inside(at, MNORMAL_BOX),
    )


def city(n: int, rng: np.random.Generator) -> Array:
    """Draw n people of a city that does not exist, around a market square at 48 N, 11 E.

    A dense old town, an inner city and a ring of seven neighbourhoods; a satellite town in the
    south-east; a corridor of houses along the road to it and along the road to the north; some
    scattered houses. Nobody lives in the river, 440 m wide, that winds past the old town from
    north to south, nor in the lake in the north-east, nor outside a square of 12 km.

    Parameters
    ----------
    n : int >= 1
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (n, 2)
        Rows of latitude, longitude in degrees, all inside the square of side ``CITY_SIDE_M``
        metres around ``CITY_CENTER`` (equirectangular at the centre).

    Raises
    ------
    InputError
        ``n`` is not a positive whole number, or ``rng`` not a Generator.
    """
    check_generator(rng)
    start, end, spread, share = np.split(_QUARTERS, [2, 4, 5], axis=1)
    shares = share[:, 0] / share.sum()

    def quarter_dwellers(rows: NDArray[np.intp]) -> Array:
        quarter = rng.choice(len(shares), size=len(rows), p=shares)
        along = rng.random((len(rows), 1))
        blur = spread[quarter] * rng.standard_normal((len(rows), 2))
        dwellers: Array = start[quarter] + along * (end - start)[quarter] + blur
        return dwellers

    metres = _draw_until(n, quarter_dwellers, _on_city_land)
    degrees: Array = metres / metres_per_degree(CITY_CENTER[0])
    return degrees + CITY_CENTER


def _on_city_land(at: Array) -> NDArray[np.bool_]:
    """Tell which points (metres north, east of the market square) are in the city and dry."""
    north = at[:, 0]
    east = at[:, 1]
    course: Array = -900 + 650 * np.sin(north / 1900)  # metres east
    river = np.abs(east - course) < _RIVER_HALF_WIDTH
    (lake_north, lake_east), (height, width) = _LAKE_CENTER, _LAKE_AXES
    lake = ((north - lake_north) / height) ** 2 + ((east - lake_east) / width) ** 2 < 1
    half = CITY_SIDE_M / 2
    return ~river & ~lake & (np.abs(north) < half) & (np.abs(east) < half)


def _correlated(covariances: Array, rng: np.random.Generator) -> Array:
    """Return a pair of unit normals for every covariance given."""
    first, second = rng.standard_normal((2, len(covariances)))
    # The Cholesky factor of [[1, c], [c, 1]]: both coordinates keep the variance 1.
    return np.column_stack([first, covariances * first + np.sqrt(1 - covariances**2) * second])


def _inside(at: Array, box: tuple[float, float, float]) -> NDArray[np.bool_]:
    y0, x0, side = box
    corner = np.array((y0, x0))
    inside = (at >= corner) & (at < corner + side)
    return inside[:, 0] & inside[:, 1]


def _draw_until(
    n: int, draw: Callable[[NDArray[np.intp]], Array], accept: Callable[[Array], NDArray[np.bool_]]
) -> Array:
    """Draw rows 0..n-1, and draw those again that are not accepted, until all are."""
    n = whole_number("n", n, 1)
    points = np.empty((n, 2))
    open_rows = np.arange(n)
    while len(open_rows):
        drawn = draw(open_rows)
        points[open_rows] = drawn
        # Rejection leaves the law cut to the box. `draw` sees row numbers, so a row that is drawn
        # again stays in its own cloud.
        open_rows = open_rows[~accept(drawn)]
    return points
