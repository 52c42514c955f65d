"""Channels applied to many densities at once: samples, chains and modes go through together."""

from abc import ABC, abstractmethod
from copy import copy
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.disk_sums import DiskSums
from ldpspatial.channels.protocol import MATRIX_LIMIT, Channel, Operator, is_conditional, operators
from ldpspatial.compiled import compiled_in_any_order
from ldpspatial.errors import InputError

Array = NDArray[Any]  # of float64, or of float32 in a stack of single precision

MOST_ADDITIONS = 40  # for a sum over a stamp, up to which it beats transforms
DENSE_ENTRIES = 600_000  # of a channel's matrix, up to which a product beats transforms
# Sides beyond which a density may be constant on blocks, each with the blocks that a disk's radius
# must have: the map is then off by a block or more in any case.
BLOCKS = ((32, 6), (128, 5))
WORTH = 80  # blocks along a side, up to which they rather divide the map: that is exact
LEAST = 1e-30  # a probability of a report, so that its logarithm is finite
NOT_REACHED = 1e-9  # of a stamp, which rounding leaves where it does not reach


class Stack(ABC):
    """A channel for stacks of densities and of ratios.

    Attributes
    ----------
    cells : int
        Side of a density; of blocks of cells, if it is constant on them.
    block : int
        Side of a block in cells, 1 without blocks.
    whole : int
        Side of the map in cells. The last blocks may reach beyond it.
    support : 2-D array
        Mask of the output cells, shaped like ``counted`` counts.
    """

    cells: int
    block: int = 1
    whole: int
    support: NDArray[np.bool_]

    @abstractmethod
    def forward(self, densities: Array) -> Array:
        """Return (S, ...) distributions of reports of (S, d, d) densities."""

    @abstractmethod
    def adjoint(self, ratios: Array) -> Array:
        """Return (S, d, d) products of M^T with (S, ...) ratios; 0 outside the support."""

    def pulled(self, densities: Array, counts: Array) -> Array:
        """Return M^T (counts / M densities), what densities must grow by to explain counts.

        Parameters
        ----------
        densities : (S, W, d, d) array
        counts : (W, ...) array, shaped like ``support`` by window, 0 outside it
        """
        reports = self.forward(densities.reshape(-1, *densities.shape[2:]))
        np.maximum(reports, np.where(self.support, LEAST, 1.0).astype(reports.dtype), out=reports)
        reports = reports.reshape(*densities.shape[:2], *self.support.shape)
        ratios = np.divide(counts, reports, out=reports)
        found = self.adjoint(ratios.reshape(-1, *self.support.shape))
        return np.ascontiguousarray(found.reshape(densities.shape))

    def curved(self, values: Array, weights: Array) -> Array:
        """Return M^T (weights * M values), what curves a likelihood.

        Parameters
        ----------
        values : (S, d, d) array
        weights : (S, ...) array, shaped like ``support``, 0 outside it
        """
        return self.adjoint(weights * self.forward(values))

    def single(self) -> "Stack":
        """Return the same in numbers of half the length."""
        return self

    def gains(self) -> Array | float:
        """Return (d, d) squared gains by cosine wave, or 1 where they are not known."""
        return 1.0

    def inner(self, reports: Array) -> Array:
        """Return the reports from the cells themselves, or their mean where shapes differ."""
        return np.asarray(reports.reshape(len(reports), -1).mean(1)[:, None, None])

    def counted(self, counts: Array) -> Array:
        """Return counts of the channel as this stack counts them."""
        return counts

    def by_cell(self, channel: Channel) -> "Stack":
        """Return the same channel without blocks."""
        return self

    def spread(self, densities: Array) -> Array:
        """Return (S, ...) densities by cell of ones by block."""
        if self.block == 1:
            return densities
        of_side = np.full(self.cells, self.block)
        of_side[-1] -= self.cells * self.block - self.whole
        shares = densities / np.outer(of_side, of_side)
        return np.asarray(shares.repeat(of_side, axis=1).repeat(of_side, axis=2))

    def gathered(self, densities: Array) -> Array:
        """Return the sums over blocks of cells of (..., d, d) densities."""
        if self.block == 1:
            return densities
        ends = np.arange(0, self.whole, self.block)
        return np.asarray(np.add.reduceat(np.add.reduceat(densities, ends, -2), ends, -1))


def takes(channel: object) -> bool:
    """Tell whether a field can be fitted to reports of a channel, with intervals that hold."""
    if not isinstance(channel, Channel) or is_conditional(channel):
        return False
    shape = tuple(channel.input_shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        return False
    return isinstance(channel, StampChannel) or _entries(channel) <= MATRIX_LIMIT


def _entries(channel: Channel) -> int:
    """Return how many pairs of a cell and a kind of report a channel has."""
    return prod(channel.input_shape) * int(channel.support.sum())


def stack(channel: Channel, most: int | None = None) -> Stack:
    """Return the quickest form of a channel.

    Parameters
    ----------
    channel : Channel
    most : int, optional
        Blocks along a side, beyond which those of a disk are made larger than is exact.

    Raises
    ------
    InputError
        Densities are no squares of cells, or the channel is neither a disk nor small.
    """
    shape = tuple(channel.input_shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(f"channel must take densities of d x d cells with rule field, got {shape}")
    entries = _entries(channel)
    if isinstance(channel, StampChannel) and entries > DENSE_ENTRIES:
        least = 1 if most is None else -(-shape[0] // most)
        return Stamped(channel, max(least, block_side(shape[0], channel.table.radius)))
    if entries > MATRIX_LIMIT:
        raise InputError(
            f"channel must have at most {MATRIX_LIMIT:,} pairs of a cell and a report with rule "
            f"field, or a table of responses, got {entries:,}"
        )
    return Dense(channel)


def of_one(channel: Channel) -> tuple[Operator, Operator]:
    """Return a channel's ``forward`` and ``adjoint`` for loops that take one density at a time.

    As :func:`ldpspatial.channels.protocol.operators`; of a small disk by sums, in a third of the
    time of transforms.
    """
    if type(channel) is not StampChannel:  # what a subclass does may be another thing
        return operators(channel)
    stamped = Stamped(channel)
    return (
        lambda density: stamped.forward(density[np.newaxis])[0],
        lambda ratio: stamped.adjoint(ratio[np.newaxis])[0],
    )


def by_cell(channel: Channel) -> Stack:
    """Return a channel for loops that take stacks of densities by cell, whatever its shapes are."""
    return Stamped(channel) if type(channel) is StampChannel else Each(channel)


def block_side(cells: int, radius: int) -> int:
    """Return the side of blocks in cells, 1 where a density has cells of its own."""
    most = max(min(-(-cells // side), radius // blocks) for side, blocks in BLOCKS)
    exact = [side for side in range(1, most + 1) if cells % side == 0 and cells <= side * WORTH]
    return max(exact, default=max(most, 1))


class Dense(Stack):
    """By the matrix of the channel."""

    def __init__(self, channel: Channel):
        forward, _ = operators(channel)
        self.cells = self.whole = channel.input_shape[0]
        units = np.eye(self.cells**2).reshape(-1, self.cells, self.cells)
        self._matrix = np.stack([forward(unit)[channel.support] for unit in units])
        self._channel = channel
        self.support = self.counted(channel.support)

    def counted(self, counts: Array) -> Array:
        """Return counts as rows and columns; reports without such are one row."""
        return counts.reshape(len(counts) if counts.ndim > 1 else 1, -1)

    def single(self) -> Stack:
        """Return the same in numbers of half the length."""
        found = copy(self)
        found._matrix = self._matrix.astype(np.float32)
        return found

    def forward(self, densities: Array) -> Array:
        """Multiply by the matrix."""
        found = np.zeros((len(densities), *self.support.shape), densities.dtype)
        found[:, self.support] = densities.reshape(len(densities), -1) @ self._matrix
        return found

    def adjoint(self, ratios: Array) -> Array:
        """Multiply by its transpose."""
        flat = ratios[:, self.support] @ self._matrix.T
        return np.asarray(flat.reshape(len(ratios), self.cells, self.cells))

    def gains(self) -> Array | float:
        """Return (d, d) squared gains by cosine wave of a disk, or 1."""
        if not isinstance(self._channel, StampChannel):
            return 1.0
        return stamp_gains(self._channel._stamp, self.cells)

    def inner(self, reports: Array) -> Array:
        """Return the reports from the cells themselves, or their mean where shapes differ."""
        if not isinstance(self._channel, StampChannel):
            return super().inner(reports)
        radius = self._channel.table.radius
        return reports[:, radius : radius + self.cells, radius : radius + self.cells]


class Each(Stack):
    """One density after the other, by the channel itself."""

    def __init__(self, channel: Channel):
        self.cells = self.whole = channel.input_shape[0]
        self.support = channel.support
        self._operators = operators(channel)

    def forward(self, densities: Array) -> Array:
        """Multiply each by the matrix."""
        return np.stack([self._operators[0](each) for each in densities])

    def adjoint(self, ratios: Array) -> Array:
        """Multiply each by its transpose."""
        return np.stack([self._operators[1](each) for each in ratios])


class Stamped(Stack):
    """A disk, by fast Fourier transforms; on blocks of cells if wanted.

    On blocks it is exact for a density that is constant on them: the stamp of blocks is N S N^T,
    S that of cells, N(R, t) = max(0, k - |k R - t|) / k the share of pairs of cells, one in each of
    two blocks R apart, that are t apart. Where the last blocks reach beyond the square, it is the
    channel of a square that holds them whole; no report comes from the outputs that it has more.

    Parameters
    ----------
    channel : StampChannel
    block : int
        k.
    """

    def __init__(self, channel: StampChannel, block: int = 1):
        cells, radius = channel.table.cells, channel.table.radius
        self.cells = -(-cells // block)
        self.block = block
        self.whole = cells
        self._radius = -(-radius // block)
        offsets = np.arange(-radius, radius + 1)
        steps = block * np.arange(-self._radius, self._radius + 1)
        pairs = np.maximum(0, block - np.abs(steps[:, None] - offsets)) / block
        self._stamp = pairs @ channel._stamp @ pairs.T
        self._margin = self._radius * block - radius
        self._side = self.cells + 2 * self._radius  # of the outputs, in blocks
        size = fft.next_fast_len(self._side, real=True)
        self._shape = (size, size)
        self._transform = fft.rfft2(self._stamp, self._shape)
        sums = DiskSums.of(self._stamp)
        self._sums = sums if sums.additions <= MOST_ADDITIONS else None
        outputs = self.counted(channel.support.astype(np.float64))
        everywhere = np.ones((1, self.cells, self.cells))
        reached = self._convolved(everywhere)[0, : self._side, : self._side]
        self.support = (outputs > 0) | (reached > NOT_REACHED * self._stamp.sum())
        # An output of which rounding alone remains would weigh without bounds: at least a cell.
        self._base = channel._base * np.maximum(outputs, self.support)

    def counted(self, counts: Array) -> Array:
        """Return counts by block of the output domain."""
        side, block = self._side, self.block
        wide = np.zeros((side * block, side * block))
        kept = slice(self._margin, self._margin + len(counts))
        wide[kept, kept] = counts
        return np.asarray(wide.reshape(side, block, side, block).sum((1, 3)))

    def by_cell(self, channel: Channel) -> Stack:
        """Return the same channel without blocks."""
        return self if self.block == 1 else Stamped(channel)  # type: ignore[arg-type]

    def single(self) -> Stack:
        """Return the same in numbers of half the length."""
        found = copy(self)
        found._base = self._base.astype(np.float32)
        found._transform = self._transform.astype(np.complex64)
        return found

    def forward(self, densities: Array) -> Array:
        """Convolve with the stamp, and add the base."""
        found = self._spread(densities)
        found *= self.support
        found += self._base * densities.sum((1, 2), keepdims=True)
        return np.asarray(found)

    def adjoint(self, ratios: Array) -> Array:
        """Correlate with the stamp, and add the base."""
        inside = ratios * self.support
        based = np.einsum("ij,sij->s", self._base, inside)
        found = self._gathered(inside)
        found += based[:, None, None]
        return np.asarray(found)

    def pulled(self, densities: Array, counts: Array) -> Array:
        """Return M^T (counts / M densities) in fewer passes than both take by themselves."""
        flat = densities.reshape(-1, *densities.shape[2:])
        ratios = np.ascontiguousarray(self._spread(flat))
        based = _ratios(ratios, flat.sum((1, 2)), self._base, self.support, counts)
        found = np.ascontiguousarray(self._gathered(ratios))
        found += based[:, None, None]
        return np.asarray(found.reshape(densities.shape))

    def curved(self, values: Array, weights: Array) -> Array:
        """Return M^T (weights * M values) in fewer passes than both take by themselves."""
        weighted = np.ascontiguousarray(self._spread(values))
        based = _weighted(weighted, values.sum((1, 2)), self._base, weights)
        found = np.ascontiguousarray(self._gathered(weighted))
        found += based[:, None, None]
        return np.asarray(found)

    def _spread(self, values: Array) -> Array:
        if self._sums is not None:
            return self._sums.spread(values)
        return self._convolved(values)[:, : self._side, : self._side]

    def _gathered(self, values: Array) -> Array:
        if self._sums is not None:
            return self._sums.gathered(values)
        kept = slice(2 * self._radius, 2 * self._radius + self.cells)
        return self._convolved(values)[:, kept, kept]

    def _convolved(self, values: Array) -> Array:
        product = fft.rfft2(values, self._shape)
        product *= self._transform
        return np.asarray(fft.irfft2(product, self._shape, overwrite_x=True))

    def gains(self) -> Array | float:
        """Return (d, d) squared gains by cosine wave."""
        return stamp_gains(self._stamp, self.cells)

    def inner(self, reports: Array) -> Array:
        """Return the reports from the blocks of the square."""
        kept = slice(self._radius, self._radius + self.cells)
        return reports[:, kept, kept]


@compiled_in_any_order
def _ratios(lifted, totals, base, support, counts):  # type: ignore[no-untyped-def]
    """Put counts over reports in place of what lies above the base; sum them times the base."""
    windows = len(counts)
    sums = np.zeros(len(lifted), lifted.dtype)
    least = np.zeros(1, lifted.dtype)[0]
    least += LEAST
    weights = base.ravel()
    inside = support.ravel()
    for s in range(len(lifted)):
        reports, came = lifted[s].ravel(), counts[s % windows].ravel()
        total, based = totals[s], sums[s]
        for k in range(len(reports)):
            report = max(reports[k] + weights[k] * total, least)
            ratio = came[k] / report if inside[k] else least
            reports[k] = ratio
            based += weights[k] * ratio
        sums[s] = based
    return sums


@compiled_in_any_order
def _weighted(lifted, totals, base, weights):  # type: ignore[no-untyped-def]
    """Put weighted reports in place of what lies above the base; sum them times the base."""
    sums = np.zeros(len(lifted), lifted.dtype)
    flat_base = base.ravel()
    for s in range(len(lifted)):
        reports, weight = lifted[s].ravel(), weights[s].ravel()
        total, based = totals[s], sums[s]
        for k in range(len(reports)):
            report = weight[k] * (reports[k] + flat_base[k] * total)
            reports[k] = report
            based += flat_base[k] * report
        sums[s] = based
    return sums


def stamp_gains(stamp: Array, cells: int) -> Array:
    """Return (d, d) squared gains of a stamp by cosine wave, edges left aside."""
    radius = len(stamp) // 2
    waves = np.cos(np.outer(np.arange(cells), np.arange(-radius, radius + 1)) * np.pi / cells)
    return np.asarray((waves @ stamp @ waves.T) ** 2)
