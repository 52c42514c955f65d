"""Field: a map with all that the reports leave open, from a Bayesian model.

The prior is a smooth random field of unknown smoothness (:mod:`.prior`), the likelihood that of
counts behind a channel. Chains walk on the posterior (:mod:`.sampler`), from points around its mode
(:mod:`.optimise`). One step of EM on each sample gives the expected histogram of the very users who
reported, and the map is the one that is closest to all of these in W2 (:mod:`.barycentre`).
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.channels.protocol import Channel
from ldpspatial.channels.stacks import Stack, stack
from ldpspatial.errors import InputError, InputWarning
from ldpspatial.estimation.counts import check_counts, generator_of
from ldpspatial.estimation.em import EM
from ldpspatial.estimation.field.barycentre import barycentre
from ldpspatial.estimation.field.known import Known
from ldpspatial.estimation.field.outside import gain_of_outside
from ldpspatial.estimation.field.posterior import (
    CONVERGED,
    UNTRUSTED,
    VERDICTS,
    WIDE,
    Found,
    Posterior,
    sample,
)
from ldpspatial.estimation.field.unlike import is_unlike
from ldpspatial.estimation.result import Estimate, Estimator, Progress
from ldpspatial.estimation.smoothing import Smoother
from ldpspatial.one_thread import in_one_thread
from ldpspatial.validate import callback, one_of, shown, true_or_false

Array = NDArray[np.float64]

FIELD = "field"
MAP_ALONE = "map-alone"
MOST_WINDOWS = 100
UNLIKE = (
    "its reports speak against what the windows together make of it; it and these are fitted apart"
)
JOINED = (
    "it is fitted with windows that have people outside the support, as its own reports are too "
    "few to tell whether it has"
)
SURE = 3.0  # nats that a window's reports add to what others say, or take from it
LEFT = "the other windows are fitted apart from it, so that it is fitted by itself"
TEXTS = ("verdict", "point", "fit")  # of what it says of its posterior; all else are numbers
LATER = ("fit", "outside")  # files of before lack them

Mask = NDArray[np.bool_] | None
POINTS: Mapping[str, Callable[[Array, Mask], Array]] = MappingProxyType(
    {
        # More maps change it less than chance does.
        "barycentre": lambda maps, where: barycentre(
            maps[:: 2 if maps.shape[-1] <= WIDE else 4], where
        ),
        "mean": lambda maps, _: maps.mean(0),
        "median": lambda maps, _: _normal(np.median(maps, axis=0)),
    }
)


@dataclass(frozen=True, eq=False)
class Field(Estimator):
    """A log-Gaussian field behind the channel, by Hamiltonian Monte Carlo.

    Attributes
    ----------
    point : {"barycentre", "mean", "median"}
        What is made of the samples: the map with the least expected W2 to the truth, least squared
        error, least absolute error by cell.
    support : (d, d) array in [0, 1], optional
        Where people can be: the share of each cell that is no water, say, as
        :func:`ldpspatial.places.regions.polygon` finds it for an outline. Cells of 0 stay empty;
        of others the share matters where cells are estimated in blocks, whose people it divides.
    prior : (d, d) array of numbers >= 0, optional
        A public map: residents, venues, or last month's estimate, up to a factor. How much it says
        of these people is learned: its logarithm gets an exponent. It must not be made of the
        counts that are to be fitted.
    map_alone : bool
        Whether the map is all that is wanted, in about two seconds or less on most grids: from four
        short chains, on blocks where the map has more than 80 cells a side. There are no samples,
        and so no intervals of their own, and nothing says whether chains agree.

    Raises
    ------
    InputError
        Another point; a map_alone that is neither true nor false; a support or prior that is no
        square of such numbers, or 0 everywhere.

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
    support: ArrayLike | None = None
    prior: ArrayLike | None = None
    map_alone: bool = False

    def __post_init__(self) -> None:
        one_of("point", self.point, tuple(POINTS))
        object.__setattr__(self, "map_alone", true_or_false("map_alone", self.map_alone))
        known = self.known
        object.__setattr__(self, "support", known.support)
        object.__setattr__(self, "prior", known.prior)

    def __eq__(self, other: object) -> bool:
        """Whether both make the same choices."""
        if not isinstance(other, Field) or type(other) is not type(self):
            return NotImplemented
        mine, theirs = self.known, other.known
        same = (self.point, self.map_alone) == (other.point, other.map_alone)
        return same and all(
            np.array_equal(first, second)  # type: ignore[arg-type]  # None equals None alone
            for first, second in ((mine.support, theirs.support), (mine.prior, theirs.prior))
        )

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    @property
    def name(self) -> str:
        """The one rule that it has, or that of the map alone."""
        return MAP_ALONE if self.map_alone else FIELD

    @classmethod
    def named(cls, name: str, smoothing: "str | Smoother | None", max_iterations: int) -> Estimator:
        """Return the field of this name; see :meth:`Estimator.named`."""
        found = cls(map_alone=name == MAP_ALONE)
        found.check_smoothing(smoothing)
        return found

    @property
    def known(self) -> Known:
        """What is known before a report is seen."""
        return Known.checked(self.support, self.prior)

    def fit(
        self, channel: Channel, counts: ArrayLike, progress: Progress | None = None
    ) -> Estimate:
        """Sample the posterior; see :meth:`Estimator.fit`.

        The chains' random numbers come from a seed made of the counts: equal counts give equal
        maps. ``progress`` sees each trajectory and the chains' mean log-likelihood.
        """
        (found,), warned = self._fit(channel, [check_counts(channel, counts)], progress)
        for _, text in warned:
            warnings.warn(text, InputWarning, stacklevel=2)
        return found

    def fit_windows(
        self, channel: Channel, windows: Sequence[ArrayLike], progress: Progress | None = None
    ) -> tuple[Estimate, ...]:
        """Sample the posterior of several windows of one place at once.

        How much a map resembles that of the window before is learned, so that windows lend each
        other what they have in common. The k-th samples of all estimates are one draw: quantiles of
        what two of them differ by are an interval of the change. Windows whose own reports speak
        against what all together make of them (a small one unlike two large ones) are fitted apart
        from the others, and from each other if they are not alike. So are windows of people outside
        the support from those that it holds. Others join them whose reports make that clearer, and
        those with too few reports to tell if most windows and most reports are such.

        What this takes for granted: that all windows resemble each other alike. A small window that
        does not, and whose reports are too few to tell, has the map and the intervals of its large
        neighbours. Fit it alone where that may be so.

        Parameters
        ----------
        channel : Channel
            That of each window.
        windows : list or tuple of arrays
            Counts of each as in :meth:`fit`, in the order of time; at most 100.
        progress : callable, optional
            Sees the log-likelihood of all windows together.

        Returns
        -------
        tuple of Estimate
            One for each window; ``facts["windows"]`` is with how many it was fitted, itself
            included, and ``facts["fit"]`` the same for these. Where that is more than one, traces
            hold the last log-likelihood alone, so that ``iterations`` is 0: the steps are those of
            all together.

        Warns
        -----
        InputWarning
            A window was fitted apart from others, for its own reports, or alone as no other is
            left; or the support leaves out people.
        """
        is_list = isinstance(windows, list | tuple)
        given = list(windows) if is_list else []
        if not 0 < len(given) <= MOST_WINDOWS:
            raise InputError(
                f"windows must be a list of 1 to {MOST_WINDOWS} arrays of counts, got "
                f"{len(given) if is_list else shown(windows)}"
            )
        checked = []
        for number, counts in enumerate(given):
            try:
                checked.append(check_counts(channel, counts))
            except InputError as error:
                raise InputError(f"windows[{number}]: {error}") from None
        found, warned = self._fit(channel, checked, progress)
        for number, text in warned:
            warnings.warn(f"windows[{number}]: {text}", InputWarning, stacklevel=2)
        return found

    @in_one_thread
    def _fit(
        self, channel: Channel, windows: Sequence[Array], progress: Progress | None
    ) -> tuple[tuple[Estimate, ...], list[tuple[int, str]]]:
        """Return the estimates, and what is to be warned of, by the number of its window."""
        callback("progress", progress)
        operators = stack(channel, WIDE if self.map_alone else None)
        known = self.known
        known.check_shape(tuple(channel.input_shape))
        gains = [gain_of_outside(channel, counts, known.support) for counts in windows]
        warned = [
            (
                number,
                f"support leaves out people: the counts are explained {gain:.0f} nats better with "
                "some of them outside it",
            )
            for number, gain in enumerate(gains)
            if gain > 0
        ]
        estimates: dict[int, Estimate] = {}
        unlike: set[int] = set()
        parts = _by_support(channel, known.support, gains, windows)
        while parts:
            part = parts.pop()
            if not part:
                continue
            some = [windows[number] for number in part]
            found = self._sampled(channel, operators, known, some, progress)
            # People outside the support speak against any map that it allows.
            asked = [k for k, number in enumerate(part) if gains[number] == 0]
            odd = [part[k] for k in _unlike(channel, some, found.mean, asked)]
            if odd:
                unlike.update(odd)
                others = [number for number in part if number not in odd]
                # They may be like each other, but not if all of them speak against one map.
                parts += [odd] if others else [[number] for number in odd]
                parts.append(others)
                continue
            against = [gains[number] for number in part]
            if any(against):
                warned += [(n, JOINED) for n, gain in zip(part, against, strict=True) if gain == 0]
            made = self._estimates(channel, operators, known, some, against, found)
            estimates |= zip(part, made, strict=True)
            if len(part) == 1 < len(windows) and not unlike & {*part} and not against[0]:
                warned.append((part[0], LEFT))
        warned += [(number, UNLIKE) for number in unlike]
        return tuple(estimates[number] for number in range(len(windows))), sorted(warned)

    def _sampled(
        self, channel: Channel, operators: Stack, known: Known, windows: Sequence[Array],
        progress: Progress | None,
    ) -> Found:  # fmt: skip
        # What goes astray is refused by the chains, and by the search for the mode.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return sample(
                channel, operators, np.stack(windows), known, self.point, progress, self.map_alone
            )

    def _estimates(
        self, channel: Channel, operators: Stack, known: Known, windows: Sequence[Array],
        gains: Sequence[float], found: Found,
    ) -> Iterator[Estimate]:  # fmt: skip
        """Yield the estimates of windows fitted together, whose counts gain so much outside."""
        where = known.where(operators)
        for number, (counts, gain) in enumerate(zip(windows, gains, strict=True)):
            posterior = found.posterior
            if gain > 0:  # chains may agree, but on a map that cannot be
                posterior = replace(posterior, verdict=UNTRUSTED, outside=gain)
            samples = None if found.samples is None else found.samples[:, number]
            density = self._point_of(found.mean[number], found.blocks[:, number], operators, where)
            likelihood = float(_log_likelihood(channel, counts, density))
            trace = (*(found.trace[:-1] if len(windows) == 1 else ()), likelihood)
            yield Estimate(
                density, likelihood, len(trace) - 1,
                posterior.verdict == CONVERGED, trace, channel, counts, self, posterior, samples,
            )  # fmt: skip

    def _point_of(self, mean: Array, maps: Array, operators: Stack, where: Mask) -> Array:
        """Return what is made of (S, k, k) maps by block; inside, as the (d, d) mean has it."""
        blocks = operators.gathered(mean)
        point = POINTS[self.point](maps, where)
        ratio = np.divide(point, blocks, out=np.zeros_like(point), where=blocks > 0)
        by_cell = ratio.repeat(operators.block, axis=0).repeat(operators.block, axis=1)
        return _normal(mean * by_cell[: len(mean), : len(mean)])

    @classmethod
    def restored(cls, name: str, facts: Mapping[str, Any]) -> tuple[Estimator, Any]:
        """Return the field with what a file says of its posterior."""
        wanted = [
            each.name for each in fields(Posterior) if each.name in facts or each.name not in LATER
        ]
        told = Posterior(**{name: facts[name] for name in wanted})
        numbers = [value for name, value in asdict(told).items() if name not in TEXTS]
        is_told = told.verdict in VERDICTS and isinstance(told.fit, str)
        if not is_told or not all(isinstance(n, int | float) for n in numbers):
            raise ValueError("no such posterior is ever found")
        # A file of before may lack the id of its samples; one that has none is that of a map alone.
        map_alone = name == MAP_ALONE or facts.get("fit") == ""
        return cls(told.point, map_alone=map_alone), told


def _by_support(
    channel: Channel, support: Array | None, gains: Sequence[float], windows: Sequence[Array]
) -> list[list[int]]:
    """Return which windows are fitted together at first: by whether the support holds them.

    Those that contradict it would spoil the others' memory of each other. But where it leaves out
    the same people in all windows, some do not show it by themselves. So the others are asked, the
    largest first, whether they speak against the map of those that contradict it, and whether the
    reports of all of these together with their own contradict it more. Windows too small to say are
    taken for what most windows are, and most reports.
    """
    held = sorted(
        (number for number, gain in enumerate(gains) if gain == 0),
        key=lambda number: -float(windows[number].sum()),
    )
    outside = [number for number, gain in enumerate(gains) if gain > 0]
    if not outside:
        return [sorted(held)]
    everything = sum(float(each.sum()) for each in windows)
    pooled = np.sum([windows[number] for number in outside], axis=0)
    before = gain_of_outside(channel, pooled, support)
    for number in list(held):
        counts = windows[number]
        more = gain_of_outside(channel, pooled + counts, support) - before
        are_most = 2 * len(outside) > len(windows) and 2 * float(pooled.sum()) > everything
        if more <= (-SURE if are_most else SURE):
            continue
        density = EM().fit(channel, pooled).density
        if not is_unlike(channel, counts, density, generator_of(counts)):
            held.remove(number)
            outside.append(number)
            pooled, before = pooled + counts, before + more
    return [sorted(outside), sorted(held)]


def _unlike(
    channel: Channel, windows: Sequence[Array], maps: Array, asked: Sequence[int]
) -> list[int]:
    """Return which of those asked speak against their maps; one by itself cannot."""
    if len(windows) == 1:
        return []
    return [k for k in asked if is_unlike(channel, windows[k], maps[k], generator_of(windows[k]))]


def _log_likelihood(channel: Channel, counts: Array, density: Array) -> float:
    seen = counts > 0
    return float((counts[seen] * np.log(channel.forward(density)[seen])).sum())


def _normal(density: Array) -> Array:
    return np.asarray(density / density.sum())
