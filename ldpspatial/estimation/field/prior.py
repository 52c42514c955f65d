"""The prior of maps: a smooth random field in logarithms, whose smoothness is unknown.

log f = e log(public map) + v - softplus(-k v) + constant, with v = 1 + DCT^-1(A B xi), xi
independent standard normal. The cosine transform reflects at the edges. The power spectrum of v is
A^2 ~ (1 + l^2 k^2)^-a, scaled so that v has standard deviation sigma; sigma, l (in sides of the
square) and a > 1 are unknown too: log sigma, log l and log(a - 1) are normal. Several windows are
one field over space and time: B^2 ~ (1 + t^2 j^2)^-1 with log t normal, t in lengths of them all,
is the spectrum of an Ornstein-Uhlenbeck process. The exponent e of a public map is normal: one that
says nothing of these people gets an exponent near 0. The softplus empties cells: below 0, log f
falls 1 + k times as fast as v, and no cell needs a field of its own depth.

Means and spreads of the unknowns decide where reports tell little. They were chosen among a score
on six squares of two cities, three synthetic maps and four made towns: how near maps come, at
worst as well, and how many cells intervals hold (docs/experiments/estimators.md).

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
FINITE = 0.95  # of the largest exponent


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
    means: tuple[float, ...] = (log(1.5), log(0.1), log(0.4), log(3.0), 0.75)
    spreads: tuple[float, ...] = (0.5, 0.8, 0.8, 1.0, 0.5)
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

    def point_of(self, waves: Array, hypers: Array) -> Array:
        """Return (S, m) points of these coordinates, given the field's (S, W, d, d) waves."""
        found = waves / self.spectrum(hypers).amplitude
        return np.concatenate([found.reshape(len(found), -1), hypers], axis=1)

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
        log_amplitude, by_length, by_slope = self._in_space(log_sigma, log_length, slope)
        log_tempo, by_memory = self.in_time(log_memory)
        if self.windows > 1:
            log_amplitude = log_amplitude + log_tempo
        slope = slope[:, 0, 0, 0]
        factors = spreads * np.stack(
            [np.ones_like(slope), -0.5 * (1 + slope), -0.5 * slope, np.full_like(slope, -0.5)], 1
        )
        factors *= within == hypers
        found = Spectrum(log_amplitude, by_length, by_slope, by_memory, factors)
        if self.shares is None or self.log_anchor is None:
            np.exp(log_amplitude, out=log_amplitude)
            return found
        shares = self.shares.astype(kind)
        ahead = log_amplitude - self.log_anchor.astype(kind)
        ahead *= shares
        log_amplitude -= ahead
        np.exp(log_amplitude, out=log_amplitude)
        volume = ahead.sum((1, 2, 3))
        ahead *= -2
        return replace(found, centring=Centring(shares, 1 - shares, np.exp(ahead), volume))

    def _in_space(
        self, log_sigma: Array, log_length: Array, slope: Array
    ) -> tuple[Array, Array, Array]:
        """Return log A, (S, 1, d, d), and -2 d log A by log l and by log(a - 1).

        The second over a, and the third over a - 1.
        """
        scaled = np.exp(2 * log_length) * self.squared_frequencies.astype(slope.dtype)
        scaled += 1
        logarithm = np.log(scaled)
        weights = logarithm * -(1 + slope)
        log_amplitude = 0.5 * weights
        np.exp(weights, out=weights)
        weights[..., 0, 0] = 0.0
        total = np.maximum(weights.sum((2, 3), keepdims=True), TINY)  # 0 where d is 1
        log_amplitude += log(self.cells) + log_sigma - 0.5 * np.log(total)
        log_amplitude[..., 0, 0] = log(CENTRE_SPREAD * self.cells)
        relative = np.divide(-2, scaled, out=scaled)
        relative += 2
        for each in (relative, logarithm):
            _centre(each, weights, total)
        return log_amplitude, relative, logarithm

    def in_time(self, log_memory: Array) -> tuple[Array, Array]:
        """Return log B, (S, W, 1, 1), and -2 d log B by log t."""
        scaled = 1 + np.exp(2 * log_memory) * self.squared_tempos.astype(log_memory.dtype)
        weights = 1 / scaled
        total = weights.sum(1, keepdims=True)
        relative = 2 - 2 * weights
        relative -= (weights / total * relative).sum(1, keepdims=True)
        return 0.5 * np.log(self.windows * weights / total), relative


def _centre(values: Array, weights: Array, total: Array) -> None:
    """Take the weighted mean off (S, 1, d, d) values, and make that of the mean's wave 0."""
    values -= np.einsum("swij,swij->sw", weights, values)[..., None, None] / total
    values[..., 0, 0] = 0.0


@dataclass(frozen=True)
class Centring:
    """How far waves are centred, and what the prior of their coordinates is then.

    Attributes
    ----------
    shares, rest : (W, d, d) arrays
        How far, as :meth:`FieldPrior.centred` has it, and what is left to 1.
    stretch : (S, W, d, d) array
        xi^2 over the squared coordinate.
    log_volume : (S,) array
    """

    shares: Array
    rest: Array
    stretch: Array
    log_volume: Array


@dataclass(frozen=True)
class Spectrum:
    """Amplitudes of a stack of fields, and how they change with the unknowns of the spectrum.

    d log A B of a wave by the standard normals of sigma, l, a - 1 and t is, each times its column
    of ``factors``: 1, but 0 for the mean; ``by_length``; ``by_slope``; ``by_memory``. Of it a
    centred wave takes the rest, and the volume of coordinates the share.

    Attributes
    ----------
    amplitude : (S, W, d, d) array
        Waves of the field over their coordinates.
    by_length, by_slope : (S, 1, d, d) arrays
    by_memory : (S, W, 1, 1) array
    factors : (S, 4) array
    centring : Centring or None
    """

    amplitude: Array
    by_length: Array
    by_slope: Array
    by_memory: Array
    factors: Array
    centring: Centring | None = None

    def _change(self, steps: Array) -> Array:
        """Return the change of log A B, (S, W, d, d), when the (S, 4) standard normals move."""
        by_sigma, by_length, by_slope, by_memory = (self.factors * steps).T[:, :, None, None, None]
        change = by_length * self.by_length
        change += by_slope * self.by_slope
        change = change + (by_sigma + by_memory * self.by_memory)
        change[..., 0, 0] -= by_sigma[..., 0, 0]
        return np.asarray(change)

    def _sums(self, values: Array) -> Array:
        """Return the transpose of that: (S, 4) sums over the waves of (S, W, d, d) values."""
        by_window = values.sum((2, 3))
        over_windows = values[:, 0] if values.shape[1] == 1 else values.sum(1)
        sums = [
            by_window.sum(1) - over_windows[:, 0, 0],
            np.einsum("sij,sij->s", over_windows, self.by_length[:, 0]),
            np.einsum("sij,sij->s", over_windows, self.by_slope[:, 0]),
            (by_window * self.by_memory[:, :, 0, 0]).sum(1),
        ]
        return np.asarray(self.factors * np.stack(sums, 1))

    def moved(self, waves: Array, steps: Array) -> Array:
        """Return the change of waves when the (S, 4) standard normals move."""
        change = self._change(steps)
        change *= waves
        if self.centring is not None:
            change *= self.centring.rest
        return change

    def pulled(self, waves: Array, gradient: Array) -> Array:
        """Return the (S, 4) derivatives by the standard normals, from that by the waves."""
        product = waves * gradient
        if self.centring is not None:
            product *= self.centring.rest
        return self._sums(product)

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
        pulled *= waves
        excess = np.subtract(1, pulled, out=pulled)
        excess *= self.centring.shares
        found[:, -HYPERS : -HYPERS + SPECTRAL] += self._sums(excess)
        return np.asarray(found)

    def variances(self) -> Array:
        """Return (S, W, d, d) those of the field's waves under the prior, given its unknowns."""
        squares = self.amplitude**2
        return squares if self.centring is None else squares / self.centring.stretch

    def information(self) -> Array:
        """Return (S, 5, 5) what the waves' prior tells of the unknowns, as Fisher has it."""
        found = np.zeros((len(self.factors), HYPERS, HYPERS))
        if self.centring is None:
            return found
        by = [self._change(unit[None]) * self.centring.shares for unit in np.eye(SPECTRAL)]
        flat = np.stack(by, 1).reshape(len(found), SPECTRAL, -1)
        found[:, :SPECTRAL, :SPECTRAL] = 2 * flat @ flat.transpose(0, 2, 1)
        return found

    def rows(self, kept: slice) -> "Spectrum":
        """Return the spectrum of some of the stack."""
        centring = self.centring
        if centring is not None:
            centring = replace(
                centring, stretch=centring.stretch[kept], log_volume=centring.log_volume[kept]
            )
        return Spectrum(
            self.amplitude[kept], self.by_length[kept], self.by_slope[kept], self.by_memory[kept],
            self.factors[kept], centring,
        )  # fmt: skip


def link(field: Array) -> tuple[Array, Array]:
    """Return v - softplus(-k v) and its derivative."""
    # Where the exponential is cut nobody is left.
    most = FINITE * np.log(np.finfo(field.dtype).max)
    steep = np.exp(np.clip(-STEEPNESS * field, -most, most))
    steep += 1
    emptied = field - np.log(steep)
    slope = np.divide(-STEEPNESS, steep, out=steep)
    slope += 1 + STEEPNESS
    return emptied, slope


def unlink(emptied: Array) -> Array:
    """Return a field that the link takes close to this."""
    return np.where(emptied > 0, emptied, emptied / (1.0 + STEEPNESS))
