"""The tree that exact counts would grow: what noise and epsilon cost is measured against it."""

from dataclasses import dataclass, field
from math import inf
from typing import ClassVar

import numpy as np

from ldpspatial.places.quadtree import MAX_DEPTH
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import Model, PrivacyClaim
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.adaptive.rounds import (
    MAX_ROUNDS,
    OneLocation,
    Round,
    facts,
    grown,
)
from ldpspatial.release.release import Release, Released, check_run
from ldpspatial.validate import check_epsilon, check_generator, instance, number_in, whole_number


@dataclass(frozen=True)
class NonPrivateTree(Release):
    """Adaptive hierarchical histogram without noise: no privacy whatever epsilon says.

    The first row of Table 3 of Bagdasaryan et al. 2022.

    Attributes
    ----------
    threshold : float > 0
        Elements with more people than this are split, those with a quarter of it or less removed.
    rounds : int in [1, 1000]
        Most rounds: people left over from removed elements can make the same node come and go.
    depth : int in [1, 14]
        Greatest depth of a node; that of a pixel if it is less.
    locations : OneLocation

    Raises
    ------
    InputError
        A field breaks its rule.
    """

    name: ClassVar[str] = "non-private-tree"
    model: ClassVar[Model] = "none"
    threshold: float = 10.0
    rounds: int = 10
    depth: int = 10
    locations: OneLocation = field(default_factory=OneLocation)

    def __post_init__(self) -> None:
        whole_number("rounds", self.rounds, 1, MAX_ROUNDS)
        whole_number("depth", self.depth, 1, MAX_DEPTH)
        number_in("threshold", self.threshold, "(0, inf]")
        instance("locations", self.locations, OneLocation)

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return that nothing is promised."""
        check_epsilon(epsilon)
        return PrivacyClaim("none", inf)

    def rounds_of(self, users: UserCells, rng: np.random.Generator) -> tuple[Round, ...]:
        """Count and grow until the tree has no new node, and return every round."""
        check_generator(rng)
        answers = self.locations.of(users, rng)
        tree = PrefixTree.quadrants(users.shape)
        trace = list[Round]()
        for _ in range(self.rounds):
            counts = np.asarray(answers(tree, rng).sum(axis=0), dtype=np.float64).ravel()
            everybody = len(users)
            seen = self.threshold, 0.0, everybody, everybody, everybody
            trace.append(Round(tree, counts, 0, 0, *seen))
            after = grown(tree, counts, self.threshold, self.depth)
            if after.nodes <= tree.nodes:
                break
            tree = after
        return tuple(trace)

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Run; ``epsilon`` has no effect."""
        check_run(users, epsilon, rng)
        trace = self.rounds_of(users, rng)
        final = trace[-1]
        shown = facts(trace)
        known = {name: shown[name] for name in ("rounds", "vector_length", "leaves")}
        return Released(final.tree.density(final.counts), self.claim(epsilon), known)
