"""What every metric asks of its two maps, written once: validation, masses, coordinates, costs."""

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ldpspatial.errors import InputError
from ldpspatial.validate import number_array, shown, whole_number

FloatArray: TypeAlias = npt.NDArray[np.float64]
Cell: TypeAlias = float | tuple[float, float]

TOTAL_TOLERANCE = 1e-6
"""Largest relative difference of two totals that still counts as equal."""

TOTAL_UNITS = 2.0**52
"""A map's mass in whole units: every sum of them is exact in float64."""

# At about 40 bytes a pair, two dense 128 x 128 maps, the limit, take some 11 GB.
MAX_PAIRS = 4096**2 * 16
"""Most pairs of cells with mass for which a matrix of costs is built."""

LARGEST_WHOLE = 2**53
"""Whole numbers up to here are exact in float64."""

# A count divided by n on one side and normalised here on the other differs by a few roundings.
ROUNDING = 2.0**-49
"""Largest difference of two shares, relative to the larger one, that is taken for rounding."""


def normalised_pair(p: npt.ArrayLike, q: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return two maps that pass `checked_pair`, both scaled to mass 1."""
    first, second = checked_pair(p, q)
    return first / _total("p", first), second / _total("q", second)


def checked_pair(p: npt.ArrayLike, q: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Check two maps against each other and return them as arrays.

    Raises
    ------
    InputError
        They are not non-empty 2-D arrays of one shape, of finite numbers >= 0, or a total is 0, or
        the totals differ by more than 1e-6 of the larger one.
    """
    first, second = _of_one_shape(p, q)
    total_p = _total("p", first)
    total_q = _total("q", second)
    if abs(total_p - total_q) > TOTAL_TOLERANCE * max(total_p, total_q):
        raise InputError(
            f"q must have the total of p, {total_p!r}, up to {TOTAL_TOLERANCE:g} relative, "
            f"got {total_q!r}"
        )
    return first, second


def checked_shares(p: npt.ArrayLike, q: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Check two maps of any totals, even beyond float64, and return them as arrays.

    Raises
    ------
    InputError
        They are not 2-D arrays of one shape, of finite numbers >= 0, or one has zeros only.
    """
    first, second = _of_one_shape(p, q)
    for field, masses in (("p", first), ("q", second)):
        if not masses.any():
            raise InputError(f"{field} must have a positive total, got 0.0")
    return first, second


def _of_one_shape(p: npt.ArrayLike, q: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    first = _masses("p", p)
    second = _masses("q", q)
    if first.shape != second.shape:
        raise InputError(f"q must have the shape of p, {first.shape}, got {second.shape}")
    return first, second


def _masses(field: str, values: npt.ArrayLike) -> FloatArray:
    masses = number_array(field, values, ("rows", "columns"), "[0, inf)", bools=True)
    raw: npt.NDArray[Any] = np.asarray(values)
    if raw.dtype.kind in "iu" and raw.max() > LARGEST_WHOLE:
        raise InputError(f"{field} must hold whole numbers of at most 2^53, got {raw.max()}")
    return masses


def _total(field: str, masses: FloatArray) -> float:
    # fsum is correctly rounded, so a map and a multiple of it normalise alike.
    try:
        total = math.fsum(masses.ravel().tolist())
    except OverflowError:
        total = math.inf
    if not 0 < total < math.inf:
        raise InputError(f"{field} must have a positive and finite total, got {total!r}")
    return total


def equal_up_to_rounding(p: FloatArray, q: FloatArray) -> bool:
    """Whether two normalised maps differ by nothing but the rounding of their masses."""
    return bool(np.all(np.abs(p - q) <= ROUNDING * np.maximum(p, q)))


def checked_order(order: int) -> int:
    """Return the order, 1 or 2.

    Raises
    ------
    InputError
        It is neither 1 nor 2.
    """
    return whole_number("order", order, 1, 2)


def cell_sides(cell: Cell) -> tuple[float, float]:
    """Return height and width of a cell from one side or a (height, width) pair.

    Raises
    ------
    InputError
        A side is not a positive finite number.
    """
    rule = "cell must be a positive finite number or a pair of them (height, width)"
    try:
        sides = number_array("cell", cell, interval="(0, inf)")
    except InputError:
        raise InputError(f"{rule}, got {shown(cell)}") from None
    if sides.shape not in ((), (2,)):
        raise InputError(f"{rule}, got {shown(cell)}")
    height, width = np.broadcast_to(sides, (2,)).tolist()
    return height, width


def carrying_cells(
    density: FloatArray, sides: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return centres (n, 2), in the unit of `sides`, and masses (n,) of the cells with mass."""
    cells = np.argwhere(density > 0)
    return cells * np.array(sides), density[density > 0]


def check_pairs(sources: int, targets: int) -> None:
    """Check that a matrix of costs fits in memory.

    Raises
    ------
    InputError
        The numbers of cells with mass multiply to more than MAX_PAIRS.
    """
    if sources * targets > MAX_PAIRS:
        raise InputError(
            f"p and q must have at most {MAX_PAIRS} pairs of cells with mass, which fit in memory, "
            f"got {sources} x {targets} = {sources * targets}: aggregate both to a coarser grid"
        )


def whole_units(masses: FloatArray) -> FloatArray:
    """Round masses of total 1 to integers of total TOTAL_UNITS; tiny ones become 0.

    The largest cell takes up what rounding leaves over. n cells move at most n / 2 units in all.
    """
    units = np.rint(masses * TOTAL_UNITS)
    # The largest cell holds 2^52 / n units at least, and stays positive. Whole sums are exact.
    units[np.argmax(units)] += TOTAL_UNITS - units.sum()
    return units


def ground_cost(sources: FloatArray, targets: FloatArray, order: int, ground: str) -> FloatArray:
    """Return the (n, m) matrix of ground distance ** order, 'euclidean' or 'cityblock'."""
    rows = np.abs(sources[:, None, 0] - targets[None, :, 0])
    columns = np.abs(sources[:, None, 1] - targets[None, :, 1])
    if ground == "cityblock":
        distance: FloatArray = rows + columns
        return distance if order == 1 else distance**2
    # No root is taken for order 2: costs between square cells stay whole numbers, hence exact.
    return np.hypot(rows, columns) if order == 1 else rows**2 + columns**2
