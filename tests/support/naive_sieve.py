"""Cross-validation of kernels, one number after another; and maps to try it on."""

from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channel import Channel

Array = NDArray[np.float64]


def kernel(side: int, width: float) -> Array:
    """Return the matrix that blurs a row of cells; beyond an edge the row is mirrored."""
    matrix = np.zeros((side, side))
    reach = int(6 * width + 0.5)
    bell = [exp(-((k / width) ** 2) / 2) if width else 1.0 for k in range(-reach, reach + 1)]
    for cell in range(side):
        for k, weight in zip(range(-reach, reach + 1), bell, strict=True):
            at = (cell + k) % (2 * side)  # a row and its mirror image repeat
            matrix[min(at, 2 * side - 1 - at), cell] += weight / sum(bell)
    return matrix


def blur(shape: tuple[int, int], width: float) -> Array:
    """Return the dense matrix from weights of kernels to densities."""
    return np.asarray(np.kron(kernel(shape[0], width), kernel(shape[1], width)), np.float64)


def step(dense: Array, weights: Array, reports: Array) -> Array:
    """Take one step of EM that empties what explains too little; without reports nothing moves."""
    if reports.sum() == 0:
        return weights
    predicted, gathered = dense @ weights, np.zeros(len(weights))
    for j, count in enumerate(reports):
        if count > 0:
            gathered += count / predicted[j] * dense[j]
    pruned = 0.25 * min(1, reports.sum() / (10 * len(weights)))
    weights = np.array([max(users - pruned, 0) for users in weights * gathered])
    return np.asarray(weights / weights.sum())


def marks(most: int) -> list[int]:
    """Return 1, 2, 3, ..., each at least 1.3 times the last, up to the limit."""
    found = [1]
    while found[-1] < most:
        found.append(min(max(found[-1] + 1, round(found[-1] * 1.3)), most))
    return found


Best = tuple[int, float, list[list[float]]]


def walk(dense: Array, folds: list[Array], most: int, rival: Best | None) -> Best:
    """Return steps, score and each fold's log-probabilities at the best mark of one width."""
    total = np.sum(folds, axis=0)
    weights = [np.full(dense.shape[1], 1 / dense.shape[1]) for _ in folds]
    best: Best = (0, -np.inf, [[0.0]])
    worse, done = 0, 0
    gains = [0.0]
    for mark in marks(most):
        for _ in range(mark - done):
            weights = [step(dense, w, total - fold) for w, fold in zip(weights, folds, strict=True)]
        done = mark
        logs = [[log(max(p, 1e-300)) for p in dense @ w] for w in weights]
        score = sum(float(fold @ each) for fold, each in zip(folds, logs, strict=True))
        gain = score - best[1]
        worse = 0 if gain > min(0.5, max(gains) / 10) else worse + 1
        gains += [gain] if mark > 1 else []
        if score > best[1]:
            best = (mark, score, logs)
        if worse == 2 or (rival and score + 10 * gain < rival[1] and lost(folds, rival, best)):
            break
    return best


def lost(folds: list[Array], rival: Best, best: Best) -> bool:
    """Tell whether a width predicts worse than another by more than four standard errors."""
    behind, error = lead(folds, rival[2], best[2])
    return behind > 4 * error


def lead(
    folds: list[Array], good: list[list[float]], bad: list[list[float]]
) -> tuple[float, float]:
    """Return by how much the good one predicts better, and the standard error, report by report."""
    leads = []
    for fold, first, second in zip(folds, good, bad, strict=True):
        for count, a, b in zip(fold, first, second, strict=True):
            leads += [a - b] * int(count)
    mean = sum(leads) / len(leads)
    return sum(leads), max(sqrt(sum((each - mean) ** 2 for each in leads)), 0.5)


def choose(
    matrix: Array, shape: tuple[int, int], folds: list[Array], widths: list[float], most: int
) -> tuple[float, int, float, float]:
    """Return width, steps, what it predicts worse than the best, and the standard error."""
    tried: list[tuple[float, Best]] = []
    for width in widths:
        if width > min(shape) / 4:
            break
        ahead = max((best for _, best in tried), key=lambda best: best[1]) if tried else None
        path = walk(matrix @ blur(shape, width), folds, most - 1, ahead)
        tried.append((width, path))
        if lost(folds, max((best for _, best in tried), key=lambda best: best[1]), path):
            break
    ahead = max((best for _, best in tried), key=lambda best: best[1])
    for width, (steps, _, logs) in reversed(tried):
        behind, error = lead(folds, ahead[2], logs)
        if behind <= error:
            return width, steps, behind, error
    raise AssertionError("the best one is as good as the best one")


def counts_of(channel: Channel, density: Array, n: int, seed: int) -> Array:
    """Draw n reports of a density, shaped like the channel's output."""
    law = channel.forward(density)[channel.support]
    counts = np.zeros(channel.support.shape)
    counts[channel.support] = np.random.default_rng(seed).multinomial(n, law / law.sum())
    return counts


def slope(shape: tuple[int, int]) -> Array:
    """Return a smooth map with most people in the north-east."""
    density = np.outer(*(np.exp(2 * (np.arange(side) + 0.5) / side) for side in shape))
    return np.asarray(density / density.sum())


def spots(cells: int) -> Array:
    """Return a map with most people in three cells."""
    density = np.full((cells, cells), 0.4 / cells**2)
    for row, col, share in ((0.2, 0.3, 0.3), (0.7, 0.75, 0.2), (0.5, 0.1, 0.1)):
        density[int(row * cells), int(col * cells)] += share
    return density
