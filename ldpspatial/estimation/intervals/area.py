"""The map of the people in an area alone: what is outside of it was collected and is left out.

Devices outside of the square report from its edge, and people in cells that the area cuts may be on
either side. So a square is collected that is larger than the area, and shares are asked of the
people in the area: each sample of the posterior is cut to it and has its own sum.
"""

import hashlib
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpspatial.errors import InputError
from ldpspatial.estimation.field.posterior import Posterior
from ldpspatial.estimation.intervals.posterior import samples_of
from ldpspatial.estimation.result import Estimate
from ldpspatial.validate import instance, number_array

Array = NDArray[np.float64]

SPREAD = 2.0  # a part with mean w has the variance w (1 - w) / 3, as that of a region has
LEAST = 1e-6  # of all people: a smaller area has no map


def people_in_area(estimate: Estimate, area: ArrayLike) -> tuple[Estimate, float]:
    """Return the map of the people in an area, with samples, and their share of all people.

    Parameters
    ----------
    estimate : Estimate
        Where it has no samples, a field is fitted to its counts.
    area : (d, d) array in [0, 1]
        Share of each cell that the area covers.

    Returns
    -------
    Estimate
        Density and samples are those of the people in the area, and sum to 1. In cells that the
        area cuts every sample has a part of its own. Counts are still those of all reports, and
        ``of_all`` is the area's share: intervals by counts, those of fisher, refuse such a map.
    float in (0, 1]
        By the mean of the samples.

    Raises
    ------
    InputError
        A bad argument, hardly anybody in the area, or a channel that the field does not take.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
    >>> inner = np.zeros((5, 5))
    >>> inner[1:4, 1:4] = 1
    >>> within, share = people_in_area(Field().fit(channel, counts), inner)
    >>> bool(0.5 < share < 0.7), bool(within.density[0].sum() == 0), within.density.sum().round(6)
    (True, True, 1.0)
    """
    shape = instance("estimate", estimate, Estimate).density.shape
    weights = number_array("area", area, shape, "[0, 1]", bools=True)
    samples = samples_of(estimate)
    mean = samples.mean(0)
    share = min(float((mean * weights).sum() / mean.sum()), 1.0)
    if share < LEAST:
        raise InputError(f"area must hold people, but its share of them is {share:.1e}")
    held = samples * _parts(weights, len(samples), estimate.counts)
    sums = held.sum((1, 2), keepdims=True)
    details = estimate.details
    if not sums.all() and isinstance(details, Posterior):
        # Samples with nobody in the area are left out, so the k-th is no longer that of one fit.
        details = replace(details, fit="")
    held = held[sums[:, 0, 0] > 0] / sums[sums > 0][:, None, None]
    density = estimate.density * weights
    if not density.sum():
        density = mean * weights
    density = density / density.sum()
    of_all = share * estimate.of_all
    inside = replace(estimate, density=density, samples=held, of_all=of_all, details=details)
    return inside, share


def _parts(weights: Array, count: int, counts: Array) -> Array:
    """Return (S, d, d) parts of each cell's people who are in the area; equal for equal counts."""
    parts = np.repeat(weights[None], count, axis=0)
    cut = (weights > 0) & (weights < 1)
    seed = hashlib.sha256(np.ascontiguousarray(counts).tobytes()).digest()
    rng = np.random.default_rng(int.from_bytes(seed[:8], "little"))
    of_cut = SPREAD * weights[cut]
    parts[:, cut] = rng.beta(of_cut, SPREAD - of_cut, (count, int(cut.sum())))
    return np.asarray(parts)
