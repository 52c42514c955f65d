"""Maps cut into rectangles of whole cells: the grids of Qardaji et al. (ICDE 2013).

Shared by the distributed and the central model: who draws the noise makes no difference here.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_BLOCKS = 1 << 12  # along a side of a map


def cut(shape: tuple[int, int], parts: int) -> Ints:
    """Cut a map into parts x parts rectangles, sides as equal as whole cells allow.

    Along a side of fewer cells than parts, into its cells.

    Returns
    -------
    int64 array of that shape
        Number of each cell's rectangle, row by row from 0.

    Examples
    --------
    >>> cut((2, 5), 3).tolist()
    [[0, 0, 1, 1, 2], [3, 3, 4, 4, 5]]
    """
    down, across = (np.arange(side) * min(parts, side) // side for side in shape)
    labels: Ints = down[:, None] * min(parts, shape[1]) + across
    return labels


def refined(blocks: Ints, parts: Sequence[int]) -> tuple[Ints, Ints]:
    """Cut each rectangle of a map along its own number of parts.

    Parameters
    ----------
    blocks : (rows, columns) int64 array
        Number of each cell's rectangle, from 0.
    parts : sequence of int >= 1
        For each rectangle.

    Returns
    -------
    (rows, columns) int64 array
        Number of each cell's part, from 0.
    (n,) int64 array
        The rectangle that each part lies in.
    """
    labels = np.empty_like(blocks)
    within: list[int] = []
    for block, where in enumerate(ndimage.find_objects(blocks + 1)):  # 0 is no object there
        inner = cut(labels[where].shape, parts[block])
        labels[where] = len(within) + inner
        within += [block] * (int(inner.max()) + 1)
    return labels, np.array(within)


def reconciled(
    coarse: Array, coarse_variance: float, fine: Array, fine_variance: float, block_of: Ints
) -> Array:
    """Return counts of parts with each block's sum drawn to the block's own count.

    The mean of a block's count and the sum of its k parts, weighted by inverse variances v and
    k v', is (k v' count + v sum) / (k v' + v); the difference to the sum is spread evenly
    (Qardaji et al. 2013, section IV-B).

    Parameters
    ----------
    coarse : (m,) array
        Counts of blocks.
    coarse_variance, fine_variance : float
        Of the noise of a block's count and of a part's.
    fine : (n,) array
        Counts of parts.
    block_of : (n,) int array
        The block that each part lies in.

    Examples
    --------
    >>> one_block = np.zeros(2, int)
    >>> reconciled(np.array([9.0]), 2.0, np.array([3.0, 2.0]), 1.0, one_block).tolist()
    [4.0, 3.0]
    """
    sums = np.bincount(block_of, fine)
    sizes = np.bincount(block_of)
    share = coarse_variance / (sizes * fine_variance + coarse_variance)
    change = (1 - share) * (coarse - sums)
    moved: Array = fine + (change / sizes)[block_of]
    return moved


def density_of(counts: Array, labels: Ints) -> Array:
    """Return the density of counts that are spread evenly over their rectangles.

    Negative counts are zero; without a positive one the density is uniform.
    """
    used = np.maximum(counts, 0)
    total = used.sum()
    if total == 0:
        return np.full(labels.shape, 1 / labels.size)
    density: Array = (used / (total * np.bincount(labels.ravel())))[labels]
    return density
