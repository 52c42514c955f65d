"""Scales of a field's coordinates, by which the posterior is about round.

By wave alone they are quickly found and applied, and enough where reports tell little. Where they
tell much they tell it of cells: of one with many people much, of an empty one nothing, and a wave
is made of both.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ldpspatial.estimation.field.model import FieldModel, State
from ldpspatial.estimation.field.prior import HYPERS

Array = NDArray[Any]
Operator = Callable[[Array], Array]

NEIGHBOURS = 10.0  # times as well as the prior alone do they tell a cell
UNLIKE = 3_000.0  # times as well as another one is a cell told, from where scales by wave fail


class ByWave:
    """A scale for each wave.

    Parameters
    ----------
    model : FieldModel
    state : State
        Of the points that scales are averaged over.
    """

    def __init__(self, model: FieldModel, state: State):
        self._scales = np.sqrt(model.scales(state).mean(0))

    def point(self, scaled: Array) -> Array:
        """Return (S, m) points from scaled coordinates."""
        return np.asarray(scaled / self._scales.astype(scaled.dtype))

    def scaled(self, points: Array) -> Array:
        """Return the scaled coordinates of points."""
        return np.asarray(points * self._scales)

    def gradient(self, by_point: Array) -> Array:
        """Return a gradient by scaled coordinates."""
        return np.asarray(by_point / self._scales.astype(by_point.dtype))


class ByCellAndWave:
    """A scale for each cell and one for each wave.

    A point is A^-1 C^T S h z, with C the cosine waves, A their amplitudes, S = C^T s C, and
    diagonal s by cell and h by wave. s^-2 is what reports tell of a cell and about what its
    neighbours do; h makes of the metric, on average over the cells, 1 by wave.

    Parameters
    ----------
    model : FieldModel
    state : State
        Of the points that scales are averaged over.
    """

    def __init__(self, model: FieldModel, state: State):
        self._axes, self._shape = model.axes, model.prior.shape
        told = model.told_by_cell(state)
        gains = np.asarray(model.operators.gains())
        variances = state.spectrum.variances().mean(0)
        self._cells = 1 / np.sqrt(NEIGHBOURS / variances.mean() + gains.mean() * told)
        squares = self._cells**2
        self._waves = 1 / np.sqrt(squares.mean() / variances + gains * (told * squares).mean())
        self._amplitude = state.spectrum.amplitude.mean(0)

    @property
    def spread(self) -> float:
        """The largest over the least of what is known of a cell."""
        return float((self._cells.max() / self._cells.min()) ** 2)

    def point(self, scaled: Array) -> Array:
        """Return (S, m) points from scaled coordinates; the prior's unknowns are as they are."""
        return self._through(scaled, self._waves, self._cells, 1 / self._amplitude)

    def scaled(self, points: Array) -> Array:
        """Return the scaled coordinates of points."""
        return self._through(points, self._amplitude, 1 / self._cells, 1 / self._waves)

    def gradient(self, by_point: Array) -> Array:
        """Return a gradient by scaled coordinates."""
        return self._through(by_point, 1 / self._amplitude, self._cells, self._waves)

    def _through(self, values: Array, first: Array, cells: Array, last: Array) -> Array:
        kind = values.dtype
        waves = values[:, :-HYPERS].reshape(-1, *self._shape) * first.astype(kind)
        field = fft.idctn(waves, axes=self._axes, norm="ortho", overwrite_x=True)
        field *= cells.astype(kind)
        waves = fft.dctn(field, axes=self._axes, norm="ortho", overwrite_x=True)
        waves *= last.astype(kind)
        found: Array = values.copy()
        found[:, :-HYPERS] = waves.reshape(len(values), -1)
        return found


def by_wave(model: FieldModel, state: State) -> Operator:
    """Return about the inverse of the metric, for conjugate gradients: from (S, m) to (S, m)."""
    scales = model.scales(state).mean(0, keepdims=True)
    return lambda values: np.asarray(values / scales)


def by_cell_and_wave(model: FieldModel, state: State) -> Operator:
    """Return the same by cell as well where reports tell some cells far better than others.

    There it takes a tenth to a half of the steps, each of which costs twice as much.
    """
    both = ByCellAndWave(model, state)
    if model.prior.windows > 1 or both.spread < UNLIKE:
        return by_wave(model, state)

    def scaled(values: Array) -> Array:
        rough = values.astype(np.float32)  # it only shows the way
        return np.asarray(both.point(both.gradient(rough)).astype(np.float64))

    return scaled


def told_by_wave(model: FieldModel, state: State) -> Array:
    """Return (W, d, d) shares in [0, 1] of what is known of waves that reports tell.

    Those of the cells that they tell most of count most: there a wave is told, whatever it is
    elsewhere.
    """
    told = model.told_by_cell(state)
    known = np.asarray(model.operators.gains()) * state.spectrum.variances().mean(0)
    known = known * (told**2).sum() / told.sum()
    return np.asarray(known / (1 + known))
