"""How far forged reports can move a map: what forgers reach, and what none can pass.

Of all reports a share s is forged: any output cells, chosen together by people who know the table
and the map. The others are of density f0, with distribution g0 = M f0. The fit is that of maximum
likelihood, in the limit of many reports, on (1 - s) g0 + s w, w what the forgers send.

What they reach is computed. All forgers send one output cell, or one and its mirror images alike,
the counts are fitted, and the distance between both maps is exact. Where the fit is linear in the
counts no mixture w does better than one cell: squared W2 is convex in the fitted map, so it is
largest at a corner of the simplex of all w. Elsewhere this is an attack, which optimised mixtures
pass (docs/experiments/forged-reports.md). For the share of a region they pass it by more.

What none can pass is proved in :mod:`.proofs`.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.channels.disk import StampChannel
from ldpspatial.estimation.forgery.attacks import Attacks, Cells, law_with
from ldpspatial.estimation.forgery.proofs import least_share, most_moved
from ldpspatial.estimation.forgery.regions import RegionAttack
from ldpspatial.one_thread import in_one_thread
from ldpspatial.validate import density_array, instance, number_array, number_in

Array = NDArray[np.float64]

MARGIN = 1.25  # optimised forgeries passed what is reached by .21 at most
FITS = 24  # of an ascent of a region's share
QUICK_SIDE = 32  # cells a side above which there is time for a third of them
ROUNDING = 1e-5  # in cells, of the distances that the proof is made of


@dataclass(frozen=True)
class RegionInfluence:
    """How far forgers move the share of one region.

    Attributes
    ----------
    lower, upper : float
        What forgers make of the region's weighted share, who send one output cell or a mixture that
        a short ascent finds: attacks.
    least, most : float
        Proved: no forgery takes the share of the maximum likelihood fit below or above it.
    share : float
        The region's weighted share with nothing forged.
    """

    lower: float
    upper: float
    least: float
    most: float
    share: float


@dataclass(frozen=True)
class Influence:
    """How far forgers of a share of all reports can move a map.

    Attributes
    ----------
    share : float in [0, 1)
        Forged, of all reports.
    w2 : float
        What the map moves by at most, W2 in cells: 1.25 times what is reached, or what is
        proven where that is less. Measured, not proved: no optimised forgery passed it, be the map
        by EM, EM run to its limit, or the field.
    reached : float
        W2 in cells between the maps without and with forgeries that are all of one output cell, or
        of one and its mirror images alike, the worst of those that are tried: an attack, which
        anybody can repeat. On more than 64 cells a side of both maps in blocks.
    proven : float
        W2 in cells which no forgery can pass, by the weights of the table: for the maximum
        likelihood fit of many reports. Wide of the mark where disks are of several cells.
    cells : tuple of (int, int)
        The output cells of that attack, (row, col) as reports have them.
    """

    share: float
    w2: float
    reached: float
    proven: float
    cells: Cells
    channel: StampChannel = field(repr=False, compare=False)
    density: Array = field(repr=False, compare=False)
    attacked: dict[Cells, Array] = field(repr=False, compare=False)

    @in_one_thread
    def region(self, weights: ArrayLike) -> RegionInfluence:
        """Return how far forgers move the weighted share of a region.

        Parameters
        ----------
        weights : (d, d) array in [0, 1]
            The covered share of each cell.

        Raises
        ------
        InputError
            The weights have another shape, or a value outside [0, 1].
        """
        region = number_array("weights", weights, self.density.shape, "[0, 1]", bools=True)
        honest = float((region * self.density).sum())
        if not self.share or not np.ptp(region):  # of an even one the map tells nothing
            return RegionInfluence(honest, honest, honest, honest, honest)
        least, lower = self._least(region)
        most, upper = self._least(-region)
        least, most = max(least, float(region.min())), min(-most, float(region.max()))
        # Fits are short of their limits by what is left of f.z.
        return RegionInfluence(max(lower, least), min(-upper, most), least, most, honest)

    def _least(self, weights: Array) -> tuple[float, float]:
        """Return what a weighted share is proved not to be below, and what attacks make of it."""
        proof = least_share(weights, self.channel, self.density, self.share)
        attack = RegionAttack(-weights, self.channel, self.density, self.share)
        best = min(self.attacked, key=lambda cells: float((weights * self.attacked[cells]).sum()))
        support = self.channel.support
        sent = law_with(self.channel, self.density, 1.0, *best)
        fits = FITS if len(weights) <= QUICK_SIDE else FITS // 3
        attack.climb(sent[support], proof.forged[support])
        attack.ascend(sent[support], fits // 3)
        attack.ascend(proof.forged[support], fits)
        return proof.bound, 0.0 - attack.best  # no -0


@in_one_thread
def influence(channel: StampChannel, density: ArrayLike, share: float) -> Influence:
    """Return how far forgers of a share of all reports can move a map.

    Parameters
    ----------
    channel : StampChannel
    density : (d, d) array
        The map of those who are honest: non-negative, sums to 1.
    share : float in [0, 1)
        Forged, of all reports.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=6.0, cells=5))
    >>> found = influence(channel, np.full((5, 5), 1 / 25), 0.05)
    >>> bool(0 < found.reached <= found.proven)
    True
    >>> found.region(np.eye(5)).most < 0.4
    True
    """
    instance("channel", channel, StampChannel)
    honest = density_array("density", density, channel.input_shape)
    forged = number_in("share", share, "[0, 1)")
    if not forged:
        return Influence(forged, 0.0, 0.0, 0.0, (), channel, honest, {})
    attacks = Attacks(channel, honest, forged)
    attacks.search()
    reached, worst = attacks.farthest()
    proven = max(most_moved(channel, honest, forged) + ROUNDING, reached)
    return Influence(
        forged,
        min(MARGIN * reached, proven),
        reached,
        proven,
        worst,
        channel,
        honest,
        attacks.fits,
    )
