"""A law from noisy shares of many values, by how much of it is heard above the noise."""

from math import pi, sqrt

import numpy as np

from ldpspatial.release.local.sets.set_reports import on_simplex
from ldpspatial.release.local.trajectories.trajectory_release import Array


def heard_law(shares: Array, variance: float) -> Array:
    """Return a distribution from unbiased shares, each with the same noise.

    Noise alone has a mass of m sqrt(variance / (2 pi)) above 0 in the mean. Where that is below
    the mass of the truth, 1, the shares are projected on the distributions: it takes the same from
    all that remain above 0. Where it is more, the projection would keep nothing but the few
    highest peaks of noise. So negative shares are set to 0 and the rest is divided by its sum, as
    the published code of LDPTrace does, and what comes out counts for as much as the shares
    vary more than noise does: of m shares that are all noise the squares sum to m variance,
    give or take sqrt(2 / m) of it. The rest of the law is uniform.

    This is post-processing: ``shares`` are what reports say and ``variance`` is a public number.

    Parameters
    ----------
    shares : (m,) array
        Unbiased shares of the values, m >= 1; they may be negative.
    variance : float >= 0
        Of one share whose truth is near 0.

    Returns
    -------
    (m,) array that sums to 1

    Examples
    --------
    >>> heard_law(np.array([0.9, 0.3, -0.1]), 0.01).round(3).tolist()
    [0.8, 0.2, 0.0]
    >>> heard_law(np.array([2.0, -1.0, 0.0]), 3.0).round(3).tolist()
    [0.333, 0.333, 0.333]
    """
    values = len(shares)
    if values * sqrt(variance / (2 * pi)) < 1:
        return on_simplex(shares)
    uniform = np.full(values, 1 / values)
    noise = values * variance * (1 + 2 * sqrt(2 / values))
    spread = float(((shares - uniform) ** 2).sum())
    above = np.maximum(shares, 0)
    if not (spread > noise and above.any()):
        return uniform
    heard = 1 - noise / spread
    return np.asarray(heard * above / above.sum() + (1 - heard) * uniform)
