"""Sums over windows against SciPy's convolution."""

import numpy as np
import pytest
from scipy.signal import convolve2d

from ldpspatial.estimation.window_sums import window_sums


@pytest.mark.parametrize("shape", [(1, 1), (7, 7), (4, 9)])
@pytest.mark.parametrize("reach", [0, 1, 3, 12])
def test_sums_are_those_of_a_convolution(shape: tuple[int, int], reach: int) -> None:
    """Be the window within the map or beyond it."""
    values = np.random.default_rng(1).standard_normal(shape)
    offsets = np.arange(-reach, reach + 1)
    window = 1.0 / (1.0 + np.hypot(offsets[:, None], 2 * offsets))
    expected = convolve2d(values, window)[reach : reach + shape[0], reach : reach + shape[1]]
    assert window_sums(values, window) == pytest.approx(expected, abs=1e-12)
