"""Sliced Wasserstein distance: a fast approximation for maps too large for the exact one."""

import numpy as np
import numpy.typing as npt
import ot

from ldpspatial.metrics._maps import (
    TOTAL_UNITS,
    Cell,
    carrying_cells,
    cell_sides,
    checked_order,
    equal_up_to_rounding,
    normalised_pair,
    whole_units,
)
from ldpspatial.validate import whole_number

MOST_PROJECTED = 1 << 27  # cells times directions; 1 GiB an array, of which POT takes several


def sliced_wasserstein(
    p: npt.ArrayLike, q: npt.ArrayLike, order: int = 2, directions: int = 64, cell: Cell = 1.0
) -> float:
    """Return the sliced Wasserstein distance: a lower bound of the exact one, not an estimate.

    SW(p, q) = (mean over directions of W_order^order between the projections on a line)^(1/order),
    over the angles pi k / directions, k = 0 .. directions - 1, from the axis of the rows. The
    directions are fixed, so the answer is the same every time.

    Parameters
    ----------
    p, q : array_like, shape (rows, columns)
        Masses >= 0 with totals that are positive and equal up to 1e-6 relative; each map is
        divided by its own total.
    order : {2, 1}
        Exponent of the distance.
    directions : int >= 2
        Number of directions. Time and memory grow with it: directions times the cells of a map
        may be 2^27 at most.
    cell : float or (height, width)
        Side of a cell, in the unit wanted for the answer.

    Returns
    -------
    float
        The distance, in the unit of `cell`; 0.0 for equal maps.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Notes
    -----
    With W the exact Euclidean distance of the same order and K the number of directions:

    - order 2: SW <= W / sqrt(2) for every K >= 2, with equality when q is p moved as a whole,
      because the mean of cos^2 over these directions is exactly 1/2;
    - order 1: SW <= c W with c = 1 / (K sin(pi / 2K)), which falls from 1 / sqrt(2) at K = 2 to
      2 / pi, the mean of the absolute cosine.

    No constant bounds W from above by SW: their ratio depends on the maps. Divide by the constant
    only to read SW as a shift; never compare SW of one pair with W of another.

    References
    ----------
    Bonneel et al., J. Math. Imaging Vis. 51(1), 2015, section 3. Bonnotte, Unidimensional and
    evolution methods for optimal transportation, thesis, 2013, chapter 5, for the comparison.

    Examples
    --------
    >>> round(sliced_wasserstein([[1, 0, 0]], [[0, 0, 1]]), 12)  # 2 / sqrt(2)
    1.414213562373
    """
    order = checked_order(order)
    sides = cell_sides(cell)
    first, second = normalised_pair(p, q)
    directions = whole_number("directions", directions, 2, max(MOST_PROJECTED // first.size, 2))
    if equal_up_to_rounding(first, second):
        return 0.0
    unit = max(sides)
    relative = (sides[0] / unit, sides[1] / unit)
    sources, supply = carrying_cells(first, relative)
    targets, demand = carrying_cells(second, relative)
    angles = np.pi * np.arange(directions) / directions
    # Whole masses: the solver matches quantiles of cumulative sums, which are then exact.
    distance = ot.sliced_wasserstein_distance(
        sources,
        targets,
        whole_units(supply),
        whole_units(demand),
        p=order,
        projections=np.stack((np.cos(angles), np.sin(angles))),
    )
    # Cost is proportional to mass, so W^order came out 2^52 times as large.
    return float(unit * distance / TOTAL_UNITS ** (1 / order))
