"""Channel: the linear operator from densities to distributions of reports.

Estimation knows channels and counts, never mechanisms.
"""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MATRIX_LIMIT = 1 << 27  # entries; 1 GiB


@runtime_checkable
class Channel(Protocol):
    """What estimation needs to know of a mechanism."""

    @property
    def input_shape(self) -> tuple[int, int]:
        """Shape of a density."""

    @property
    def support(self) -> NDArray[np.bool_]:
        """Mask of the output cells; its shape is that of counts."""

    @property
    def epsilon(self) -> float:
        """Privacy loss of one report, which sets the scale of the default stopping rule."""

    def forward(self, density: Array) -> Array:
        """Return the distribution of reports under a density."""

    def adjoint(self, ratio: Array) -> Array:
        """Return M^T ratio, shaped like a density."""
