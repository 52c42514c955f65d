"""The mechanisms of the Disk Area family as weights: DAM, DAM-NS and HUEM.

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
from client_sdk.shrunken import disk_rows, is_high, optimal_radius, shrunken_area
from client_sdk.validate import MAX_CELLS, WEIGHT_LIMIT, exact_epsilon, whole_number

Excess = Callable[[int, int], int]  # offset (x, y), x >= y >= 0 -> (w - 1) scaled by 2**BITS


def dam_excess(epsilon: Fraction, radius: int) -> Excess:
    """Disk Area Mechanism: w = 1 + (e^eps - 1) s_b(o), Definition 8 and equation (13)."""
    rise = exp_below(epsilon) - ONE
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
    levels = [exp_below(epsilon * (radius - k) / radius) for k in range(radius)] + [ONE]

    def excess(x: int, y: int) -> int:
        square = x * x + y * y
        whole = max(isqrt(square - 1) + 1, 1) if square else 1  # smallest k with r <= k
        total = levels[whole - 1] - ONE if whole <= radius else 0
        for k in range(min(whole - 1, radius), 0, -1):
            area = shrunken_area(x, y, k)
            if area == 0:  # smaller disks hold still less of the cell
                break
            total += (levels[k - 1] - levels[k]) * area >> BITS
        return total

    return excess


MECHANISMS: dict[str, Callable[[Fraction, int], Excess]] = {
    "dam": dam_excess,
    "dam-ns": dam_ns_excess,
    "huem": huem_excess,
}


def response_table(
    mechanism: str, epsilon: object, cells: int, radius: int | None = None
) -> ResponseTable:
    """Return the exact integer weights of a mechanism.

    Parameters
    ----------
    mechanism : {"dam", "dam-ns", "huem"}
    epsilon : number in [0.000001, 20]
        Privacy loss of one report.
    cells : int in [1, 4096]
        Side d of the square in cells.
    radius : int in [0, 2 cells], optional
        Disk radius b in cells; by default floor(b* d) (section V-C). At 0 the table is k-ary
        randomised response.

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
        raise ParameterError(f"mechanism must be one of {known}, got {mechanism!r}")
    exponent = exact_epsilon(epsilon)
    d = whole_number("cells", cells, 1, MAX_CELLS)
    b = whole_number("radius", optimal_radius(epsilon, d) if radius is None else radius, 0, 2 * d)
    excess = MECHANISMS[mechanism](exponent, b)
    lifts = tuple(
        tuple(excess(x, y) for y in range(min(x, width) + 1))
        for x, width in enumerate(disk_rows(b))
    )
    top = exp_below(exponent) - ONE
    base_weight, octant = whole_weights(lifts, top, d)
    return ResponseTable(mechanism, float(epsilon), d, base_weight, octant)  # type: ignore[arg-type]


def whole_weights(lifts: Octant, top: int, cells: int) -> tuple[int, Octant]:
    """Return (B, weights): B the largest power of two with a total below 2**53.

    Rounding is downwards and capped at ``top``, which is rigorously below e^eps - 1, so no
    weight exceeds B e^eps.
    """
    widths = half_widths(lifts)
    radius = len(lifts) - 1
    size = cells * (cells + 2 * radius) + 2 * sum(cells + 2 * h for h in widths[1:])
    scaled = size * ONE + sum(
        orbit_size(x, y) * lift for x, row in enumerate(lifts) for y, lift in enumerate(row)
    )
    # Rounding down may let one more doubling fit than the unrounded sum allows.
    for shift in range(53 - (scaled >> BITS).bit_length() + 1, -1, -1):
        octant = tuple(
            tuple((1 << shift) + (min(lift, top) << shift >> BITS) for lift in row) for row in lifts
        )
        table = ResponseTable("", 0.0, cells, 1 << shift, octant)
        if table.total_weight < WEIGHT_LIMIT:
            return 1 << shift, octant
    raise ParameterError("radius must be smaller at this epsilon: the total weight exceeds 53 bits")
