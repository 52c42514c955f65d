"""Attacks on the share of a region, by mixtures of output cells.

How a fit answers to what is reported is known (:mod:`.limit_fits`), so the share has a gradient in
what forgers send, and a quasi-Newton ascent goes along it. It ends on one of several summits.
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from ldpspatial.channels.disk import StampChannel
from ldpspatial.estimation.limit_fits import LimitFits

Array = NDArray[np.float64]

SPREAD = 0.1  # part of what is sent where an ascent starts that is even: from 0 nothing grows
GAIN = 1e-6  # of the share, below which a step ends the ascent


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

    def reached(self, sent: Array) -> float:
        """Return the weighted share of the fit if this is sent."""
        return float((self._weights * self._fit(sent)[1]).sum())

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
        law = self._honest.copy()
        law[self._support] += self._share * sent
        fit = self._limits.fit(law, self._density)
        self.best = max(self.best, float((self._weights * fit).sum()))
        return law, fit

    def _by_roots(self, roots: Array) -> tuple[float, Array]:
        """Return the share by the roots of what is sent, up to scale, and its gradient; minus."""
        total = float(roots @ roots)
        sent = roots**2 / total
        law, fit = self._fit(sent)
        slope = self._share * self._limits.slopes(law, fit, self._weights)[self._support]
        gradient = 2 * roots / total * (slope - float(slope @ sent))
        return -float((self._weights * fit).sum()), -gradient
