"""Trees that halve rows and columns of a square map of any side, and estimates that agree.

A node is a rectangle of cells; its children halve its rows and its columns, the first half the
larger one where they are odd. A single row or column is not cut, so nodes have four children, two,
or one that is the same rectangle. The whole tree reaches single cells everywhere after
ceil(log2 side) levels below the root. Nodes of a level differ by one row and one column at most,
so that what users are asked at a level is as even as can be; in the quadtree of the other trust
models (:mod:`ldpspatial.places.quadtree`) a side of 9 is cut into 8 and 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ldpspatial.privacy.local_privacy import cell_distances
from ldpspatial.release.local.local_release import check_side

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

ESTIMATOR = "consistency and projection by family"  # how trees become densities, as a fact
STEP = 0.25  # of ln t, in the integral of local privacy


@dataclass(frozen=True, eq=False)
class HalvingTree:
    """The nodes of such a tree, level after level, siblings side by side.

    Attributes
    ----------
    side : int
        Of the map in cells.
    bounds : (nodes, 4) array
        First row, end row, first column, end column of each node; ends are exclusive.
    parents : (nodes,) array
        Node 0 is the root, its own parent.
    starts : tuple of int
        First node of each level, and the number of nodes as the last entry.
    """

    side: int
    bounds: Ints = field(repr=False)
    parents: Ints = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)

    @property
    def depth(self) -> int:
        """Number of levels below the root."""
        return len(self.starts) - 2

    def level(self, level: int) -> slice:
        """Return the nodes of a level; level 0 is the root."""
        return slice(self.starts[level], self.starts[level + 1])

    @cached_property
    def child_counts(self) -> Ints:
        """(nodes,) numbers of children; a leaf has none."""
        return np.bincount(self.parents[1:], minlength=len(self.parents))

    @property
    def leaves(self) -> Ints:
        """Nodes without children; they partition the map."""
        return np.flatnonzero(self.child_counts == 0)

    def grown(self, nodes: Ints) -> "HalvingTree":
        """Return the tree with one level more, of the children of these nodes of the last level."""
        children, of = split(self.bounds[nodes])
        return HalvingTree(
            self.side,
            np.concatenate([self.bounds, children]),
            np.concatenate([self.parents, nodes[of]]),
            (*self.starts, len(self.bounds) + len(children)),
        )

    def labels(self, nodes: Ints) -> Ints:
        """Return for each cell, in row order, which of these nodes it lies in.

        Parameters
        ----------
        nodes : (m,) array
            Nodes that partition the map.

        Returns
        -------
        (side * side,) array in [0, m)
        """
        # Each rectangle adds its number at its corner and takes it away where it ends.
        steps = np.zeros((self.side + 1, self.side + 1), np.int64)
        top, bottom, left, right = self.bounds[nodes].T
        numbers = np.arange(len(nodes))
        for rows, columns, sign in ((top, left, 1), (top, right, -1), (bottom, left, -1)):
            np.add.at(steps, (rows, columns), sign * numbers)
        np.add.at(steps, (bottom, right), numbers)
        return steps.cumsum(axis=0).cumsum(axis=1)[:-1, :-1].ravel()

    def partition(self, level: int) -> Ints:
        """Return for each cell, in row order, its node of a level that covers the map."""
        return self.labels(np.arange(*self.starts[level : level + 2]))

    def spread(self, masses: Array) -> Array:
        """Return the (side, side) density in which each leaf's mass lies evenly on its cells.

        ``masses`` has shape (nodes,); what inner nodes hold does not count.
        """
        top, bottom, left, right = self.bounds[self.leaves].T
        each = masses[self.leaves] / ((bottom - top) * (right - left))
        return np.asarray(each[self.labels(self.leaves)].reshape(self.side, self.side))


def ranges(side: int, level: int) -> Ints:
    """Return the (r, 2) ranges of rows, or of columns, of the nodes of a level.

    Examples
    --------
    >>> ranges(5, 2).tolist()
    [[0, 2], [2, 3], [3, 4], [4, 5]]
    """
    found = np.array([[0, side]])
    for _ in range(level):
        found = halves(found).reshape(-1, 2)
        found = found[found[:, 0] < found[:, 1]]
    return found


def full_depth(side: int) -> int:
    """Return ceil(log2 side), after how many halvings all nodes are single cells."""
    return (side - 1).bit_length()


def root(side: int) -> HalvingTree:
    """Return the tree of the whole map alone."""
    return HalvingTree(side, np.array([[0, side, 0, side]]), np.zeros(1, np.int64), (0, 1))


def full_tree(side: int, depth: int) -> HalvingTree:
    """Return the tree whose every level, down to ``depth``, partitions the map."""
    tree = root(side)
    for level in range(depth):
        tree = tree.grown(np.arange(*tree.starts[level : level + 2]))
    return tree


def halves(ranges: Ints) -> Ints:
    """Return the (n, 2, 2) halves of (n, 2) index ranges; the second of a single index is empty."""
    first, end = ranges.T
    middle = (first + end + 1) // 2
    return np.stack([np.stack([first, middle], -1), np.stack([middle, end], -1)], axis=1)


def split(bounds: Ints) -> tuple[Ints, Ints]:
    """Return the bounds of all children, parent after parent, and for each which parent it has."""
    rows = halves(bounds[:, :2])
    columns = halves(bounds[:, 2:])
    quarters = np.concatenate(
        [np.repeat(rows, 2, axis=1), np.tile(columns, (1, 2, 1))], axis=2
    )  # (parents, 4, 4)
    some = (quarters[..., 0] < quarters[..., 1]) & (quarters[..., 2] < quarters[..., 3])
    return quarters[some], np.nonzero(some)[0]


def consistent(tree: HalvingTree, values: Array, variances: Array) -> Array:
    """Return the best linear unbiased estimates under which every node is its children's sum.

    Constrained inference of Hay et al. (PVLDB 2010, section 4), for nodes of any number of
    children and any variance: upwards, a node's own value and its children's sum are averaged by
    inverse variance; downwards, what a node and its children's sum still differ by is shared
    among the children in proportion to their variances (equally where those are equal, as there).

    Parameters
    ----------
    tree : HalvingTree
    values : (nodes,) array
        Independent unbiased estimates.
    variances : (nodes,) array
        Above 0, save the root's, which is 0 where the total is known.

    Returns
    -------
    (nodes,) array
    """
    best = values.astype(np.float64)
    spread = variances.astype(np.float64)
    sums = np.zeros_like(best)
    sum_spread = np.zeros_like(best)
    inner = tree.child_counts > 0
    for level in range(tree.depth, 0, -1):
        nodes = tree.level(level)
        above = tree.level(level - 1)
        of = tree.parents[nodes] - above.start
        width = above.stop - above.start
        sums[above] = np.bincount(of, best[nodes], minlength=width)
        sum_spread[above] = np.bincount(of, spread[nodes], minlength=width)
        both = np.flatnonzero(inner[above]) + above.start
        # (1 / s) / (1 / s + 1 / S). The root's s is 0: its known total keeps all of the weight.
        own = sum_spread[both] / (spread[both] + sum_spread[both])
        best[both] = own * best[both] + (1 - own) * sums[both]
        spread[both] *= own  # s S / (s + S), the variance of the mean
    for level in range(1, tree.depth + 1):
        nodes = tree.level(level)
        of = tree.parents[nodes]
        # best[of] is final by now; sums and spreads are still those of the way up.
        best[nodes] += (best[of] - sums[of]) * spread[nodes] / sum_spread[of]
    return best


def non_negative(tree: HalvingTree, estimates: Array) -> Array:
    """Return masses of the nodes, at least 0 and total 1, under which a node is its children's sum.

    From the root down, the children of a node are projected on the simplex of its mass, which is
    Norm-Sub (Wang et al., NDSS 2020) within each family. To project the leaves alone would be one
    step, but it moves mass between distant parts of the map to make up for noise on empty leaves:
    it gives up what the upper levels know, for which range queries ask.

    Parameters
    ----------
    tree : HalvingTree
    estimates : (nodes,) array

    Returns
    -------
    (nodes,) array
    """
    masses = np.zeros_like(estimates)
    masses[0] = 1.0
    # First child of each node: parents ascend, as levels and siblings stand side by side.
    first = np.searchsorted(tree.parents[1:], np.arange(len(tree.parents))) + 1
    for level in range(tree.depth):
        nodes = np.arange(*tree.starts[level : level + 2])
        nodes = nodes[masses[nodes] > 0]
        for size in (1, 2, 4):
            parents = nodes[tree.child_counts[nodes] == size]
            family = first[parents] + np.arange(size)[:, None]  # (size, parents), a column each
            masses[family] = masses[parents] * _shares(estimates[family], masses[parents])
    return masses


def _shares(values: Array, masses: Array) -> Array:
    """Project each column of values on the simplex of its mass, over that mass."""
    if values.size == 0:
        return values
    with np.errstate(over="ignore"):
        # The projection does not see a shift; on the simplex of mass m it is m times that of v / m.
        scaled = (values - values.max(axis=0)) / masses
    # What is 1 or more below the largest is 0 after projection, however far below it is.
    from ot.utils import proj_simplex  # noqa: PLC0415 (half a second that few need)

    return np.asarray(proj_simplex(np.maximum(scaled, -1.0)))


def assign_groups(users: int, groups: int, rng: np.random.Generator) -> Ints:
    """Return a group in [0, groups) for each user, at random, sizes equal up to one.

    The groups depend on the number of users alone, never on their positions.
    """
    return np.asarray(rng.permutation(users) % groups)


def levels_privacy(side: int, own: float, other: float) -> float:
    """Return the mean of :func:`partition_privacy` over the levels of the full tree."""
    check_side(side)
    tree = full_tree(side, full_depth(side))
    partitions = [tree.partition(level) for level in range(1, tree.depth + 1)]
    return partition_privacy(side, partitions, own, other)


def partition_privacy(side: int, partitions: Sequence[Ints], own: float, other: float) -> float:
    """Return the local privacy of a report of a set of parts, the partition drawn uniformly.

    The observer's posterior weighs a cell by that of its part, over the sum of all; the mean of
    one over that sum is the integral of e^(-t sum), in which the parts are independent. So parts
    may differ in area; where they do not, sets of a size are alike.

    Parameters
    ----------
    side : int
        Of the map in cells; the prior is uniform on cells.
    partitions : sequence of (side * side,) arrays
        The part of each cell, parts numbered from 0 on.
    own, other : float in (0, 1), own > other
        Probability that the set holds the part of the user's cell, and that it holds another,
        each independent of the rest.
    """
    # Areas sum to 1, so the sum over the parts lies between outside and inside: what is left out
    # above the last t is e^-45, below the first 1e-14.
    inside, outside = own / other, (1 - own) / (1 - other)  # likelihoods, against another part
    # In x = ln t the trapezium rule is exact to rounding, as it is for all that decays so fast.
    t = np.exp(np.arange(log(1e-14 / inside), log(45 / outside), STEP))
    distances = cell_distances((side, side))
    found = []
    for parts in partitions:
        member = csr_array((np.ones(side**2), (parts, np.arange(side**2))))
        # (parts, parts): distances of pairs of cells, each of probability 1 / side^4 by the prior.
        joint = member @ (member @ distances).T / side**4
        rate = t[:, None] * (np.bincount(parts) / side**2)
        held = other * np.exp(-rate * inside)
        missed = (1 - other) * np.exp(-rate * outside)
        one = (held * inside + missed * outside) / (held + missed)
        twice = (held * inside**2 + missed * outside**2) / (held + missed)
        # Different parts are independent given t; a part with itself has its second moment instead.
        pairs = ((one @ joint) * one).sum(axis=1) + (twice - one**2) @ joint.diagonal()
        found.append(STEP * (t * np.exp(np.log(held + missed).sum(axis=1))) @ pairs)  # dt = t dx
    return float(np.mean(found)) if found else 0.0
