"""Whether chains have seen the whole posterior, judged by what maps say and not by single cells.

Split R-hat and effective samples: Gelman et al., Bayesian Data Analysis, 3rd edition, section 11.4
and 11.5. What is looked at: log-likelihood, centre of mass, and shares of quarters and middle.
"""

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.field.sampler import Samples

Array = NDArray[np.float64]

NEVER = 1e9  # split R-hat where none can be told: a number that every file can hold


def mixing(samples: Samples) -> tuple[float, float]:
    """Return the largest split R-hat and the fewest effective samples of what maps say."""
    found = [_split(values) for values in _told(samples)]
    return max(each[0] for each in found), min(each[1] for each in found)


def _told(samples: Samples) -> list[Array]:
    found = [samples.fits]
    for window in range(samples.densities.shape[2]):
        found += _places(samples.densities[:, :, window])
    return found


def _places(maps: Array) -> list[Array]:
    """Return (T, C) arrays of what (T, C, d, d) maps say."""
    cells = maps.shape[-1]
    place = (np.arange(cells) + 0.5) / cells
    half, quarter = max(cells // 2, 1), cells // 4
    middle = slice(quarter, cells - quarter)
    return [
        (maps * place[:, None]).sum((2, 3)),
        (maps * place).sum((2, 3)),
        maps[..., :half, :half].sum((2, 3)),
        maps[..., half:, :half].sum((2, 3)),
        maps[..., middle, middle].sum((2, 3)),
    ]


def _split(values: Array) -> tuple[float, float]:
    """Return split R-hat and effective samples of a (T, C) array."""
    length = len(values) // 2
    if length < 2:
        return NEVER, 0.0
    halves = np.concatenate([values[:length], values[length : 2 * length]], axis=1)
    within = halves.var(0, ddof=1).mean()
    between = halves.mean(0).var(ddof=1)  # of means: over the length, if they are independent
    if not np.isfinite(within + between):
        return NEVER, 0.0
    if within <= 0:
        return 1.0, float(halves.size)  # nothing ever changes, as with a single cell
    total = (length - 1) / length * within + between
    effective = halves.size * min(1.0, total / max(length * between, 1e-300))
    return min(float(np.sqrt(total / within)), NEVER), float(effective)
