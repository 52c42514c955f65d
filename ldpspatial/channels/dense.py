"""Channels given by their numbers: one matrix, or one matrix per axis.

For mechanisms whose channel is not a stamp moving with the input. A disk mechanism's channel is a
:class:`~ldpspatial.channels.disk.StampChannel`.
"""

from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.protocol import Array, on_density, on_ratio
from ldpspatial.errors import InputError
from ldpspatial.validate import map_shape, number_array, number_in

STOCHASTIC = 1e-9  # how far a column may be from a sum of 1


class MatrixChannel:
    """A channel held as the matrix of its probabilities.

    Parameters
    ----------
    matrix : (outputs, rows * columns) array
        ``matrix[y, x]`` is the probability of report y from input cell x; columns sum to 1.
    input_shape : (rows, columns)
    epsilon : float > 0, optional
        Privacy loss of one report, which sets the default stopping rule: by default the largest
        log-ratio of two entries of a row.

    Raises
    ------
    InputError
        The matrix has a wrong shape, a negative entry, or a column that does not sum to 1.
    """

    def __init__(self, matrix: Array, input_shape: tuple[int, int], epsilon: float | None = None):
        self.input_shape = map_shape("input_shape", input_shape)
        self._matrix = _stochastic("matrix", matrix, self.input_shape[0] * self.input_shape[1])
        if epsilon is None:
            self.epsilon = realised_epsilon(self._matrix)
        else:
            self.epsilon = number_in("epsilon", epsilon, "(0, inf]")

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        """(outputs,) mask of the reports that some input can give."""
        return np.asarray(self._matrix.any(axis=1))

    @on_density
    def forward(self, density: Array) -> Array:
        """Return the (outputs,) distribution of reports under a density."""
        return np.asarray(self._matrix @ density.ravel())

    @on_ratio
    def adjoint(self, ratio: Array) -> Array:
        """Return M^T ratio, shaped like a density."""
        return np.asarray((ratio @ self._matrix).reshape(self.input_shape))

    def matrix(self) -> Array:
        """Return the (outputs, rows * columns) matrix."""
        return self._matrix


class ProductChannel:
    """A channel that reports both coordinates, each through a channel of its own.

    Parameters
    ----------
    down, across : (outputs, cells) arrays
        Probabilities of the reported row given the row, and of the column given the column.
    epsilon : float > 0
        Privacy loss of both together.
    """

    def __init__(self, down: Array, across: Array, epsilon: float):
        self._down, self._across = _stochastic("down", down), _stochastic("across", across)
        self.input_shape = (self._down.shape[1], self._across.shape[1])
        self.epsilon = number_in("epsilon", epsilon, "(0, inf]")

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        """Mask of the pairs (reported row, reported column), shaped like counts."""
        return np.outer(self._down.any(axis=1), self._across.any(axis=1))

    @on_density
    def forward(self, density: Array) -> Array:
        """Return the distribution of reported pairs under a density."""
        # The matrix is kron(down, across); two small products do without it.
        return np.asarray(self._down @ density @ self._across.T)

    @on_ratio
    def adjoint(self, ratio: Array) -> Array:
        """Return M^T ratio, shaped like a density."""
        return np.asarray(self._down.T @ ratio @ self._across)

    def matrix(self) -> Array:
        """Return the dense matrix, pairs of reports by cells, both in row order."""
        return np.asarray(np.kron(self._down, self._across), np.float64)


def realised_epsilon(matrix: Array) -> float:
    """Return the largest log-ratio of two probabilities of one report; inf with a lone zero."""
    seen = matrix[matrix.any(axis=1)]  # a report that never comes gives nothing away
    with np.errstate(divide="ignore"):
        logs = np.log(seen)
    spread = logs.max(axis=1) - logs.min(axis=1)
    return float(spread.max(initial=0.0)) if len(seen) else inf


def _stochastic(field: str, matrix: Array, cells: int | str = "cells") -> Array:
    shape = ("outputs", cells)
    given = np.ascontiguousarray(number_array(field, matrix, shape, "[0, inf)", bools=True))
    off = np.abs(given.sum(axis=0) - 1).max(initial=0.0)
    if off > STOCHASTIC:
        raise InputError(f"{field} must have columns that sum to 1, one is off by {off:.3g}")
    return given
