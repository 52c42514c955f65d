"""Cross-validation of kernels, one number after another; and maps to try it on."""

from math import exp, inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.protocol import Channel

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


def mixture(shape: tuple[int, int], widths: list[float]) -> tuple[Array, Array]:
    """Return the matrix from kernels of all widths, side by side, and the weights they begin with.

    A kernel that is one cell begins with a tenth of the weight of the others.
    """
    size = shape[0] * shape[1]
    weights = np.repeat([1.0 if width else 0.1 for width in widths], size)
    return np.hstack([blur(shape, width) for width in widths]), weights / weights.sum()


def step(dense: Array, weights: Array, reports: Array, sparsity: float) -> Array:
    """Take one step of EM that empties what explains too little; without reports nothing moves."""
    if reports.sum() == 0:
        return weights
    predicted, gathered = dense @ weights, np.zeros(len(weights))
    for j, count in enumerate(reports):
        if count > 0:
            gathered += count / predicted[j] * dense[j]
    pruned = sparsity * min(1, reports.sum() / (10 * len(weights)))
    weights = np.array([max(users - pruned, 0) for users in weights * gathered])
    return np.asarray(weights / weights.sum())


def marks(most: int) -> list[int]:
    """Return 1, 2, 3, ..., each at least 1.3 times the last, up to the limit."""
    found = [1]
    while found[-1] < most:
        found.append(min(max(found[-1] + 1, round(found[-1] * 1.3)), most))
    return found


Best = tuple[int, float, list[list[float]]]


def walk(
    dense: Array, start: Array, sparsity: float, folds: list[Array], most: int, rival: Best | None
) -> Best:
    """Return steps, score and each fold's log-probabilities at the best mark of one path."""
    total = np.sum(folds, axis=0)
    weights = [start for _ in folds]
    best: Best = (0, -np.inf, [[0.0]])
    worse, done = 0, 0
    gains = [0.0]
    for mark in marks(most):
        for _ in range(mark - done):
            weights = [
                step(dense, w, total - fold, sparsity)
                for w, fold in zip(weights, folds, strict=True)
            ]
        done = mark
        score, logs = judged(folds, [dense @ w for w in weights])
        gain = score - best[1]
        worse = 0 if gain > min(0.5, max(gains) / 10) else worse + 1
        gains += [gain] if mark > 1 else []
        if score > best[1]:
            best = (mark, score, logs)
        if worse == 2 or (rival and score + 10 * gain < rival[1] and lost(folds, rival, best)):
            break
    return best


def judged(folds: list[Array], predictions: list[Array]) -> tuple[float, list[list[float]]]:
    """Return the log-likelihood of all folds, and the log-probabilities it is made of."""
    logs = [[log(max(p, 1e-300)) for p in predicted] for predicted in predictions]
    return sum(float(fold @ each) for fold, each in zip(folds, logs, strict=True)), logs


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
) -> tuple[float, int, float, float, float]:
    """Return width, steps, sparsity, what the width predicts worse than the best, and its error."""
    even = np.full(shape[0] * shape[1], 1 / (shape[0] * shape[1]))
    widths = [width for width in widths if width <= min(shape) / 4]
    tried: list[Best] = []
    for width in widths:
        ahead = best_of(tried) if tried else None
        tried.append(walk(matrix @ blur(shape, width), even, 0.25, folds, most - 1, ahead))
        if lost(folds, best_of(tried), tried[-1]):
            break
    best = best_of(tried)
    _, logs = judged(folds, [matrix @ even] * len(folds))
    behind, error = lead(folds, best[2], logs)
    if behind <= 2 * error:
        return widths[-1], 0, 0.25, behind, error
    near = [path for path in tried if lacks(folds, best, path)[0] <= lacks(folds, best, path)[1]]
    width = widths[tried.index(near[-1])]
    sparsity, pruned = prune(matrix @ blur(shape, width), even, folds, most - 1, near[-1])
    if len(widths) > 1:
        blurs, start = mixture(shape, widths)
        mixed = walk(matrix @ blurs, start, 0, folds, most - 1, None)
        ahead_by, error = lacks(folds, mixed, best)
        behind, its_error = lacks(folds, pruned, mixed)
        if ahead_by > error and behind <= its_error:
            return inf, mixed[0], 0.0, 0.0, 0.5
    return width, pruned[0], sparsity, *lacks(folds, best, near[-1])


def prune(
    dense: Array, start: Array, folds: list[Array], most: int, path: Best
) -> tuple[float, Best]:
    """Return sparsity and path: doubled as long as nothing is lost, then as little as is near."""
    paths = {0.25: path}
    for doubled in (0.5, 1.0, 2.0, 4.0):
        paths[doubled] = walk(dense, start, doubled, folds, most, paths[doubled / 2])
        if paths[doubled][1] < paths[doubled / 2][1]:
            del paths[doubled]
            break
    behind = {s: lacks(folds, paths[max(paths)], other) for s, other in paths.items()}
    near = min(s for s, (lacking, error) in behind.items() if lacking <= error)
    return near, paths[near]


def lacks(folds: list[Array], good: Best, bad: Best) -> tuple[float, float]:
    """Return by how much the bad path predicts worse, and the standard error."""
    return lead(folds, good[2], bad[2])


def best_of(paths: list[Best]) -> Best:
    """Return the first of the paths with the highest score."""
    return max(paths, key=lambda path: path[1])


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
