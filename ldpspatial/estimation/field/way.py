"""The gradient that shows chains the way: that of the model, in single precision and few passes.

Chains take a thousand steps, and need the gradient alone at each. Any that depends on nothing but
the point keeps them reversible, and whether they stay where they come to is decided by the energy
in full (:mod:`.model`). So numbers are half as long here, what depends on the frequency alone is
found once for all waves that share it, and loops take several steps of the formulas at once. Arrays
keep the shapes that :mod:`.model` and :mod:`.prior` give them.
"""

from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ldpspatial.compiled import compiled_in_any_order
from ldpspatial.estimation.field.model import FieldModel
from ldpspatial.estimation.field.prior import (
    CENTRE,
    CENTRE_SPREAD,
    FARTHEST,
    HYPERS,
    SPECTRAL,
    TINY,
    FieldPrior,
)

Array = NDArray[Any]  # of float32, but for what is found once a chain

STEEPEST = 80.0  # of a field: its exponential is still a number of half the length
TOGETHER = 70_000  # numbers of points that are looked at once: about a cache


class Rings:
    """Waves that share a frequency, and what the prior says of these.

    Parameters
    ----------
    prior : FieldPrior
        In its own coordinates, whichever it is given in.
    kind : type
        Of numbers.

    Attributes
    ----------
    times : (R,) array
        How many waves of a window share each.
    of_wave : (d^2,) array
        Which is that of a wave.
    """

    def __init__(self, prior: FieldPrior, kind: type):
        self._prior, self._kind = prior, kind
        squares, of_wave, self.times = np.unique(
            prior.squared_frequencies, return_inverse=True, return_counts=True
        )
        self._squares: Array = squares.astype(kind)
        self.of_wave: Array = of_wave.ravel().astype(np.uint32)

    def spectrum(self, hypers: Array) -> tuple[Array, Array, Array, Array]:
        """Return what :meth:`FieldPrior.spectrum` does, by frequency.

        That is log A and its derivatives by log l and log(a - 1), (3, S, frequencies); log B, and
        its derivative by log t, (S, W); and the (S, 4) factors of all derivatives.
        """
        prior, kind = self._prior, self._kind
        means, spreads = (np.asarray(each[:SPECTRAL]) for each in (prior.means, prior.spreads))
        hypers = hypers[:, :SPECTRAL]
        within = np.clip(hypers, -FARTHEST, FARTHEST)
        log_sigma, log_length, log_slope, log_memory = (means + spreads * within).T[:, :, None]
        slope = np.exp(log_slope)
        rings: Array = np.empty((3, len(hypers), len(self._squares)), kind)
        log_amplitude, by_length, by_slope = rings
        np.multiply(np.exp(2 * log_length).astype(kind), self._squares, out=by_length)
        by_length += 1
        np.log(by_length, out=by_slope)
        np.multiply(by_slope, (-(1 + slope)).astype(kind), out=log_amplitude)
        weights = np.exp(log_amplitude) * self.times.astype(kind)
        weights[:, 0] = 0.0
        total = np.maximum(weights.sum(1, keepdims=True), TINY)
        log_amplitude *= 0.5
        log_amplitude += (log(prior.cells) + log_sigma - 0.5 * np.log(total)).astype(kind)
        log_amplitude[:, 0] = log(CENTRE_SPREAD * prior.cells)
        np.divide(-2, by_length, out=by_length)
        by_length += 2
        both = rings[1:]
        both -= np.einsum("su,bsu->bs", weights, both)[:, :, None] / total
        both[:, :, 0] = 0.0
        log_tempo, by_memory = prior.in_time(log_memory[:, :, None, None])
        tempo = log_tempo[:, :, 0, 0] if prior.windows > 1 else np.zeros((len(hypers), 1))
        slope = slope[:, 0]
        factors = np.stack(
            [np.ones_like(slope), -0.5 * (1 + slope), -0.5 * slope, np.full_like(slope, -0.5)], 1
        )
        factors *= spreads * (within == hypers)
        return rings, tempo.astype(kind), by_memory[:, :, 0, 0], factors


class Way:
    """The gradient of a model's energy.

    Parameters
    ----------
    model : FieldModel
    """

    def __init__(self, model: FieldModel):
        single = model.single()
        prior = model.prior
        self._operators, self._counts = single.operators, single.counts
        self._prior, self._axes = prior, model.axes
        shares = np.zeros(prior.shape) if prior.shares is None else prior.shares
        anchor = np.zeros(prior.shape) if prior.log_anchor is None else prior.log_anchor
        self._shares = shares.reshape(prior.windows, -1).astype(np.float32)
        self._anchor = anchor.reshape(prior.windows, -1).astype(np.float32)
        self._rings = Rings(prior, np.float32)
        self._ring = self._rings.of_wave
        self._known = single.known

    def gradient(self, points: Array) -> Array:
        """Return the (S, m) derivative of the energy at (S, m) points."""
        points = np.ascontiguousarray(points, np.float32)
        hypers = points[:, -HYPERS:].astype(np.float64)
        rings, tempo, by_memory, factors = self._rings.spectrum(hypers)
        found = np.empty_like(points)
        sums = np.empty((len(points), self._prior.windows, 4), np.float32)
        together = max(1, TOGETHER // points.shape[1])
        for first in range(0, len(points), together):
            some = slice(first, first + together)
            self._some(points[some], rings[:, some], tempo[some], found[some], sums[some])
        by_window, centre, by_length, by_slope = np.moveaxis(sums, -1, 0)
        by = [(by_window - centre).sum(1), by_length.sum(1), by_slope.sum(1)]
        by.append((by_window * by_memory).sum(1))
        found[:, -HYPERS:] += hypers
        found[:, -HYPERS : -HYPERS + SPECTRAL] += factors * np.stack(by, 1)
        return found

    def _some(self, points: Array, rings: Array, tempo: Array, found: Array, sums: Array) -> None:
        """Write what is found for some of the points."""
        shape = (len(points), *self._prior.shape)
        both = np.empty((2, len(points), self._prior.size - HYPERS), np.float32)
        _exponents(rings[0], tempo, self._ring, self._shares, self._anchor, both)
        np.exp(both, out=both)  # amplitudes, and xi^2 over the squared coordinates
        waves = (both[0] * points[:, :-HYPERS]).reshape(shape)
        field = fft.idctn(waves, axes=self._axes, norm="ortho", overwrite_x=True)
        steep = np.empty_like(field)
        _falls(field, steep)
        np.exp(steep, out=steep)
        density = np.ones_like(field)
        if self._known is not None:
            public, inside = self._known
            exponents = self._prior.means[-1] + self._prior.spreads[-1] * points[:, -1]
            density *= np.exp(np.multiply.outer(exponents, public))[:, None]
            density *= inside
        _linked(field, steep, density)
        pulled = self._operators.pulled(density, self._counts)
        _weighted(pulled, density)
        found[:, -HYPERS:] = 0.0
        if self._known is not None:
            found[:, -1] -= self._prior.spreads[-1] * (pulled * public).sum((1, 2, 3))
        pulled *= field  # the slope of the link now
        pulled = fft.dctn(pulled, axes=self._axes, norm="ortho", overwrite_x=True)
        pulled = pulled.reshape(*shape[:2], -1)
        _gathered(points, both, pulled, self._ring, self._shares, rings, found, sums)


@compiled_in_any_order
def _exponents(log_amplitude, tempo, ring, shares, anchor, both):  # type: ignore[no-untyped-def]
    """Find the logarithms of amplitudes, and of how far coordinates are stretched."""
    windows, waves = shares.shape
    for s in range(len(tempo)):
        rings = log_amplitude[s]
        for w in range(windows):
            logarithm = both[0, s, w * waves : (w + 1) * waves]
            stretch = both[1, s, w * waves : (w + 1) * waves]
            share, start, more = shares[w], anchor[w], tempo[s, w]
            for k in range(waves):
                plain = rings[ring[k]] + more
                ahead = share[k] * (plain - start[k])
                logarithm[k] = plain - ahead
                stretch[k] = -2 * ahead


@compiled_in_any_order
def _falls(field, steep):  # type: ignore[no-untyped-def]
    """Add the centre to a field, and return minus its size."""
    flat, falls = field.ravel(), steep.ravel()
    centre, most = np.float32(CENTRE), np.float32(STEEPEST)
    for k in range(len(flat)):
        flat[k] += centre
        falls[k] = -min(abs(flat[k]), most)


@compiled_in_any_order
def _linked(field, steep, density):  # type: ignore[no-untyped-def]
    """Make densities of fields v, exp(-|v|) and factors; leave the link's slope in the field.

    The exponential of v - softplus(-4 v) is e^v / (1 + e^-4v), and its slope 1 + 4 / (1 + e^4v).
    """
    one, four = np.float32(1), np.float32(4)
    for s in range(field.shape[0]):
        for w in range(field.shape[1]):
            flat, falls, dense = field[s, w].ravel(), steep[s, w].ravel(), density[s, w].ravel()
            total = np.float32(0)
            for k in range(len(flat)):
                fall = falls[k]
                square = fall * fall
                fourth = square * square
                part = one / (one + fourth)
                # Both sides for all cells, and one taken: branches are not vectorised.
                is_up = flat[k] > 0
                flat[k] = one + four * (fourth * part if is_up else part)
                dense[k] *= part / fall if is_up else part * fourth * fall
                total += dense[k]
            scale = one / total
            for k in range(len(flat)):
                dense[k] *= scale


@compiled_in_any_order
def _weighted(pulled, density):  # type: ignore[no-untyped-def]
    """Take the mean under each density off what is pulled, and multiply it by the density."""
    for s in range(pulled.shape[0]):
        for w in range(pulled.shape[1]):
            flat, dense = pulled[s, w].ravel(), density[s, w].ravel()
            mean = np.float32(0)
            for k in range(len(flat)):
                mean += flat[k] * dense[k]
            for k in range(len(flat)):
                flat[k] = (flat[k] - mean) * dense[k]


@compiled_in_any_order
def _gathered(points, both, pulled, ring, shares, rings, found, sums):  # type: ignore[no-untyped-def]
    """Find the derivative by the waves, and the sums that those by the unknowns are made of.

    These are (S, W, 4): of all weights, that of the mean, and times both derivatives of log A.
    """
    number, windows, waves = pulled.shape
    one = np.float32(1)
    for s in range(number):
        by_length, by_slope = rings[1, s], rings[2, s]
        for w in range(windows):
            here = slice(w * waves, (w + 1) * waves)
            point, by = points[s, here], found[s, here]
            amplitude, stretch = both[0, s, here], both[1, s, here]
            share, pull = shares[w], pulled[s, w]
            total = length = slope = np.float32(0)
            for k in range(waves):
                drawn = point[k] * stretch[k]
                pushed = amplitude[k] * pull[k]
                by[k] = drawn - pushed
                weight = share[k] * (one - drawn * point[k])
                weight -= (one - share[k]) * pushed * point[k]
                total += weight
                length += weight * by_length[ring[k]]
                slope += weight * by_slope[ring[k]]
            sums[s, w, 0], sums[s, w, 2], sums[s, w, 3] = total, length, slope
            drawn = point[0] * stretch[0]
            pushed = amplitude[0] * pull[0] * point[0]
            sums[s, w, 1] = share[0] * (one - drawn * point[0]) - (one - share[0]) * pushed
