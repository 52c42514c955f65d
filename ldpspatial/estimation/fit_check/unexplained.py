"""What is left of counts when all that any density could explain has been taken off.

A density f gives n M f reports, M the channel. A sum of counts with weights w for which M^T w = 0
has the mean 0 whatever the density is, so its law is known without knowing where people are. The
part of the counts that such sums see is found by least squares: with z the counts above those of a
pilot density, each divided by its standard deviation, and A the channel in the same units, it is

    e = z - A x,    x = (A^T A + 1 / K)^-1 A^T z.

x is unbounded but for K, the variance that a prior would give each cell, which is ROOM times the
squared norm of the pilot: far more than any density can differ from it. What differences of
densities still add to e has at most the norm |f - pilot| / (2 sqrt K), a tenth of a standard
deviation where they differ by as much as the pilot's own norm.

Where outputs are no more than cells, densities of any sign explain all counts. What K would leave
there is noise, and the pilot, of the same counts, is along it: no sum is asked, and x is bounded by
rounding alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.linalg import cho_factor, cho_solve

from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.protocol import MATRIX_LIMIT, Channel, operators
from ldpspatial.channels.stacks import Stamped

Array = NDArray[np.float64]

ROOM = 25.0
ROUNDING = 1e-10  # of what the pilot's own direction adds to sums of squares
SPARE = 1.0  # reports added to each variance: one in a cell that expects none weighs as one
DENSE_ENTRIES = 5_000_000  # of a disk's matrix, up to which factors are quicker than steps
MOST_STEPS = 1_500
LOOK = 10  # steps between two looks at which columns are done


@dataclass(frozen=True)
class Left:
    """What remains of k columns, and what was taken off.

    Attributes
    ----------
    rest : (N, k) array
        e, by output cell.
    density : (d * d, k) array
        x: what had to be added to the pilot, of any sign.
    """

    rest: Array
    density: Array


class Unexplained:
    """Takes off what densities can explain.

    Parameters
    ----------
    channel : Channel
    pilot : array shaped like the channel's input
        About where people are; it sets the variances.
    n : int
        Reports.

    Attributes
    ----------
    expected : (N,) array
        Reports by output cell under the pilot, in the order of the support's entries.
    variance : (N,) array
        By which counts are brought to one scale.
    explains_all : bool
        Whether outputs are no more than cells: then what is left of counts says nothing.
    is_dense : bool
        Whether the channel's matrix was factorised, so that many columns cost little.
    """

    def __init__(self, channel: Channel, pilot: Array, n: int):
        support = channel.support
        many = _Many(channel)
        limit = MATRIX_LIMIT if many.disk is None else DENSE_ENTRIES
        self.is_dense = pilot.size * int(support.sum()) <= limit
        law = np.maximum(many.forward(pilot[None])[0][support], 0)
        self.expected = n * law / law.sum()
        self.variance = self.expected + SPARE
        self.explains_all = int(support.sum()) <= pilot.size
        ridge = 1 / ROOM
        if self.explains_all:
            ridge = ROUNDING * float((self.expected**2 / self.variance).sum())
        ridge /= float((pilot**2).sum())
        scale = np.zeros(support.shape)
        scale[support] = n / np.sqrt(self.variance)
        solver = _factorised if self.is_dense else _conjugate_gradients
        self._solve = solver(many, scale, ridge, support)

    def whitened(self, counts: Array) -> Array:
        """Return (N, k) counts less the pilot's, each in units of its standard deviation."""
        spread = np.sqrt(self.variance)
        return np.asarray((counts - self.expected[:, None]) / spread[:, None])

    def left(self, columns: Array, tolerance: Array) -> Left:
        """Take off what densities explain of (N, k) whitened columns.

        ``tolerance`` is the squared norm, by column, that may wrongly stay in it.
        """
        return self._solve(columns, tolerance)


class _Many:
    """A channel for stacks of densities and of ratios."""

    def __init__(self, channel: Channel):
        self.shape = tuple(channel.input_shape)
        self.disk = Stamped(channel) if isinstance(channel, StampChannel) else None
        self._forward, self._adjoint = operators(channel)

    def forward(self, densities: Array) -> Array:
        """Return the distributions of reports of (k, ...) densities."""
        if self.disk is not None:
            return self.disk.forward(densities)
        return np.stack([self._forward(each) for each in densities])

    def adjoint(self, ratios: Array) -> Array:
        """Return M^T of (k, ...) ratios."""
        if self.disk is not None:
            return self.disk.adjoint(ratios)
        return np.stack([self._adjoint(each) for each in ratios])


Solver = Callable[[Array, Array], Left]


def _factorised(many: _Many, scale: Array, ridge: float, support: NDArray[np.bool_]) -> Solver:
    """Return the solver by the matrix of the channel."""
    units = np.eye(many.shape[0] * many.shape[1]).reshape(-1, *many.shape)
    matrix = (many.forward(units) * scale)[:, support].T
    factor = cho_factor(matrix.T @ matrix + ridge * np.eye(matrix.shape[1]), lower=True)

    def solve(columns: Array, tolerance: Array) -> Left:
        density = np.zeros((matrix.shape[1], columns.shape[1]))
        rest = columns
        # The second time takes off the rounding of the first, which counts with very many reports.
        for _ in range(2):
            density = density + cho_solve(factor, matrix.T @ rest - ridge * density)
            rest = columns - matrix @ density
        return Left(rest, density)

    return solve


def _conjugate_gradients(
    many: _Many, scale: Array, ridge: float, support: NDArray[np.bool_]
) -> Solver:
    """Return the solver by steps, which sees the channel as an operator alone."""
    # Preconditioner: W^1/2 (squared gains of the disk by cosine wave) W^1/2, as if the weights of
    # outputs, which W averages by input, were the same all over a disk.
    weight = many.adjoint((scale**2)[None])[0]
    gains = 1.0 if many.disk is None else many.disk.gains()
    inverse = 1 / (gains + ridge / weight.mean())
    root = np.sqrt(weight)
    # Without the gains, what is still to be taken off is much more than it seems.
    known = 1.0 if many.disk is not None else 1e-4

    def preconditioned(gradient: Array) -> Array:
        waves = fft.dctn(gradient / root, axes=(1, 2), norm="ortho")
        return np.asarray(fft.idctn(waves * inverse, axes=(1, 2), norm="ortho") / root)

    def curved(direction: Array) -> Array:
        return many.adjoint(many.forward(direction) * scale**2) + ridge * direction

    def solve(columns: Array, tolerance: Array) -> Left:
        wide = np.zeros((columns.shape[1], *support.shape))
        wide[:, support] = columns.T
        density = _descended(many.adjoint(wide * scale), preconditioned, curved, known * tolerance)
        rest = (wide - many.forward(density) * scale)[:, support].T
        return Left(rest, density.reshape(len(density), -1).T)

    return solve


def _descended(
    gradient: Array,
    preconditioned: Callable[[Array], Array],
    curved: Callable[[Array], Array],
    tolerance: Array,
) -> Array:
    """Solve ``curved(x) = gradient`` for each entry of a stack by conjugate gradients."""
    solution = np.zeros_like(gradient)
    going = np.arange(len(gradient))
    towards = preconditioned(gradient)
    direction = towards
    size = _inner(gradient, towards)
    for step in range(MOST_STEPS):
        if step % LOOK == 0:
            # `size` estimates the squared norm that is still to be taken off.
            kept = size[:, 0, 0] > tolerance[going]
            if not kept.any():
                break
            going = going[kept]
            gradient = gradient[kept]
            direction = direction[kept]
            size = size[kept]
        bent = curved(direction)
        length = size / np.maximum(_inner(direction, bent), np.finfo(float).tiny)
        solution[going] += length * direction
        gradient = gradient - length * bent
        towards = preconditioned(gradient)
        before = size
        size = _inner(gradient, towards)
        direction = towards + size / np.maximum(before, np.finfo(float).tiny) * direction
    return solution


def _inner(first: Array, second: Array) -> Array:
    return np.asarray((first * second).sum((1, 2), keepdims=True))
