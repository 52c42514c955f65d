"""Heat maps and their metrics straight from their definitions, cell by cell: obvious twins.

Nothing of ldpspatial is used. Maps are small arrays; metrics take maps of total 1, truth first.
"""

import itertools
import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]


def heat_map(p: FloatArray, sigma: float) -> FloatArray:
    cells = list(itertools.product(range(p.shape[0]), range(p.shape[1])))

    def kernel(x: tuple[int, int], y: tuple[int, int]) -> float:
        return math.exp(-((x[0] - y[0]) ** 2 + (x[1] - y[1]) ** 2) / (2 * sigma**2))

    seen = np.zeros(p.shape)
    for source in cells:
        total = math.fsum(kernel(x, source) for x in cells)
        for x in cells:
            seen[x] += p[source] * kernel(x, source) / total
    return seen


def similarity(p: FloatArray, q: FloatArray) -> float:
    return math.fsum(min(x, y) for x, y in _pairs(p, q))


def pearson(p: FloatArray, q: FloatArray) -> float:
    pairs = _pairs(p, q)
    mean_x, mean_y = (math.fsum(each) / len(pairs) for each in zip(*pairs, strict=True))
    both = math.fsum((x - mean_x) * (y - mean_y) for x, y in pairs)
    squares_x = math.fsum((x - mean_x) ** 2 for x, _ in pairs)
    squares_y = math.fsum((y - mean_y) ** 2 for _, y in pairs)
    return both / math.sqrt(squares_x * squares_y)


def kl_divergence(p: FloatArray, q: FloatArray) -> float:
    e = 2.2e-16
    return math.fsum(x * math.log(e + x / (y + e)) for x, y in _pairs(p, q))


def block_sums(p: FloatArray, blocks: int) -> FloatArray:
    sums = np.zeros((blocks, blocks))
    for row, column in itertools.product(range(p.shape[0]), range(p.shape[1])):
        sums[row * blocks // p.shape[0], column * blocks // p.shape[1]] += p[row, column]
    return sums


def mape(p: FloatArray, q: FloatArray) -> float:
    least = min(x for x in p.ravel().tolist() if x > 0)
    return _mean([abs(x - y) / (x if x > 0 else least) for x, y in _pairs(p, q)])


def smape(p: FloatArray, q: FloatArray) -> float:
    return _mean([0.0 if x == y else abs(x - y) / ((x + y) / 2) for x, y in _pairs(p, q)])


def maape(p: FloatArray, q: FloatArray) -> float:
    def angle(x: float, y: float) -> float:
        if x == 0:
            return 0.0 if y == 0 else math.pi / 2
        return math.atan(abs(x - y) / x)

    return _mean([angle(x, y) for x, y in _pairs(p, q)])


def _pairs(p: FloatArray, q: FloatArray) -> list[tuple[float, float]]:
    return list(zip(p.ravel().tolist(), q.ravel().tolist(), strict=True))


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
