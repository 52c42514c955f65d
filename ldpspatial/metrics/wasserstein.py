"""Exact Wasserstein distance between two maps: the yardstick of every comparison.

The linear program is solved by network simplex on whole-number masses. POT's solver adds and
subtracts flows in float64, drops up to 1e-8 of unsent mass without a word, and gives up with a
mere warning beside its answer. Whole masses make every flow exact, so the first two cannot bite;
the plan and the dual potentials are checked after the solve, so the third cannot either.
"""

import warnings

import numpy as np
import numpy.typing as npt
import ot

from ldpspatial.errors import InputError, SolverError
from ldpspatial.metrics._maps import (
    TOTAL_UNITS,
    Cell,
    FloatArray,
    carrying_cells,
    cell_sides,
    check_pairs,
    checked_order,
    equal_up_to_rounding,
    ground_cost,
    normalised_pair,
    whole_units,
)

GROUNDS = ("euclidean", "cityblock")

# Pivots before a run is given up (64 x 64 cells need some 300,000); each entry starts afresh.
_PIVOT_LIMITS = (10_000_000, 100_000_000)

# Result codes of POT's network simplex (the others: 0 infeasible, 2 unbounded).
_OPTIMAL, _PIVOT_LIMIT_REACHED = 1, 3

# Duality gap that passes: relative to the cost, plus room for rounding relative to the largest cost
# of a pair (POT stops where reduced costs are below 2.2e-15 of it or of the potentials).
_RELATIVE_GAP = 1e-9
_ROUNDING_GAP = 1e-12


def wasserstein(
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    order: int = 2,
    ground: str = "euclidean",
    cell: Cell = 1.0,
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

    Returns
    -------
    float
        The distance, in the unit of `cell`. Exactly 0.0 for maps that are equal (up to the rounding
        of their masses: 2e-15 of each cell). W ** order is certified by linear-programming
        duality to 1e-9 relative plus 1e-12 of the largest cost; masses are rounded to 2^-52 of
        the total, which adds at most 2.3e-16 of the largest cost for each cell.

    Raises
    ------
    InputError
        An argument breaks its rule, or the maps have too many cells for the memory of one machine.
    SolverError
        The solver did not reach an optimum that passes the check of plan and duality gap.

    Notes
    -----
    For order 1 mass common to both maps stays where it is: by the triangle inequality of d, the
    cost depends on p - q alone. For order 2 the cost is no metric (1 + 1 < 2^2: two steps of 1 are
    cheaper than one of 2), mass may pass through a cell that both maps fill, and nothing cancels.

    References
    ----------
    Peyre and Cuturi, Computational Optimal Transport (2019), sections 2.4, 2.5 (duality) and 3.5
    (network simplex). Bonneel et al., ACM Trans. Graph. 30(6), 2011, for the solver.

    Examples
    --------
    >>> wasserstein([[1, 0, 0]], [[0, 0, 1]])
    2.0
    >>> wasserstein([[2, 0], [0, 0]], [[0, 0], [0, 2]], ground="cityblock", cell=0.5)
    1.0
    """
    order = checked_order(order)
    if ground not in GROUNDS:
        raise InputError(f"ground: must be one of {', '.join(GROUNDS)}, not {ground!r}")
    height, width = cell_sides(cell)
    first, second = normalised_pair(p, q)
    if equal_up_to_rounding(first, second):
        return 0.0
    unit, sides = _solver_unit(first, second, height, width)
    moved = 1.0
    if order == 1 and min(np.count_nonzero(first), np.count_nonzero(second)) > 1:
        first, second, moved = _without_common_mass(first, second)
        if moved == 0.0:
            return 0.0
    cost = moved * _minimum_cost(
        *carrying_cells(first, sides), *carrying_cells(second, sides), order, ground
    )
    return float(unit * cost ** (1 / order))


def _solver_unit(
    p: FloatArray, q: FloatArray, height: float, width: float
) -> tuple[float, tuple[float, float]]:
    """Return the unit to solve in and the sides of a cell in it.

    Costs between square cells are then whole numbers or their roots, and the largest cost is at
    least 1, as the solver needs: it adds 1 to it, and costs far below 1 would drown.
    """
    rows, columns = np.nonzero((p > 0) | (q > 0))
    used = (height * float(np.ptp(rows) > 0), width * float(np.ptp(columns) > 0))
    unit = max(used)
    return unit, (used[0] / unit, used[1] / unit)


def _without_common_mass(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return the surplus of each map over the other, scaled to mass 1, and the mass to move."""
    common = np.minimum(p, q)
    surplus, deficit = p - common, q - common
    sent, received = float(surplus.sum()), float(deficit.sum())
    if min(sent, received) == 0.0:  # a difference below the rounding of the totals
        return surplus, deficit, 0.0
    return surplus / sent, deficit / received, (sent + received) / 2


def _minimum_cost(
    sources: FloatArray,
    supply: FloatArray,
    targets: FloatArray,
    demand: FloatArray,
    order: int,
    ground: str,
) -> float:
    """Return the least cost of carrying `supply` (n,) at `sources` (n, 2) to `demand` at `targets`.

    Both sum to 1 and are positive. Another solver takes its place behind this signature.
    """
    if min(len(supply), len(demand)) == 1:  # the product is the only coupling
        return float(supply @ ground_cost(sources, targets, order, ground) @ demand)
    check_pairs(len(supply), len(demand))
    supply, demand = whole_units(supply), whole_units(demand)
    cost = ground_cost(sources[supply > 0], targets[demand > 0], order, ground)
    return _network_simplex(supply[supply > 0], demand[demand > 0], cost)


def _network_simplex(supply: FloatArray, demand: FloatArray, cost: FloatArray) -> float:
    """Return the least cost per unit for whole masses, from a solve that passed its check."""
    for limit in _PIVOT_LIMITS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # POT warns; the result code below says the same
            plan, log = ot.emd(supply, demand, cost, numItermax=limit, log=True, center_dual=False)
        if log["result_code"] == _OPTIMAL:
            return _certified_cost(plan, log["u"], supply, demand, cost)
        if log["result_code"] != _PIVOT_LIMIT_REACHED:
            raise SolverError(f"network simplex failed: {log['warning']}")
    raise SolverError(
        f"network simplex found no optimum of {len(supply)} x {len(demand)} cells "
        f"in {_PIVOT_LIMITS[-1]} pivots"
    )


def _certified_cost(
    plan: FloatArray,
    potential: FloatArray,
    supply: FloatArray,
    demand: FloatArray,
    cost: FloatArray,
) -> float:
    """Return the cost of `plan` per unit once a dual solution proves that no plan is cheaper."""
    rows, columns = np.nonzero(plan)
    flow = plan[rows, columns]
    sent = np.bincount(rows, flow, minlength=len(supply))
    received = np.bincount(columns, flow, minlength=len(demand))
    if flow.min() < 0 or not (np.array_equal(sent, supply) and np.array_equal(received, demand)):
        raise SolverError("network simplex returned a plan that does not carry p to q")
    primal = float(flow @ cost[rows, columns]) / TOTAL_UNITS
    # Shifting by one entry keeps whole potentials whole and rids them of the solver's big offset.
    potential = potential - potential[0]
    partner = _conjugate(potential, cost)  # feasible by construction: only the values can disagree
    dual = float(potential @ supply + partner @ demand) / TOTAL_UNITS
    allowed = _RELATIVE_GAP * primal + _ROUNDING_GAP * float(cost.max())
    if not abs(primal - dual) <= allowed:
        raise SolverError(
            f"network simplex left a duality gap of {primal - dual:g}, above {allowed:g}"
        )
    return primal


def _conjugate(potential: FloatArray, cost: FloatArray) -> FloatArray:
    """Return min over rows i of cost[i, j] - potential[i], row by row to spare memory."""
    best = np.full(cost.shape[1], np.inf)
    for value, row in zip(potential, cost, strict=True):
        np.minimum(best, row - value, out=best)
    return best
