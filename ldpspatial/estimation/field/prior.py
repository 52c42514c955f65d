"""The prior of maps: a smooth random field in logarithms, whose smoothness is unknown.

log f = e log(public map) + v - softplus(-k v) + constant, with v = 1 + DCT^-1(A B xi), xi
independent standard normal. The cosine transform reflects at the edges. The power spectrum of v is
A^2 ~ (1 + l^2 k^2)^-a, scaled so that v has standard deviation sigma; sigma, l (in sides of the
square) and a > 1 are unknown too: log sigma, log l and log(a - 1) are normal. Several windows are
one field over space and time: B^2 ~ (1 + t^2 j^2)^-1 with log t normal, t in lengths of them all,
is the spectrum of an Ornstein-Uhlenbeck process. The exponent e of a public map is normal: one that
says nothing of these people gets an exponent near 0. The softplus empties cells: below 0, log f
falls 1 + k times as fast as v, and no cell needs a field of its own depth.

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

SPECTRAL = 4  # log sigma, log l, log(a - 1), log t
HYPERS = SPECTRAL + 1  # and e: the last entries of a point, as standard normals
STEEPNESS = 4.0  # k
TINY = 1e-30
FARTHEST = 8.0  # standard deviations of an unknown that are told apart
CENTRE, CENTRE_SPREAD = 1.0, 1.5  # of the mean of v


@dataclass(frozen=True)
class FieldPrior:
    """What is believed of maps of d x d cells in W windows before a report is seen.

    Attributes
    ----------
    cells : int
        d.
    windows : int
        W.
    means, spreads : (5,) tuples
        Means and standard deviations of log sigma, log l, log(a - 1), log t and e.
    shares, log_anchor : (W, d, d) arrays, optional
        As :meth:`centred` has them.
    """

    cells: int
    windows: int = 1
    means: tuple[float, ...] = (log(3.5), log(0.25), log(0.6), log(3.0), 0.75)
    spreads: tuple[float, ...] = (0.6, 0.5, 0.8, 1.0, 0.5)
    shares: Array | None = None
    log_anchor: Array | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the waves: windows, rows, columns."""
        return self.windows, self.cells, self.cells

    @property
    def size(self) -> int:
        """Number of entries of a point: the waves xi, row by row, and the unknowns."""
        return self.windows * self.cells**2 + HYPERS

    @cached_property
    def squared_frequencies(self) -> Array:
        """(d, d) squared angular frequencies, per side of the square."""
        k = np.arange(self.cells)
        return np.asarray(np.pi**2 * (k[:, None] ** 2 + k**2), np.float64)

    @cached_property
    def squared_tempos(self) -> Array:
        """(W, 1, 1) squared angular frequencies, per length of all windows."""
        return np.asarray(np.pi**2 * np.arange(self.windows)[:, None, None] ** 2, np.float64)

    def unknowns(self, hypers: Array) -> Array:
        """Return log sigma, log l, log(a - 1), log t and e of (..., 5) standard normals."""
        return np.asarray(np.asarray(self.means) + np.asarray(self.spreads) * hypers)

    def centred(self, shares: Array, hypers: Array) -> "FieldPrior":
        """Return the same prior in coordinates that keep waves with much information still.

        Parameters
        ----------
        shares : (W, d, d) array in [0, 1]
            How far each wave is centred: with 1 its coordinate is A B xi but for a constant, which
            reports fix; with 0 it is xi, which the prior fixes.
        hypers : (5,) array
            Where both coordinates agree.
        """
        plain = replace(self, shares=None, log_anchor=None)
        anchor = np.log(plain.spectrum(hypers[None]).amplitude[0])
        kept = shares.copy()
        kept[0, 0, 0] = 0.0  # the mean's amplitude hardly changes
        return replace(plain, shares=kept, log_anchor=anchor)

    def spectrum(self, hypers: Array) -> "Spectrum":
        """Return the amplitudes at a stack of standard normals, with what their derivatives need.

        Parameters
        ----------
        hypers : (S, 5) array
        """
        kind = hypers.dtype
        means, spreads = (np.asarray(m[:SPECTRAL], kind) for m in (self.means, self.spreads))
        hypers = hypers[:, :SPECTRAL]
        # A leap of a chain that goes astray is refused later; until then numbers stay finite.
        within = np.clip(hypers, -FARTHEST, FARTHEST)
        unknowns = (means + spreads * within).T[:, :, None, None, None]
        log_sigma, log_length, log_slope, log_memory = unknowns
        slope = np.exp(log_slope)  # a - 1
        log_amplitude, by_length, by_slope = self._in_space(log_length, slope)
        log_tempo, by_memory = self._in_time(log_memory)
        log_amplitude[:, :, 1:, :] += log_sigma
        log_amplitude[:, :, :1, 1:] += log_sigma
        log_amplitude = log_amplitude + log_tempo
        by_sigma = np.ones((1, 1, self.cells, self.cells), kind)
        by_sigma[..., 0, 0] = 0.0
        slope = slope[:, 0, 0, 0]
        factors = spreads * np.stack(
            [np.ones_like(slope), -0.5 * (1 + slope), -0.5 * slope, np.full_like(slope, -0.5)], 1
        )
        factors *= within == hypers
        slopes = (by_sigma, by_length, by_slope, by_memory)
        if self.shares is None or self.log_anchor is None:
            return Spectrum(np.exp(log_amplitude), slopes, factors)
        shares = self.shares.astype(kind)
        ahead = shares * (log_amplitude - self.log_anchor.astype(kind))
        kept = tuple((1 - shares) * each for each in slopes)
        moved = tuple(shares * each for each in slopes)
        centring = Centring(np.exp(-2 * ahead), ahead.sum((1, 2, 3)), moved)
        return Spectrum(np.exp(log_amplitude - ahead), kept, factors, centring)

    def _in_space(self, log_length: Array, slope: Array) -> tuple[Array, Array, Array]:
        """Return log A but for sigma, (S, 1, d, d), and -2 d log A by log l and by log(a - 1).

        The second over a, and the third over a - 1.
        """
        scaled = 1 + np.exp(2 * log_length) * self.squared_frequencies.astype(slope.dtype)
        logarithm = np.log(scaled)
        weights = np.exp(-(1 + slope) * logarithm)
        weights[..., 0, 0] = 0.0
        total = np.maximum(weights.sum((2, 3), keepdims=True), TINY)  # 0 where d is 1
        log_amplitude = log(self.cells) - 0.5 * ((1 + slope) * logarithm + np.log(total))
        log_amplitude[..., 0, 0] = log(CENTRE_SPREAD * self.cells)
        weights /= total
        relative = 2 - 2 / scaled
        relative -= (weights * relative).sum((2, 3), keepdims=True)
        logarithm -= (weights * logarithm).sum((2, 3), keepdims=True)
        relative[..., 0, 0] = logarithm[..., 0, 0] = 0.0
        return log_amplitude, relative, logarithm

    def _in_time(self, log_memory: Array) -> tuple[Array, Array]:
        """Return log B, (S, W, 1, 1), and -2 d log B by log t."""
        scaled = 1 + np.exp(2 * log_memory) * self.squared_tempos.astype(log_memory.dtype)
        weights = 1 / scaled
        total = weights.sum(1, keepdims=True)
        relative = 2 - 2 * weights
        relative -= (weights / total * relative).sum(1, keepdims=True)
        return 0.5 * np.log(self.windows * weights / total), relative


@dataclass(frozen=True)
class Centring:
    """What the prior of the coordinates has more than standard normal ones.

    Attributes
    ----------
    stretch : (S, W, d, d) array
        xi^2 over the squared coordinate.
    log_volume : (S,) array
    slopes : 4 arrays
        Derivatives of ``log_volume`` by wave, but for the factors.
    """

    stretch: Array
    log_volume: Array
    slopes: tuple[Array, ...]


@dataclass(frozen=True)
class Spectrum:
    """Amplitudes of a stack of fields, and how they change with the unknowns of the spectrum.

    d log A of each wave by the k-th standard normal is ``factors[:, k]`` times ``slopes[k]``.

    Attributes
    ----------
    amplitude : (S, W, d, d) array
        Waves of the field over their coordinates.
    slopes : 4 arrays, each (S, W, d, d) where axes of length 1 are repeated
    factors : (S, 4) array
    centring : Centring or None
    """

    amplitude: Array
    slopes: tuple[Array, ...]
    factors: Array
    centring: Centring | None = None

    def moved(self, waves: Array, steps: Array) -> Array:
        """Return the change of waves when the (S, 4) standard normals move."""
        by = (self.factors * steps)[:, :, None, None, None]
        change = sum(by[:, k] * each for k, each in enumerate(self.slopes))
        return np.asarray(waves * change)

    def pulled(self, waves: Array, gradient: Array) -> Array:
        """Return the (S, 4) derivatives by the standard normals, from that by the waves."""
        product = waves * gradient
        sums = [(product * each).sum((1, 2, 3)) for each in self.slopes]
        return np.asarray(self.factors * np.stack(sums, 1))

    def energy(self, points: Array) -> Array:
        """Return (S,) minus the log-prior of points, up to a constant."""
        if self.centring is None:
            return np.asarray(0.5 * (points**2).sum(1))
        waves = points[:, :-HYPERS].reshape(self.amplitude.shape)
        squares = (waves**2 * self.centring.stretch).sum((1, 2, 3))
        squares += (points[:, -HYPERS:] ** 2).sum(1)
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
        by = [(each * excess).sum((1, 2, 3)) for each in self.centring.slopes]
        found[:, -HYPERS : -HYPERS + SPECTRAL] += self.factors * np.stack(by, 1)
        return np.asarray(found)

    def information(self) -> Array:
        """Return (S, 5, 5) what the waves' prior tells of the unknowns, as Fisher has it."""
        found = np.zeros((len(self.factors), HYPERS, HYPERS))
        if self.centring is None:
            return found
        flat = [
            np.broadcast_to(e, self.amplitude.shape).reshape(len(self.factors), -1)
            for e in self.centring.slopes
        ]
        by = np.stack(flat, 1) * self.factors[:, :, None]
        found[:, :SPECTRAL, :SPECTRAL] = 2 * by @ by.transpose(0, 2, 1)
        return found

    def rows(self, kept: slice) -> "Spectrum":
        """Return the spectrum of some of the stack."""

        def of(parts: tuple[Array, ...]) -> tuple[Array, ...]:
            return tuple(each if len(each) == 1 else each[kept] for each in parts)

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
