"""Field: a map with all that the reports leave open, from a Bayesian model.

The prior is a smooth random field of unknown smoothness (:mod:`.prior`), the likelihood that of
counts behind a channel. Chains walk on the posterior (:mod:`.sampler`), from points around its mode
(:mod:`.optimise`). One step of EM on each sample gives the expected histogram of the very users who
reported, and the map is the one that is closest to all of these in W2 (:mod:`.barycentre`).
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.channels.protocol import Channel
from ldpspatial.estimation.counts import check_counts, generator_of
from ldpspatial.estimation.em import EM
from ldpspatial.estimation.field.barycentre import barycentre
from ldpspatial.estimation.field.mixing import mixing
from ldpspatial.estimation.field.model import FieldModel
from ldpspatial.estimation.field.optimise import Gaussian, mode, variational
from ldpspatial.estimation.field.prior import HYPERS, FieldPrior
from ldpspatial.estimation.field.sampler import Chains, Samples, Whitening
from ldpspatial.estimation.field.stacks import Stack, stack
from ldpspatial.estimation.result import Estimate, Estimator, Progress
from ldpspatial.validate import callback, one_of

Array = NDArray[np.float64]

FIELD = "field"
VERDICTS = CONVERGED, MODE, UNTRUSTED = "converged", "mode", "untrusted"
MOST_MIXING = 1.3  # of R-hat
FEWEST_EFFECTIVE = 50.0
LEAST_ACCEPTANCE = 0.2
STAGES, STAGE, VISITS = 3, 8, 52  # trajectories: three times a stage, then those that are kept
AGAIN = 1  # times that chains may go on where they have not mixed
SAMPLES = 128  # maps kept
EMPTIEST, USERS_A_CELL = 0.02, 20.0  # of the start: its share that is uniform
STACK = 32  # maps that are looked at together

POINTS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {
        "barycentre": lambda maps: barycentre(maps[::2]),  # more maps change it less than chance
        "mean": lambda maps: maps.mean(0),
        "median": lambda maps: _normal(np.median(maps, axis=0)),
    }
)


@dataclass(frozen=True)
class Posterior:
    """What a field's chains say of themselves, and of the map's smoothness.

    Attributes
    ----------
    verdict : {"converged", "mode", "untrusted"}
        "converged": the chains agree with each other. "mode": they do not, and the map and its
        samples come from the Gaussian around the mode. "untrusted": neither was found.
    mixing : float
        Largest split R-hat of what maps say; 1 where chains agree.
    effective : float
        Fewest effective samples.
    acceptance : float in [0, 1]
        Of trajectories.
    spread : float
        Standard deviation of the field, in logarithms: posterior mean of log sigma, as exp.
    length : float
        Over which it is correlated, in sides of the square.
    decay : float
        Power a of its spectrum; the larger, the smoother it is.
    block : int
        Side in cells of the blocks on which the samples are constant.
    point : str
        What the map is of the samples, as in :class:`Field`.
    """

    verdict: str
    mixing: float
    effective: float
    acceptance: float
    spread: float
    length: float
    decay: float
    block: int
    point: str


@dataclass(frozen=True)
class Field(Estimator):
    """A log-Gaussian field behind the channel, by Hamiltonian Monte Carlo.

    Attributes
    ----------
    point : {"barycentre", "mean", "median"}
        What is made of the samples: the map with the least expected W2 to the truth, least squared
        error, least absolute error by cell.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
    >>> found = Field().fit(channel, counts)
    >>> found.details.verdict, bool(found.density.trace() > 0.9), found.samples.shape
    ('converged', True, (128, 5, 5))
    """

    kind = FIELD

    point: str = "barycentre"

    def __post_init__(self) -> None:
        one_of("point", self.point, tuple(POINTS))

    @property
    def name(self) -> str:
        """The one rule that it has."""
        return FIELD

    def fit(
        self, channel: Channel, counts: ArrayLike, progress: Progress | None = None
    ) -> Estimate:
        """Sample the posterior; see :meth:`Estimator.fit`.

        The chains' random numbers come from a seed made of the counts: equal counts give equal
        maps. ``progress`` sees each trajectory and the chains' mean log-likelihood.
        """
        checked = check_counts(channel, counts)
        callback("progress", progress)
        operators = stack(channel)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            # What goes astray is refused by the chains, and by the search for the mode.
            found = _sample(channel, operators, checked, self.point, progress)
        point = POINTS[self.point](found.maps)
        density = operators.spread(point[None])[0]
        samples = operators.spread(found.maps)
        likelihood = float(_log_likelihood(channel, checked, density))
        trace = (*found.trace[:-1], likelihood)
        return Estimate(
            density, likelihood, len(trace) - 1, found.posterior.verdict == CONVERGED, trace,
            channel, checked, self, found.posterior, samples,
        )  # fmt: skip

    @classmethod
    def restored(
        cls, name: str, facts: Mapping[str, Any], shape: tuple[int, ...]
    ) -> tuple[Estimator, Any]:
        """Return the field with what a file says of its posterior."""
        told = Posterior(**{each.name: facts[each.name] for each in fields(Posterior)})
        numbers = [
            value for name, value in asdict(told).items() if name not in ("verdict", "point")
        ]
        if told.verdict not in VERDICTS or not all(isinstance(n, int | float) for n in numbers):
            raise ValueError("no such posterior is ever found")
        return cls(told.point), told


@dataclass(frozen=True)
class _Found:
    """Maps of a posterior, by block, and how they were found."""

    maps: Array
    posterior: Posterior
    trace: tuple[float, ...]


def _sample(
    channel: Channel, operators: Stack, counts: Array, point: str, progress: Progress | None
) -> _Found:
    """Sample, or hand over to the mode."""
    rng = generator_of(counts)
    prior = FieldPrior(operators.cells)
    model = FieldModel(operators, operators.counted(counts), prior)
    start = operators.gathered(EM().fit(channel, counts).density)
    uniform = min(EMPTIEST, USERS_A_CELL * start.size / model.n)
    around = variational(
        model, mode(model, model.point_of((1 - uniform) * start + uniform / start.size)), rng
    )
    starts = around.centre + around.offsets
    variances = Whitening(model, starts[[0, -1]]).variances()[:-HYPERS]
    shares = 1 - np.clip(variances, 0.0, 1.0).reshape(start.shape)
    centred = model.with_prior(prior.centred(shares, around.centre[-HYPERS:]))
    chains = Chains(centred, starts, Whitening(centred, starts[[0, -1]]), rng)
    trace: list[float] = []

    def told(fit: float) -> None:
        trace.append(fit)
        if progress is not None:
            progress(len(trace), fit)

    chains.adapt(STAGES, STAGE, told)
    for _ in range(1 + AGAIN):
        samples = chains.visit(VISITS, told)
        posterior = _judged(samples, prior, operators.block, point)
        if posterior.verdict == CONVERGED:
            break
    if posterior.verdict != MODE:
        return _Found(_kept(samples, model), posterior, tuple(trace))
    return _handed_over(model, around, posterior, tuple(trace))


def _judged(samples: Samples, prior: FieldPrior, block: int, point: str) -> Posterior:
    """Return what the chains say of themselves."""
    largest, fewest = mixing(samples)
    verdict = CONVERGED if largest <= MOST_MIXING and fewest >= FEWEST_EFFECTIVE else UNTRUSTED
    if samples.acceptance < LEAST_ACCEPTANCE or not np.isfinite(samples.fits).all():
        verdict = MODE
    unknowns = prior.unknowns(samples.hypers).reshape(-1, HYPERS).mean(0)
    spread, length, excess = np.exp(unknowns).tolist()
    return Posterior(
        verdict, largest, fewest, samples.acceptance, spread, length, 1 + excess, block, point
    )


def _kept(samples: Samples, model: FieldModel) -> Array:
    """Return some of the maps, as histograms of those who reported."""
    every = samples.densities.reshape(-1, *samples.densities.shape[2:])
    chosen = np.linspace(0, len(every) - 1, SAMPLES).round().astype(int)
    return _stepped(model, every[chosen])


def _stepped(model: FieldModel, maps: Array) -> Array:
    parts = [model.em_step(maps[k : k + STACK]) for k in range(0, len(maps), STACK)]
    return np.concatenate(parts)


def _handed_over(
    model: FieldModel, around: Gaussian, posterior: Posterior, trace: tuple[float, ...]
) -> _Found:
    """Return maps around the mode, where chains do not agree."""
    maps = model.at(around.centre + around.offsets).density
    whole = bool(np.isfinite(maps).all())
    if not whole:
        maps = np.full_like(maps, 1 / maps[0].size)
    verdict = MODE if whole and around.settled else UNTRUSTED
    return _Found(_stepped(model, maps), replace(posterior, verdict=verdict), trace)


def _log_likelihood(channel: Channel, counts: Array, density: Array) -> float:
    seen = counts > 0
    return float((counts[seen] * np.log(channel.forward(density)[seen])).sum())


def _normal(density: Array) -> Array:
    return np.asarray(density / density.sum())
