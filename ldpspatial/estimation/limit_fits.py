"""The map of maximum likelihood, and how it answers to what is reported.

Estimators stop EM early on purpose. Here its limit is wanted, which EM and its accelerations reach
too slowly. The likelihood of a law c of reports is concave in the map f, and the conditions of
Karush, Kuhn and Tucker are

    z = 1 - M^T(c / M f) >= 0,    f >= 0,    f z = 0 in every cell.

A primal-dual interior-point method takes Newton steps towards f z = mu with mu falling (Wright,
Primal-Dual Interior-Point Methods, 1997, chapter 1). In f divided by its roots R a step solves

    (R M^T (c / (M f)^2) M R + z) y = right-hand side,

on small grids by a Cholesky factor, on others by conjugate gradients, which need the channel alone.

The same equations say how a fit answers. Where f > 0 the differential of M^T(c / M f) = 1 is
M^T(c / (M f)^2 M df) = M^T(dc / M f). So if a unit of mass in each cell is worth psi, more reports
of output cell y add

    psi.df = (M u)_y / (M f)_y,    M^T(c / (M f)^2 M u) = psi where f > 0, and u = 0 elsewhere.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from scipy.sparse.linalg import LinearOperator, cg

from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.protocol import Channel
from ldpspatial.channels.stacks import of_one

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Solver = Callable[[Array], Array]

DENSE_SIDE = 16  # cells a side up to which a factor is about as quick as conjugate gradients
SLOW_SIDE = 64  # cells a side above which each product with the channel is slow
EXACT = 1e-11  # of f.z, and of M^T(c / M f) + z - 1, with a factor
SETTLED = 1e-7  # of f.z by conjugate gradients: W2 in cells is right to four digits
STEPS = 60  # at most; 12 to 25 are taken
AIM = 0.1  # of f.z, after one step
SHORT = 0.95  # of the way to where the first f or z would be 0
BEGUN = 0.1  # what z is at least where the steps begin
EVEN = 0.1  # part of the map there that is even, as no cell may be empty
SOLVING = 100  # conjugate gradients a step, fewer above 64 cells a side
SOLVED = 0.03  # of the right-hand side, which is left over
CURVATURE = 1e-3  # what stands for the first term of the equations where they are preconditioned
ROUNDED = 1e-12


class LimitFits:
    """Fits of maximum likelihood to laws of reports of one channel.

    Parameters
    ----------
    channel : Channel
    where : (d, d) array of bool, optional
        Cells that may hold mass; by default all.
    solving : int, optional
        Conjugate gradients a step at most; by default 100, and fewer above 64 cells a side, where
        a fit may end before its limit.
    """

    def __init__(self, channel: Channel, where: Bools | None = None, solving: int | None = None):
        self._where = np.ones(channel.input_shape, bool) if where is None else where
        self._support = channel.support
        self._forward_of, self._adjoint_of = of_one(channel)
        side = max(channel.input_shape)
        self._matrix = None
        if isinstance(channel, StampChannel) and side <= DENSE_SIDE:
            self._matrix = channel.matrix()[:, self._where.ravel()]
        self._solving = solving or max(5, int(SOLVING * min(1.0, SLOW_SIDE / side) ** 2))

    def fit(self, law: Array, near: Array, settled: float | None = None) -> Array:
        """Return the map of maximum likelihood; of several, one inside of their set.

        Parameters
        ----------
        law : array shaped like counts
            Distribution of reports.
        near : (d, d) array
            A map, near to which the steps begin, with mass where it may be.
        settled : float, optional
            Of f.z, at which they end, by conjugate gradients on any grid.
        """
        sent = np.where(self._support, law, 0.0)
        f = near[self._where]  # these cells alone, from here on
        f = (1 - EVEN) * f / f.sum() + EVEN / f.size
        z = np.maximum(1 - self._explained(sent, f)[1], BEGUN)
        dense = settled is None and self._matrix is not None
        limit = EXACT if dense else SETTLED if settled is None else settled
        for _ in range(STEPS):
            predicted, explained = self._explained(sent, f)
            gap = float((f * z).sum())
            if gap < limit and (not dense or np.abs(explained - 1 + z).max() < limit):
                break
            solve = self._solver(sent, predicted, f, z, dense)
            if solve is None:  # rounding: no step from here means anything
                break
            root = np.sqrt(f)
            aim = AIM * gap / f.size
            step_f = root * solve(root * (explained - 1) + aim / root)
            step_z = aim / f - z - z / f * step_f
            f = f + _part(f, step_f) * step_f
            z = z + _part(z, step_z) * step_z
        return self._on_map(f / f.sum())

    def slopes(self, law: Array, fit: Array, worth: Array) -> Array:
        """Return what reports of each output cell add to worth.fit, up to a constant.

        Parameters
        ----------
        law : (d + 2b, d + 2b) array
            What was fitted.
        fit : (d, d) array
            As :meth:`fit` returns it.
        worth : (d, d) array
            Of a unit of mass, by cell.

        Returns
        -------
        (d + 2b, d + 2b) array
            -inf outside of the output domain.
        """
        sent = np.where(self._support, law, 0.0)
        fit, worth = fit[self._where], worth[self._where]
        predicted, explained = self._explained(sent, fit)
        z = np.maximum(1 - explained, 0) + ROUNDED
        solve = self._solver(sent, predicted, fit, z, self._matrix is not None)
        root = np.sqrt(fit)
        wanted = root * (worth - float((worth * fit).sum()))
        solved = np.zeros(fit.shape) if solve is None else solve(wanted)
        added = self._forward(root * solved) / predicted
        return np.where(self._support, added, -np.inf)

    def _on_map(self, values: Array) -> Array:
        map_ = np.zeros(self._where.shape)
        map_[self._where] = values
        return map_

    def _forward(self, f: Array) -> Array:
        return self._forward_of(self._on_map(f))

    def _adjoint(self, ratio: Array) -> Array:
        return np.asarray(self._adjoint_of(ratio)[self._where])

    def _explained(self, sent: Array, f: Array) -> tuple[Array, Array]:
        """Return M f, and M^T(c / M f)."""
        predicted = np.where(self._support, self._forward(f), 1.0)
        return predicted, self._adjoint(sent / predicted)

    def _solver(
        self, sent: Array, predicted: Array, f: Array, z: Array, dense: bool
    ) -> Solver | None:
        """Return what solves the equations of a step, if rounding lets it."""
        if self._matrix is None or not dense:
            return self._by_gradients(sent / predicted**2, np.sqrt(f), z)
        scale = np.sqrt(sent[self._support]) / predicted[self._support]
        scaled = self._matrix * scale[:, None] * np.sqrt(f.ravel())
        curved = blas.dsyrk(1.0, scaled.T, lower=1)
        curved[np.diag_indices(f.size)] += z.ravel()
        factor, failed = lapack.dpotrf(curved, lower=1, overwrite_a=1)
        if failed:
            return None
        return lambda wanted: lapack.dpotrs(factor, wanted.ravel(), lower=1)[0].reshape(f.shape)

    def _by_gradients(self, curvature: Array, root: Array, z: Array) -> Solver:
        def curved(x: Array) -> Array:
            there = x.reshape(root.shape)
            seen = self._adjoint(curvature * self._forward(root * there))
            return np.asarray((root * seen + z * there).ravel())

        size = (root.size, root.size)
        weights = (z + CURVATURE).ravel()
        matrix = LinearOperator(size, matvec=curved, dtype=np.float64)
        nearly = LinearOperator(size, matvec=lambda x: x.ravel() / weights, dtype=np.float64)

        def solve(wanted: Array) -> Array:
            found, _ = cg(matrix, wanted.ravel(), rtol=SOLVED, maxiter=self._solving, M=nearly)
            return np.asarray(found).reshape(root.shape)

        return solve


def _part(values: Array, step: Array) -> float:
    """Return the part of a step that can be taken while all values stay positive, at most 1."""
    falls = step < 0
    if not falls.any():
        return 1.0
    return min(1.0, SHORT * float((values[falls] / -step[falls]).min()))
