"""Which output cell moves a fit farthest: the slope of squared W2 in what is reported.

Let f be the fit of maximum likelihood to a law c of reports, and psi the prices of cells: what a
unit of mass adds to W2^2 from the honest map, by cell (the dual values of optimal transport). Where
f > 0 the conditions of Karush, Kuhn and Tucker are M^T(c / M f) = 1. Their differential is
M^T(c / (M f)^2 * M df) = M^T(dc / M f), so more reports of output cell y add

    psi.df = (M u)_y / (M f)_y,    M^T(c / (M f)^2 * M u) = psi where f > 0, and u = 0 elsewhere.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.protocol import operators
from ldpspatial.metrics import transport

Array = NDArray[np.float64]

EMPTY = 1e-12  # mass of a cell, so that each has a price
SOLVING = 60  # steps: directions that hardly show in reports are left out, as EM leaves them


def priced(before: Array, after: Array) -> tuple[float, Array]:
    """Return squared W2 from one map to another, and what a unit of mass adds to it.

    Parameters
    ----------
    before, after : (d, d) array

    Returns
    -------
    float
        In cells squared.
    (d, d) array
        Up to a constant, by the cell to whose mass in ``after`` it is added.
    """
    filled = after + EMPTY
    found = transport(before, filled / filled.sum(), certify=False)
    worth = np.zeros(after.shape) if found.proof is None else found.proof.target_value
    return found.value**2, worth.astype(np.float64)


def slopes(channel: StampChannel, law: Array, fit: Array, worth: Array) -> Array:
    """Return what reports of each output cell add to worth.fit, up to a constant.

    Parameters
    ----------
    channel : StampChannel
    law : (d + 2b, d + 2b) array
        What was fitted.
    fit : (d, d) array
        Its fit of maximum likelihood.
    worth : (d, d) array
        Of a unit of mass, by cell.

    Returns
    -------
    (d + 2b, d + 2b) array
        -inf outside of the output domain.
    """
    forward, adjoint = operators(channel)
    support = channel.support
    predicted = np.where(support, forward(fit), 1.0)
    curvature = np.where(support, law, 0.0) / predicted**2
    root = np.sqrt(fit)  # with it all eigenvalues are between 0 and 1, and empty cells drop out

    def curved(x: Array) -> Array:
        return np.asarray(
            (root * adjoint(curvature * forward(root * x.reshape(fit.shape)))).ravel()
        )

    wanted = (root * (worth - float((worth * fit).sum()))).ravel()
    size = fit.size
    solved, _ = cg(LinearOperator((size, size), matvec=curved), wanted, maxiter=SOLVING)
    added = forward(root * solved.reshape(fit.shape)) / predicted
    return np.where(support, added, -np.inf)
