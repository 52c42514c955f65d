"""HIO on a quadtree: local hashing on every level, then estimates that agree."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.release.local.local_release import LocalRelease, square_side
from ldpspatial.release.local.sets.local_hashing import (
    hash_values,
    keep_probability,
    olh_counts,
    olh_frequencies,
    olh_variance,
)
from ldpspatial.release.local.sets.set_reports import check_loss, check_users
from ldpspatial.release.local.trees.halving_tree import (
    ESTIMATOR,
    assign_groups,
    consistent,
    full_depth,
    full_tree,
    levels_privacy,
    non_negative,
)
from ldpspatial.release.release import Fact, Released


@dataclass(frozen=True)
class Hio(LocalRelease):
    """Local hashing on the levels of a quadtree that are made to agree: more than HIO.

    In the manner of HIO (Wang et al., SIGMOD 2019), but a better mechanism than the published one;
    a comparison with the paper's own needs another.

    Users are split evenly over the levels below the root. Each hashes their node of that level
    (OLH) with all of epsilon. Constrained inference (Hay et al., PVLDB 2010) makes the levels
    agree with each other and with the total, which is public; the leaves are the density.

    Where it departs from the paper: levels are those of a quadtree, in place of all pairs of a
    level of rows and a level of columns, so that users are split log2 d ways and not its square;
    a node has up to four children; estimates of different levels agree; and fewer users than
    levels answer the upper levels only, whose nodes then spread evenly over their cells.
    """

    name: ClassVar[str] = "hio"
    one_mechanism: ClassVar[bool] = False

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP: one OLH report a user, of a level drawn without a look at the data."""
        check_loss(epsilon)
        claim = super().claim(epsilon)
        level = "the level that a user reports on is drawn without looking at any position"
        return replace(claim, conditions=(*claim.conditions, level))

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the mean over the levels of the mean distance of an observer's guess, in cells."""
        return levels_privacy(cells, float(keep_probability(epsilon)), 1 / hash_values(epsilon))

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Collect one report a user and estimate the density."""
        claim = self.claim(epsilon)
        side = square_side(self.name, users)
        check_users(len(users))
        cells = users.one_cell_each(rng)
        tree = full_tree(side, min(full_depth(side), len(cells)))
        # What is not overwritten below is the root: a public total of 1, of variance 0.
        values = np.ones(len(tree.parents))
        variances = np.zeros(len(tree.parents))
        group = assign_groups(len(cells), max(tree.depth, 1), rng)
        for level in range(1, tree.depth + 1):
            nodes = tree.level(level)
            reporting = tree.partition(level)[cells[group == level - 1]]
            n = len(reporting)
            counts = olh_counts(reporting, nodes.stop - nodes.start, epsilon, rng)
            values[nodes] = olh_frequencies(counts, n, epsilon)
            variances[nodes] = olh_variance(n, epsilon)
        masses = non_negative(tree, consistent(tree, values, variances))
        facts: dict[str, Fact] = {"estimator": ESTIMATOR, "levels": tree.depth}
        return Released(tree.spread(masses), claim, facts)
