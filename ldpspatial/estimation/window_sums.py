"""Sums over a window around each cell, by fast Fourier transforms.

:func:`scipy.signal.fftconvolve` does the same, and takes longer to load than a map of few cells to
estimate.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import fft

Array = NDArray[np.float64]


def window_sums(values: Array, window: Array) -> Array:
    """Return what lies in a window around each cell, nothing beyond the edge; all as given.

    Parameters
    ----------
    values : (h, w) array
    window : (2a + 1, 2b + 1) array
        Weights, the same in all mirrors.
    """
    reach = [side // 2 for side in window.shape]
    shape = [
        fft.next_fast_len(side + more, real=True)
        for side, more in zip(values.shape, reach, strict=True)
    ]
    found = fft.irfft2(fft.rfft2(values, shape) * fft.rfft2(window, shape), shape)
    kept = (slice(more, more + side) for side, more in zip(values.shape, reach, strict=True))
    return np.asarray(found[tuple(kept)])
