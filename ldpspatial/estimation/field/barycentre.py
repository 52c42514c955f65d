"""The map that is closest to all samples in W2: their Wasserstein barycentre.

The mean of samples is best for squared differences cell by cell. For W2 the barycentre is (Agueh
and Carlier 2011); here with entropy and without its blur (Janati et al. 2020, algorithm 2). Where
samples hardly differ and neighbours are unlike each other its rounds end far away. The mean is near
the barycentre there, and stands for it.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

REGULARISATION = 0.5  # squared cells, where samples lie near each other
AT_THE_FARTHEST = 300.0  # nats that the kernel has fallen by, where samples lie far from each other
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
ROUNDS = 1_000
LEAST = 1e-9  # of a map that a cell holds
NEAREST_ZERO = 1e-200  # of a kernel; the floor of what is multiplied
BAND = 48  # columns of a kernel that are multiplied at once
CHANGE = 1e-3  # of a map, below which a round was the last
APART = 0.01  # and which is so little of what samples differ from their mean by


def barycentre(
    densities: Array, where: NDArray[np.bool_] | None = None, rounds: int = ROUNDS
) -> Array:
    """Return the debiased Sinkhorn barycentre of maps.

    Parameters
    ----------
    densities : (S, d, d) array
    where : (d, d) boolean array, optional
        Where it may be: of all maps that are 0 elsewhere it is the closest. It lies between the
        maps, so to cut it afterwards would move what it has there across the whole map.
    rounds : int

    Returns
    -------
    (d, d) array
    """
    cells = densities.shape[1]
    regularisation = max(REGULARISATION, _farthest(densities) ** 2 / AT_THE_FARTHEST)
    offset = np.subtract.outer(np.arange(cells), np.arange(cells))
    kernel = np.exp(-(offset**2) / regularisation)
    kernel[kernel < NEAREST_ZERO] = 0.0  # products with denormal numbers take ten times as long

    reach = np.flatnonzero(kernel[0])[-1]
    bands = [
        (slice(first, first + BAND), slice(max(0, first - reach), first + BAND + reach))
        for first in range(0, cells, BAND)
    ]

    def blur(values: Array) -> Array:
        # By bands of the kernel, which is 0 elsewhere: of long matrices, and one by one.
        flat = values.reshape(-1, cells)
        rows = np.empty_like(flat)
        for to, near in bands:
            np.matmul(flat[:, near], kernel[near, to], out=rows[:, to])
        across = rows.reshape(-1, cells, cells)
        found = np.empty_like(across)
        for to, near in bands:
            np.matmul(kernel[to, near], across[:, near], out=found[:, to])
        return found

    inside = np.ones((cells, cells)) if where is None else where.astype(np.float64)
    maps = np.maximum(densities, LEAST) * inside
    maps /= maps.sum((1, 2), keepdims=True)
    scale = np.ones_like(maps)
    own = np.ones((cells, cells))
    found = maps.mean(0)
    # Where much is known samples hardly differ, and neither may rounds.
    differ = float(np.abs(maps - found).sum((1, 2)).mean())
    enough = max(min(CHANGE, APART * differ), LEAST)
    mean = found
    for _ in range(rounds):
        before = found
        image = np.maximum(blur(maps / np.maximum(blur(scale), 1e-200)), 1e-200)
        found = inside * own * np.exp(np.log(image).mean(0))
        scale = found / image
        own = np.sqrt(own * found / np.maximum(blur(own)[0], 1e-200))
        if np.abs(found - before).sum() < enough:
            break
    # Farther from the mean than samples are is no barycentre, but what rounds have not yet undone.
    farther = np.abs(found - mean).sum() > differ
    return np.asarray(mean if farther else found / found.sum())


def _farthest(densities: Array) -> float:
    """Return how far apart samples have their people, in cells along a side.

    That is the range of the quantiles of all rows and all columns. A kernel that is 0 there would
    leave each part where most samples have it, for nothing could be carried between them.
    """
    found = 0.0
    for axis in (1, 2):
        held = densities.sum(axis).cumsum(1)
        held /= held[:, -1:]
        for quantile in QUANTILES:
            found = max(found, float(np.ptp((held >= quantile).argmax(1))))
    return found
