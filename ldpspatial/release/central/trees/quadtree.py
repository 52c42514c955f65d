"""All levels of a quadtree, combined by least squares: the textbook rival."""

from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import Entropy
from ldpspatial.estimation.levels import LevelMap, NoisyLevel, combined
from ldpspatial.estimation.levels.level_map import gathered
from ldpspatial.places.quadtree import MAX_DEPTH, Quadtree
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.central.budget_parts import geometric, in_proportion
from ldpspatial.release.central.central_release import CentralRelease, claim_of, with_noise
from ldpspatial.release.central.masses import Negatives, density_of_masses, spread_evenly
from ldpspatial.release.central.pyramid import Pyramid
from ldpspatial.release.central.quantise import MASS, unit_sums
from ldpspatial.release.release import Released
from ldpspatial.validate import MICRO, number_in, one_of, whole_number

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CentralQuadtree(CentralRelease):
    """Noisy sums of every node down to a level, and the sums of that level by least squares.

    The levels' shares of epsilon are equal in Hay et al. ("Boosting the Accuracy of Differentially
    Private Histograms Through Consistency", VLDB 2010, section 4) and grow by 2^(1/3) a level in
    Cormode et al. ("Differentially Private Spatial Decompositions", ICDE 2012, sections 4 and 5),
    who also give least squares for such shares. Sums of the last level are spread evenly over their
    cells.

    Attributes
    ----------
    depth : int in [1, 14]
        The last level; that of the cells where the map has fewer.
    growth : float in (0, 16]
        A level's epsilon over that of the level above.
    negatives : {"zero", "nearest"}
        They are zero, or the map is the nearest one without any that has the same sum
        (:func:`ldpspatial.release.central.masses.density_of_masses`).

    Raises
    ------
    InputError
        A field breaks its rule.

    Examples
    --------
    >>> from ldpspatial.places.users import cells_by_user
    >>> users = cells_by_user(range(1000), [7] * 1000, (16, 16))
    >>> run = CentralQuadtree().release(users, 1.0, np.random.default_rng(1))
    >>> run.facts["noisy sums"], run.claim.epsilon, bool(run.density[0, 7] > 0.5)
    (341, 1.0, True)
    """

    name: ClassVar[str] = "quadtree"

    depth: int = 5
    growth: float = 2 ** (1 / 3)
    negatives: Negatives = "zero"

    def __post_init__(self) -> None:
        whole_number("depth", self.depth, 1, MAX_DEPTH)
        number_in("growth", self.growth, "(0, 16]")
        one_of("negatives", self.negatives, get_args(Negatives))

    def _run(self, users: UserCells, micro_epsilon: int, source: Entropy) -> Released:
        tree = Quadtree(users.shape)
        pyramid = Pyramid(tree, *unit_sums(users))
        depth = min(self.depth, tree.depth)
        budget = in_proportion(micro_epsilon, geometric(self.growth, depth + 1))
        levels = []
        for level, micro in enumerate(budget):
            nodes = tree.numbers(level)
            if not micro:
                levels.append(NoisyLevel.unmeasured(level, nodes))
                continue
            noisy = with_noise(pyramid.sums(level, nodes), micro, source)
            deviation = noise_deviation(micro / MICRO, MASS) / MASS
            levels.append(NoisyLevel(level, nodes, noisy / MASS, deviation**2))
        people = least_squares(combined(tree, levels))
        masses = spread_evenly(tree, depth, tree.numbers(depth), people)
        facts = {"noisy sums": sum(len(level.nodes) for level in levels if level.variance < np.inf)}
        return Released(density_of_masses(masses, self.negatives), claim_of(micro_epsilon), facts)


def least_squares(found: LevelMap) -> Array:
    """Return least squares of the people in each node of the last level, by all sums.

    From the whole map down: what the sums of a node's children lack of the node's people is shared
    by their variances. Every level holds all children of the level above.

    Returns
    -------
    (m,) array
        Without bias, so they may be negative.
    """
    people = found.sums[0]
    for step, children in enumerate(found.children):
        sums, variances = (
            gathered(values[step + 1], children, 0.0) for values in (found.sums, found.variances)
        )
        share = variances / variances.sum(1, keepdims=True)
        given = sums + share * (people - sums.sum(1))[:, np.newaxis]
        people = np.zeros(len(found.sums[step + 1]))
        people[children[children >= 0]] = given[children >= 0]
    return people
