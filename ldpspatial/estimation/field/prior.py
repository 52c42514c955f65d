"""The prior of maps: a smooth random field in logarithms, whose smoothness is unknown.

log f = log(reference) + v - softplus(-k v) + constant, with v = 1 + DCT^-1(A xi), xi independent
standard normal. The cosine transform reflects at the edges. The power spectrum of v is
A^2 ~ (1 + l^2 k^2)^-a, scaled so that v has standard deviation sigma; sigma, l (in sides of the
square) and a > 1 are unknown too: log sigma, log l and log(a - 1) are normal. The softplus empties
cells: below 0, log f falls 1 + k times as fast as v, and no cell needs a field of its own depth.

Log-Gaussian Cox processes: Moeller, Syversveen and Waagepetersen 1998; fields in this
parametrisation: Knollmueller and Ensslin 2019.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # of float64, or of float32 where it only shows the way

HYPERS = 3  # log sigma, log l, log(a - 1), the last entries of a point, as standard normals
STEEPNESS = 4.0  # k
TINY = 1e-30
FARTHEST = 8.0  # standard deviations of an unknown that are told apart
CENTRE, CENTRE_SPREAD = 1.0, 1.5  # of the mean of v


@dataclass(frozen=True)
class FieldPrior:
    """What is believed of a map of d x d cells before a report is seen.

    Attributes
    ----------
    cells : int
        d.
    means, spreads : (3,) tuples
        Means and standard deviations of log sigma, log l and log(a - 1).
    """

    cells: int
    means: tuple[float, float, float] = (log(3.5), log(0.25), log(0.3))
    spreads: tuple[float, float, float] = (0.6, 0.5, 0.3)
    shares: Array | None = None
    log_anchor: Array | None = None

    @property
    def size(self) -> int:
        """Number of entries of a point: the waves xi, row by row, and the three unknowns."""
        return self.cells**2 + HYPERS

    @cached_property
    def squared_frequencies(self) -> Array:
        """(d, d) squared angular frequencies, per side of the square."""
        k = np.arange(self.cells)
        return np.asarray(np.pi**2 * (k[:, None] ** 2 + k**2), np.float64)

    def unknowns(self, hypers: Array) -> Array:
        """Return log sigma, log l, log(a - 1) of (..., 3) standard normals."""
        return np.asarray(np.asarray(self.means) + np.asarray(self.spreads) * hypers)

    def centred(self, shares: Array, hypers: Array) -> "FieldPrior":
        """Return the same prior in coordinates that keep waves with much information still.

        Parameters
        ----------
        shares : (d, d) array in [0, 1]
            How far each wave is centred: with 1 its coordinate is A xi but for a constant, which
            reports fix; with 0 it is xi, which the prior fixes.
        hypers : (3,) array
            Where both coordinates agree.
        """
        plain = replace(self, shares=None, log_anchor=None)
        anchor = np.log(plain.spectrum(hypers[None]).amplitude[0])
        kept = shares.copy()
        kept[0, 0] = 0.0  # the mean's amplitude never changes
        return replace(plain, shares=kept, log_anchor=anchor)

    def spectrum(self, hypers: Array) -> "Spectrum":
        """Return the amplitudes at a stack of standard normals, with what their derivatives need.

        Parameters
        ----------
        hypers : (S, 3) array
        """
        kind = hypers.dtype
        means, spreads = np.asarray(self.means, kind), np.asarray(self.spreads, kind)
        # A leap of a chain that goes astray is refused later; until then numbers stay finite.
        within = np.clip(hypers, -FARTHEST, FARTHEST)
        log_sigma, log_length, log_slope = (means + spreads * within).T[:, :, None, None]
        slope = np.exp(log_slope)  # a - 1
        scaled = 1 + np.exp(2 * log_length) * self.squared_frequencies.astype(kind)
        logarithm = np.log(scaled)
        weights = np.exp(-(1 + slope) * logarithm)
        weights[:, 0, 0] = 0.0
        total = np.maximum(weights.sum((1, 2), keepdims=True), TINY)  # 0 where d is 1
        log_amplitude = (
            log_sigma + log(self.cells) - 0.5 * ((1 + slope) * logarithm + np.log(total))
        )
        log_amplitude[:, 0, 0] = log(CENTRE_SPREAD * self.cells)
        weights /= total
        relative = 2 - 2 / scaled
        relative -= (weights * relative).sum((1, 2), keepdims=True)
        logarithm -= (weights * logarithm).sum((1, 2), keepdims=True)
        by_length = -0.5 * self.spreads[1] * (1 + slope[:, 0, 0])
        by_slope = -0.5 * self.spreads[2] * slope[:, 0, 0]
        factors = np.stack([np.full_like(by_slope, self.spreads[0]), by_length, by_slope], axis=1)
        factors *= within == hypers
        constant = np.ones_like(self.squared_frequencies, kind)
        constant[0, 0] = 0.0
        relative[:, 0, 0] = logarithm[:, 0, 0] = 0.0
        slopes = (constant[None], relative, logarithm)
        if self.shares is None or self.log_anchor is None:
            return Spectrum(np.exp(log_amplitude), slopes, factors)
        shares = self.shares.astype(kind)
        ahead = shares * (log_amplitude - self.log_anchor.astype(kind))
        kept = tuple((1 - shares) * each for each in slopes)
        moved = tuple(shares * each for each in slopes)
        centring = Centring(np.exp(-2 * ahead), ahead.sum((1, 2)), moved)
        return Spectrum(np.exp(log_amplitude - ahead), kept, factors, centring)


@dataclass(frozen=True)
class Centring:
    """What the prior of the coordinates has more than standard normal ones.

    Attributes
    ----------
    stretch : (S, d, d) array
        xi^2 over the squared coordinate.
    log_volume : (S,) array
    slopes : 3 arrays
        Derivatives of ``log_volume`` by wave, but for the factors.
    """

    stretch: Array
    log_volume: Array
    slopes: tuple[Array, ...]


@dataclass(frozen=True)
class Spectrum:
    """Amplitudes of a stack of fields, and how they change with the three unknowns.

    d log A of each wave by the k-th standard normal is ``factors[:, k]`` times ``slopes[k]``.

    Attributes
    ----------
    amplitude : (S, d, d) array
        Waves of the field over their coordinates.
    slopes : 3 arrays (S, d, d)
    factors : (S, 3) array
    centring : Centring or None
    """

    amplitude: Array
    slopes: tuple[Array, ...]
    factors: Array
    centring: Centring | None = None

    def moved(self, waves: Array, steps: Array) -> Array:
        """Return the change of waves when the (S, 3) standard normals move."""
        by = (self.factors * steps)[:, :, None, None]
        change = sum(by[:, k] * each for k, each in enumerate(self.slopes))
        return np.asarray(waves * change)

    def pulled(self, waves: Array, gradient: Array) -> Array:
        """Return the (S, 3) derivatives by the standard normals, from that by the waves."""
        product = waves * gradient
        sums = [(product * each).sum((1, 2)) for each in self.slopes]
        return np.asarray(self.factors * np.stack(sums, 1))

    def energy(self, points: Array) -> Array:
        """Return (S,) minus the log-prior of points, up to a constant."""
        if self.centring is None:
            return np.asarray(0.5 * (points**2).sum(1))
        waves = points[:, :-HYPERS].reshape(self.amplitude.shape)
        squares = (waves**2 * self.centring.stretch).sum((1, 2)) + (points[:, -HYPERS:] ** 2).sum(1)
        return np.asarray(0.5 * squares + self.centring.log_volume)

    def gradient(self, points: Array) -> Array:
        """Return the derivative of that."""
        if self.centring is None:
            return points
        found = points.copy()
        waves = points[:, :-HYPERS].reshape(self.amplitude.shape)
        pulled = waves * self.centring.stretch
        found[:, :-HYPERS] = pulled.reshape(len(points), -1)
        excess = 1 - waves * pulled
        by = [(each * excess).sum((1, 2)) for each in self.centring.slopes]
        found[:, -HYPERS:] += self.factors * np.stack(by, 1)
        return np.asarray(found)

    def information(self) -> Array:
        """Return (S, 3, 3) what the waves' prior tells of the unknowns, as Fisher has it."""
        if self.centring is None:
            return np.zeros((len(self.factors), HYPERS, HYPERS))
        flat = [
            np.broadcast_to(e, self.amplitude.shape).reshape(len(self.factors), -1)
            for e in self.centring.slopes
        ]
        by = np.stack(flat, 1) * self.factors[:, :, None]
        return np.asarray(2 * by @ by.transpose(0, 2, 1))

    def rows(self, kept: slice) -> "Spectrum":
        """Return the spectrum of some of the stack."""

        def of(parts: tuple[Array, ...]) -> tuple[Array, ...]:
            return tuple(each if len(each) == 1 or each.ndim == 2 else each[kept] for each in parts)

        centring = self.centring
        if centring is not None:
            centring = Centring(
                centring.stretch[kept], centring.log_volume[kept], of(centring.slopes)
            )
        return Spectrum(self.amplitude[kept], of(self.slopes), self.factors[kept], centring)


def link(field: Array) -> tuple[Array, Array]:
    """Return v - softplus(-k v) and its derivative."""
    scaled = STEEPNESS * field
    small = np.exp(-np.abs(scaled))  # quicker than logaddexp, and as exact
    emptied = field + np.minimum(scaled, 0.0) - np.log(1.0 + small)
    below = np.where(scaled > 0, small, 1.0) / (1.0 + small)
    return emptied, 1.0 + STEEPNESS * below


def unlink(emptied: Array) -> Array:
    """Return a field that the link takes close to this."""
    return np.where(emptied > 0, emptied, emptied / (1.0 + STEEPNESS))
