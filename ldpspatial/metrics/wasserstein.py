"""Exact Wasserstein distance between two maps: the yardstick of every comparison."""

import numpy.typing as npt

from ldpspatial.metrics._maps import Cell
from ldpspatial.metrics.transport import transport


def wasserstein(
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    order: int = 2,
    ground: str = "euclidean",
    cell: Cell = 1.0,
    certify: bool = True,
) -> float:
    """Return the exact Wasserstein distance W_order between two maps.

    W_order(p, q) = (min over couplings gamma of sum gamma(x, y) d(x, y)^order)^(1/order), d being
    the ground distance between cell centres.

    Parameters
    ----------
    p, q : array_like, shape (rows, columns)
        Masses >= 0. The totals are positive and equal up to 1e-6 relative (of the larger); both
        maps are then divided by their own total, so that each has mass exactly 1.
    order : {2, 1}
        Exponent of the distance.
    ground : {"euclidean", "cityblock"}
        Ground distance: 2-norm or 1-norm.
    cell : float or (height, width)
        Side of a cell, in the unit wanted for the answer: 1 gives cells, 1 / d the unit square,
        the side in metres gives metres.
    certify : bool
        Whether to prove the answer in code that shares nothing with the solver: that the plan
        carries p to q, that the dual values stay below the cost of every pair of cells, and that
        both have the same value, all for the whole-number masses and costs that were solved. How
        far those differ from the given ones is bounded by `transport`.

    Returns
    -------
    float
        The distance, in the unit of `cell`. Exactly 0.0 for maps that are equal (up to the rounding
        of their masses: 2e-15 of each cell; whole numbers have none). Whole-number maps of one
        total up to 2^52 are solved as they are; others are rounded to 2^-52 of the total, which
        blurs order 2 below some 1e-7 cells. For bounds that include all rounding, and for the plan,
        see `transport`.

    Raises
    ------
    InputError
        An argument breaks its rule, or the sides of a cell differ too much for whole-number costs,
        or are so long that the largest distance ** order is not a float.
    SolverError
        The proof failed.

    References
    ----------
    Peyre and Cuturi, Computational Optimal Transport (2019), sections 2.4 and 2.5 (duality).
    docs/wasserstein.md for the method.

    Examples
    --------
    >>> wasserstein([[1, 0, 0]], [[0, 0, 1]])
    2.0
    >>> wasserstein([[2, 0], [0, 0]], [[0, 0], [0, 2]], ground="cityblock", cell=0.5)
    1.0
    """
    return transport(p, q, order, ground, cell, certify).value
