"""The channel of a response table, a disk around the true cell.

It is
g = q (sum f + (w - 1) * f), the second term a correlation with the table's disk, cut to the
output domain (DEFINITION: one q and one total for every input). The dense matrix would take
63 GB at d = 256, so it is built for small grids alone.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from client_sdk import ResponseTable
from ldpspatial.channels.protocol import MATRIX_LIMIT, Array, on_density, on_ratio
from ldpspatial.compiled import compiled
from ldpspatial.errors import InputError
from ldpspatial.validate import instance, one_of

# Cells of the disk up to which the direct kernel beats FFTs at every grid size
# (docs/benchmarks.md, "Channel: direct or FFT").
DIRECT_DISK_CELLS = 100
THREADED_SIDE = 512  # below it a second thread costs more than it brings


class StampChannel:
    """The channel of a response table.

    Parameters
    ----------
    table : client_sdk.ResponseTable
    method : {"auto", "direct", "fft"}
        How the disk is applied; "auto" takes the faster one by the size of the disk.

    Attributes
    ----------
    table : client_sdk.ResponseTable
    method : {"direct", "fft"}
    output_shape : (int, int)
        (d + 2b, d + 2b); output cell (row, col) is entry [row + b, col + b].
    """

    def __init__(self, table: ResponseTable, method: str = "auto"):
        self.table = instance("table", table, ResponseTable)
        one_of("method", method, ("auto", "direct", "fft"))
        if method == "auto":
            method = "direct" if len(table.weights) <= DIRECT_DISK_CELLS else "fft"
        self.method = method
        side = table.cells + 2 * table.radius
        self.output_shape = (side, side)
        self._base = table.base_weight / table.total_weight  # q, the same for every input

    @property
    def input_shape(self) -> tuple[int, int]:
        """Shape (d, d) of a density."""
        return (self.table.cells, self.table.cells)

    @property
    def epsilon(self) -> float:
        """Privacy loss of one report."""
        return self.table.epsilon

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        """(d + 2b, d + 2b) mask of the output domain."""
        table = self.table
        mask = np.zeros(self.output_shape, bool)
        for k, row in enumerate(table.output_rows):
            margin = table.margin(row)
            mask[k, table.radius - margin : table.radius + table.cells + margin] = True
        return mask

    @cached_property
    def _stamp(self) -> Array:
        """(2b + 1, 2b + 1) probabilities above the base, at [b + drow, b + dcol]."""
        table = self.table
        b = self.table.radius
        stamp = np.zeros((2 * b + 1, 2 * b + 1))
        for x, row in enumerate(table.octant):
            for y, weight in enumerate(row):
                # Subtracted as whole numbers, so that weights close to the base keep their digits.
                lift = (weight - table.base_weight) / table.total_weight
                # An entry of the octant stands for its mirror images, up to eight offsets.
                for r, c in ((x, y), (y, x)):
                    stamp[[b + r, b + r, b - r, b - r], [b + c, b - c, b + c, b - c]] = lift
        return stamp

    @cached_property
    def _fft_shape(self) -> tuple[int, int]:
        # No wrap-around reaches the output domain when the period is at least d + 2b.
        size = fft.next_fast_len(self.output_shape[0], real=True)
        return (size, size)

    @cached_property
    def _stamp_hat(self) -> NDArray[np.complex128]:
        return np.asarray(fft.rfft2(self._stamp, self._fft_shape), np.complex128)

    def _convolve(self, values: Array) -> Array:
        workers = 2 if self._fft_shape[0] >= THREADED_SIDE else 1
        product = fft.rfft2(values, self._fft_shape, workers=workers) * self._stamp_hat
        return np.asarray(fft.irfft2(product, self._fft_shape, workers=workers))

    @on_density
    def forward(self, density: Array) -> Array:
        """Return the distribution of reports.

        Parameters
        ----------
        density : (d, d) array

        Returns
        -------
        (d + 2b, d + 2b) array
            Sums to the sum of the density; 0 outside the output domain.

        Raises
        ------
        InputError
            The density has another shape, or holds what is no finite number.
        """
        if self.method == "direct":
            lifted = _scatter(density, self._stamp)
        else:
            side = self.output_shape[0]
            lifted = self._convolve(density)[:side, :side]
        return np.where(self.support, lifted + self._base * density.sum(), 0.0)

    @on_ratio
    def adjoint(self, ratio: Array) -> Array:
        """Return M^T ratio.

        Parameters
        ----------
        ratio : (d + 2b, d + 2b) array
            Entries outside the output domain do not count.

        Returns
        -------
        (d, d) array

        Raises
        ------
        InputError
            The ratio has another shape, or holds what is no finite number.
        """
        ratio = np.where(self.support, ratio, 0.0)
        if self.method == "direct":
            lifted = _gather(ratio, self._stamp, self.table.cells)
        else:
            # The stamp is its own mirror image, so correlation is convolution, shifted by 2b.
            b = self.table.radius
            d = self.table.cells
            # Of d + 4b rows and columns, those that wrap round land in the first 2b, not kept.
            lifted = self._convolve(ratio)[2 * b : 2 * b + d, 2 * b : 2 * b + d]
        return np.asarray(lifted + self._base * ratio.sum())

    def matrix(self) -> Array:
        """Return the dense (N, d^2) matrix, rows in the table's index order."""
        table = self.table
        d = self.table.cells
        if table.output_size * d * d > MATRIX_LIMIT:
            raise InputError(f"cells must be smaller for a dense matrix, got {d}")
        out = np.array(table.output_cells())
        matrix = np.full((table.output_size, d, d), self._base)
        for row in range(d):
            for col in range(d):
                offsets = out - (row, col) + table.radius
                near = ((offsets >= 0) & (offsets <= 2 * table.radius)).all(axis=1)
                matrix[near, row, col] += self._stamp[tuple(offsets[near].T)]
        return matrix.reshape(table.output_size, d * d)


@compiled
def _scatter(density, stamp):  # type: ignore[no-untyped-def]
    """Add density[i, j] * stamp around every input cell."""
    d = density.shape[0]
    s = stamp.shape[0]
    out = np.zeros((d + s - 1, d + s - 1))
    for i in range(d):
        for r in range(s):
            for c in range(s):
                weight = stamp[r, c]
                if weight != 0.0:  # corners of the stamp lie outside the disk
                    # Innermost along a row: contiguous in both arrays.
                    for j in range(d):
                        out[i + r, j + c] += weight * density[i, j]
    return out


@compiled
def _gather(ratio, stamp, d):  # type: ignore[no-untyped-def]
    """Sum ratio * stamp around every input cell."""
    s = stamp.shape[0]
    out = np.zeros((d, d))
    for i in range(d):
        for r in range(s):
            for c in range(s):
                weight = stamp[r, c]
                if weight != 0.0:
                    for j in range(d):
                        out[i, j] += weight * ratio[i + r, j + c]
    return out
