"""How much a public map inside cells says of the people who reported: learned from the reports.

The map divides cells among their parts, which no report can confirm. But it also divides blocks of
2 x 2 cells among their cells, and there reports speak. Each block's people are divided between
evenness and the public map, the map's share t being the same for all blocks; the counts have a
likelihood for each t. Its mean under a uniform prior is the trust: near 1 for a map that is right,
near 0 for one that is shifted or of another city, and 1/2 where reports are too few to tell.
"""

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.protocol import operators
from ldpspatial.errors import InputError
from ldpspatial.estimation.result import Estimate
from ldpspatial.estimation.robust import honest_counts
from ldpspatial.places.within import NEXT, Within, gathered
from ldpspatial.validate import instance

Array = NDArray[np.float64]

STEPS = 101  # values of t at which the likelihood is taken
NEVER = 1e-300  # under a report that a map excludes


def learned_trust(estimate: Estimate, within: Within) -> float:
    """Return how much public weights say of the people of an estimate, beside area.

    Parameters
    ----------
    estimate : Estimate
    within : Within
        Of the grid of the estimate. It must not come from the reports of the estimate.

    Returns
    -------
    float in [0, 1]
        1: people are inside cells as the public weights are. 0: as the area is.

    Raises
    ------
    InputError
        An argument is of another kind, the grids differ, or the estimate is of the people in an
        area, whom reports do not tell from the others.
    """
    density = instance("estimate", estimate, Estimate).density
    cells = instance("within", within, Within).grid.cells
    if density.shape != (cells, cells):
        raise InputError(
            f"within must be of the estimate's grid of {density.shape[0]} x {density.shape[1]} "
            f"cells, got one of {cells} x {cells}"
        )
    if estimate.of_all < 1:
        raise InputError(
            "within must be left out for a map of the people in an area: give the area with it to "
            "region_shares, and the map of all"
        )
    parts = within.block_parts()
    end = len(parts)
    if not end:  # a single cell
        return 0.5
    blocks = gathered(density[:end, :end]).sum((1, 3))
    people = blocks.repeat(NEXT, 0).repeat(NEXT, 1)
    forward, _ = operators(estimate.channel)
    divided = density.copy()
    laws = []
    for each in (np.full_like(parts, 1 / NEXT**2), parts):
        divided[:end, :end] = people * each
        laws.append(forward(divided.copy()))
    even, public = laws
    counts = honest_counts(estimate)
    came = counts > 0
    return _posterior_mean(counts[came], even[came], public[came])


def _posterior_mean(counts: Array, even: Array, public: Array) -> float:
    """Return the mean of t in (1 - t) even + t public under counts and a uniform prior."""
    trusts = np.linspace(0.0, 1.0, STEPS)
    gains = np.array(
        [counts @ np.log(np.maximum(even + t * (public - even), NEVER)) for t in trusts]
    )
    likely = np.exp(gains - gains.max())
    return float(likely @ trusts / likely.sum())
