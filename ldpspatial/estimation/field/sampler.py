"""Hamiltonian Monte Carlo on a field's posterior, chains in one stack.

Duane et al. 1987; Neal 2011. The mass is the Gauss-Newton metric, dense on the widest waves and the
prior's unknowns, where reports tell most and waves are most entangled, and diagonal elsewhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, ndimage

from ldpspatial.compiled import compiled
from ldpspatial.estimation.field.model import FieldModel, State
from ldpspatial.estimation.field.optimise import conjugate_gradients
from ldpspatial.estimation.field.prior import HYPERS, FieldPrior
from ldpspatial.estimation.field.unknowns import redrawn
from ldpspatial.estimation.field.way import TOGETHER, Rings, Way

Array = NDArray[np.float64]
Told = Callable[[float], None]  # sees the mean log-likelihood after each trajectory

DENSE_WAVES = 256
JITTER = 0.3  # of the length of a step, so that no orbit closes on itself
LEAPS = 14  # steps of a trajectory, at first
ACCEPTANCE = 0.85
FAST, SLOW = 1.0, 0.4  # how much of a lack of acceptance the length of steps follows
LOST = 5.0  # nats, and quartiles below the middle, that tell a chain that never left its start
MOST_STRETCH = 4.0  # of a scale, after a stage
NARROW, POWERS = 36, 3  # directions that the power method looks for, and its rounds
TOO_NARROW, TOO_LONG = 9.0, 0.25  # of a metric that should be 1: beyond it is an axis of its own
MOST_LENGTH = 70.0  # of an axis
SOLVED, MOST_GRADIENTS = 0.05, 100  # residual of the longest, and gradients for it
LOOKED_AT = 4  # points where that metric is averaged
REACH, MOST_LEAPS = 2.0, 32  # of a trajectory in such coordinates, and its steps
NEARBY = 5  # waves along a side that are centred alike


class Whitening:
    """Coordinates in which the posterior is about round.

    Parameters
    ----------
    model : FieldModel
    points : (S, m) array
        Where the metric is averaged.
    dense : int
        Waves, by frequency, among which it is dense.
    """

    def __init__(self, model: FieldModel, points: Array, dense: int = DENSE_WAVES):
        prior = model.prior
        frequencies = np.broadcast_to(prior.squared_frequencies, prior.shape).ravel()
        waves = np.argsort(frequencies, kind="stable")[:dense]
        self._kept = np.append(waves, prior.size - HYPERS + np.arange(HYPERS))
        metric = np.zeros((len(self._kept),) * 2)
        state = model.at(points)
        metric[-HYPERS:, -HYPERS:] = state.spectrum.information().mean(0)
        rough = model.single()
        for point in points.astype(np.float32):
            metric += self._information(rough, rough.at(point[None])) / len(points)
        lower = linalg.cholesky(metric + np.eye(len(metric)), lower=True)
        self._lower = lower
        self._inverse = linalg.solve_triangular(lower, np.eye(len(lower)), lower=True)
        self._scale = np.sqrt(model.scales(state).mean(0))
        self._stretch = np.ones(prior.size)
        self._axes = np.empty((0, prior.size), np.float32)
        self._lengths = np.empty(0)
        self._by = 1 / self._scale  # what coordinates are multiplied by, but for the dense ones

    def _information(self, model: FieldModel, state: State) -> Array:
        support = np.broadcast_to(model.operators.support, model.counts.shape)
        weight = np.sqrt((model.n / state.reports[0])[support])
        pushed = np.empty((len(self._kept), np.count_nonzero(support)))
        together = max(1, TOGETHER // model.prior.size)
        for first in range(0, len(self._kept), together):
            kept = self._kept[first : first + together]
            units = np.zeros((len(kept), model.prior.size), np.float32)
            units[np.arange(len(kept)), kept] = 1.0
            pushed[first : first + together] = model.jacobian(state, units)[:, support] * weight
        return np.asarray(pushed @ pushed.T)  # of a square, whatever was rounded

    def variances(self) -> Array:
        """Return (m,) variances that the metric promises."""
        found = 1 / self._scale**2
        found[self._kept] = (self._inverse**2).sum(0)
        return np.asarray(found)

    def point(self, white: Array) -> Array:
        """Return points from white coordinates."""
        white = self._along(white, self._lengths)
        found = white * self._by
        kept = white[:, self._kept] * self._stretch[self._kept]
        found[:, self._kept] = kept @ self._inverse
        return np.asarray(found)

    def white(self, points: Array) -> Array:
        """Return white coordinates of points."""
        found = points * self._scale
        found[:, self._kept] = points[:, self._kept] @ self._lower
        return self._along(found / self._stretch, 1 / self._lengths)

    def gradient(self, by_point: Array) -> Array:
        """Return a gradient by white coordinates."""
        found = by_point * self._by
        kept = by_point[:, self._kept] @ self._inverse.T
        found[:, self._kept] = kept * self._stretch[self._kept]
        return self._along(found, self._lengths)

    def _along(self, white: Array, factors: Array) -> Array:
        """Return white coordinates, the axes multiplied by factors."""
        if not len(factors):
            return white
        parts = white.astype(np.float32) @ self._axes.T
        parts *= (factors - 1).astype(np.float32)
        return np.asarray(white + parts @ self._axes)

    def find_axes(self, model: FieldModel, points: Array, rng: np.random.Generator) -> None:
        """Make the metric at some points round where it is far from it.

        Narrow directions are those of many people in a few cells, in which all waves have a part:
        by the power method (Halko, Martinsson and Tropp 2011). Along the longest ones an unknown of
        the prior moves and the waves make up for it, so that reports stay as likely: these are
        spanned by the inverse of the metric times the unknowns.
        """
        self._drop_axes()
        rough = model.single()
        states = [rough.at(point[None].astype(np.float32)) for point in points]

        def apply(steps: Array) -> Array:
            return self._metric(rough, states, steps)

        narrow = rng.standard_normal((NARROW, model.prior.size))
        for _ in range(POWERS):
            narrow = _orthonormal(narrow)
            before, narrow = narrow, apply(narrow)
        values, vectors = linalg.eigh(narrow @ before.T)
        narrow = vectors.T @ before
        self._keep(narrow, values)  # to solve for the others in few steps
        unknowns = np.eye(HYPERS, model.prior.size, model.prior.size - HYPERS)
        right = self._along(unknowns, self._lengths)
        long = conjugate_gradients(apply, right, np.ones_like(right), SOLVED, MOST_GRADIENTS)
        long = self._along(long, self._lengths)
        self._drop_axes()
        both = _orthonormal(np.concatenate([narrow, long]))
        values, vectors = linalg.eigh(apply(both) @ both.T)
        self._keep(vectors.T @ both, values)

    def _drop_axes(self) -> None:
        self._axes, self._lengths = self._axes[:0], self._lengths[:0]

    def _keep(self, directions: Array, values: Array) -> None:
        """Keep as axes those directions of which the metric is far from 1."""
        kept = (values > TOO_NARROW) | (values < TOO_LONG)
        self._axes = np.ascontiguousarray(directions[kept], np.float32)
        self._lengths = 1 / np.sqrt(np.maximum(values[kept], MOST_LENGTH**-2))

    def _metric(self, model: FieldModel, states: Sequence[State], white: Array) -> Array:
        """Return the mean metric at states times white coordinates."""
        steps = self.point(white).astype(np.float32)
        found = np.zeros(white.shape)
        together = max(1, TOGETHER // model.prior.size)
        for state in states:
            for first in range(0, len(steps), together):
                some = slice(first, first + together)
                found[some] += model.metric(state, steps[some])
        return self.gradient(found / len(states))

    def stretch(self, white: Array, gradients: Array) -> None:
        """Fit the scales to where chains have been: each array (N, m) by white coordinates.

        The least distance between a Gaussian's score and the posterior's, by Fisher's divergence,
        has variances sqrt(var(position) / var(gradient)).
        """
        white = self._along(white, self._lengths)
        gradients = self._along(gradients, 1 / self._lengths)
        self._drop_axes()
        fitted = (white.var(0) / np.maximum(gradients.var(0), 1e-12)) ** 0.25
        self._stretch = self._stretch * np.clip(fitted, 0.5, MOST_STRETCH)
        self._by = self._stretch / self._scale


def _orthonormal(rows: Array) -> Array:
    return np.asarray(linalg.qr(rows.T, mode="economic")[0].T)


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
        Whether unknowns are also drawn given the field, before each trajectory.
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
        points = self._whitening.point(white)
        points += self._origin
        return self._whitening.gradient(self._way.gradient(points))

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

    def anew(self, plain: FieldPrior, most: int) -> "Chains":
        """Return chains that go on from here in coordinates made for where these are by now.

        A wave is centred as far as chains agree on it, which is what reports tell of it: the
        metric before was that of other points, and of each wave by itself.

        Parameters
        ----------
        plain : FieldPrior
            The prior in its own coordinates.
        most : int
            Chains, of all, that go on.
        """
        state = self._model.at(self._points)
        hypers = self._points[:, -HYPERS:]
        middle = hypers.mean(0)
        before = plain.spectrum(middle[None]).amplitude[0] ** 2
        left_open = ndimage.uniform_filter(
            state.waves.var(0) / before, (0, NEARBY, NEARBY), mode="nearest"
        )
        prior = plain.centred(1 - np.clip(left_open, 0.0, 1.0), middle)
        kept = slice(None, None, -(-len(hypers) // most))
        points = prior.point_of(state.waves, hypers)[kept]
        model = self._model.with_prior(prior)
        whitening = Whitening(model, points[[0, -1]])
        return Chains(model, points, whitening, self._rng, self.length, redraws=True)

    def settle(self, stages: int, trajectories: int, told: Told) -> None:
        """Adapt to the axes of the metric where chains are, and again to those where these lead.

        Trajectories are long from here on: along the longest axes a short one is a random walk.
        """
        for stage in range(stages):
            looked_at = self._points[:: max(1, len(self._points) // LOOKED_AT)]
            self._whitening.find_axes(self._model, looked_at, self._rng)
            self._turned()
            self._reach()
            before = self._density
            seen, log_length = self._adapted(trajectories, SLOW, told)
            if stage < stages - 1:
                self._rescale(before, seen)
        self._log_length = log_length
        self._reach()

    def _reach(self) -> None:
        self._leaps = int(np.clip(REACH / self.length, LEAPS, MOST_LEAPS))

    def _recall(self, is_still: NDArray[np.bool_]) -> None:
        """Put chains that never left a bad start, or never moved, where another one is."""
        quarter, middle = np.nanquantile(self._fit, [0.25, 0.5])
        is_lost = ~(self._fit >= middle - LOST * (middle - quarter) - LOST)
        here = np.flatnonzero((self._fit >= middle) & ~is_still)
        lost = np.flatnonzero(is_lost | is_still) if len(here) else here
        for chain, other in zip(lost, self._rng.choice(here, len(lost)), strict=True):
            for name in ("_points", "_density", "_fit", "_energy"):
                getattr(self, name)[chain] = getattr(self, name)[other]

    def _turned(self) -> None:
        """Look at the same points in other white coordinates."""
        self._white = self._whitening.white(self._points - self._origin)
        self._gradient = self._pull(self._white)

    def _redraw(self, rings: Rings) -> None:
        """Draw the unknowns given the field: maps stay, their coordinates do not."""
        prior = self._model.prior
        hypers = self._points[:, -HYPERS:]
        amplitude = prior.spectrum(hypers).amplitude
        waves = amplitude * self._points[:, :-HYPERS].reshape(amplitude.shape)
        hypers = redrawn(rings, waves, hypers, self._rng)
        self._points = prior.point_of(waves, hypers)
        self._energy = prior.spectrum(hypers).energy(self._points) - self._fit
        self._turned()

    def _trajectory(self) -> float:
        if self._rings is not None:
            self._redraw(self._rings)
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
