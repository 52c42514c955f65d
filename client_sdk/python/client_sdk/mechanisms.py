"""The mechanisms of the Disk Area family as weights: DAM, DAM-NS, HUEM and the plain disk.

Each is one function: the weight above 1 of an offset, in units of the base weight, from the
shrunken areas of Du et al. 2024 (sections IV to VI). Everything else about a mechanism follows
from its :class:`ResponseTable`.
"""

from collections.abc import Callable
from fractions import Fraction
from math import isqrt

from client_sdk.errors import ParameterError
from client_sdk.exact import BITS, ONE, exp_below
from client_sdk.response import Octant, ResponseTable, half_widths, orbit_size
from client_sdk.shrunken import (
    disk_rows,
    is_high,
    optimal_radius,
    optimal_squared_radius,
    shrunken_area,
)
from client_sdk.validate import MAX_CELLS, WEIGHT_LIMIT, exact_epsilon, shown, whole_number

Excess = Callable[[int, int], int]  # offset (x, y), x >= y >= 0 -> (w - 1) scaled by 2**BITS


def dam_excess(epsilon: Fraction, radius: int) -> Excess:
    """Disk Area Mechanism: w = 1 + (e^eps - 1) s_b(o), Definition 8 and equation (13)."""
    rise = exp_below(epsilon) - ONE
    # A product of lower bounds, cut off: no weight above 1 + (e^eps - 1) s.
    return lambda x, y: rise * shrunken_area(x, y, radius) >> BITS


def dam_ns_excess(epsilon: Fraction, radius: int) -> Excess:
    """DAM without shrinking: mixed cells stay in the output domain at the base weight."""
    rise = exp_below(epsilon) - ONE
    return lambda x, y: rise if is_high(x, y, radius) else 0


def huem_excess(epsilon: Fraction, radius: int) -> Excess:
    """Hybrid Uniform-Exponential Mechanism, Definition 5, as a stack of DAM disks.

    Disk k = 1..b lifts its cells from E_(k+1) to E_k = exp(eps (1 - (k-1)/b)), E_(b+1) = 1:
    w = 1 + sum over k of (E_k - E_(k+1)) s_k(o). Disks that hold the cell whole telescope.
    """
    if radius == 0:
        return dam_excess(epsilon, 0)
    # levels[k - 1] is E_k, k = 1..b + 1.
    levels = [exp_below(epsilon * (radius - k) / radius) for k in range(radius)] + [ONE]

    def excess(x: int, y: int) -> int:
        square = x * x + y * y
        # The root rounded up: isqrt(n - 1) + 1 for n >= 1.
        whole = max(isqrt(square - 1) + 1, 1) if square else 1  # smallest k with r <= k
        # The sum of E_k - E_(k+1) over the disks that hold the cell whole.
        total = levels[whole - 1] - ONE if whole <= radius else 0
        for k in range(min(whole - 1, radius), 0, -1):
            area = shrunken_area(x, y, k)
            if area == 0:  # smaller disks hold still less of the cell
                break
            total += (levels[k - 1] - levels[k]) * area >> BITS
        return total

    return excess


def disk_lifts(epsilon: Fraction, squared_radius: int) -> Octant:
    """Plain disk: w = e^eps where x^2 + y^2 <= r^2, for a real radius r given by its square.

    No cell is mixed: a report speaks for a cell at the full ratio or not at all. Of all mechanisms
    that keep epsilon, one of this kind loses least (the staircases of Kairouz, Oh and Viswanath,
    JMLR 2016); a mixed cell is a staircase blurred.
    """
    rise = exp_below(epsilon) - ONE
    return tuple(
        (rise,) * (min(x, isqrt(squared_radius - x * x)) + 1)
        for x in range(isqrt(squared_radius) + 1)
    )


PAPER: dict[str, Callable[[Fraction, int], Excess]] = {
    "dam": dam_excess,
    "dam-ns": dam_ns_excess,
    "huem": huem_excess,
}
MECHANISMS = (*PAPER, "disk")


def response_table(
    mechanism: str,
    epsilon: object,
    cells: int,
    radius: int | None = None,
    squared_radius: int | None = None,
) -> ResponseTable:
    """Return the exact integer weights of a mechanism.

    Parameters
    ----------
    mechanism : {"dam", "dam-ns", "huem", "disk"}
    epsilon : number in [0.000001, 20]
        Privacy loss of one report.
    cells : int in [1, 4096]
        Side d of the square in cells.
    radius : int in [0, 2 cells], optional
        Disk radius b in cells; by default floor(b* d) (section V-C). At 0 the table is k-ary
        randomised response.
    squared_radius : int in [0, 4 cells^2], optional
        For "disk", in place of ``radius``: the square of a real radius; by default
        floor((b* d)^2).

    Returns
    -------
    ResponseTable
        The base weight is the largest power of two that keeps the total below 2**53, and
        max weight / base weight <= e**epsilon holds exactly.

    Raises
    ------
    ParameterError
        A parameter breaks its rule, or the table does not fit in 53 bits.

    Examples
    --------
    >>> table = response_table("dam", epsilon=3.5, cells=15)
    >>> table.radius, table.output_size
    (3, 437)
    >>> float(table.probability(0, 0))
    0.02167362...
    """
    if not isinstance(mechanism, str) or mechanism not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        raise ParameterError(f"mechanism must be one of {known}, got {shown(mechanism)}")
    exponent = exact_epsilon(epsilon)
    d = whole_number("cells", cells, 1, MAX_CELLS)
    b = None if radius is None else whole_number("radius", radius, 0, 2 * d)
    if mechanism == "disk":
        lifts = disk_lifts(exponent, _squared_radius(epsilon, d, b, squared_radius))
    elif squared_radius is not None:
        raise ParameterError(f"squared_radius is for mechanism disk alone, not for {mechanism}")
    else:
        lifts = _lifts(PAPER[mechanism], exponent, optimal_radius(epsilon, d) if b is None else b)
    top = exp_below(exponent) - ONE
    base_weight, octant = whole_weights(lifts, top, d)
    return ResponseTable(mechanism, float(epsilon), d, base_weight, octant)  # type: ignore[arg-type]


def _lifts(make: Callable[[Fraction, int], Excess], epsilon: Fraction, radius: int) -> Octant:
    excess = make(epsilon, radius)
    return tuple(
        tuple(excess(x, y) for y in range(min(x, width) + 1))
        for x, width in enumerate(disk_rows(radius))
    )


def _squared_radius(epsilon: object, cells: int, radius: int | None, squared: object) -> int:
    if squared is None:
        return optimal_squared_radius(epsilon, cells) if radius is None else radius**2
    if radius is not None:
        raise ParameterError("radius and squared_radius must not both be given")
    return whole_number("squared_radius", squared, 0, 4 * cells**2)


def whole_weights(lifts: Octant, top: int, cells: int) -> tuple[int, Octant]:
    """Return (B, weights): B the largest power of two with a total below 2**53.

    Rounding is downwards and capped at ``top``, which is rigorously below e^eps - 1, so no
    weight exceeds B e^eps.
    """
    widths = half_widths(lifts)
    radius = len(lifts) - 1
    # N: d rows of d + 2 b cells, and on either side a row of d + 2 h(k) for k = 1..b.
    size = cells * (cells + 2 * radius) + 2 * sum(cells + 2 * h for h in widths[1:])
    scaled = size * ONE + sum(
        orbit_size(x, y) * lift for x, row in enumerate(lifts) for y, lift in enumerate(row)
    )
    # Rounding down may let one more doubling fit than the unrounded sum allows.
    for shift in range(53 - (scaled >> BITS).bit_length() + 1, -1, -1):
        # The base is exact, a power of two, so rounding the lift down rounds the ratio down.
        octant = tuple(
            tuple((1 << shift) + (min(lift, top) << shift >> BITS) for lift in row) for row in lifts
        )
        table = ResponseTable("", 0.0, cells, 1 << shift, octant)
        if table.total_weight < WEIGHT_LIMIT:
            return 1 << shift, octant
    raise ParameterError("radius must be smaller at this epsilon: the total weight exceeds 53 bits")
