"""The posterior of a field given counts: its value, gradient and Gauss-Newton metric.

A point x holds W d^2 waves and the unknowns of the prior, all standard normal before the reports
(:mod:`ldpspatial.estimation.field.prior`). Counts of each of W windows are multinomial with
probabilities g = M f. Points come in stacks of shape (S, W d^2 + 5).
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ldpspatial.channels.stacks import LEAST, Stack
from ldpspatial.estimation.field.prior import (
    CENTRE,
    HYPERS,
    SPECTRAL,
    FieldPrior,
    Spectrum,
    link,
    unlink,
)

Array = NDArray[Any]  # of float64, or of float32 where it only shows the way

OUTSIDE = -1e4  # added to log f where nobody can be
CELLS = (-2, -1)  # axes


@dataclass(frozen=True)
class State:
    """What is known at a stack of points.

    Attributes
    ----------
    points : (S, m) array
    density : (S, W, d, d) array
    reports : (S, W, ...) array
        Their distribution under the density, 1 outside the support.
    counts : (W, ...) array
        Those that came.
    spectrum : Spectrum
    waves : (S, W, d, d) array
        Cosine coefficients of the field.
    slope : (S, W, d, d) array
        Derivative of the link.
    """

    points: Array
    density: Array
    reports: Array
    counts: Array
    spectrum: Spectrum
    waves: Array
    slope: Array

    # Steps of a chain need the gradient alone.
    @cached_property
    def fit(self) -> Array:
        """(S,) log-likelihoods of the counts in nats."""
        return np.asarray((self.counts * np.log(self.reports)).sum((1, 2, 3)))

    @cached_property
    def energy(self) -> Array:
        """(S,) minus the log-posterior in nats, up to a constant."""
        return self.spectrum.energy(self.points) - self.fit

    def rows(self, kept: slice) -> "State":
        """Return the state of some of the points."""
        return State(
            self.points[kept], self.density[kept], self.reports[kept], self.counts,
            self.spectrum.rows(kept), self.waves[kept], self.slope[kept],
        )  # fmt: skip


class FieldModel:
    """A posterior.

    Parameters
    ----------
    operators : Stack
        The channel, that of each window.
    counts : (W, ...) array, shaped like ``operators.support`` by window
    prior : FieldPrior
    log_public : (d, d) array, optional
        Logarithm of a public map that the field is relative to; of the uniform one by default.
    where : (d, d) boolean array, optional
        Where people can be; anywhere by default.
    """

    def __init__(
        self,
        operators: Stack,
        counts: Array,
        prior: FieldPrior,
        log_public: Array | None = None,
        where: NDArray[np.bool_] | None = None,
    ):
        self.operators = operators
        self.counts = counts
        self.n = counts.sum(CELLS, keepdims=True)  # (W, 1, 1) reports
        self.prior = prior
        self._least = np.where(operators.support, LEAST, 1.0)  # logarithms of 0 outside
        shape = (prior.cells, prior.cells)
        self._public = np.zeros(shape) if log_public is None else log_public
        self._outside = np.zeros(shape) if where is None else np.where(where, 0.0, OUTSIDE)
        self._knows = log_public is not None or where is not None
        # Along an axis of length 1 the transform changes nothing.
        self.axes = CELLS if prior.windows == 1 else (-3, *CELLS)

    @property
    def known(self) -> tuple[Array, Array] | None:
        """Logarithm of the public map, and 1 where people can be; None where neither is known."""
        inside = (self._outside == 0).astype(self._outside.dtype)
        return (self._public, inside) if self._knows else None

    def _with(self, **changed: Any) -> "FieldModel":
        found = copy(self)
        for name, value in changed.items():
            setattr(found, name, value)
        return found

    def single(self) -> "FieldModel":
        """Return the model in numbers of half the length: for the way, not for its ends."""
        return self._with(
            operators=self.operators.single(),
            counts=self.counts.astype(np.float32),
            n=self.n.astype(np.float32),
            _least=self._least.astype(np.float32),
            _public=self._public.astype(np.float32),
            _outside=self._outside.astype(np.float32),
        )

    def with_prior(self, prior: FieldPrior) -> "FieldModel":
        """Return the model in other coordinates."""
        return self._with(prior=prior)

    def tempered(self, share: float) -> "FieldModel":
        """Return the model with this share of each count."""
        return self._with(counts=share * self.counts, n=share * self.n)

    def at(self, points: Array) -> State:
        """Return the state at a stack of points."""
        spectrum = self.prior.spectrum(points[:, -HYPERS:])
        waves = spectrum.amplitude * self._waves(points)
        emptied, slope = link(CENTRE + fft.idctn(waves, axes=self.axes, norm="ortho"))
        if self._knows:
            exponent = self.prior.means[-1] + self.prior.spreads[-1] * points[:, -1]
            emptied += exponent[:, None, None, None] * self._public + self._outside
        emptied -= emptied.max(CELLS, keepdims=True)
        density = np.exp(emptied, out=emptied)
        density /= density.sum(CELLS, keepdims=True)
        reports = self._forward(density)
        np.maximum(reports, self._least, out=reports)  # 1 outside the support
        return State(points, density, reports, self.counts, spectrum, waves, slope)

    def gradient(self, points: Array, state: State) -> Array:
        """Return the derivative of the energy."""
        return state.spectrum.gradient(points) - self.transposed(state, self.counts / state.reports)

    def jacobian(self, state: State, steps: Array) -> Array:
        """Return how the distributions of reports change along steps."""
        waves = state.spectrum.amplitude * self._waves(steps)
        waves += state.spectrum.moved(state.waves, steps[:, -HYPERS : -HYPERS + SPECTRAL])
        field = state.slope * fft.idctn(waves, axes=self.axes, norm="ortho")
        if self._knows:
            field += self.prior.spreads[-1] * steps[:, -1, None, None, None] * self._public
        field -= _dot(state.density, field)
        field *= state.density
        return self._forward(field)

    def transposed(self, state: State, ratios: Array) -> Array:
        """Return the transpose of the Jacobian times ratios."""
        density = state.density
        pulled = self._adjoint(ratios)
        pulled -= _dot(density, pulled)
        pulled *= density
        by_exponent: Array | float = 0.0
        if self._knows:
            by_exponent = self.prior.spreads[-1] * (pulled * self._public).sum((1, 2, 3))
        pulled *= state.slope
        waves = fft.dctn(pulled, axes=self.axes, norm="ortho", overwrite_x=True)
        found = np.empty((len(waves), self.prior.size), waves.dtype)
        found[:, :-HYPERS] = (state.spectrum.amplitude * waves).reshape(len(waves), -1)
        found[:, -HYPERS : -HYPERS + SPECTRAL] = state.spectrum.pulled(state.waves, waves)
        found[:, -1] = by_exponent
        return found

    def metric(self, state: State, steps: Array) -> Array:
        """Return (1 + n J^T g^-1 J) steps, the Gauss-Newton metric of the energy."""
        pushed = self.jacobian(state, steps)
        found = steps + self.transposed(state, self.n / state.reports * pushed)
        if state.spectrum.centring is not None:
            own = state.spectrum.information()
            found[:, -HYPERS:] += (own @ steps[:, -HYPERS:, None])[:, :, 0]
        return found

    def draw_residual(self, state: State, normal: Array, noise: Array) -> Array:
        """Return a draw whose covariance is the metric, from standard normal numbers."""
        return normal + self.transposed(state, np.sqrt(self.n / state.reports) * noise)

    def scales(self, state: State) -> Array:
        """Return about the diagonal of the metric."""
        inner = self._inner(state.reports)
        weight = (self.n * (state.density**2 / inner).mean(CELLS, keepdims=True)).mean(1)
        gains = (self.operators.gains() * weight)[:, None]
        waves = 1.0 + state.spectrum.amplitude**2 * gains
        found = np.ones((len(waves), self.prior.size))
        found[:, :-HYPERS] = waves.reshape(len(waves), -1)
        return found

    def told_by_cell(self, state: State) -> Array:
        """Return (W, d, d) about what reports would tell of each cell's field, were no other near.

        That is over the squared gain of a wave, and the mean over a stack.
        """
        rates = state.density * state.slope
        rates **= 2
        rates /= self._inner(state.reports)
        rates *= self.n
        return np.asarray(rates.mean(0))

    def point_of(self, density: Array) -> Array:
        """Return a point whose density is about this one, of the prior's mean smoothness.

        Parameters
        ----------
        density : (W, d, d) array, positive where people can be
        """
        hypers = np.zeros((1, HYPERS))
        amplitude = self.prior.spectrum(hypers).amplitude[0]
        inside = self._outside == 0
        logarithm = np.log(np.where(inside, density, 1.0) * inside.sum())
        logarithm -= self.prior.means[-1] * self._public
        field = np.where(inside, unlink(np.clip(logarithm, -50.0, 50.0)) - CENTRE, 0.0)
        floor = 1e-3 * amplitude.max()
        waves = fft.dctn(field, axes=self.axes, norm="ortho") / np.maximum(amplitude, floor)
        return np.append(np.clip(waves, -6.0, 6.0).ravel(), hypers[0])

    def _waves(self, points: Array) -> Array:
        return points[:, :-HYPERS].reshape(-1, *self.prior.shape)

    def _forward(self, densities: Array) -> Array:
        found = self.operators.forward(densities.reshape(-1, *densities.shape[2:]))
        return found.reshape(*densities.shape[:2], *found.shape[1:])

    def _adjoint(self, ratios: Array) -> Array:
        found = self.operators.adjoint(ratios.reshape(-1, *ratios.shape[2:]))
        return found.reshape(*ratios.shape[:2], *found.shape[1:])

    def _inner(self, reports: Array) -> Array:
        found = self.operators.inner(reports.reshape(-1, *reports.shape[2:]))
        return found.reshape(*reports.shape[:2], *found.shape[1:])


def _dot(density: Array, field: Array) -> Array:
    """Return (S, W, 1, 1) means of fields under densities."""
    return np.asarray(np.einsum("swij,swij->sw", density, field)[..., None, None])
