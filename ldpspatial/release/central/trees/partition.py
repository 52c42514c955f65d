"""The partition of least cost: nodes of a quadtree inside which people are spread evenly.

DAWA (Li et al., "A Data- and Workload-Aware Algorithm for Range Queries Under Differential
Privacy", VLDB 2014, the section on private partitioning) cuts a line into buckets by noisy costs,
and then measures the buckets. Here buckets are nodes of a quadtree, so they are squares of the
map, as those of DAWA's faster form are intervals of 2^k cells. DAWA measures them by a hierarchy
tuned to a workload of ranges; here each bucket has a count of its own, for no ranges are known.

What a node costs as one bucket is its deviation from an even spread, sum |x - mean| over its cells,
and the noise of one count, 1 / epsilon. Half the deviation is what lies above the mean; it is taken
in whole units, rounded down. One unit more in a node changes it by less than 1 before rounding and
by at most 1 after, and that of no other node of the level; so a user changes the numbers of a level
by at most MASS in all. A person changes a node of every level, so levels share epsilon: one noise
for all of them, as in the public code of DAWA, is too little (docs/experiments/authors.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import Entropy
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells
from ldpspatial.release.central.budget_parts import in_proportion, in_two
from ldpspatial.release.central.central_release import CentralRelease, claim_of, with_noise
from ldpspatial.release.central.masses import density_of_masses
from ldpspatial.release.central.pyramid import Pyramid
from ldpspatial.release.central.quantise import MASS, unit_sums
from ldpspatial.release.central.trees.disjoint_nodes import Nodes, counted
from ldpspatial.release.release import Released
from ldpspatial.validate import MICRO, number_in

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LeastCostPartition(CentralRelease):
    """Noisy deviations choose disjoint nodes of a quadtree, whose noisy counts are the map.

    A node is one bucket where that costs no more than the best partition of its quadrants. Levels
    above the cells get equal parts of the first share of epsilon. Noisy deviations and counts
    below zero are zero, and each count is spread evenly over the cells of its bucket.

    Attributes
    ----------
    alpha : float in (0, 1)
        Share of the budget for the partition; a quarter in the paper's experiments.

    Raises
    ------
    InputError
        ``alpha`` breaks its rule.

    Examples
    --------
    >>> from ldpspatial.places.users import cells_by_user
    >>> users = cells_by_user(range(1000), [7] * 1000, (16, 16))
    >>> run = LeastCostPartition().release(users, 1.0, np.random.default_rng(1))
    >>> run.claim.epsilon, bool(run.density[0, 7] > 0.9)
    (1.0, True)
    """

    name: ClassVar[str] = "least-cost-partition"

    alpha: float = 0.25

    def __post_init__(self) -> None:
        number_in("alpha", self.alpha, "(0, 1)")

    def _run(self, users: UserCells, micro_epsilon: int, source: Entropy) -> Released:
        tree = Quadtree(users.shape)
        cells, units = unit_sums(users)
        for_shape, for_counts = in_two(micro_epsilon, self.alpha)
        if not tree.depth:  # one cell: there is nothing to choose
            for_shape, for_counts = 0, micro_epsilon
        # Levels of nodes alike, from the whole map on; cells need no deviation.
        alike = [Fraction(1)] * tree.depth
        budget = in_proportion(for_shape, alike) if for_shape else [0] * tree.depth
        dense = np.zeros(users.shape, np.int64)
        dense.ravel()[cells] = units
        noisy = [
            with_noise(above_mean(tree, level, dense), micro, source) if micro else None
            for level, micro in enumerate(budget)
        ]
        # The cheapest buckets follow from noisy deviations and public numbers.
        buckets = cheapest(tree, noisy, MICRO * MASS / for_counts)
        masses = counted(Pyramid(tree, cells, units), buckets, for_counts, source)
        facts = {"buckets": sum(len(nodes) for _, nodes in buckets)}
        return Released(density_of_masses(masses), claim_of(micro_epsilon), facts)


def above_mean(tree: Quadtree, level: int, dense: Ints) -> Ints:
    """Return for each node the units of its cells above their mean, in all, rounded down.

    Half the sum of |x - mean|. With a mean of m and r n-ths for n cells, of which k have more, it
    is the sum of x - m over these, less k r / n: no product leaves 64 bits.

    Parameters
    ----------
    tree : Quadtree
    level : int
    dense : int64 array, shape of the map
        Units, at least 0.

    Returns
    -------
    (m,) int64 array
        By node, as ``tree.numbers(level)``.

    Examples
    --------
    >>> above_mean(Quadtree((2, 2)), 0, np.array([[9, 0], [1, 0]])).tolist()  # 9 - 10 / 4
    [6]
    """
    rows, columns = tree.sides(level)
    block = tree.block(level)
    whole = np.zeros((rows * block, columns * block), np.int64)
    whole[: dense.shape[0], : dense.shape[1]] = dense
    nodes = whole.reshape(rows, block, columns, block)
    number = tree.areas(level).astype(np.int64)
    mean, rest = np.divmod(nodes.sum((1, 3)), number)
    beyond = np.maximum(nodes - mean[:, np.newaxis, :, np.newaxis], 0)  # 0 beyond the map
    more = np.count_nonzero(beyond, (1, 3))
    # What is taken off is a whole number of n-ths and is rounded up, so the whole is rounded down.
    found: Ints = beyond.sum((1, 3)) + -more * rest // number
    order = tree.positions(level, tree.numbers(level))
    by_node: Ints = found.ravel()[order]
    return by_node


def cheapest(tree: Quadtree, noisy: Sequence[Ints | None], count: float) -> list[Nodes]:
    """Return the disjoint nodes of the least cost that cover the map, by level.

    Parameters
    ----------
    tree : Quadtree
    noisy : sequence of (m,) int64 arrays or None
        For each level but that of the cells, what :func:`above_mean` gives, with noise; None where
        nothing was asked, for which a node is taken to be even.
    count : float
        What the noise of a bucket's count costs, in units.
    """
    costs = np.full(len(tree.numbers(tree.depth)), count)
    whole: list[NDArray[np.bool_]] = []
    for level in range(tree.depth - 1, -1, -1):
        nodes = tree.numbers(level)
        parents = np.searchsorted(nodes, tree.numbers(level + 1) >> 2)
        below = np.bincount(parents, costs)
        asked = noisy[level]
        deviation = np.zeros(len(nodes)) if asked is None else 2.0 * np.maximum(asked, 0)
        alone = deviation + count
        whole.insert(0, alone <= below)
        costs = np.minimum(alone, below)
    buckets: list[Nodes] = []
    nodes = tree.numbers(0)
    for level in range(tree.depth + 1):
        stays = np.ones(len(nodes), bool)
        if level < tree.depth:
            stays = whole[level][np.searchsorted(tree.numbers(level), nodes)]
        if stays.any():
            buckets.append((level, nodes[stays]))
        nodes = nodes[~stays]
        if not len(nodes):
            break
        nodes = tree.numbers_below(level + 1, nodes)
    return buckets
