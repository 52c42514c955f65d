"""The posterior of a field given counts: its value, gradient and Gauss-Newton metric.

A point x holds d^2 waves and three unknowns of the prior, all standard normal before the reports
(:mod:`ldpspatial.estimation.field.prior`). Counts are multinomial with probabilities g = M f.
Points come in stacks of shape (S, d^2 + 3).
"""

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ldpspatial.estimation.field.prior import CENTRE, HYPERS, FieldPrior, Spectrum, link, unlink
from ldpspatial.estimation.field.stacks import Stack

Array = NDArray[Any]  # of float64, or of float32 where it only shows the way

OUTSIDE = -1e4  # added to log f where nobody can be
LEAST = 1e-30  # a probability of a report, so that its logarithm is finite


@dataclass(frozen=True)
class State:
    """What is known at a stack of points.

    Attributes
    ----------
    density : (S, d, d) array
    reports : (S, ...) array
        Their distribution under the density, 1 outside the support.
    energy : (S,) array
        Minus the log-posterior in nats, up to a constant.
    fit : (S,) array
        Log-likelihood of the counts in nats.
    spectrum : Spectrum
    waves : (S, d, d) array
        Cosine coefficients of the field.
    slope : (S, d, d) array
        Derivative of the link.
    """

    density: Array
    reports: Array
    energy: Array
    fit: Array
    spectrum: Spectrum
    waves: Array
    slope: Array

    def rows(self, kept: slice) -> "State":
        """Return the state of some of the points."""
        return State(
            self.density[kept], self.reports[kept], self.energy[kept], self.fit[kept],
            self.spectrum.rows(kept), self.waves[kept], self.slope[kept],
        )  # fmt: skip


class FieldModel:
    """A posterior.

    Parameters
    ----------
    operators : Stack
        The channel.
    counts : array shaped like ``operators.support``
    prior : FieldPrior
    log_reference : (d, d) array, optional
        Logarithm of a public map that the field is relative to; of the uniform one by default.
        ``OUTSIDE`` where nobody can be.
    """

    def __init__(
        self,
        operators: Stack,
        counts: Array,
        prior: FieldPrior,
        log_reference: Array | None = None,
    ):
        self.operators = operators
        self.counts = counts
        self.n = float(counts.sum())
        self.prior = prior
        self._empty = np.where(operators.support, 0.0, 1.0)  # logarithms of 0 outside
        self._reference = np.zeros((1, 1)) if log_reference is None else log_reference

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
            _empty=self._empty.astype(np.float32),
            _reference=self._reference.astype(np.float32),
        )

    def with_prior(self, prior: FieldPrior) -> "FieldModel":
        """Return the model in other coordinates."""
        return self._with(prior=prior)

    def tempered(self, share: float) -> "FieldModel":
        """Return the model with this share of each count."""
        return self._with(counts=share * self.counts, n=share * self.n)

    def at(self, points: Array) -> State:
        """Return the state at a stack of points."""
        cells = self.prior.cells
        spectrum = self.prior.spectrum(points[:, -HYPERS:])
        waves = spectrum.amplitude * points[:, :-HYPERS].reshape(-1, cells, cells)
        emptied, slope = link(CENTRE + fft.idctn(waves, axes=(1, 2), norm="ortho"))
        emptied += self._reference
        emptied -= emptied.max((1, 2), keepdims=True)
        density = np.exp(emptied)
        density /= density.sum((1, 2), keepdims=True)
        reports = self.operators.forward(density)
        np.maximum(reports, LEAST, out=reports)
        reports += self._empty
        fit = (self.counts * np.log(reports)).sum((1, 2))
        energy = spectrum.energy(points) - fit
        return State(density, reports, energy, fit, spectrum, waves, slope)

    def gradient(self, points: Array, state: State) -> Array:
        """Return the derivative of the energy."""
        return state.spectrum.gradient(points) - self.transposed(state, self.counts / state.reports)

    def jacobian(self, state: State, steps: Array) -> Array:
        """Return how the distributions of reports change along steps."""
        cells = self.prior.cells
        waves = state.spectrum.amplitude * steps[:, :-HYPERS].reshape(-1, cells, cells)
        waves += state.spectrum.moved(state.waves, steps[:, -HYPERS:])
        field = state.slope * fft.idctn(waves, axes=(1, 2), norm="ortho")
        density = state.density
        mean = (density * field).sum((1, 2), keepdims=True)
        return self.operators.forward(density * (field - mean))

    def transposed(self, state: State, ratios: Array) -> Array:
        """Return the transpose of the Jacobian times ratios."""
        density = state.density
        pulled = self.operators.adjoint(ratios)
        mean = (density * pulled).sum((1, 2), keepdims=True)
        pulled -= mean
        pulled *= density
        pulled *= state.slope
        waves = fft.dctn(pulled, axes=(1, 2), norm="ortho", overwrite_x=True)
        found = np.empty((len(waves), self.prior.size), waves.dtype)
        found[:, :-HYPERS] = (state.spectrum.amplitude * waves).reshape(len(waves), -1)
        found[:, -HYPERS:] = state.spectrum.pulled(state.waves, waves)
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
        weight = (state.density**2 / self.operators.inner(state.reports)).mean((1, 2))
        gains = self.operators.gains() * (self.n * weight)[:, None, None]
        waves = 1.0 + state.spectrum.amplitude**2 * gains
        found = np.ones((len(waves), self.prior.size))
        found[:, :-HYPERS] = waves.reshape(len(waves), -1)
        return found

    def em_step(self, densities: Array) -> Array:
        """Return one step of EM from each density: the expected histogram of those who reported."""
        reports = np.maximum(self.operators.forward(densities), LEAST) + self._empty
        found = densities * self.operators.adjoint(self.counts / reports)
        return np.asarray(found / found.sum((1, 2), keepdims=True))

    def point_of(self, density: Array) -> Array:
        """Return a point whose density is about this one, of the prior's mean smoothness.

        Parameters
        ----------
        density : (d, d) array, positive
        """
        hypers = np.zeros((1, HYPERS))
        amplitude = self.prior.spectrum(hypers).amplitude[0]
        logarithm = np.log(density * density.size) - self._reference
        field = unlink(np.clip(logarithm, -50.0, 50.0)) - CENTRE
        floor = 1e-3 * amplitude.max()
        waves = fft.dctn(field, norm="ortho") / np.maximum(amplitude, floor)
        return np.append(np.clip(waves, -6.0, 6.0).ravel(), hypers[0])
