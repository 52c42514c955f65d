"""A channel that takes weights of Gaussian kernels, for densities that are smooth."""

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from ldpspatial.channels.protocol import Channel, on_density, on_ratio, operators

Array = NDArray[np.float64]

WIDTHS = (0.0, 0.6, 1.0, 1.6, 2.5, 4.0, 6.3, 10.0, 16.0)  # cells; steps of 10^(1/5)
ALL = inf  # in place of a width: kernels of all widths at once
SHARP = 0.1  # of the weight that kernels of each other width start with, for single cells
TRUNCATE = 6.0  # widths at which a kernel ends: e^-18 of it is left


class SmoothedChannel:
    """A channel whose inputs are the weights of Gaussian kernels in place of cells.

    Parameters
    ----------
    channel : Channel
    width : float >= 0
        Standard deviation of the kernels in cells. They reflect at the edges, so that no mass
        leaves the map. ``ALL``: weights are stacks of maps, one below the other, one per width.

    Attributes
    ----------
    start : array
        Weights to begin with, which make the uniform map.
    """

    def __init__(self, channel: Channel, width: float):
        self.channel = channel
        self.width = width
        self.support = channel.support
        self.epsilon = channel.epsilon
        rows, columns = channel.input_shape
        widths = tried_widths(WIDTHS, channel.input_shape) if width == ALL else [width]
        self.input_shape = (len(widths) * rows, columns)
        self._kernels = [(_kernel(rows, each), _kernel(columns, each)) for each in widths]
        shares = np.array([SHARP if each == 0 and width == ALL else 1.0 for each in widths])
        even = np.full((rows, columns), 1 / (rows * columns))
        # Each kernel leaves a flat map flat, so the shares do not matter here.
        self.start = np.concatenate([share * even for share in shares / shares.sum()])
        self._forward, self._adjoint = operators(channel)

    def smooth(self, weights: Array) -> Array:
        """Return the density that the weights of the kernels make."""
        if self.width == 0:
            return weights
        maps = np.split(weights, len(self._kernels))
        density = np.zeros(self.channel.input_shape)
        for (down, across), each in zip(self._kernels, maps, strict=True):
            # Kernels are symmetric: `across` needs no transpose.
            density += down @ each @ across
        return density

    @on_density
    def forward(self, density: Array) -> Array:
        """Return the distribution of reports under weights of kernels."""
        return self._forward(self.smooth(density))

    @on_ratio
    def adjoint(self, ratio: Array) -> Array:
        """Return the adjoint; the kernels are their own mirror images."""
        back = self._adjoint(ratio)
        if self.width == 0:
            return back
        return np.concatenate([down @ back @ across for down, across in self._kernels])


def tried_widths(widths: Sequence[float], shape: tuple[int, ...]) -> list[float]:
    """Return the widths that are tried on a map: up to a quarter of its shorter side."""
    return [width for width in widths if width <= min(shape) / 4]


def _kernel(side: int, width: float) -> Array:
    """Return the (side, side) matrix of one-dimensional kernels, symmetric, rows summing to 1."""
    if width == 0:
        return np.eye(side)
    kernel = gaussian_filter1d(np.eye(side), width, axis=0, mode="reflect", truncate=TRUNCATE)
    return np.asarray(kernel, np.float64)
