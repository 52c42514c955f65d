"""The map of maximum likelihood, and how it answers to what is reported.

Estimators stop EM early on purpose. Here its limit is wanted, which EM and its accelerations reach
too slowly. The likelihood of a law c of reports is concave in the map f, and the conditions of
Karush, Kuhn and Tucker are

    z = 1 - M^T(c / M f) >= 0,    f >= 0,    f z = 0 in every cell.

A primal-dual interior-point method takes Newton steps towards f z = mu with mu falling (Wright,
Primal-Dual Interior-Point Methods, 1997, chapter 1). In f divided by its roots R a step solves

    (R M^T (c / (M f)^2) M R + z) y = right-hand side,

on small grids by a Cholesky factor, on others by conjugate gradients, which need the channel alone
and go through with all laws of a stack at once.

The same equations say how a fit answers. Where f > 0 the differential of M^T(c / M f) = 1 is
M^T(c / (M f)^2 M df) = M^T(dc / M f). So if a unit of mass in each cell is worth psi, more reports
of output cell y add

    psi.df = (M u)_y / (M f)_y,    M^T(c / (M f)^2 M u) = psi where f > 0, and u = 0 elsewhere.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.protocol import Channel
from ldpspatial.channels.stacks import by_cell
from ldpspatial.compiled import compiled_in_any_order

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Solver = Callable[[Array], Array]  # of stacks: from (S, cells) to the same

DENSE_SIDE = 16  # cells a side up to which a factor is about as quick as conjugate gradients
SLOW_SIDE = 64  # cells a side above which each product with the channel is slow
EXACT = 1e-11  # of f.z, and of M^T(c / M f) + z - 1, with a factor
SETTLED = 1e-7  # of f.z by conjugate gradients: W2 in cells is right to four digits
UNEXPLAINED = 100.0  # times as far as f.z may any cell be from z >= 0
STEPS = 60  # at most; 12 to 25 are taken
AIM = 0.1  # of f.z, after one step
SHORT = 0.95  # of the way to where the first f or z would be 0
BEGUN = 0.1  # what z is at least where the steps begin
EVEN = 0.1  # part of the map there that is even, as no cell may be empty
SOLVING = 100  # conjugate gradients a step, fewer above 64 cells a side
SOLVED = 0.03  # of the right-hand side, which is left over
CURVATURE = 1e-3  # what stands for the first term of the equations where they are preconditioned
ROUNDED, TINY = 1e-12, 1e-300
TOGETHER = 50_000  # cells of the maps of laws that are fitted at once: about a cache


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
        self._is_whole = bool(self._where.all())
        self._support = channel.support
        self._channel = by_cell(channel)
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
            Of f.z, at which they end, by conjugate gradients on any grid; in no cell is z then
            below 0 by more than a hundred times that.
        """
        (found,) = self.fits(law[np.newaxis], near, settled)
        return np.asarray(found)

    def fits(self, laws: Array, near: Array, settled: float | None = None) -> Array:
        """Return (S, d, d) maps of maximum likelihood of a stack of laws, else as :meth:`fit`.

        Each is as near to its limit as :meth:`fit` comes by itself, and where reports hardly tell
        maps apart another one.
        """
        together = max(1, TOGETHER // self._where.size)
        parts = (laws[first : first + together] for first in range(0, len(laws), together))
        return np.concatenate([self._fits(part, near, settled) for part in parts])

    def _fits(self, laws: Array, near: Array, settled: float | None) -> Array:
        sent = np.where(self._support, laws, 0.0)
        begun = near[self._where]  # these cells alone, from here on
        begun = (1 - EVEN) * begun / begun.sum() + EVEN / begun.size
        f = np.tile(begun, (len(sent), 1))
        z = np.maximum(1 - self._explained(sent, f)[1], BEGUN)
        dense = settled is None and self._matrix is not None
        limit = EXACT if dense else SETTLED if settled is None else settled
        found = f.copy()
        left: NDArray[Any] = np.arange(len(f))  # which of them these are
        for _ in range(STEPS):
            predicted, explained = self._explained(sent, f)
            gap = (f * z).sum(1)
            is_left = gap >= limit
            if dense:
                is_left |= np.abs(explained - 1 + z).max(1) >= limit
            else:  # an empty cell that should not be is seen here alone
                is_left |= explained.max(1) - 1 >= UNEXPLAINED * limit
            if not is_left.all():
                left, sent, f, z, gap = _some(is_left, left, sent, f, z, gap)
                predicted, explained = _some(is_left, predicted, explained)
            if not len(left):
                break
            solve = self._solver(sent, predicted, f, z, dense)
            if solve is None:  # rounding: no step from here means anything
                break
            root = np.sqrt(f)
            aim = (AIM * gap / begun.size)[:, np.newaxis]
            step_f = root * solve(root * (explained - 1) + aim / root)
            step_z = aim / f - z - z / f * step_f
            f = f + _part(f, step_f) * step_f
            z = z + _part(z, step_z) * step_z
            found[left] = f
        return self._on_map(found / found.sum(1, keepdims=True))

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
        sent = np.where(self._support, law, 0.0)[np.newaxis]
        f, worth = fit[self._where][np.newaxis], worth[self._where]
        predicted, explained = self._explained(sent, f)
        z = np.maximum(1 - explained, 0) + ROUNDED
        solve = self._solver(sent, predicted, f, z, self._matrix is not None)
        root = np.sqrt(f)
        wanted = root * (worth - float((worth * f).sum()))
        solved = np.zeros(f.shape) if solve is None else solve(wanted)
        added = self._forward(root * solved) / predicted
        return np.where(self._support, added[0], -np.inf)

    def _on_map(self, values: Array) -> Array:
        if self._is_whole:
            return values.reshape(-1, *self._where.shape)
        maps = np.zeros((len(values), *self._where.shape), values.dtype)
        maps[:, self._where] = values
        return maps

    def _inside(self, maps: Array) -> Array:
        return np.asarray(maps.reshape(len(maps), -1) if self._is_whole else maps[:, self._where])

    def _forward(self, f: Array) -> Array:
        return self._channel.forward(self._on_map(f))

    def _explained(self, sent: Array, f: Array) -> tuple[Array, Array]:
        """Return M f, and M^T(c / M f)."""
        predicted = np.where(self._support, self._forward(f), 1.0)
        return predicted, self._inside(self._channel.adjoint(sent / predicted))

    def _solver(
        self, sent: Array, predicted: Array, f: Array, z: Array, dense: bool
    ) -> Solver | None:
        """Return what solves the equations of a step, if rounding lets it."""
        if self._matrix is None or not dense:
            curvature, root = sent / predicted**2, np.sqrt(f)
            return lambda wanted: self._by_gradients(curvature, root, z, wanted)
        factors = []
        for each in range(len(f)):
            scale = np.sqrt(sent[each][self._support]) / predicted[each][self._support]
            scaled = self._matrix * scale[:, None] * np.sqrt(f[each])
            curved = blas.dsyrk(1.0, scaled.T, lower=1)
            curved[np.diag_indices(len(f[each]))] += z[each]
            factor, failed = lapack.dpotrf(curved, lower=1, overwrite_a=1)
            if failed:
                return None
            factors.append(factor)
        return lambda wanted: np.stack(
            [lapack.dpotrs(*each, lower=1)[0] for each in zip(factors, wanted, strict=True)]
        )

    def _by_gradients(self, curvature: Array, root: Array, z: Array, wanted: Array) -> Array:
        """Solve by conjugate gradients (Hestenes and Stiefel 1952).

        In single precision they would take half as many steps more.
        """
        nearly = 1 / (z + CURVATURE)
        found, there, residual = np.zeros_like(wanted), np.zeros_like(wanted), wanted.copy()
        direction = nearly * residual
        size, rest = (residual * direction).sum(1), (residual**2).sum(1)
        enough = SOLVED**2 * rest
        left: NDArray[Any] = np.arange(len(wanted))  # which of the systems these are
        for _ in range(self._solving):
            is_left = rest > enough
            if 2 * np.count_nonzero(is_left) <= len(left):  # more steps do the others no harm
                found[left] = there
                left, enough, rest, size = _some(is_left, left, enough, rest, size)
                there, residual, direction = _some(is_left, there, residual, direction)
                curvature, root, z, nearly = _some(is_left, curvature, root, z, nearly)
            if not len(left):
                break
            curved = self._channel.curved(self._on_map(root * direction), curvature)
            seen = self._inside(curved)
            _advance(seen, root, z, nearly, there, residual, direction, size, rest)
        found[left] = there
        return found


@compiled_in_any_order
def _advance(seen, root, z, nearly, there, residual, direction, size, rest):  # type: ignore[no-untyped-def]
    """Take a step of conjugate gradients in each system, in place; what was seen is used up."""
    for s in range(len(seen)):
        along = 0.0
        for k in range(seen.shape[1]):
            image = root[s, k] * seen[s, k] + z[s, k] * direction[s, k]
            seen[s, k] = image
            along += direction[s, k] * image
        length = size[s] / max(along, TINY)
        after = squared = 0.0
        for k in range(seen.shape[1]):
            there[s, k] += length * direction[s, k]
            left = residual[s, k] - length * seen[s, k]
            residual[s, k] = left
            squared += left * left
            after += nearly[s, k] * left * left
        turn = after / max(size[s], TINY)
        for k in range(seen.shape[1]):
            direction[s, k] = nearly[s, k] * residual[s, k] + turn * direction[s, k]
        size[s], rest[s] = after, squared


def _some(kept: Bools, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
    """Return some systems of a stack."""
    return [each[kept] for each in arrays]


def _part(values: Array, step: Array) -> Array:
    """Return (S, 1) parts of steps that can be taken while all values stay positive, at most 1."""
    room = np.divide(values, -step, out=np.full(step.shape, np.inf), where=step < 0)
    return np.asarray(np.minimum(1.0, SHORT * room.min(1, keepdims=True)))
