"""Hamiltonian Monte Carlo on a field's posterior, chains in one stack.

Duane et al. 1987; Neal 2011. The mass is the Gauss-Newton metric, dense on the widest waves and the
prior's unknowns, where reports tell most and waves are most entangled, and diagonal elsewhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ldpspatial.compiled import compiled
from ldpspatial.estimation.field.model import FieldModel, State
from ldpspatial.estimation.field.prior import HYPERS
from ldpspatial.estimation.field.way import TOGETHER, Way

Array = NDArray[np.float64]
Told = Callable[[float], None]  # sees the mean log-likelihood after each trajectory

DENSE_WAVES = 256
JITTER = 0.3  # of the length of a step, so that no orbit closes on itself
LEAPS = 14  # steps of a trajectory
ACCEPTANCE = 0.85
FAST, SLOW = 1.0, 0.4  # how much of a lack of acceptance the length of steps follows
LOST = 5.0  # nats, and quartiles below the middle, that tell a chain that never left its start
MOST_STRETCH = 4.0  # of a scale, after a stage


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
        found = white * self._by
        kept = white[:, self._kept] * self._stretch[self._kept]
        found[:, self._kept] = kept @ self._inverse
        return np.asarray(found)

    def white(self, points: Array) -> Array:
        """Return white coordinates of points."""
        found = points * self._scale
        found[:, self._kept] = points[:, self._kept] @ self._lower
        return np.asarray(found / self._stretch)

    def gradient(self, by_point: Array) -> Array:
        """Return a gradient by white coordinates."""
        found = by_point * self._by
        kept = by_point[:, self._kept] @ self._inverse.T
        found[:, self._kept] = kept * self._stretch[self._kept]
        return np.asarray(found)

    def stretch(self, white: Array, gradients: Array) -> None:
        """Fit the scales to where chains have been: each array (N, m) by white coordinates.

        The least distance between a Gaussian's score and the posterior's, by Fisher's divergence,
        has variances sqrt(var(position) / var(gradient)).
        """
        fitted = (white.var(0) / np.maximum(gradients.var(0), 1e-12)) ** 0.25
        self._stretch = self._stretch * np.clip(fitted, 0.5, MOST_STRETCH)
        self._by = self._stretch / self._scale


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
    """

    def __init__(
        self, model: FieldModel, starts: Array, whitening: Whitening, rng: np.random.Generator,
        length: float = 0.2,
    ):  # fmt: skip
        self._model = model
        self._way = Way(model)
        self._whitening = whitening
        self._rng = rng
        self._origin = starts.mean(0)
        self._log_length = np.log(length)
        state = model.at(starts)
        self._density, self._fit, self._energy = state.density, state.fit, state.energy
        self._points = starts
        self._white = whitening.white(starts - self._origin)
        self._gradient = self._pull(self._white)

    def _pull(self, white: Array) -> Array:
        """Return the gradient in white coordinates, in single precision: it only shows the way."""
        points = self._whitening.point(white)
        points += self._origin
        return self._whitening.gradient(self._way.gradient(points))

    def adapt(self, stages: int, trajectories: int, told: Told) -> None:
        """Take some trajectories a stage; fit the length of steps, and after each the scales."""
        for stage in range(stages):
            seen = []
            before = self._points
            for k in range(trajectories):
                chance = self._trajectory()
                rate = FAST if 2 * k < trajectories else SLOW
                self._log_length += rate * (chance - ACCEPTANCE)
                seen.append((self._white, self._gradient))
                told(float(self._fit.mean()))
            if stage < stages - 1:
                self._recall((self._points == before).all(1))
                white, gradients = (np.concatenate(each) for each in zip(*seen, strict=True))
                self._whitening.stretch(white, gradients)
                self._turned()

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

    def _trajectory(self) -> float:
        momentum = self._rng.standard_normal(self._white.shape)
        energy = self._energy + 0.5 * (momentum**2).sum(1)
        step = np.exp(self._log_length) * self._rng.uniform(1 - JITTER, 1 + JITTER)
        white, pull = self._white.copy(), self._gradient
        _stepped(momentum, -0.5 * step, pull)
        for leap in range(LEAPS):
            _stepped(white, step, momentum)
            pull = self._pull(white)
            _stepped(momentum, -(1.0 if leap < LEAPS - 1 else 0.5) * step, pull)
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
