"""Hamiltonian Monte Carlo on a field's posterior, chains in one stack.

Duane et al. 1987; Neal 2011. The mass is the Gauss-Newton metric, dense on the widest waves and the
prior's unknowns, where reports tell most and waves are most entangled, and by scales elsewhere
(:mod:`.scales`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ldpspatial.compiled import compiled
from ldpspatial.estimation.field.memory import Fields, Memory
from ldpspatial.estimation.field.model import FieldModel, State
from ldpspatial.estimation.field.prior import HYPERS
from ldpspatial.estimation.field.scales import ByCellAndWave, ByWave, told_by_wave
from ldpspatial.estimation.field.unknowns import redrawn
from ldpspatial.estimation.field.way import TOGETHER, Rings, Way

Array = NDArray[np.float64]
Told = Callable[[float], None]  # sees the mean log-likelihood after each trajectory

DENSE_WAVES = 256  # of one window; twice as many of several, which reports entangle
ROUNDED = 1e-4  # of a metric in numbers of half the length, at most
JITTER = 0.3  # of the length of a step, so that no orbit closes on itself
LEAPS = 14  # steps of a trajectory, at first
ACCEPTANCE = 0.85
FAST, SLOW = 1.0, 0.4  # how much of a lack of acceptance the length of steps follows
LOST = 5.0  # nats, and quartiles below the middle, that tell a chain that never left its start
SKEWED = 3.0  # times the upper quartile, above which the lower one is of chains that are lost
MOST_STRETCH = 4.0  # of a scale, after a stage
START = 0.1  # of a step in such coordinates, at first and at least
REACH, MOST_LEAPS = 2.0, 32  # of a trajectory there, and its steps


class Whitening:
    """Coordinates in which the posterior is about round.

    Parameters
    ----------
    model : FieldModel
    points : (S, m) array
        Where scales are averaged, and of the first and the last the metric.
    by : type
        Of the scales.
    """

    def __init__(
        self, model: FieldModel, points: Array, by: type[ByWave | ByCellAndWave] = ByWave,
    ):  # fmt: skip
        prior = model.prior
        dense = DENSE_WAVES * min(prior.windows, 2)
        frequencies = np.broadcast_to(prior.squared_frequencies, prior.shape).ravel()
        waves = np.argsort(frequencies, kind="stable")[:dense]
        self._kept = np.append(waves, prior.size - HYPERS + np.arange(HYPERS))
        state = model.at(points)
        self._scales = by(model, state)
        metric = np.zeros((len(self._kept),) * 2)
        metric[-HYPERS:, -HYPERS:] = state.spectrum.information().mean(0)
        units = np.zeros((len(self._kept), prior.size), np.float32)
        units[np.arange(len(units)), self._kept] = 1.0
        units = self._scales.point(units)
        metric += units @ units.T  # what the prior tells
        rough = model.single()
        ends = points[[0, -1]].astype(np.float32)  # opposite ones at first
        for point in ends:
            metric += self._information(rough, rough.at(point[None]), units) / len(ends)
        lower = _root_of(metric)
        self._lower = lower
        self._inverse = linalg.solve_triangular(lower, np.eye(len(lower)), lower=True)
        self._stretch = np.ones(prior.size)

    def _information(self, model: FieldModel, state: State, units: NDArray[Any]) -> Array:
        support = np.broadcast_to(model.operators.support, model.counts.shape)
        weight = np.sqrt((model.n / state.reports[0])[support])
        pushed = np.empty((len(units), np.count_nonzero(support)))
        together = max(1, TOGETHER // model.prior.size)
        for first in range(0, len(units), together):
            some = slice(first, first + together)
            pushed[some] = model.jacobian(state, units[some])[:, support] * weight
        return np.asarray(pushed @ pushed.T)  # of a square, whatever was rounded

    def variances(self) -> Array:
        """Return (m,) variances that the metric promises, where scales are by wave."""
        found = np.ones(len(self._stretch))
        found[self._kept] = (self._inverse**2).sum(0)
        return np.asarray(self._scales.point(np.sqrt(found)[None])[0] ** 2)

    def point(self, white: Array) -> Array:
        """Return points from white coordinates."""
        found = white * self._stretch.astype(white.dtype)
        found[:, self._kept] = found[:, self._kept] @ self._inverse.astype(white.dtype)
        return self._scales.point(found)

    def white(self, points: Array) -> Array:
        """Return white coordinates of points."""
        found = self._scales.scaled(points)
        found[:, self._kept] = found[:, self._kept] @ self._lower
        return np.asarray(found / self._stretch)

    def gradient(self, by_point: Array) -> Array:
        """Return a gradient by white coordinates."""
        found = self._scales.gradient(by_point)
        found[:, self._kept] = found[:, self._kept] @ self._inverse.T.astype(found.dtype)
        found *= self._stretch.astype(found.dtype)
        return found

    def stretch(self, white: Array, gradients: Array) -> None:
        """Fit the scales to where chains have been: each array (N, m) by white coordinates.

        The least distance between a Gaussian's score and the posterior's, by Fisher's divergence,
        has variances sqrt(var(position) / var(gradient)).
        """
        fitted = (white.var(0) / np.maximum(gradients.var(0), 1e-12)) ** 0.25
        self._stretch = self._stretch * np.clip(fitted, 0.5, MOST_STRETCH)


def _root_of(metric: Array) -> Array:
    """Return a Cholesky factor of a metric, or of one next to it."""
    try:
        return np.asarray(linalg.cholesky(metric, lower=True))
    except linalg.LinAlgError:
        # Of waves that are entangled closely rounding may leave less than 0.
        lifted = metric + ROUNDED * np.diag(metric.diagonal())
        return np.asarray(linalg.cholesky(lifted, lower=True))


@dataclass(frozen=True)
class Samples:
    """What chains have visited: each array by trajectory and chain.

    Attributes
    ----------
    hypers : (T, C, 5) array
    densities : (T, C, W, d, d) array
    fits : (T, C) array
        Log-likelihood of the counts in nats.
    acceptance : float
        Mean probability to accept a trajectory, in [0, 1].
    """

    hypers: Array
    densities: Array
    fits: Array
    acceptance: float

    @classmethod
    def joined(cls, visits: Sequence["Samples"]) -> "Samples":
        """Return what was visited one after the other."""
        return cls(
            np.concatenate([each.hypers for each in visits]),
            np.concatenate([each.densities for each in visits]),
            np.concatenate([each.fits for each in visits]),
            float(np.mean([each.acceptance for each in visits])),
        )


class Chains:
    """Chains that walk on a posterior.

    Parameters
    ----------
    model : FieldModel
    starts : (C, m) array
    whitening : Whitening
    rng : numpy Generator
    length : float
        Of a leapfrog step, at first.
    redraws : bool
        Whether unknowns are also drawn given the field, before each trajectory of a visit: once
        it has settled to about these, or they would follow it to where it began.
    """

    def __init__(
        self, model: FieldModel, starts: Array, whitening: Whitening, rng: np.random.Generator,
        length: float = 0.2, redraws: bool = False,
    ):  # fmt: skip
        self._model = model
        self._way = Way(model)
        self._whitening = whitening
        self._rng = rng
        self._rings = Rings(model.prior, np.float64) if redraws else None
        self._memory = Memory(model) if model.prior.windows > 1 else None
        self._leaps = LEAPS
        self._origin = starts.mean(0)
        self._log_length = np.log(length)
        state = model.at(starts)
        self._density, self._fit, self._energy = state.density, state.fit, state.energy
        self._points = starts
        self._white = whitening.white(starts - self._origin)
        self._gradient = self._pull(self._white)

    @property
    def length(self) -> float:
        """Of a leapfrog step by now."""
        return float(np.exp(self._log_length))

    def _pull(self, white: Array) -> Array:
        """Return the gradient in white coordinates, in single precision: it only shows the way."""
        points = self._whitening.point(white.astype(np.float32)) + self._origin
        return self._whitening.gradient(self._way.gradient(points)).astype(np.float64)

    def adapt(self, stages: int, trajectories: int, told: Told) -> None:
        """Take some trajectories a stage; fit the length of steps, and after each the scales."""
        for stage in range(stages):
            before = self._density
            seen, _ = self._adapted(trajectories, FAST, told)
            if stage < stages - 1:
                self._rescale(before, seen)
                self._turned()

    def _adapted(
        self, trajectories: int, early: float, told: Told
    ) -> tuple[list[tuple[Array, Array]], float]:
        """Return where trajectories led, and the mean logarithm of steps of the later ones."""
        seen, lengths = [], []
        for k in range(trajectories):
            chance = self._trajectory()
            rate = early if 2 * k < trajectories else SLOW
            self._log_length += rate * (chance - ACCEPTANCE)
            seen.append((self._white, self._gradient))
            lengths.append(self._log_length)
            told(float(self._fit.mean()))
        return seen, float(np.mean(lengths[trajectories // 2 :]))

    def _rescale(self, before: Array, seen: list[tuple[Array, Array]]) -> None:
        """Fit the scales to where chains have been, once all of them are under way."""
        self._recall((self._density == before).all((1, 2, 3)))
        white, gradients = (np.concatenate(each) for each in zip(*seen, strict=True))
        self._whitening.stretch(white, gradients)

    def anew(self, most: int) -> "Chains":
        """Return chains that go on from here in coordinates made for where these are by now.

        Scales are by cell and wave there, and a wave is centred as far as reports tell it: before,
        that was what they tell at other points, and of waves alone.

        Parameters
        ----------
        most : int
            Chains, of all, that go on.
        """
        kept = slice(None, None, -(-len(self._points) // most))
        points = self._points[kept]
        state = self._model.at(points)
        hypers = points[:, -HYPERS:]
        prior = self._model.prior.centred(told_by_wave(self._model, state), hypers.mean(0))
        model = self._model.with_prior(prior)
        points = prior.point_of(state.waves, hypers)
        whitening = Whitening(model, points, ByCellAndWave)
        return Chains(model, points, whitening, self._rng, max(self.length, START), redraws=True)

    def settle(self, trajectories: int, told: Told) -> None:
        """Fit the length of steps, and take those of the later trajectories; then as many as reach.

        Trajectories are long from here on: along the longest directions a short one is a random
        walk.
        """
        _, self._log_length = self._adapted(trajectories, FAST, told)
        self._leaps = int(np.clip(REACH / self.length, LEAPS, MOST_LEAPS))

    def _recall(self, is_still: NDArray[np.bool_]) -> None:
        """Put chains that never left a bad start, or never moved, where another one is."""
        quarter = np.nanquantile(self._fit, 0.25)
        middle, upper = np.nanquantile(self._fit, [0.5, 0.75], method="higher")
        # Of few chains a lost one is in the lower quartile, which then says nothing of the others.
        spread = min(middle - quarter, SKEWED * (upper - middle))
        is_lost = ~(self._fit >= middle - LOST * spread - LOST)
        here = np.flatnonzero((self._fit >= middle) & ~is_still)
        lost = np.flatnonzero(is_lost | is_still) if len(here) else here
        for chain, other in zip(lost, self._rng.choice(here, len(lost)), strict=True):
            for name in ("_points", "_density", "_fit", "_energy"):
                getattr(self, name)[chain] = getattr(self, name)[other]

    def _turned(self) -> None:
        """Look at the same points in other white coordinates."""
        self._white = self._whitening.white(self._points - self._origin)
        self._gradient = self._pull(self._white)

    def _redraw(self) -> None:
        """Draw unknowns given the field, and the memory given maps that are known."""
        prior = self._model.prior
        hypers = self._points[:, -HYPERS:]
        amplitude = prior.spectrum(hypers).amplitude
        waves = amplitude * self._points[:, :-HYPERS].reshape(amplitude.shape)
        if self._rings is not None:
            hypers = redrawn(self._rings, waves, hypers, self._rng)
        if self._memory is not None:
            fields = Fields(waves, hypers, self._density, self._fit)
            fields = self._memory.redrawn(fields, self._rng)
            waves, hypers, self._density, self._fit = fields
        self._points = prior.point_of(waves, hypers)
        self._energy = prior.spectrum(hypers).energy(self._points) - self._fit
        self._turned()

    def _trajectory(self) -> float:
        """Go where one leads."""
        momentum = self._rng.standard_normal(self._white.shape)
        energy = self._energy + 0.5 * (momentum**2).sum(1)
        step = np.exp(self._log_length) * self._rng.uniform(1 - JITTER, 1 + JITTER)
        white, pull = self._white.copy(), self._gradient
        _stepped(momentum, -0.5 * step, pull)
        for leap in range(self._leaps):
            _stepped(white, step, momentum)
            pull = self._pull(white)
            _stepped(momentum, -(1.0 if leap < self._leaps - 1 else 0.5) * step, pull)
        points = self._origin + self._whitening.point(white)
        state = self._model.at(points)
        after = state.energy + 0.5 * (momentum**2).sum(1)
        with np.errstate(over="ignore", invalid="ignore"):
            chance = np.nan_to_num(np.exp(np.minimum(0.0, energy - after)))
        taken = self._rng.random(len(white)) < chance
        each = taken[:, None]
        self._density = np.where(each[:, :, None, None], state.density, self._density)
        self._fit = np.where(taken, state.fit, self._fit)
        self._energy = np.where(taken, state.energy, self._energy)
        self._points = np.where(each, points, self._points)
        self._white = np.where(each, white, self._white)
        self._gradient = np.where(each, pull, self._gradient)
        return float(chance.mean())

    def visit(self, trajectories: int, told: Told) -> Samples:
        """Take some trajectories, and return where they led."""
        hypers, densities, fits = [], [], []
        acceptance = 0.0
        for _ in range(trajectories):
            if self._rings is not None or self._memory is not None:
                self._redraw()
            acceptance += self._trajectory() / trajectories
            hypers.append(self._points[:, -HYPERS:])
            densities.append(self._density)
            fits.append(self._fit)
            told(float(self._fit.mean()))
        return Samples(np.stack(hypers), np.stack(densities), np.stack(fits), acceptance)


@compiled
def _stepped(places, step, direction):  # type: ignore[no-untyped-def]
    """Add a step along directions to (C, m) places, in one pass."""
    flat, along = places.ravel(), direction.ravel()
    for k in range(len(flat)):
        flat[k] += step * along[k]
