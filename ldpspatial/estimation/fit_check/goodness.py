"""Whether counts can have come from a channel at all.

The check looks at what no density can explain (:mod:`.unexplained`), whose law hardly depends on
where people are. These questions are asked of it:

- ``unrandomised``: is a share of the reports the true cells of the people? One sum of counts.
- ``patterns``, ``spots``: does a share have one of the shapes of :mod:`.misfits`? The largest of
  many sums, whose joint law is normal with a known covariance. The few patterns are asked by
  themselves: among a hundred spots they would have to stand out more.
- ``rest``: is the sum of squares too large? It sees what has no shape, with less power.
- ``deficit`` or ``holes``: are there fewer reports than people can be too few for
  (:mod:`.deficits`)? Its law is a bound, so it errs on the side of no alarm. Where outputs are more
  than cells it is ``holes``, and where they are not, ``deficit``, which is then the only question.

Each has a weight, and the p-value is that of the smallest weighted one, as if they were
independent. An alarm means that the reports were not drawn from this table: another epsilon or
radius on the devices, unrandomised or forged reports, or reports of several collections mixed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ldpspatial.channels.protocol import Channel, is_conditional
from ldpspatial.errors import InputError
from ldpspatial.estimation.counts import generator_of
from ldpspatial.estimation.em import expectation_maximisation
from ldpspatial.estimation.fit_check.deficits import deficit, holes
from ldpspatial.estimation.fit_check.misfits import BROAD, PATTERNS, SPOTS, shapes
from ldpspatial.estimation.fit_check.tails import gamma_tail, least_of_many, upper_tail
from ldpspatial.estimation.fit_check.unexplained import Unexplained
from ldpspatial.estimation.result import Estimate
from ldpspatial.estimation.stopping import LikelihoodGain
from ldpspatial.validate import instance, number_in

Array = NDArray[np.float64]

LEAST_REPORTS = 20  # fewer have no law that is near any of those below
MANY_REPORTS = 200  # in a sum, whose variance the pilot then foretells
PILOT_GAIN = 0.2  # nats a step, at which EM stops: the pilot sets no more than variances
PILOT_STEPS = 300

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "unrandomised": 0.35,
        "patterns": 0.35,
        "spots": 0.1,
        "rest": 0.1,
        "deficit": 0.05,
        "holes": 0.05,
    }
)
UNNAMED = "no shape that is known"
TOO_FEW = "too few reports where nobody is"

SIMULATED = 200  # collections under the pilot, where the channel is small
SIMULATED_LARGE = 10  # where it is not, and each takes about as long as a map
SIMULATED_HUGE = 5
HUGE_SIDE = 64  # cells of a side, beyond which each takes a second and more
STILL_SEEN = 0.02  # of a direction's norm, below which densities explain it
LEAST_DIMENSIONS = 0.5  # expected sum of squares below which nothing is left
LEAST_HOLES = 50  # collections from which the law of the holes is known
LEAST_EXPECTED = 5.0  # reports in an output cell, for the deficit: fewer are far from normal

LEVEL_OF_SHARE = 0.95
FIRST_ORDER = 0.25  # of a share, by which its estimate may be off where it is not small


@dataclass(frozen=True)
class GoodnessOfFit:
    """Outcome of the check.

    Attributes
    ----------
    statistic : float
        Sum of squares that no density explains, each in units of its variance.
    expected : float
        Its mean where the counts come from the channel: near the number of output cells less the
        number of cells of the map that reports can tell apart.
    p_value : float
        Uniform on [0, 1] where the counts come from the channel, whatever the density; larger where
        outputs are no more than cells. 1 where there are fewer than 20 reports.
    residuals : array
        (counts - explained) / sqrt(expected + 1) by output cell: where the misfit lies.
    misfit : str
        What the counts look most like if they do not come from the channel.
    share : float or None
        Share of all reports that would then be of that kind, if it is a shape.
    interval : (float, float) or None
        A 95 % interval for it, wide enough for an estimate that is of first order.
    parts : mapping of names to float
        The p-value of each question that could be asked.
    """

    statistic: float
    expected: float
    p_value: float
    residuals: Array
    misfit: str = UNNAMED
    share: float | None = None
    interval: tuple[float, float] | None = None
    parts: Mapping[str, float] = field(default_factory=dict)

    def is_plausible(self, false_alarm: float = 1e-4) -> bool:
        """Tell whether the counts can have come from the channel, at this rate of false alarms."""
        return self.p_value >= number_in("false_alarm", false_alarm, "(0, 1)")


def goodness_of_fit(estimate: Estimate) -> GoodnessOfFit:
    """Check whether the counts can have come from the channel under any density.

    Only channel and counts matter, and not how the map was estimated. Simulated counts have a seed
    made of the counts: equal counts give equal answers.

    Parameters
    ----------
    estimate : Estimate

    Raises
    ------
    InputError
        The channel knows only the reports that came.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
    >>> goodness_of_fit(EM().fit(channel, counts)).is_plausible()
    True
    >>> forged = np.zeros(channel.support.shape)
    >>> forged[1, 1] = 10_000  # far more in one output cell than any map gives
    >>> goodness_of_fit(EM().fit(channel, forged)).is_plausible()
    False
    """
    instance("estimate", estimate, Estimate)
    channel = estimate.channel
    counts = estimate.counts
    if is_conditional(channel):
        raise InputError(
            "goodness_of_fit needs a channel that knows all possible reports, got a "
            f"{type(channel).__name__}, which knows only those that came"
        )
    seen = Remainder(channel, counts)
    residuals = np.zeros(counts.shape)
    residuals[channel.support] = seen.rest
    parts = seen.parts() if estimate.n >= LEAST_REPORTS else {}
    statistic = float((seen.rest**2).sum())
    expected = float(seen.squares.mean())
    if not parts:
        return GoodnessOfFit(statistic, expected, 1.0, residuals)
    spoke, p_value = _combined(parts)
    misfit, share, interval = seen.named(spoke)
    return GoodnessOfFit(
        statistic, expected, p_value, residuals, misfit, share, interval, MappingProxyType(parts)
    )


def _combined(parts: Mapping[str, float]) -> tuple[str, float]:
    """Return the part with the smallest weighted p-value, and the p-value of that one."""
    whole = sum(WEIGHTS[name] for name in parts)
    weights = {name: WEIGHTS[name] / whole for name in parts}
    spoke = min(parts, key=lambda name: parts[name] / weights[name])
    least = parts[spoke] / weights[spoke]
    none = sum(np.log1p(-min(weight * least, 1 - 1e-16)) for weight in weights.values())
    return spoke, float(abs(np.expm1(none)))


class Remainder:
    """What densities leave of the counts, of the shapes, and of simulated collections.

    Attributes
    ----------
    rest : (N,) array
        Of the counts.
    squares : (S,) array
        Sums of squares of what is left of simulated collections.
    """

    def __init__(self, channel: Channel, counts: Array):
        n = int(counts.sum())
        pilot = expectation_maximisation(
            channel, counts, LikelihoodGain(PILOT_GAIN), PILOT_STEPS
        ).density
        fit = Unexplained(channel, pilot, n)
        runs, detail = _effort(fit, pilot.size)
        law = fit.expected / n
        kinds = shapes(channel, pilot, law, detail)
        self._kinds = [kind for kind, named in kinds.items() for _ in named]
        self._names = [name for named in kinds.values() for name in named]
        self._shapes = [shape for named in kinds.values() for shape in named.values()]
        # By how much a share of 1 moves the whitened counts.
        moved = n * (np.stack(self._shapes, axis=1) - law[:, None])
        moved /= np.sqrt(fit.variance)[:, None]
        self._unit = np.linalg.norm(moved, axis=0)
        directions = moved / np.maximum(self._unit, np.finfo(float).tiny)
        played = generator_of(counts).multinomial(n, law, size=runs).T
        collections = fit.whitened(np.column_stack([counts[channel.support], played]))
        # Directions have norm 1, collections about one in each output cell.
        tolerance = np.repeat([1e-2, 1e-1, 1e-4], [1, runs, len(self._names)])
        left = fit.left(np.column_stack([collections, directions]), tolerance)

        self.rest = left.rest[:, 0]
        simulated = left.rest[:, 1 : 1 + runs]
        self.squares = (simulated**2).sum(axis=0)
        self._variance = _variance_of_squares(fit, float(self.squares.mean()), runs)
        self._density = pilot.ravel() + left.density[:, 0]
        self._least = float(fit.expected.min())
        self._explains_all = fit.explains_all
        self._noise = left.density[:, 1 : 1 + runs]
        self._look_along(left.rest[:, 1 + runs :], counts[channel.support], fit)

    def _look_along(self, kept: Array, counts: Array, fit: Unexplained) -> None:
        """Find how far the counts go along what is left of each direction."""
        weights = kept / np.sqrt(fit.variance)[:, None]
        n = counts.sum()
        law = fit.expected / n
        centred = weights - law @ weights
        self._covariance = n * (centred.T * law) @ centred
        variance = np.diag(self._covariance)
        # A sum to which few reports contribute: those that came say more of its variance than the
        # pilot, which may have expected next to none of them.
        few = n * (law @ centred**4) * MANY_REPORTS > variance**2
        seen = counts @ centred**2
        self._spread = np.sqrt(np.where(few, np.maximum(variance, seen), variance))
        self._along = kept.T @ self.rest
        self._per_share = self._unit * (kept**2).sum(axis=0)
        third = n * (law @ centred**3)
        is_seen = (kept**2).sum(axis=0) > STILL_SEEN**2
        self._usable = np.flatnonzero(is_seen & (not fit.explains_all))
        usable = self._usable
        skewness = third[usable] / self._spread[usable] ** 3
        self._p = np.ones(len(self._names))
        self._p[usable] = upper_tail(self._along[usable] / self._spread[usable], skewness)

    def parts(self) -> dict[str, float]:
        """Return the p-value of each question that can be asked."""
        found = {}
        for kind in dict.fromkeys(self._kinds):
            some = self._of(kind)
            if some:
                correlation = self._covariance[np.ix_(some, some)]
                found[kind] = least_of_many(self._p[some], correlation)
        mean = float(self.squares.mean())
        if mean > LEAST_DIMENSIONS and not self._explains_all:
            statistic = float((self.rest**2).sum())
            found["rest"] = gamma_tail(statistic, mean, self._variance)
        return found | self._too_few()

    def _of(self, kind: str) -> list[int]:
        """Return which directions are of a kind, and not explained by densities."""
        return [int(k) for k in self._usable if self._kinds[k] == kind]

    def _too_few(self) -> dict[str, float]:
        """Return p-values of a density that is too far below 0."""
        # One half tells how much each cell varies, the other what that makes of the sums.
        half = self._noise.shape[1] // 2
        if half < LEAST_HOLES:
            return {}
        squares = (self._noise[:, :half] ** 2).mean(axis=1)
        spread = np.sqrt(np.maximum(squares, np.finfo(float).tiny))[:, None]
        noise = self._noise[:, half:] / spread
        here = self._density / spread[:, 0]
        # Where outputs are more than cells, other sums see a deficit better, and cells depend so
        # much on one another that its law has long tails.
        if self.squares.mean() <= LEAST_DIMENSIONS and self._least >= LEAST_EXPECTED:
            return {"deficit": deficit(here, noise)}
        return {"holes": holes(here, noise)}

    def p_value(self) -> float:
        """Return the p-value of all questions together; 1 where none can be asked."""
        parts = self.parts()
        return _combined(parts)[1] if parts else 1.0

    def clearest(self) -> tuple[str, Array] | tuple[None, None]:
        """Return the pattern or spot that spoke, by name and (N,) shape, if one did."""
        part, _ = _combined(self.parts())
        if part not in ("patterns", "spots"):
            return None, None
        k = min(self._of(part), key=lambda each: self._p[each])
        return self._names[k], self._shapes[k]

    def named(self, part: str) -> tuple[str, float | None, tuple[float, float] | None]:
        """Return what spoke, the share of reports of its kind, and an interval for that."""
        candidates = self._of(part)
        if not candidates:
            return (TOO_FEW if part == "deficit" else UNNAMED), None, None
        k = min(candidates, key=lambda each: self._p[each])
        share = self._along[k] / self._per_share[k]
        reach = ndtri((1 + LEVEL_OF_SHARE) / 2) * self._spread[k] / self._per_share[k]
        reach += FIRST_ORDER * max(share, 0)
        low, middle, high = np.clip([share - reach, share, share + reach], 0, 1)
        return self._names[k], float(middle), (float(low), float(high))


def _effort(fit: Unexplained, cells: int) -> tuple[int, int]:
    """Return how many collections are simulated, and how finely shapes are looked for."""
    if fit.is_dense:
        return SIMULATED, SPOTS
    if cells <= HUGE_SIDE**2:
        return SIMULATED_LARGE, PATTERNS
    return SIMULATED_HUGE, BROAD


def _variance_of_squares(fit: Unexplained, mean: float, runs: int) -> float:
    """Return the variance of the sum of squares about its simulated mean.

    Twice the mean for normal numbers; counts near 0 make it smaller or larger, by the factor that
    they have in the sum of squares of all, which is that of independent Poisson counts.
    """
    expected = fit.expected
    whole = (expected / fit.variance).sum()
    spread = ((expected + 2 * expected**2) / fit.variance**2).sum()
    return float(mean * spread / whole * (1 + 1 / runs))
