"""AHEAD: a quadtree that grows where people are found, under unary encoding."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.release.local.local_release import LocalRelease, square_side
from ldpspatial.release.local.sets.set_reports import check_loss, check_users
from ldpspatial.release.local.sets.unary import (
    OWN_BIT,
    other_bit,
    oue_counts,
    oue_frequencies,
    oue_variance,
)
from ldpspatial.release.local.trees.halving_tree import (
    ESTIMATOR,
    HalvingTree,
    assign_groups,
    consistent,
    full_depth,
    levels_privacy,
    non_negative,
    root,
)
from ldpspatial.release.release import Fact, Released

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Ask = Callable[[int, Ints, int], tuple[Array, float]]

BRANCHING = 4  # B, the most children of a node


@dataclass(frozen=True)
class Ahead(LocalRelease):
    """Adaptive hierarchical decomposition (Du et al., CCS 2021, section 4.2), in two dimensions.

    Users are split evenly over the rounds, at most one a level of the quadtree. In a round, the
    leaves of the round before that hold more than sqrt((B + 1) Var) are split, B = 4 and Var the
    variance of one frequency of that round (the root is always split), and the round's users
    report by OUE which leaf they are in. A leaf that is not split stays one, and its estimates of
    later rounds are averaged with its first. Weighted averaging and consistency from the leaves up
    and down, as for every tree here; a leaf spreads evenly over its cells.

    Decisions: the frequencies that the threshold judges are the unbiased ones and negatives go at
    the end; with uneven halves a node may have fewer than B children, under the same threshold.
    """

    name: ClassVar[str] = "ahead"
    one_mechanism: ClassVar[bool] = False

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP: one OUE report a user, in one round, given all earlier rounds."""
        check_loss(epsilon)
        claim = super().claim(epsilon)
        more = (
            "the round that a user reports in is drawn without looking at any position",
            "the cells of a round depend on the noisy reports of earlier rounds alone",
        )
        return replace(claim, conditions=(*claim.conditions, *more))

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the mean over the rounds of the mean distance of an observer's guess, in cells.

        A run's tree depends on the data, this number must not: it is for the tree in which every
        node is split.
        """
        return levels_privacy(cells, float(OWN_BIT), float(other_bit(epsilon)))

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Grow the tree round by round and estimate the density."""
        claim = self.claim(epsilon)
        side = square_side(self.name, users)
        check_users(len(users))
        cells = users.one_cell_each(rng)
        rounds = min(full_depth(side), len(cells))
        group = assign_groups(len(cells), max(rounds, 1), rng)

        def ask(number: int, leaf_of_cell: Ints, leaves: int) -> tuple[Array, float]:
            reporting = leaf_of_cell[cells[group == number]]
            counts = oue_counts(reporting, leaves, epsilon, rng)
            n = len(reporting)
            return oue_frequencies(counts, n, epsilon), oue_variance(n, epsilon)

        tree, values, variances = grow(side, rounds, ask)
        masses = non_negative(tree, consistent(tree, values, variances))
        facts: dict[str, Fact] = {
            "estimator": ESTIMATOR,
            "rounds": rounds,
            "leaves": len(tree.leaves),
        }
        return Released(tree.spread(masses), claim, facts)


def grow(side: int, rounds: int, ask: Ask) -> tuple[HalvingTree, Array, Array]:
    """Grow a tree from the answers of its rounds.

    Parameters
    ----------
    side : int
        Of the map in cells.
    rounds : int
        At most the depth of the full tree.
    ask : callable (round, leaf of each cell, number of leaves) -> (frequencies, variance)
        Independent unbiased frequencies of the current leaves, and the variance of one.

    Returns
    -------
    tree : HalvingTree
    values, variances : (nodes,) arrays
        Mean of each node's frequencies by inverse variance, and its variance; the root's are 1, 0.
    """
    tree = root(side)
    wanted = np.arange(1)
    total = np.zeros(1)
    precision = np.zeros(1)
    for number in range(rounds):
        tree = tree.grown(wanted)
        born = np.arange(*tree.starts[-2:])
        total, precision = (np.append(old, np.zeros(len(born))) for old in (total, precision))
        leaves = tree.leaves
        frequencies, variance = ask(number, tree.labels(leaves), len(leaves))
        total[leaves] += frequencies / variance
        precision[leaves] += 1 / variance
        area = (tree.bounds[:, 1::2] - tree.bounds[:, ::2]).prod(axis=1)
        # The nodes of this round have been asked once, so `variance` is that of their estimates.
        first_estimate = total[born] / precision[born]
        wanted = born[(area[born] > 1) & (first_estimate > sqrt((BRANCHING + 1) * variance))]
    known = np.arange(len(total)) == 0
    values = np.divide(total, precision, out=np.ones_like(total), where=~known)
    return tree, values, np.divide(1, precision, out=np.zeros_like(total), where=~known)
