"""Debiased Sinkhorn divergence: a smooth approximation of the Wasserstein distance."""

import math
import warnings

import numpy as np
import numpy.typing as npt
import ot
from scipy.special import logsumexp

from ldpspatial.errors import InputError, SolverError
from ldpspatial.metrics._maps import (
    Cell,
    FloatArray,
    carrying_cells,
    cell_sides,
    check_pairs,
    checked_order,
    equal_up_to_rounding,
    ground_cost,
    normalised_pair,
)
from ldpspatial.validate import positive

_ITERATIONS = 10_000
_MARGINAL_ERROR = 1e-7


def sinkhorn_divergence(
    p: npt.ArrayLike, q: npt.ArrayLike, regularisation: float, order: int = 2, cell: Cell = 1.0
) -> float:
    """Return S^(1/order), S being the debiased Sinkhorn divergence with Euclidean ground distance.

    S = OT(p, q) - (OT(p, p) + OT(q, q)) / 2, where OT(p, q) is the minimum over couplings gamma of
    sum gamma d^order + regularisation * KL(gamma | p x q); the value includes the KL term. Without
    the two self terms a map would have a distance from itself: they are what "debiased" means.

    Parameters
    ----------
    p, q : array_like, shape (rows, columns)
        Masses >= 0 with totals that are positive and equal up to 1e-6 relative; each map is
        divided by its own total.
    regularisation : float > 0
        Weight of the KL term, in units of the cost: (unit of `cell`)^order. The smaller it is,
        the closer the answer is to W and the more iterations it takes.
    order : {2, 1}
        Exponent of the distance.
    cell : float or (height, width)
        Side of a cell, in the unit wanted for the answer.

    Returns
    -------
    float
        In the unit of `cell`. 0.0 between a map and itself; tends to the exact W_order as
        regularisation falls to 0. S is >= 0 for these costs; rounding below 0 is cut off.

    Raises
    ------
    InputError
        An argument breaks its rule.
    SolverError
        The marginals of a coupling were still off by more than 1e-7 (2-norm) after 10,000
        iterations; a larger regularisation converges sooner.

    Notes
    -----
    Time of an iteration and memory grow with the square of the number of cells with mass.

    References
    ----------
    Feydy et al., Interpolating between optimal transport and MMD using Sinkhorn divergences,
    AISTATS 2019, sections 1 (definition), 3.1 (computation) and theorem 1 (S >= 0).

    Examples
    --------
    >>> round(sinkhorn_divergence([[1, 0, 0]], [[0, 0, 1]], regularisation=1.0), 9)
    2.0
    """
    order = checked_order(order)
    sides = cell_sides(cell)
    # Solved with a longer side of 1: costs of tiny or huge cells would leave float64.
    unit = max(sides)
    weight = _weight_in_cells(regularisation, unit, order)
    first, second = normalised_pair(p, q)
    if equal_up_to_rounding(first, second):
        return 0.0
    relative = (sides[0] / unit, sides[1] / unit)
    x = carrying_cells(first, relative)
    y = carrying_cells(second, relative)
    larger = max(len(x[1]), len(y[1]))  # it is paired with itself too
    check_pairs(larger, larger)
    own = (_self_cost(*x, weight, order) + _self_cost(*y, weight, order)) / 2
    divergence = _cross_cost(*x, *y, weight, order) - own
    return float(unit * max(divergence, 0.0) ** (1 / order))


def _weight_in_cells(regularisation: float, unit: float, order: int) -> float:
    weight = positive("regularisation", regularisation)
    # One division at a time: unit ** order may leave float64 where the quotient does not.
    for _ in range(order):
        weight /= unit
    if not 0 < weight < math.inf:
        raise InputError(
            "regularisation must be positive and finite divided by cell ** order, too, "
            f"got {regularisation!r}"
        )
    return weight


def _cross_cost(
    sources: FloatArray,
    supply: FloatArray,
    targets: FloatArray,
    demand: FloatArray,
    weight: float,
    order: int,
) -> float:
    """Return OT with KL weight `weight` between masses (n,) and (m,) of total 1."""
    cost = ground_cost(sources, targets, order, "euclidean")
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("ignore")  # the error in the log says whether it converged
        _, log = ot.bregman.sinkhorn_log(
            supply,
            demand,
            cost,
            weight,
            numItermax=_ITERATIONS,
            stopThr=_MARGINAL_ERROR,
            log=True,
        )
    _check_convergence(float(log["err"][-1]))
    # The dual value: where the marginals are off by delta, it is off by the order of delta^2.
    # POT's coupling is u K v; relative to p x q it is exp((f + g - cost) / weight).
    row_potential = weight * (log["log_u"] - np.log(supply))
    column_potential = weight * (log["log_v"] - np.log(demand))
    return float(supply @ row_potential + demand @ column_potential)


def _self_cost(centres: FloatArray, masses: FloatArray, weight: float, order: int) -> float:
    """Return OT with KL weight `weight` of a map with itself.

    Both potentials are one: averaging it with its update takes some twenty steps where alternating
    updates of two, as between different maps, take thousands (Feydy et al., section 3.1).
    """
    kernel = -ground_cost(centres, centres, order, "euclidean") / weight
    log_masses = np.log(masses)
    potential = np.zeros(len(masses))  # in units of the weight
    error = math.inf
    for _ in range(_ITERATIONS):
        update = -logsumexp(kernel + (log_masses + potential), axis=1)
        # The coupling's row sums are masses * exp(potential - update); expm1 keeps small errors.
        error = float(np.linalg.norm(masses * np.expm1(potential - update)))
        if error < _MARGINAL_ERROR:
            break
        potential = (potential + update) / 2
    _check_convergence(error)
    # The coupling of potential and update has total 1: the dual's third term is 0.
    return float(weight * (masses @ (potential + update)))


def _check_convergence(error: float) -> None:
    if not error < _MARGINAL_ERROR:
        raise SolverError(
            f"Sinkhorn did not converge: the marginals are off by {error:.2g} after {_ITERATIONS} "
            "iterations; raise the regularisation"
        )
