"""Left-out reports predicted by EM on the others, to choose among models by cross-validation.

The counts are split at random into folds, which for counts of independent reports is the same as
splitting the reports, and each fold is predicted from the others.
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.protocol import Channel
from ldpspatial.channels.smooth import SmoothedChannel
from ldpspatial.estimation.counts import generator_of
from ldpspatial.estimation.em import Iteration

Array = NDArray[np.float64]

PATIENCE = 2  # marks in a row that predict no better, before a path ends
GAIN = 0.5  # nats that count as better: from mark to mark, and from model to model
SLOW = 0.1  # or, from mark to mark, this fraction of the path's largest gain: EM begins slowly
CLIMB = 10  # times its last gain that a path may still rise
HOPELESS = 4.0  # standard errors behind the best at which a model is given up
CROWDED = 10  # users a cell, below which there is less sparsity in proportion
LEAST = 1e-300  # probability of a left-out report that the others call impossible


@dataclass(frozen=True)
class Prediction:
    """How well a model predicts, at its best number of steps.

    Attributes
    ----------
    steps : int
        0 for the uniform map.
    score : float
        Log-likelihood of all folds, each as it is predicted from the others.
    folds : list of array
        The distribution of reports that is predicted for each fold.
    is_cut : bool
        Whether the limit of steps ended it, rather than a worse prediction.
    """

    steps: int
    score: float
    folds: list[Array]
    is_cut: bool = False


NOTHING = Prediction(0, -np.inf, [])


def split(counts: Array, folds: int) -> list[Array]:
    """Return ``folds`` arrays of counts that sum to ``counts``: every report in one, at random."""
    rng = generator_of(counts)
    whole = counts.astype(np.int64)
    parts = []
    # Binomials with 1 / left of what remains, in turn, are a multinomial with equal shares.
    for left in range(folds, 1, -1):
        part = rng.binomial(whole, 1 / left)
        parts.append(part.astype(np.float64))
        whole = whole - part
    return [*parts, whole.astype(np.float64)]


def kernel_iteration(kernels: SmoothedChannel, counts: Array, sparsity: float) -> Iteration:
    """Return EM on weights of kernels, at their start, with so many users of sparsity."""
    cells = kernels.input_shape[0] * kernels.input_shape[1]
    # At a sparsity of 4, the largest, at most .4 of the mean users a kernel: some always live.
    pruned = sparsity * min(1.0, float(counts.sum()) / (CROWDED * cells))
    return Iteration(kernels, counts, start=kernels.start, sparsity=pruned)


def best_steps(
    kernels: SmoothedChannel,
    parts: list[Array],
    most_steps: int,
    rival: Prediction,
    sparsity: float,
) -> Prediction:
    """Advance the EM of all folds together until the left-out reports are predicted worse.

    A path that climbs so slowly that it will not come near the rival's score ends early.
    """
    whole = np.sum(parts, axis=0)
    runs = [kernel_iteration(kernels, whole - part, sparsity) for part in parts]
    # Without any report there is nothing to learn: such a run stays at the uniform density.
    taught = [run for run, part in zip(runs, parts, strict=True) if (part != whole).any()]
    best = NOTHING
    worse = 0
    step = 0
    largest = 0.0
    # Here every taught run has taken `step` steps, and `best` is the best mark so far.
    for mark in _marks(most_steps):
        for run in taught:
            for _ in range(mark - step):
                run.step()
        step = mark
        folds = [run.predicted for run in runs]
        score = sum(_score(part, fold) for part, fold in zip(parts, folds, strict=True))
        gain = score - best.score
        worse = 0 if gain > min(GAIN, SLOW * largest) else worse + 1
        # The first gain is from NOTHING, infinite: it is not one of the path's.
        if best.steps:
            largest = max(largest, gain)
        if gain > 0:
            best = Prediction(mark, score, folds)
        if mark == most_steps:  # fewer steps than a mark later: what they gained says nothing
            break
        if worse == PATIENCE or (
            rival.steps and score + CLIMB * gain < rival.score and is_hopeless(parts, rival, best)
        ):
            return best
    return replace(best, is_cut=True)


def predict_uniform(channel: Channel, parts: list[Array]) -> Prediction:
    """Return how well the uniform map predicts."""
    rows, columns = channel.input_shape
    predicted = channel.forward(np.full((rows, columns), 1 / (rows * columns)))
    return Prediction(0, sum(_score(part, predicted) for part in parts), [predicted] * len(parts))


def is_hopeless(parts: list[Array], rival: Prediction, other: Prediction) -> bool:
    """Tell whether ``other`` is too far behind for similar models to be worth trying."""
    behind, error = lead(parts, rival, other)
    return behind > HOPELESS * error


def _score(part: Array, predicted: Array) -> float:
    seen = part > 0
    return float(part[seen] @ _log(predicted[seen]))


def lead(parts: list[Array], best: Prediction, other: Prediction) -> tuple[float, float]:
    """Return by how much ``other`` predicts worse, and the standard error of that number.

    Less than GAIN is not a difference, so the error is GAIN at least. (Paths that predict the same
    differ by rounding; and a single report tells nothing of the error.)
    """
    leads = []
    reports = []
    for part, good, bad in zip(parts, best.folds, other.folds, strict=True):
        seen = part > 0
        leads.append(_log(good[seen]) - _log(bad[seen]))
        reports.append(part[seen])
    ahead = np.concatenate(leads)
    n = np.concatenate(reports)
    mean = np.average(ahead, weights=n)
    # Reports are independent, so the variances of their paired differences add up.
    return float(n @ ahead), max(sqrt(n @ (ahead - mean) ** 2), GAIN)


def _log(predicted: Array) -> Array:
    return np.asarray(np.log(np.maximum(predicted, LEAST)))


def _marks(most: int) -> list[int]:
    """Return the numbers of steps that are compared: up to the limit, each 1.3 times the last."""
    marks = [1]
    while marks[-1] < most:
        # 1.3 rounds to 1: without the + 1 it would stay there.
        marks.append(min(max(marks[-1] + 1, round(1.3 * marks[-1])), most))
    return marks
