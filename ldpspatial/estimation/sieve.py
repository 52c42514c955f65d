"""Densities no rougher than the reports can tell: a sieve, chosen by cross-validation.

Plain EM fits noise: its likelihood has its maximum at a map of isolated peaks, and on the way there
some mass stays wherever nobody is. W2 pays for both, most for mass that lies far from everybody. In
place of it:

- The density is a mixture of Gaussian kernels of one width, one kernel a cell (method of sieves:
  Grenander 1981; Snyder and Miller, IEEE Trans. Nucl. Sci. 1985, for maps behind a channel).
- Weights of kernels have a Dirichlet prior of exponents 1 - SPARSITY: a kernel that explains less
  than a part of a user dies out (Figueiredo and Jain, IEEE PAMI 2002, section 4).
- Width and number of EM steps are found on the reports alone: the counts are split at random into
  folds, which for counts of independent reports is the same as splitting the reports, and each fold
  is predicted from the others. Of all widths that predict as well as the best within one standard
  error, the widest is taken (Breiman et al. 1984, section 3.4.3).
- Peaks on an even ground have no common width, and no cell there is empty. A mixture of kernels of
  all widths, without that prior, is taken where it predicts better than every single width by more
  than one standard error. The uniform map is taken where no width is better by more than two: from
  next to no information, a map that was fitted to noise is several times as far off.
- One step of plain EM on cells ends it. From a prior f it gives the expected histogram of the very
  users who reported, given their reports, and that is what a map is held against: at large epsilon
  reports say more of who was there than any smooth law does.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channel import Channel
from ldpspatial.estimation.em import Fit, Iteration, Progress
from ldpspatial.estimation.kernel_channel import ALL, WIDTHS, SmoothedChannel, tried_widths

Array = NDArray[np.float64]

SPARSITY = 0.25  # users; measured: .2 to .35 are alike (docs/recommended.md)
CROWDED = 10  # users a cell, below which there is less sparsity in proportion
FOLDS = 5
PATIENCE = 2  # marks in a row that predict no better, before a path ends
GAIN = 0.5  # nats that count as better: from mark to mark, and from width to width
SLOW = 0.1  # or, from mark to mark, this part of the path's largest gain: EM begins slowly
CLIMB = 10  # times its last gain that a path may still rise
HOPELESS = 4.0  # standard errors behind the best at which wider kernels are not tried
CHANCE = 2.0  # standard errors by which a width must be ahead of the uniform map
LEAST = 1e-300  # probability of a left-out report that the others call impossible


@dataclass(frozen=True)
class Choice:
    """Width and steps by cross-validation.

    Attributes
    ----------
    width : float
        Standard deviation of the kernels in cells; 0 for cells themselves, ``ALL``.
    steps : int
        0 for the uniform map.
    behind : float
        How many nats the choice predicts worse than the best one found.
    standard_error : float
        Of ``behind``, or half a nat where it is less.
    """

    width: float
    steps: int
    behind: float
    standard_error: float


def cross_validate(
    channel: Channel,
    counts: Array,
    max_iterations: int,
    widths: Sequence[float] = WIDTHS,
    folds: int = FOLDS,
) -> Choice:
    """Return the width and the number of steps that predict left-out reports best.

    Parameters
    ----------
    channel : Channel
    counts : array of whole numbers, shaped like ``channel.support``, checked
    max_iterations : int
    widths : cells, ascending
    folds : int >= 2

    Notes
    -----
    Widths beyond a quarter of the map are not tried. The split is random, with a seed made from the
    counts: equal counts give equal maps.
    """
    if max_iterations == 1:  # the last step is all there is time for
        return Choice(0.0, 0, 0.0, GAIN)
    parts = _split(counts, folds)
    widths = tried_widths(widths, channel)
    paths: list[_Path] = []
    best = NO_PATH
    for width in widths:
        path = _best_steps(SmoothedChannel(channel, width), parts, max_iterations - 1, best)
        paths.append(path)
        best = max(best, path, key=lambda each: each.score)
        if _is_hopeless(parts, best, path):
            break
    choices = [
        Choice(width, path.steps, *_behind(parts, best, path))
        for width, path in zip(widths, paths, strict=False)
    ]
    flat = Choice(widths[-1], 0, *_behind(parts, best, _uniform(channel, parts)))
    if flat.behind <= CHANCE * flat.standard_error:
        return flat
    if len(widths) > 1:  # without a rival: this path begins too slowly to be judged by its start
        mixed = _best_steps(SmoothedChannel(channel, ALL), parts, max_iterations - 1, NO_PATH)
        ahead, error = _behind(parts, mixed, best)
        if ahead > error:
            return Choice(ALL, mixed.steps, 0.0, error)
    return [choice for choice in choices if choice.behind <= choice.standard_error][-1]


def fit_sieve(
    channel: Channel, counts: Array, width: float, steps: int, progress: Progress | None = None
) -> Fit:
    """Take so many steps on kernels of a width and a last one on cells.

    Parameters
    ----------
    channel : Channel
    counts : array of whole numbers, shaped like ``channel.support``, checked
    width : float >= 0
    steps : int >= 0
    progress : callable (step, log-likelihood), optional
    """
    kernels = SmoothedChannel(channel, width)
    run = Iteration(kernels, counts, start=kernels.start, sparsity=_sparsity(kernels, counts))
    trace = [run.log_likelihood]
    for step in range(1, steps + 2):
        if step == steps + 1:
            run = Iteration(channel, counts, start=kernels.smooth(run.density))
        run.step()
        trace.append(run.log_likelihood)
        if progress is not None:
            progress(step, trace[-1])
    return Fit(run.density, trace, converged=True)


def _uniform(channel: Channel, parts: list[Array]) -> "_Path":
    rows, columns = channel.input_shape
    predicted = channel.forward(np.full((rows, columns), 1 / (rows * columns)))
    return _Path(0, sum(_score(part, predicted) for part in parts), [predicted] * len(parts))


def _sparsity(kernels: SmoothedChannel, counts: Array) -> float:
    if kernels.width == ALL:
        return 0.0
    cells = kernels.input_shape[0] * kernels.input_shape[1]
    return SPARSITY * min(1.0, float(counts.sum()) / (CROWDED * cells))


@dataclass(frozen=True)
class _Path:
    """The best point of a path: steps, log-likelihood of all folds, each fold's prediction."""

    steps: int
    score: float
    predictions: list[Array]


NO_PATH = _Path(0, -np.inf, [])


def _best_steps(
    channel: SmoothedChannel, parts: list[Array], most_steps: int, rival: _Path
) -> _Path:
    """Advance the EM of all folds together until the left-out reports are predicted worse.

    A path that climbs so slowly that it will not come near the rival's score ends early.
    """
    whole = np.sum(parts, axis=0)
    runs = [
        Iteration(channel, left, start=channel.start, sparsity=_sparsity(channel, left))
        for left in (whole - part for part in parts)
    ]
    # Without any report there is nothing to learn: such a run stays at the uniform density.
    taught = [run for run, part in zip(runs, parts, strict=True) if (part != whole).any()]
    best, worse, step, largest = NO_PATH, 0, 0, 0.0
    for mark in _marks(most_steps):
        for run in taught:
            for _ in range(mark - step):
                run.step()
        step = mark
        predictions = [run.predicted for run in runs]
        score = sum(_score(p, g) for p, g in zip(parts, predictions, strict=True))
        gain = score - best.score
        worse = 0 if gain > min(GAIN, SLOW * largest) else worse + 1
        if best.steps:
            largest = max(largest, gain)
        if gain > 0:
            best = _Path(mark, score, predictions)
        if worse == PATIENCE or (
            rival.steps and score + CLIMB * gain < rival.score and _is_hopeless(parts, rival, best)
        ):
            break
    return best


def _is_hopeless(parts: list[Array], rival: _Path, path: _Path) -> bool:
    behind, error = _behind(parts, rival, path)
    return behind > HOPELESS * error


def _score(part: Array, predicted: Array) -> float:
    seen = part > 0
    return float(part[seen] @ _log(predicted[seen]))


def _behind(parts: list[Array], best: _Path, other: _Path) -> tuple[float, float]:
    """Return by how much ``other`` predicts worse, and the standard error of that number.

    Less than GAIN is no difference, so the error is GAIN at least. (Paths that predict the same
    differ by rounding; and a single report tells nothing of the error.)
    """
    leads, reports = [], []
    for part, good, bad in zip(parts, best.predictions, other.predictions, strict=True):
        seen = part > 0
        leads.append(_log(good[seen]) - _log(bad[seen]))
        reports.append(part[seen])
    lead, n = np.concatenate(leads), np.concatenate(reports)
    mean = np.average(lead, weights=n)
    return float(n @ lead), max(sqrt(n @ (lead - mean) ** 2), GAIN)


def _log(predicted: Array) -> Array:
    return np.asarray(np.log(np.maximum(predicted, LEAST)))


def _marks(most: int) -> list[int]:
    """Return the numbers of steps that are compared: up to the limit, each 1.3 times the last."""
    marks = [1]
    while marks[-1] < most:
        marks.append(min(max(marks[-1] + 1, round(1.3 * marks[-1])), most))
    return marks


def _split(counts: Array, folds: int) -> list[Array]:
    """Return ``folds`` arrays of counts that sum to ``counts``: every report in one, at random."""
    whole = counts.astype(np.int64)
    seed = hashlib.sha256(np.ascontiguousarray(whole).tobytes()).digest()
    rng = np.random.default_rng(np.frombuffer(seed, np.uint32))
    parts = []
    for left in range(folds, 1, -1):
        part = rng.binomial(whole, 1 / left)
        parts.append(part.astype(np.float64))
        whole = whole - part
    return [*parts, whole.astype(np.float64)]
