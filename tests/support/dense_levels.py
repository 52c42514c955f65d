"""Least squares of noisy sums by one dense matrix: the slow twin of the tree's recursion."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.levels import NoisyLevel
from ldpspatial.places.quadtree import Quadtree

Array = NDArray[np.float64]


def parts_and_covariance(
    tree: Quadtree, levels: Sequence[NoisyLevel], own: Sequence[Array] | None = None
) -> tuple[list[NDArray[np.bool_]], Array, Array]:
    """Return the cells of each part that was not divided, their people and the covariance.

    ``own`` are the variances of each level's sums, unless they are those of the noise.
    """
    rows, columns = tree.shape
    masks = {
        (level.level, int(node)): _mask(tree, level.level, int(node))
        for level in levels
        for node in level.nodes
    }
    divided = {(level.level - 1, int(node) >> 2) for level in levels[1:] for node in level.nodes}
    parts = [mask for name, mask in masks.items() if name not in divided]
    design = []
    wanted = []
    weights = []
    own = own or [level.by_node(level.variance) for level in levels]
    for level, variances in zip(levels, own, strict=True):
        for node, total, variance in zip(level.nodes.tolist(), level.sums, variances, strict=True):
            if np.isinf(variance):
                continue
            mask = masks[level.level, node]
            design.append([float((mask & part).any()) for part in parts])
            wanted.append(total)
            weights.append(1 / max(variance, 1e-9))
    matrix = np.array(design)
    information = matrix.T @ (matrix * np.array(weights)[:, None])
    covariance = np.linalg.inv(information)
    people = covariance @ (matrix.T @ (np.array(weights) * np.array(wanted)))
    assert sum(part.sum() for part in parts) == rows * columns
    return parts, people, covariance


def _mask(tree: Quadtree, level: int, node: int) -> NDArray[np.bool_]:
    mask = np.zeros(tree.shape, bool)
    mask[tree.cells_below(level, node)] = True
    return mask
