"""The rhombus: DAM's disk in the 1-norm, as a response table of the client.

In the plane, the input square and a ball of radius b in the 1-norm make an output domain of area
1 + 4b + 2b^2, where the disk makes 1 + 4b + pi b^2. The radius that maximises the bound of the
mutual information (Du et al. 2024, section V-C) is therefore DAM's with 2 in place of pi.

No cell is shrunken. The boundary |x| + |y| = b runs through centres of cells and halves every cell
that it crosses off the axes in the same way: a shrunken area would lower the whole ring alike,
which is not a matter of shape but of the radius. The disk's boundary cuts each cell differently.
"""

from dataclasses import dataclass
from typing import ClassVar

from client_sdk import ResponseTable
from client_sdk.shared import BITS, ONE, exp_below, root_below, whole_weights
from ldpspatial.release.local.coordinates.square_wave import information_terms
from ldpspatial.release.local.disks.dam import DiskRelease
from ldpspatial.validate import MAX_CELLS, exact_epsilon, whole_number


def rhombus_radius(epsilon: float, cells: int) -> int:
    """Return the radius b in cells: floor(b* d), b* = (2k + sqrt(4k^2 + 2mk)) / (2m)."""
    m, k = information_terms(exact_epsilon(epsilon))
    root = root_below((4 * k * k >> BITS) + (2 * m * k >> BITS))
    return cells * (2 * k + root) // (2 * m)


def rhombus_table(epsilon: float, cells: int, radius: int | None = None) -> ResponseTable:
    """Return the exact integer weights of the rhombus.

    Parameters
    ----------
    epsilon : float in [.000001, 20]
    cells : int in [1, 4096]
    radius : int in [0, 3 cells], optional
        By default :func:`rhombus_radius`. At 0 the table is k-ary randomised response.

    Returns
    -------
    ResponseTable
        max weight / base weight <= e^epsilon holds exactly.

    Raises
    ------
    InputError
        A parameter breaks its rule.

    Examples
    --------
    >>> table = rhombus_table(3.5, 15)
    >>> table.radius, len(table.weights), table.output_size
    (4, 41, 489)
    """
    exponent = exact_epsilon(epsilon)
    d = whole_number("cells", cells, 1, MAX_CELLS)
    b = whole_number("radius", rhombus_radius(epsilon, d) if radius is None else radius, 0, 3 * d)
    lift = exp_below(exponent) - ONE
    # y <= x is the octant, x + y <= b the ball.
    lifts = tuple((lift,) * (min(x, b - x) + 1) for x in range(b + 1))
    base_weight, octant = whole_weights(lifts, lift, d)
    return ResponseTable("rhombus", float(epsilon), d, base_weight, octant)


@dataclass(frozen=True)
class Rhombus(DiskRelease):
    """The ball of the 1-norm in place of DAM's disk, with EM.

    Attributes
    ----------
    rule : str
        Name of the estimator, as in :func:`ldpspatial.estimate`.
    """

    name: ClassVar[str] = "rhombus"

    def table(self, cells: int, epsilon: float) -> ResponseTable:
        """Return the table that devices would draw from."""
        return rhombus_table(epsilon, cells)
