"""Maps of a field's posterior: chains from around its mode, and an honest word on them."""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ldpspatial.channels.protocol import Channel
from ldpspatial.channels.stacks import LEAST, Stack
from ldpspatial.estimation.counts import generator_of
from ldpspatial.estimation.em import EM
from ldpspatial.estimation.field.known import Known
from ldpspatial.estimation.field.mixing import mixing
from ldpspatial.estimation.field.model import FieldModel
from ldpspatial.estimation.field.optimise import Gaussian, mode, variational
from ldpspatial.estimation.field.prior import HYPERS, SPECTRAL, FieldPrior
from ldpspatial.estimation.field.sampler import Chains, Samples, Told, Whitening
from ldpspatial.estimation.result import Progress

Array = NDArray[np.float64]

VERDICTS = CONVERGED, MODE, UNTRUSTED, MAP = "converged", "mode", "untrusted", "map"
# Of R-hat. The mean of all chains is then off by a quarter of a standard deviation at most, and
# samples of all of them have the spread between them, too.
MOST_MIXING = 1.5
FEWEST_EFFECTIVE = 3.0  # a chain
LEAST_ACCEPTANCE = 0.2
WIDE = 80  # side beyond which there are fewer chains, or larger blocks, so that a map takes seconds
SAMPLES = 128  # maps kept
BEGUN = 500 * 64**2  # cells times steps of EM, from where the mode is looked for
EMPTIEST, USERS_A_CELL = 0.02, 20.0  # of the start: its share that is uniform
MOST_TURNS, TURNED = 12, 1_500  # times that chains may go on, and times the waves
FEW = 500  # waves, up to which the scales of chains that go on are fitted anew
SHORT = 0.04  # step of a chain, below which it mixes slowly
ANEW = 12  # trajectories until chains that go on anew settle, and of half their visits
WORSE = 0.5  # times the length of steps, at which other coordinates are left again
STACK = 2_000_000  # cells of maps that are looked at together


@dataclass(frozen=True)
class Effort:
    """How far a posterior is sampled.

    Attributes
    ----------
    way : int
        Pairs of opposite points whose mean energy shows the way to where chains start.
    rounds : int
        Of that way at most.
    pairs : int
        Of chains, from opposite starts.
    stages, stage, visits : int
        Trajectories: so many times a stage, then those that are kept.
    again : int
        Halves of the visits by which chains may go on where they have not mixed; more moved no map
        on wide grids. On others they may go on as long as it takes next to no time.
    maps : int
        That are kept.
    rough : bool
        Whether steps on that way are solved roughly: it takes less time, and chains of few cells
        that start there are caught more often.
    anew : int
        Times that chains whose steps come out short, or that do not agree, may go on in coordinates
        made for where they are: fewer chains, and farther.
    chains_anew : int
        As many then.
    """

    way: int = 3
    rounds: int = 6
    pairs: int = 8
    stages: int = 3
    stage: int = 8
    visits: int = 52
    again: int = 2
    maps: int = SAMPLES
    rough: bool = False
    anew: int = 5
    chains_anew: int = 8

    def turns(self, prior: FieldPrior) -> int:
        """Return the halves of the visits by which chains of these fields may go on."""
        few = min(MOST_TURNS, TURNED // (prior.cells**2 * prior.windows))
        return max(self.again, few) if self.again else 0


FULL = Effort()
FULL_WIDE = replace(FULL, anew=2, chains_anew=4, way=1, pairs=4, again=1, rough=True)
ALONE = Effort(anew=0, way=1, rounds=2, pairs=2, stages=2, stage=6, visits=16, again=0, maps=64)


@dataclass(frozen=True)
class Posterior:
    """What a field's chains say of themselves, and of the map's smoothness.

    Attributes
    ----------
    verdict : {"converged", "mode", "untrusted", "map"}
        "converged": the chains agree with each other. "mode": they do not, and the map and its
        samples come from the Gaussian around the mode. "untrusted": neither was found, or the
        support leaves out people. "map": the map alone was asked for, from chains that moved, and
        are too short to be judged further.
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
        Side in cells of the blocks on which the field is constant.
    point : str
        What the map is of the samples, as in :class:`Field`.
    exponent : float
        Of the public map, posterior mean: near 0 where it says nothing of these people. 0 without.
    possible : int
        Cells where people can be: all of them without a support.
    windows : int
        That were estimated together.
    correlation : float
        Of the fields of two windows that follow each other; 1 for a single one.
    fit : str
        Id of the samples. Estimates with the same one were fitted together, and their k-th samples
        are one draw. Empty where there are none, and in files of before.
    outside : float
        Nats by which people outside the support explain the counts better, beyond chance. Above 0
        the support is wrong, or reports are forged, and the verdict is "untrusted".
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
    exponent: float
    possible: int
    windows: int
    correlation: float
    fit: str = ""
    outside: float = 0.0


@dataclass(frozen=True)
class Found:
    """Maps of a posterior, and how they were found.

    Attributes
    ----------
    mean : (W, d, d) array
        Mean of the expected shares by cell of those who reported.
    blocks : (S, W, k, k) array
        The expected shares by block, one map for each sample of the posterior.
    samples : (S, W, d, d) array or None
        Those by cell drawn: whole numbers of users over their number. None for the map alone.
    posterior : Posterior
    trace : tuple of float
        Mean log-likelihood of the chains after each trajectory, of all windows together.
    """

    mean: Array
    blocks: Array
    samples: Array | None
    posterior: Posterior
    trace: tuple[float, ...]


def sample(
    channel: Channel, operators: Stack, counts: Array, known: Known, point: str,
    progress: Progress | None, alone: bool = False,
) -> Found:  # fmt: skip
    """Sample, or hand over to the mode.

    Parameters
    ----------
    channel : Channel
    operators : Stack
        The same channel.
    counts : (W, ...) array
    known : Known
    point : str
    progress : callable, optional
        Sees each trajectory.
    alone : bool
        Whether the map is all that is wanted.
    """
    rng = generator_of(counts)
    where = known.where(operators)
    prior = FieldPrior(operators.cells, len(counts))
    counted = np.stack([operators.counted(each) for each in counts])
    model = FieldModel(operators, counted, prior, known.log_public(operators), where)
    begun = EM(max_iterations=max(min(EM.max_iterations, BEGUN // operators.whole**2), 1))
    densities = [operators.gathered(begun.fit(channel, each).density) for each in counts]
    start = np.stack([_start(each, float(model.n.mean()), where) for each in densities])
    effort = ALONE if alone else FULL if operators.cells <= WIDE else FULL_WIDE
    at_mode = mode(model, model.point_of(start), effort.rough)
    around = variational(model, at_mode, rng, effort.way, effort.pairs, effort.rounds, effort.rough)
    starts = around.centre + around.offsets
    trace: list[float] = []

    def told(fit: float) -> None:
        trace.append(-np.inf if np.isnan(fit) else fit)  # where numbers end: the verdict says so
        if progress is not None:
            progress(len(trace), fit)

    try:
        samples = _walked(model, prior, around.centre[-HYPERS:], starts, rng, told, effort)
    except (ValueError, np.linalg.LinAlgError):  # no step from here is finite
        here = model.at(starts)
        hypers = np.nan_to_num(starts[None, :, -HYPERS:])
        samples = Samples(hypers, here.density[None], here.fit[None], 0.0)
    posterior = _judged(samples, prior, operators, known, point)
    if posterior.verdict != MODE:
        every = samples.densities.reshape(-1, *prior.shape)
        chosen = np.linspace(0, len(every) - 1, effort.maps).round().astype(int)
        maps = every[chosen]
    else:
        maps, posterior = _handed_over(model, around, start, posterior)
    users = np.empty((len(maps), len(counts), *channel.input_shape))
    for window, each in enumerate(counts):
        _expect(channel, operators, known, each, maps[:, window], users[:, window])
    mean, blocks = users.mean(0), np.array(operators.gathered(users))
    if alone:
        verdict = MAP if _moved(samples) else posterior.verdict
        return Found(mean, blocks, None, replace(posterior, verdict=verdict), tuple(trace))
    for window, n in enumerate(model.n.ravel()):  # in place: on wide grids they take gigabytes
        _draw(users[:, window], int(n), rng)
    users.flags.writeable = False  # so that an estimate needs no copy
    posterior = replace(posterior, fit=hashlib.sha256(users.data).hexdigest())
    return Found(mean, blocks, users, posterior, tuple(trace))


def _walked(
    model: FieldModel, prior: FieldPrior, hypers: Array, starts: Array, rng: np.random.Generator,
    told: Told, effort: Effort,
) -> Samples:  # fmt: skip
    """Return where chains went, until they agree or have gone on as often as they may.

    Raises
    ------
    LinAlgError or ValueError
        The metric is not finite or not positive, as where far more is known than numbers hold.
    """
    variances = Whitening(model, starts[[0, -1]]).variances()[:-HYPERS]
    shares = 1 - np.clip(variances, 0.0, 1.0).reshape(prior.shape)
    centred = model.with_prior(prior.centred(shares, hypers))
    chains = Chains(centred, starts, Whitening(centred, starts[[0, -1]]), rng)
    chains.adapt(effort.stages, effort.stage, told)
    half = effort.visits // 2
    may_be_anew = effort.anew > 0 and (prior.size > FEW or prior.windows > 1)
    if may_be_anew and chains.length < SHORT:
        return _anew(chains, [], effort, told)
    visits = [chains.visit(half, told), chains.visit(half, told)]
    turns = effort.turns(prior)
    for turn in range(1 + turns):
        samples = _later(visits)
        if turn == turns or _verdict(samples, mixing(samples)) == CONVERGED:
            break
        if may_be_anew:
            return _anew(chains, visits, effort, told)
        if prior.size <= FEW:  # steps may be too long where chains are by now
            chains.adapt(2, effort.stage, told)
        visits.append(chains.visit(half, told))
    return samples


def _anew(chains: Chains, before: list[Samples], effort: Effort, told: Told) -> Samples:
    """Return what chains visit in coordinates made for where they are.

    Where the first ones are is on the way still, and made others; and again, as long as they do not
    agree. They go on as before where that makes their steps short: of many windows unlike in size
    scales by cell say less than those by wave.
    """
    visits: list[Samples] = []
    better = True
    for turn in range(effort.anew):
        if better:
            fresh = chains.anew(effort.chains_anew)
            fresh.settle(ANEW, told)
            better = fresh.length > WORSE * chains.length
            if better:
                chains = fresh
            elif not visits:  # these count: they were in the same coordinates
                visits = [*before]
        visits.append(chains.visit(2 * ANEW if turn else ANEW, told))
        samples = visits[-1]
        if turn and _verdict(samples, mixing(samples)) == CONVERGED:
            break
        if len(visits) > 2:
            samples = _later(visits)
            if _verdict(samples, mixing(samples)) == CONVERGED:
                break
    return samples


def _later(visits: list[Samples]) -> Samples:
    """Return the later half of some visits, two at least: the first of many are on the way."""
    return Samples.joined(visits[-max(2, (1 + len(visits)) // 2) :])


def _start(density: Array, n: float, where: NDArray[np.bool_] | None) -> Array:
    """Return a density of EM that is nowhere empty where people can be, and empty elsewhere."""
    inside = np.ones(density.shape) if where is None else where.astype(np.float64)
    inside /= inside.sum()
    uniform = min(EMPTIEST, USERS_A_CELL * density.size / n)
    kept = density * (inside > 0)
    return np.asarray((1 - uniform) * kept / max(kept.sum(), 1e-300) + uniform * inside)


def _judged(
    samples: Samples, prior: FieldPrior, operators: Stack, known: Known, point: str
) -> Posterior:
    """Return what the chains say of themselves."""
    largest, fewest = mixing(samples)
    verdict = _verdict(samples, (largest, fewest))
    unknowns = prior.unknowns(samples.hypers).reshape(-1, HYPERS).mean(0)
    spread, length, excess, memory = np.exp(unknowns[:SPECTRAL]).tolist()
    exponent = 0.0 if known.prior is None else float(unknowns[-1])
    possible = operators.whole**2
    if known.support is not None:
        possible = int(np.count_nonzero(known.support))
    return Posterior(
        verdict, largest, fewest, samples.acceptance, spread, length, 1 + excess,
        operators.block, point,
        exponent, possible, prior.windows, _correlation(prior, memory),
    )  # fmt: skip


def _moved(samples: Samples) -> bool:
    """Return whether chains moved."""
    return samples.acceptance >= LEAST_ACCEPTANCE and bool(np.isfinite(samples.fits).all())


def _verdict(samples: Samples, mixed: tuple[float, float]) -> str:
    """Return whether chains moved, and agree: given their R-hat and effective samples."""
    if not _moved(samples):
        return MODE
    largest, fewest = mixed
    agree = largest <= MOST_MIXING and fewest >= FEWEST_EFFECTIVE * samples.fits.shape[1]
    return CONVERGED if agree else UNTRUSTED


def _correlation(prior: FieldPrior, memory: float) -> float:
    """Return the mean correlation of a window's field with the next one's."""
    if prior.windows == 1:
        return 1.0
    power = 1 / (1 + memory**2 * prior.squared_tempos.ravel())
    waves = fft.idct(np.eye(prior.windows), axis=0, norm="ortho")
    covariance = (waves * power) @ waves.T
    return float(np.diag(covariance, 1).mean() / np.diag(covariance).mean())


def _expect(
    channel: Channel, operators: Stack, known: Known, counts: Array, maps: Array, found: Array
) -> None:
    """Write the expected histograms by cell of those who reported, given maps by block.

    That is one step of EM from each map. It tells apart the cells of a block as far as these
    reports do, for which the map is constant on it.
    """
    fine = operators.by_cell(channel)
    counted = fine.counted(counts)
    empty = np.where(fine.support, 0.0, 1.0)
    together = max(1, STACK // found[0].size)
    for first in range(0, len(maps), together):
        densities = known.inside(operators, maps[first : first + together])
        reports = np.maximum(fine.forward(densities), LEAST) + empty
        stepped = densities * fine.adjoint(counted / reports)
        found[first : first + together] = stepped / stepped.sum((1, 2), keepdims=True)


def _draw(maps: Array, n: int, rng: np.random.Generator) -> None:
    """Write shares of n users drawn from (S, d, d) maps into these.

    A cell of which a map expects half a user holds none or one. Given the reports, users are less
    at random than independent draws: intervals of these are as wide as needed, or wider.
    """
    fullest = int(maps.mean(0).argmax())  # drawn last: what rounds goes there
    ends = [fullest, -1]
    for users in maps:
        ordered = users.flatten()
        ordered[ends] = ordered[ends[::-1]]
        drawn = rng.multinomial(n, ordered)
        drawn[ends] = drawn[ends[::-1]]
        users[:] = (drawn / n).reshape(users.shape)


def _handed_over(
    model: FieldModel, around: Gaussian, start: Array, posterior: Posterior
) -> tuple[Array, Posterior]:
    """Return maps around the mode, where chains do not move; the start where it has none."""
    maps = model.at(around.centre + around.offsets).density
    whole = bool(np.isfinite(maps).all())
    if not whole:
        maps = np.broadcast_to(start, maps.shape)
    return maps, replace(posterior, verdict=MODE if whole and around.settled else UNTRUSTED)
