"""The mode of a field's posterior, and Gaussians around it that are as close as can be.

Newton's method with conjugate gradients on the Gauss-Newton metric. The counts are scaled down
first and up in stages: from far away the path to the mode of many counts is long and curved, and
the finder would stop on it early. Metric Gaussian variational inference: Knollmueller and Ensslin
2019.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.field.model import FieldModel, State
from ldpspatial.estimation.field.prior import HYPERS
from ldpspatial.estimation.field.scales import Operator, by_cell_and_wave, by_wave

Array = NDArray[np.float64]

FEWEST = 3_000  # reports of the first stage
STAGE = 5.0  # times as many in each further one
ROUGH = 2.0  # nats that are not worth another step on the way
ROUGHLY, CLOSELY = 0.3, 0.1  # residuals, relative to the first, to which steps are solved
FARTHEST = 1.5  # standard deviations that the unknowns of the prior move in one step


def conjugate_gradients(
    apply: Operator, right: Array, nearly: Operator, tolerance: float, most: int
) -> Array:
    """Solve a stack of positive definite systems.

    Parameters
    ----------
    apply : callable
        From (S, m) to (S, m).
    right : (S, m) array
    nearly : callable
        About the inverse of that, positive definite.
    tolerance : float
        Residual that is enough, relative to the first.
    most : int
        Steps.
    """
    found = np.zeros_like(right)
    residual = right.copy()
    scaled = nearly(residual)
    direction = scaled.copy()
    size = first = (residual * scaled).sum(1, keepdims=True)
    for _ in range(most):
        image = apply(direction)
        length = size / np.maximum((direction * image).sum(1, keepdims=True), 1e-300)
        found += length * direction
        residual -= length * image
        scaled = nearly(residual)
        before, size = size, (residual * scaled).sum(1, keepdims=True)
        if (size <= tolerance**2 * first).all():
            break
        direction = scaled + size / np.maximum(before, 1e-300) * direction
    return found


def _metric(model: FieldModel, points: Array) -> Operator:
    """Return the metric at points, in numbers of half the length: it only shows the way."""
    rough = model.single()
    state = rough.at(points.astype(np.float32))

    def apply(steps: Array) -> Array:
        return rough.metric(state, steps.astype(np.float32)).astype(np.float64)

    return apply


@dataclass(frozen=True)
class Search:
    """How far a mode is looked for.

    Attributes
    ----------
    steps : int
        Of Newton's method, at most.
    gain : float
        Nats below which a step was the last.
    unknowns_free : bool
        Whether the unknowns of the prior move too.
    tolerance : float
    most_gradients : int
        Of conjugate gradients.
    nearly : callable
        From model and state: about the inverse of the metric. By cell as well steps come to their
        ends sooner. Where the unknowns move too that leads them too far: on high information maps
        were 1.1 times as far off when they were asked for alone.
    """

    steps: int = 25
    gain: float = 0.5
    unknowns_free: bool = False
    tolerance: float = CLOSELY
    most_gradients: int = 150
    nearly: Callable[[FieldModel, State], Operator] = by_wave


def minimise(
    model: FieldModel, start: Array, offsets: Array, search: Search
) -> tuple[Array, float]:
    """Return the point whose mean energy over some offsets from it is least, and that energy.

    Parameters
    ----------
    model : FieldModel
    start : (m,) array
    offsets : (S, m) array
        Zeros for the mode.
    search : Search
    """
    free = np.ones_like(start)
    if not search.unknowns_free:
        free[-HYPERS:] = 0.0
    point = start
    state = model.at(point + offsets)
    energy = state.energy.mean()
    for _ in range(search.steps):
        applied = _metric(model, point + offsets)

        def metric(steps: Array, applied: Operator = applied) -> Array:
            """Apply the mean metric to what is free, and nothing to the rest."""
            spread = np.broadcast_to(steps * free, offsets.shape)
            return np.asarray(applied(spread).mean(0, keepdims=True) * free + steps * (1 - free))

        gradient = model.gradient(point + offsets, state).mean(0) * free
        nearly = search.nearly(model, state)
        step = conjugate_gradients(
            metric, -gradient[None], nearly, search.tolerance, search.most_gradients
        )[0]
        promised = -(gradient @ step)
        length = min(1.0, FARTHEST / max(np.abs(step[-HYPERS:]).max(), 1e-9))
        while True:
            tried = model.at(point + length * step + offsets)
            change = energy - tried.energy.mean()
            if change > 1e-4 * length * promised or length < 1e-3:
                break
            length /= 2
        if not change > 0:
            break
        point, state, energy = point + length * step, tried, energy - change
        if change < search.gain:
            break
    return point, float(energy)


def mode(model: FieldModel, start: Array, rough: bool = False) -> Array:
    """Return the mode of the waves, the prior's unknowns held at their start.

    ``rough``: whether steps on the way are solved roughly.
    """
    nowhere = np.zeros((1, len(start)))
    share = min(1.0, FEWEST / float(model.n.mean()))
    point = start
    while True:
        tolerance = ROUGHLY if rough and share < 1.0 else CLOSELY
        search = Search(gain=ROUGH, tolerance=tolerance, nearly=by_cell_and_wave)
        point, _ = minimise(model.tempered(share), point, nowhere, search)
        if share == 1.0:
            return point
        share = min(1.0, share * STAGE)


@dataclass(frozen=True)
class Gaussian:
    """Points that stand for a Gaussian around a centre.

    Attributes
    ----------
    centre : (m,) array
    offsets : (2 k, m) array
        Pairs of opposite ones.
    settled : bool
        Whether it moved no more.
    """

    centre: Array
    offsets: Array
    settled: bool


def variational(
    model: FieldModel, start: Array, rng: np.random.Generator, pairs: int, final: int,
    rounds: int = 6, rough: bool = False,
) -> Gaussian:  # fmt: skip
    """Return the Gaussian, with the metric at its centre, that is closest to the posterior.

    ``rough``: whether steps to it are solved roughly.
    """
    size = len(start)
    normal = rng.standard_normal((final, size))
    noise = rng.standard_normal((final, *model.counts.shape))

    def draw(centre: Array, number: int, tolerance: float) -> Array:
        state = model.at(centre[None])
        residual = model.draw_residual(state, normal[:number], noise[:number])
        apply = _metric(model, centre[None])
        nearly = by_wave(model, state)
        found = conjugate_gradients(apply, residual, nearly, tolerance, 150)
        return np.concatenate([found, -found])

    centre = start
    last = np.inf
    settled = False
    tolerance = ROUGHLY if rough else CLOSELY
    search = Search(steps=6, gain=ROUGH, unknowns_free=True, tolerance=tolerance)
    for turn in range(rounds):
        before = centre[-HYPERS:]
        offsets = draw(centre, pairs, CLOSELY)
        centre, energy = minimise(model, centre, offsets, search)
        settled = bool(np.abs(centre[-HYPERS:] - before).max() < 0.08 and abs(last - energy) < 3)
        if turn > 1 and settled:
            break
        last = energy
    offsets = draw(centre, final, 0.05)
    last_search = Search(steps=4, unknowns_free=True, tolerance=tolerance)
    centre, _ = minimise(model, centre, offsets, last_search)
    return Gaussian(centre, offsets, settled)
