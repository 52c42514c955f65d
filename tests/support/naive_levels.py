"""Slow, obvious twins of the levels of a map, of the error estimate and of the sketch."""

from collections.abc import Sequence
from math import exp

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Shape = tuple[int, int]


def depth(shape: Shape) -> int:
    level = 1
    while 2**level < max(shape):
        level += 1
    return level


def cell_of(row: int, column: int, shape: Shape, level: int) -> tuple[int, int]:
    """The square of the level around a cell of the map."""
    side = 2 ** (depth(shape) - level)
    return row // side, column // side


def histogram(cells: Sequence[int], shape: Shape, level: int) -> dict[tuple[int, int], int]:
    """Number of people by square of the level, for every square that touches the map."""
    found = {
        cell_of(row, column, shape, level): 0
        for row in range(shape[0])
        for column in range(shape[1])
    }
    for cell in cells:
        found[cell_of(cell // shape[1], cell % shape[1], shape, level)] += 1
    return found


def areas(shape: Shape, level: int) -> dict[tuple[int, int], int]:
    """Number of cells of the map in every square of the level."""
    return histogram(range(shape[0] * shape[1]), shape, level)


def density(counts: Array, shape: Shape, level: int) -> Array:
    """Every cell of the map gets an equal part of its square's clipped share."""
    found = np.zeros(shape)
    total = sum(max(float(count), 0.0) for count in counts.ravel())
    sizes = areas(shape, level)
    for row in range(shape[0]):
        for column in range(shape[1]):
            at = cell_of(row, column, shape, level)
            share = max(float(counts[at]), 0.0) / total if total else sizes[at] / found.size
            found[row, column] = share / sizes[at]
    return found


def noise_law(decay: float, shares: float, most: int) -> Array:
    """P(Z = k), k = -most .. most, for shares of discrete Laplace noise: Polya less Polya."""
    a, polya = exp(-decay), [(1 - exp(-decay)) ** shares]
    for k in range(1, 2 * most + 1):
        polya.append(polya[-1] * a * (shares + k - 1) / k)
    law = np.convolve(polya, polya[::-1])
    middle = len(polya) - 1
    return law[middle - most : middle + most + 1]


def poisson_law(mean: float, most: int) -> Array:
    """P(x = k), k = 0 .. most."""
    law = [exp(-mean)]
    for k in range(1, most + 1):
        law.append(law[-1] * mean / k)
    return np.array(law)


def squared_error(counts: Array, products: Array, shape: Shape, level: int, people: int) -> float:
    """Sum over cells of the map of f^2 - 2 f m / N, with the product f m by square given."""
    sizes, total = areas(shape, level), sum(max(float(count), 0.0) for count in counts.ravel())
    found = 0.0
    for row in range(shape[0]):
        for column in range(shape[1]):
            at = cell_of(row, column, shape, level)
            found += (max(float(counts[at]), 0.0) / total / sizes[at]) ** 2
            found -= 2 * float(products[at]) / (total * people * sizes[at] ** 2)
    return found


def sketch_place(multiplier: int, offset: int, key: int, width: int) -> int:
    """A place in a row, in numbers without an end."""
    return (multiplier * key + offset) % 2147483647 % width


def sketch(
    keys: Sequence[Sequence[int]], multipliers: Sequence[int], offsets: Sequence[int], width: int
) -> Array:
    """Table of clients who each add the same keys to every row."""
    table = np.zeros((len(multipliers), width))
    for client in keys:
        for key in client:
            for row, (a, b) in enumerate(zip(multipliers, offsets, strict=True)):
                table[row, sketch_place(a, b, key, width)] += 1
    return table
