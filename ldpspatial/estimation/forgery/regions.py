"""Attacks on the share of a region, by one output cell or a mixture of them.

How a fit answers to what is reported is known (:mod:`..limit_fits`), so the share has a gradient in
what forgers send. Single output cells go where it is steepest, and for mixtures a quasi-Newton
ascent goes along it. It ends on one of several summits.
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from ldpspatial.channels.disk import StampChannel
from ldpspatial.estimation.limit_fits import LimitFits

Array = NDArray[np.float64]

SPREAD = 0.1  # part of what is sent where an ascent starts that is even: from 0 nothing grows
GAIN = 1e-6  # of the share, below which a step ends the ascent
STEEPEST = 4  # output cells that are tried at once
CLIMB = 2  # times at most that they are
ROUGH = 1e-3  # of what is forged: how far their fits settle before they are compared


class RegionAttack:
    """Forgers who want a weighted share of the map large.

    Parameters
    ----------
    weights : (d, d) array
    channel : StampChannel
    density : (d, d) array
        Of those who are honest.
    share : float in (0, 1)
        Forged, of all reports.

    Attributes
    ----------
    best : float
        The largest weighted share of all fits so far.
    """

    def __init__(self, weights: Array, channel: StampChannel, density: Array, share: float):
        self.best = float((weights * density).sum())
        self._weights = weights
        self._support = channel.support
        self._density = density
        self._share = share
        self._honest = (1 - share) * channel.forward(density)
        self._limits = LimitFits(channel)
        sent = channel.forward(weights)[self._support]
        self._from_region = sent / channel.forward(np.ones_like(density))[self._support]

    def reached(self, sent: Array) -> float:
        """Return the weighted share of the fit if this is sent."""
        return float((self._weights * self._fit(sent)[1]).sum())

    def climb(self, *mixtures: Array) -> None:
        """Try single output cells, and improve :attr:`best` by the best of them.

        They are those that people of the region send more often than others do, and those of the
        steepest slopes where one of some mixtures is sent, or the best cell so far.

        Parameters
        ----------
        *mixtures : (outputs,) arrays
            Distributions on the output domain.
        """
        ahead = set(_largest(self._from_region))
        for sent, fit in zip(mixtures, self._rough(np.stack(mixtures)), strict=True):
            ahead |= set(self._steepest(sent, fit))
        tried: dict[int, float] = {}
        for _ in range(CLIMB):
            cells = sorted(ahead - tried.keys())
            if not cells:
                break
            single = self._single(cells)
            fits = self._rough(single)
            tried.update(zip(cells, (self._weights * fits).sum((1, 2)), strict=True))
            best = max(cells, key=tried.__getitem__)
            if tried[best] < max(tried.values()):
                break
            ahead = set(self._steepest(*(each[cells.index(best)] for each in (single, fits))))
        self._fit(self._single([max(tried, key=tried.__getitem__)])[0])

    def _single(self, cells: list[int]) -> Array:
        """Return what is sent if it is one output cell alone, for each of some."""
        sent = np.zeros((len(cells), len(self._from_region)))
        sent[np.arange(len(cells)), cells] = 1
        return sent

    def _rough(self, sent: Array) -> Array:
        """Return the fits if each of a stack is sent, near enough to be compared."""
        laws = np.stack([self._law(each) for each in sent])
        return np.asarray(self._limits.fits(laws, self._density, ROUGH * self._share))

    def _steepest(self, sent: Array, fit: Array) -> list[int]:
        slope = self._limits.slopes(self._law(sent), fit, self._weights)
        return _largest(slope[self._support])

    def ascend(self, sent: Array, most_fits: int) -> None:
        """Improve what forgers send, as far as about so many fits go.

        Parameters
        ----------
        sent : (outputs,) array
            A distribution on the output domain, where the ascent starts.
        most_fits : int >= 1
        """
        self._fit(sent)
        begun = (1 - SPREAD) * sent + SPREAD / sent.size
        options = {"maxfun": most_fits, "gtol": 0, "ftol": GAIN}
        scipy.optimize.minimize(
            self._by_roots, np.sqrt(begun), jac=True, method="L-BFGS-B", options=options
        )

    def _fit(self, sent: Array) -> tuple[Array, Array]:
        """Return the law of reports, and its fit."""
        law = self._law(sent)
        fit = self._limits.fit(law, self._density)
        self.best = max(self.best, float((self._weights * fit).sum()))
        return law, fit

    def _law(self, sent: Array) -> Array:
        law: Array = self._honest.copy()
        law[self._support] += self._share * sent
        return law

    def _by_roots(self, roots: Array) -> tuple[float, Array]:
        """Return the share by the roots of what is sent, up to scale, and its gradient; minus."""
        total = float(roots @ roots)
        sent = roots**2 / total
        law, fit = self._fit(sent)
        slope = self._share * self._limits.slopes(law, fit, self._weights)[self._support]
        gradient = 2 * roots / total * (slope - float(slope @ sent))
        return -float((self._weights * fit).sum()), -gradient


def _largest(values: Array) -> list[int]:
    return [int(k) for k in np.argsort(values)[::-1][:STEEPEST]]
