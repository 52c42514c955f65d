"""The prior's unknowns drawn anew, given the field.

A trajectory moves field and unknowns together, and hardly the unknowns: thousands of waves tell a
spectrum closely, and what it leaves open is a narrow, curved ridge of spread, length and slope. To
go along it takes the waves' sums of squares by frequency, and no report, so that many steps are
cheap. Both in turn: interweaving, Yu and Meng 2011.
"""

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.field.way import Rings

Array = NDArray[np.float64]

MOVED = 3  # log sigma, log l, log(a - 1); waves of time tell little of log t
STEPS = 8
LONGEST, SHORTEST = 2.0, 0.3  # of a step, in standard deviations: the ridge is curved


def redrawn(rings: Rings, waves: Array, hypers: Array, rng: np.random.Generator) -> Array:
    """Return unknowns after some Metropolis steps that leave their law given the waves as it is.

    Parameters
    ----------
    rings : Rings
    waves : (S, W, d, d) array
    hypers : (S, 5) array
    rng : numpy Generator
    """
    number, windows = waves.shape[:2]
    tempo = rings.spectrum(hypers)[1]
    squares = (waves**2 * np.exp(-2 * tempo)[:, :, None, None]).sum(1).reshape(number, -1)
    sums = np.stack([np.bincount(rings.of_wave, each) for each in squares])

    def looked_at(hypers: Array) -> tuple[Array, Array, Array]:
        """Return log-densities, and Cholesky factors of the information with their log-volumes."""
        spectrum, _, _, factors = rings.spectrum(hypers)
        log_amplitude, by = spectrum[0], spectrum.copy()
        by[0] = 1.0
        by[0, :, 0] = 0.0  # the mean's amplitude is given
        by *= factors[:, :MOVED].T[:, :, None]
        density = -(0.5 * sums * np.exp(-2 * log_amplitude)).sum(1)
        density -= windows * log_amplitude @ rings.times + 0.5 * (hypers**2).sum(1)
        information = 2 * windows * np.einsum("isr,jsr->sij", by * rings.times, by)
        lower = np.linalg.cholesky(information + np.eye(MOVED))
        return density, lower, np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(1)

    here: Array = hypers.copy()
    density, lower, volume = looked_at(here)
    for _ in range(STEPS):
        length = np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST)))
        normal = rng.standard_normal((number, MOVED))
        step = length * np.linalg.solve(lower.swapaxes(1, 2), normal[:, :, None])
        tried = here.copy()
        tried[:, :MOVED] += step[:, :, 0]
        after, lower_after, volume_after = looked_at(tried)
        back = (lower_after.swapaxes(1, 2) @ step)[:, :, 0] / length
        gain = after - density + volume_after - volume + 0.5 * (normal**2 - back**2).sum(1)
        taken = np.log(rng.random(number)) < gain
        here[taken], lower[taken] = tried[taken], lower_after[taken]
        density, volume = (
            np.where(taken, *each) for each in ((after, density), (volume_after, volume))
        )
    return here
