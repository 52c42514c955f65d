"""PrivTree: nodes divided by noise that does not grow with depth, then noisy counts of leaves.

Zhang et al. ("PrivTree: A Differentially Private Algorithm for Hierarchical Decompositions", SIGMOD
2016, Algorithm 2) on whole numbers. A node of level i whose users have c units has the biased count
b = max(c - i delta, -delta), and is divided if b + X > 0, with X discrete Laplace noise of scale
lambda, all in units. The shape of the tree is epsilon-differentially private for

    lambda = (2 beta - 1) / (beta - 1) MASS / epsilon,   delta >= lambda ln(beta),   beta = 4,

the constants of the paper; docs/central.md proves them for this noise, for any beta > 1, first
level and threshold, and for users whose mass lies in many cells.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import Entropy
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.discrete_laplace import sample
from ldpspatial.release.central.budget_parts import in_two
from ldpspatial.release.central.central_release import CentralRelease, claim_of
from ldpspatial.release.central.masses import density_of_masses
from ldpspatial.release.central.pyramid import Pyramid
from ldpspatial.release.central.quantise import MASS, unit_sums
from ldpspatial.release.central.trees.disjoint_nodes import Nodes, counted
from ldpspatial.release.release import Released
from ldpspatial.validate import MICRO, number_in

Ints = NDArray[np.int64]

FANOUT = 4
LN_FANOUT = Fraction(13_862_943_611_198_907, 10**16)  # ln 4, rounded up


@dataclass(frozen=True)
class Growth:
    """Which nodes are looked at, and what is taken from their counts; as in the paper by default.

    Attributes
    ----------
    first : int >= 0
        Level of which all nodes are looked at.
    power : int >= 1
        beta is 4 to this power.
    threshold : Fraction >= 0
        What is taken from all counts, in scales of the noise.
    """

    first: int = 0
    power: int = 1
    threshold: Fraction = Fraction(0)


PAPER = Growth()


@dataclass(frozen=True)
class PrivTree(CentralRelease):
    """A quadtree that is divided where people are, and the noisy counts of its leaves.

    The paper sets no limit to the levels; here nodes are divided down to the cells of the map.
    Negative counts are zero, and each is spread evenly over the cells of its leaf.

    Attributes
    ----------
    alpha : float in (0, 1)
        Share of the budget for the shape of the tree.

    Raises
    ------
    InputError
        ``alpha`` breaks its rule.

    Examples
    --------
    >>> from ldpspatial.places.users import cells_by_user
    >>> users = cells_by_user(range(1000), [7] * 1000, (16, 16))
    >>> run = PrivTree().release(users, 1.0, np.random.default_rng(1))
    >>> run.facts["leaves"], run.claim.epsilon, bool(run.density[0, 7] > 0.9)
    (19, 1.0, True)
    """

    name: ClassVar[str] = "privtree"

    alpha: float = 0.5

    def __post_init__(self) -> None:
        number_in("alpha", self.alpha, "(0, 1)")

    def _run(self, users: UserCells, micro_epsilon: int, source: Entropy) -> Released:
        pyramid = Pyramid(Quadtree(users.shape), *unit_sums(users))
        for_shape, for_counts = in_two(micro_epsilon, self.alpha)
        leaves = grown(pyramid, for_shape, source)
        masses = counted(pyramid, leaves, for_counts, source)
        facts = {"leaves": sum(len(nodes) for _, nodes in leaves), "last_level": leaves[-1][0]}
        return Released(density_of_masses(masses), claim_of(micro_epsilon), facts)


def grown(
    pyramid: Pyramid, micro_epsilon: int, source: Entropy, growth: Growth = PAPER
) -> list[Nodes]:
    """Return the leaves of a tree, by level: the output depends on the users through these alone.

    Without a millionth to spend, nodes of the first level are the leaves.
    """
    tree = pyramid.tree
    nodes = tree.numbers(growth.first)
    leaves: list[Nodes] = []
    for level in range(growth.first, tree.depth + 1):
        divided = np.zeros(len(nodes), bool)
        if micro_epsilon and level < tree.depth:
            divided = crowded(pyramid.sums(level, nodes), level, micro_epsilon, source, growth)
        if not divided.all():
            leaves.append((level, nodes[~divided]))
        nodes = nodes[divided]
        if not len(nodes):
            break
        nodes = tree.numbers_below(level + 1, nodes)
    return leaves


def scale_and_step(micro_epsilon: int, power: int = 1) -> tuple[Fraction, int]:
    """Return the scale of the noise and the bias of a level, in units, for beta = 4^power.

    Examples
    --------
    >>> scale, step = scale_and_step(1_000_000)
    >>> round(float(scale / MASS), 6), round(step / MASS, 6)  # in people; ln 4 times as much
    (2.333333, 3.234687)
    """
    beta = FANOUT**power
    scale = Fraction((2 * beta - 1) * MASS * MICRO, (beta - 1) * micro_epsilon)
    # Whole units, so that biased counts are whole, and rounded up, or the proof would fail.
    return scale, ceil(scale * power * LN_FANOUT)


def crowded(
    units: Ints, level: int, micro_epsilon: int, source: Entropy, growth: Growth = PAPER
) -> NDArray[np.bool_]:
    """Tell which nodes of a level are divided, by their biased counts with noise."""
    scale, step = scale_and_step(micro_epsilon, growth.power)
    bias = ceil(growth.threshold * scale) + (level - growth.first) * step
    biased = np.maximum(units - bias, -step)
    noise = sample(len(units), scale.numerator, scale.denominator, source)
    divided: NDArray[np.bool_] = biased + noise > 0
    return divided
