"""The channel as a dense matrix, one probability after another, and EM on it."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from client_sdk import ResponseTable

Array = NDArray[np.float64]
Stop = Callable[[float, Array, Array], bool]  # gain, before, after -> stop


def matrix(table: ResponseTable) -> Array:
    """Return the (N, d * d) matrix, outputs in index order, inputs row by row."""
    d, outputs = table.cells, table.output_cells()
    dense = np.empty((len(outputs), d * d))
    for j, (row, col) in enumerate(outputs):
        for i in range(d * d):
            dense[j, i] = float(table.probability(row - i // d, col - i % d))
    return dense


def spread(table: ResponseTable, by_index: Array) -> Array:
    """Return a (d + 2b, d + 2b) array from values in index order, zero elsewhere."""
    side = table.cells + 2 * table.radius
    array = np.zeros((side, side))
    for value, (row, col) in zip(by_index, table.output_cells(), strict=True):
        array[row + table.radius, col + table.radius] = value
    return array


def gathered(table: ResponseTable, array: Array) -> Array:
    """Return the values of the output cells in index order."""
    b = table.radius
    return np.array([array[row + b, col + b] for row, col in table.output_cells()])


def likelihood_gain(tolerance: float) -> Stop:
    return lambda gain, before, after: gain < tolerance


def published(tolerance: float = 1e-6) -> Stop:
    return lambda gain, before, after: (
        abs(sum(np.log(after)) - sum(np.log(before))) < tolerance  # every output cell counts once
    )


def smoothed(density: Array, kernel: Array) -> Array:
    """Average every cell with its eight neighbours; beyond an edge lies the cell itself again."""
    d = len(density)
    result = np.zeros((d, d))
    for row in range(d):
        for col in range(d):
            for drow in (-1, 0, 1):
                for dcol in (-1, 0, 1):
                    r, c = min(max(row + drow, 0), d - 1), min(max(col + dcol, 0), d - 1)
                    result[row, col] += kernel[drow + 1, dcol + 1] * density[r, c]
    return result


def em(
    dense: Array, counts: Array, stop: Stop, max_iterations: int, kernel: Array | None = None
) -> tuple[Array, list[float], bool]:
    """Return density, log-likelihoods and whether the rule was met; counts in index order."""
    d = round(dense.shape[1] ** 0.5)
    density = np.full(d * d, 1 / d**2)
    predicted = dense @ density
    trace = [float(counts @ np.log(predicted))]
    for _ in range(max_iterations):
        density = density * (dense.T @ (counts / predicted)) / counts.sum()
        if kernel is not None:
            density = smoothed(density.reshape(d, d), kernel).ravel()
        before, predicted = predicted, dense @ density
        trace.append(float(counts @ np.log(predicted)))
        if stop(trace[-1] - trace[-2], before, predicted):
            return density.reshape(d, d), trace, True
    return density.reshape(d, d), trace, False
