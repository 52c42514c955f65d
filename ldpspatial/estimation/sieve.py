"""Densities no rougher than the reports can tell: a sieve, chosen by cross-validation.

Plain EM fits noise: its likelihood has its maximum at a map of isolated peaks, and on the way there
some mass stays wherever nobody is. W2 pays for both, most for mass that lies far from everybody. In
its place:

- The density is a mixture of Gaussian kernels of one width, one kernel a cell (method of sieves:
  Grenander 1981; Snyder and Miller, IEEE Trans. Nucl. Sci. 1985, for maps behind a channel).
- Weights of kernels have a Dirichlet prior of exponents 1 - sparsity: a kernel that explains fewer
  users than that dies out (Figueiredo and Jain, IEEE PAMI 2002, section 4).
- Width, sparsity and number of EM steps are those that predict left-out reports best
  (`ldpspatial/estimation/folds.py`). Of all widths that do as well as the best within one standard
  error, the widest is taken (Breiman et al. 1984, section 3.4.3), and of all sparsities the least:
  too much of it takes the few people around a crowd for noise.
- Peaks on a flat background have no common width, and no cell there is empty. A mixture of kernels
  of all widths, without that prior, is taken where it predicts better than the best width by more
  than one standard error, and more sparsity does not do so in turn. The uniform map is taken where
  the best width is not better by more than two: with next to no information, a map that was fitted
  to noise is several times as far off.
- One step of plain EM on cells ends it. From a prior f it gives the expected histogram of the very
  users who reported, given their reports, and that is what a map is compared with: at large epsilon
  reports say more of who was there than any smooth law does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.channels.protocol import Channel
from ldpspatial.channels.smooth import ALL, WIDTHS, SmoothedChannel, tried_widths
from ldpspatial.estimation.counts import check_counts
from ldpspatial.estimation.em import Fit, Iteration
from ldpspatial.estimation.folds import (
    GAIN,
    NOTHING,
    Prediction,
    best_steps,
    is_hopeless,
    kernel_iteration,
    lead,
    predict_uniform,
    split,
)
from ldpspatial.estimation.result import Estimate, Estimator, Progress
from ldpspatial.estimation.smoothing import Smoother
from ldpspatial.validate import callback, whole_number

CROSS_VALIDATED = "cross-validated"
Array = NDArray[np.float64]

SPARSITY, *SPARSER = 0.25, 0.5, 1.0, 2.0, 4.0  # users
FOLDS = 5
CHANCE = 2.0  # standard errors by which a width must be ahead of the uniform map


@dataclass(frozen=True)
class Kernels:
    """The kernels that an estimate is made of.

    Attributes
    ----------
    width : float
        Standard deviation of the kernels in cells; 0 for cells themselves, infinite for kernels of
        all widths at once.
    sparsity : float
        Users that each kernel had to explain, on maps with ten users a cell and more; fewer in
        proportion on others. With 0 no kernel had to.
    """

    width: float
    sparsity: float


@dataclass(frozen=True)
class Sieve(Estimator):
    """A density as smooth and as empty as the reports say, by predicting left-out ones.

    Attributes
    ----------
    max_iterations : int >= 1
        Steps of each fit that is compared. Where more might have led to another choice, the
        estimate says ``converged=False``.
    """

    kind = "sieve"

    max_iterations: int = 10_000

    def __post_init__(self) -> None:
        limit = whole_number("max_iterations", self.max_iterations, 1)
        object.__setattr__(self, "max_iterations", limit)

    @property
    def name(self) -> str:
        """The one rule that it has."""
        return CROSS_VALIDATED

    def fit(
        self, channel: Channel, counts: ArrayLike, progress: Progress | None = None
    ) -> Estimate:
        """Choose width, sparsity and steps, and fit; see :meth:`Estimator.fit`."""
        checked = check_counts(channel, counts)
        callback("progress", progress)
        choice = cross_validate(channel, checked, self.max_iterations)
        fit = fit_sieve(channel, checked, choice.width, choice.steps, choice.sparsity, progress)
        kernels = Kernels(choice.width, choice.sparsity)
        return replace(fit, converged=not choice.is_cut).estimate(channel, checked, self, kernels)

    @classmethod
    def named(cls, name: str, smoothing: "str | Smoother | None", max_iterations: int) -> Estimator:
        """Return the sieve with this limit; see :meth:`Estimator.named`."""
        found = cls(max_iterations)
        found.check_smoothing(smoothing)
        return found

    @classmethod
    def restored(
        cls, name: str, facts: Mapping[str, Any], shape: tuple[int, ...]
    ) -> tuple[Estimator, Any]:
        """Return the sieve with kernels that it may have found."""
        width = float(facts["width"])
        sparsity = float(facts["sparsity"])
        if width == ALL:
            is_found = sparsity == 0
        else:
            is_found = width in tried_widths(WIDTHS, shape)
            is_found &= sparsity in (SPARSITY, *SPARSER)
        if not is_found or int(facts["iterations"]) < 1 or facts.get("smoothing", "none") != "none":
            raise ValueError("no such kernels are ever found")
        return cls(), Kernels(width, sparsity)


@dataclass(frozen=True)
class Choice:
    """What cross-validation has found.

    Attributes
    ----------
    width : float
        Standard deviation of the kernels in cells; 0 for cells themselves, ``ALL``.
    steps : int
        0 for the uniform map.
    sparsity : float
        Users that a kernel has to explain, or it dies out.
    behind : float
        How many nats the width predicts worse than the best one.
    standard_error : float
        Of ``behind``, or half a nat where it is less.
    is_cut : bool
        Whether more steps might have led to another choice.
    """

    width: float
    steps: int
    sparsity: float
    behind: float
    standard_error: float
    is_cut: bool = False


def cross_validate(
    channel: Channel,
    counts: Array,
    max_iterations: int,
    widths: Sequence[float] = WIDTHS,
    folds: int = FOLDS,
) -> Choice:
    """Return width, steps and sparsity that predict left-out reports best.

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
        return Choice(0.0, 0, SPARSITY, 0.0, GAIN, is_cut=True)
    parts = split(counts, folds)
    most = max_iterations - 1  # one is kept for the last step, on cells
    widths = tried_widths(widths, channel.input_shape)
    singles = _single_widths(channel, parts, most, widths)
    best = max(singles, key=_score)
    behind, error = lead(parts, best, predict_uniform(channel, parts))
    if behind <= CHANCE * error:
        # Kernels of every width begin at the uniform map: with no step any may be named.
        return Choice(widths[-1], 0, SPARSITY, behind, error, _any_cut(singles))
    # The one-standard-error rule (Breiman et al. 1984, section 3.4.3), wide kernels being simpler.
    widest = [k for k, each in enumerate(singles) if _is_near(parts, best, each)][-1]
    kernels = SmoothedChannel(channel, widths[widest])
    sparser = _sparser(kernels, parts, most, singles[widest])
    sparsity = _least(parts, sparser)
    is_cut = _any_cut([*singles, *sparser.values()])
    if len(widths) > 1:  # without a rival: this path begins too slowly to be judged by its start
        mixed = best_steps(SmoothedChannel(channel, ALL), parts, most, NOTHING, 0.0)
        is_cut |= mixed.is_cut
        # Ahead of the best width by more than one standard error, and not as far behind the sparse.
        if not _is_near(parts, mixed, best) and _is_near(parts, sparser[sparsity], mixed):
            return Choice(ALL, mixed.steps, 0.0, 0.0, GAIN, is_cut)
    behind, error = lead(parts, best, singles[widest])
    return Choice(widths[widest], sparser[sparsity].steps, sparsity, behind, error, is_cut)


def _single_widths(
    channel: Channel, parts: list[Array], most_steps: int, widths: Sequence[float]
) -> list[Prediction]:
    """Return the predictions of each width, up to the first hopeless one."""
    found: list[Prediction] = []
    for width in widths:
        rival = max(found, key=_score, default=NOTHING)
        kernels = SmoothedChannel(channel, width)
        found.append(best_steps(kernels, parts, most_steps, rival, SPARSITY))
        if is_hopeless(parts, max(found, key=_score), found[-1]):
            break
    return found


def _sparser(
    kernels: SmoothedChannel, parts: list[Array], most_steps: int, least: Prediction
) -> dict[float, Prediction]:
    """Return the predictions by sparsity, up to the first that is worse than the last."""
    found = {SPARSITY: least}
    for tried in SPARSER:
        last = found[max(found)]
        found[tried] = best_steps(kernels, parts, most_steps, last, tried)
        if found[tried].score < last.score:
            break
    return found


def _least(parts: list[Array], found: dict[float, Prediction]) -> float:
    """Return the least sparsity that predicts as well as the best within one standard error."""
    best = found[max(found, key=lambda sparsity: (found[sparsity].score, sparsity))]
    # In the order in which they were tried, which is ascending.
    return next(sparsity for sparsity, each in found.items() if _is_near(parts, best, each))


def _is_near(parts: list[Array], best: Prediction, other: Prediction) -> bool:
    """Tell whether ``other`` predicts as well as the best one within one standard error."""
    behind, error = lead(parts, best, other)
    return behind <= error


def _any_cut(predictions: Sequence[Prediction]) -> bool:
    return any(each.is_cut for each in predictions)


def _score(prediction: Prediction) -> float:
    return prediction.score


def fit_sieve(
    channel: Channel,
    counts: Array,
    width: float,
    steps: int,
    sparsity: float,
    progress: Progress | None = None,
) -> Fit:
    """Take ``steps`` steps on kernels of a width and a last one on cells.

    Parameters
    ----------
    channel : Channel
    counts : array of whole numbers, shaped like ``channel.support``, checked
    width : float >= 0
    steps : int >= 0
    sparsity : float >= 0, users
    progress : callable (step, log-likelihood), optional
    """
    kernels = SmoothedChannel(channel, width)
    run = kernel_iteration(kernels, counts, sparsity)
    trace = [run.log_likelihood]
    for step in range(1, steps + 2):
        if step == steps + 1:
            # Without the prior, which is for kernels: what is wanted now are expected users.
            run = Iteration(channel, counts, start=kernels.smooth(run.density))
        run.step()
        trace.append(run.log_likelihood)
        if progress is not None:
            progress(step, trace[-1])
    return Fit(run.density, trace, converged=True)
