"""Which reports were forged, as far as the check of the fit can name them.

Counts are taken as those of a mixture. A share 1 - sum a of the reports follows M f, as the table
says. Shares a_k have shapes that the check has named (``fit_check/misfits.py``), and each output
cell may have some more of its own. By the prior all of these are few or none: a_k is Beta(1, RARE),
and what is beyond in a cell has an exponential law that makes it 0 unless the counts exceed the
rest by REACH standard deviations. The most likely mixture is found by EM, which stops where it does
for maps.

Nothing is taken out of counts that the check finds plausible, nor more than MOST of them. What it
cannot see stays: honest reports of places where nobody was, and all else that another density
explains.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.protocol import Channel, operators
from ldpspatial.estimation.counts import generator_of
from ldpspatial.estimation.em import SCALED
from ldpspatial.estimation.fit_check.goodness import LEAST_REPORTS, Remainder
from ldpspatial.estimation.fit_check.misfits import EVEN, LIFTED
from ldpspatial.estimation.stopping import stopping_rule

Array = NDArray[np.float64]

LEVEL = 1e-4  # of the check, below which reports are looked for that were forged
RARE = 33.0  # prior reports that were not forged: a share of 3 % in the mean
REACH = 4.0  # standard deviations: of 10,000 cells one has more in three genuine collections
MOST = 0.2  # share of the reports: were more forged, nobody could say which
ROUNDS = 4  # shapes at most, and the cells themselves
STEPS = 400
OUTPUTS = "single outputs"
OURS = (EVEN, LIFTED)  # parts of every honest report: how many are too many is hard to tell


@dataclass(frozen=True)
class Honest:
    """What is left of counts without what was forged.

    Attributes
    ----------
    counts : array
        Whole numbers, shaped like the counts.
    share : float in [0, 1]
        Of the reports that were taken out.
    shapes : tuple of str
        Of these; "single outputs" are cells with many more than any density explains.
    """

    counts: Array
    share: float = 0.0
    shapes: tuple[str, ...] = ()


def without_forged(channel: Channel, counts: Array) -> Honest:
    """Take out of checked counts what was forged, if they do not fit the channel.

    Parameters
    ----------
    channel : Channel
    counts : array
        Shaped like ``channel.support``.
    """
    found = Honest(counts)
    named: dict[str, Array] = {}
    remainder = _misfit(channel, counts)
    for _ in range(ROUNDS):
        if remainder is None:
            break
        found = _taken_out(channel, counts, named)
        remainder = _misfit(channel, found.counts)
        name, shape = (None, None) if remainder is None else remainder.clearest()
        if name is None or shape is None or name in (*named, *OURS):
            break
        named[name] = np.zeros(counts.shape)
        named[name][channel.support] = shape
    return found if found.share <= MOST else Honest(counts)


def _misfit(channel: Channel, counts: Array) -> Remainder | None:
    """Return what densities leave of counts where the check says that they do not fit."""
    if counts.sum() < LEAST_REPORTS:
        return None
    found = Remainder(channel, counts)
    return found if found.p_value() < LEVEL else None


def _taken_out(channel: Channel, counts: Array, named: dict[str, Array]) -> Honest:
    """Estimate the mixture, and return the counts that are expected to be honest."""
    shapes = np.array(list(named.values())).reshape(len(named), counts.size)
    mixture = _Mixture(channel, shapes)
    stop = stopping_rule(SCALED, channel)
    for _ in range(STEPS):
        before = mixture.law
        if stop.done(mixture.step(counts), before, mixture.law):
            break
    honest = mixture.honest(counts)
    # To whole numbers by chance, so that no cell gets more or less in the mean.
    whole = np.floor(honest + generator_of(counts).random(honest.shape))
    share = 1 - float(whole.sum() / counts.sum())
    capped = (mixture.kept(counts) < counts).any()
    return Honest(whole, share, (*([OUTPUTS] if capped else []), *named))


class _Mixture:
    """Honest and forged reports at one step of EM."""

    def __init__(self, channel: Channel, shapes: Array):
        self._forward, self._adjoint = operators(channel)
        cells = int(np.prod(channel.input_shape))
        self._density = np.full(channel.input_shape, 1 / cells)
        self._shapes = shapes
        self._shares = np.full(len(shapes), 1 / RARE)
        self._number = 0.0  # of reports that are no outliers; all of them before the first step
        self._look()

    def _look(self) -> None:
        honest = (1 - self._shares.sum()) * self._forward(self._density)
        self._forged = (self._shares @ self._shapes).reshape(honest.shape)
        self.law = honest + self._forged

    def kept(self, counts: Array) -> Array:
        """Return the counts, each at most as large as chance makes it."""
        expected = (self._number or counts.sum()) * self.law
        return np.asarray(np.minimum(counts, expected + REACH * np.sqrt(expected + 1)))

    def honest(self, counts: Array) -> Array:
        """Return how many of the counts are expected to be neither outliers nor of a shape."""
        forged = np.divide(self._forged, self.law, out=np.zeros(counts.shape), where=self.law > 0)
        return np.asarray(self.kept(counts) * (1 - forged))

    def step(self, counts: Array) -> float:
        """Take one step; return the gain in nats."""
        kept = self.kept(counts)
        self._number = float(kept.sum())
        before = self.law
        ratio = np.divide(kept, before, out=np.zeros(counts.shape), where=before > 0)
        users = self._density * self._adjoint(ratio)
        self._density = users / users.sum()
        reports = self._shares * (self._shapes @ ratio.ravel())
        self._shares = reports / (self._number + RARE)
        self._look()
        seen = (kept > 0) & (before > 0)
        return float((kept[seen] * np.log(self.law[seen] / before[seen])).sum())
