"""The recommended distributed release: secure sums on the levels of a quadtree, least squares."""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, get_args

import numpy as np
from scipy import sparse

from ldpspatial.estimation.levels import NoisyLevel, combined
from ldpspatial.estimation.levels.learned_counts import MOSTLY_NONE
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.distributed.levels.map_levels import Ints
from ldpspatial.release.distributed.levels.one_visit import OneVisit, Published
from ldpspatial.release.distributed.schedule import Budget
from ldpspatial.release.distributed.sums.cohort import NoisySum
from ldpspatial.release.level_sums import Aim, measure, of_wide_areas, planned
from ldpspatial.validate import MICRO, one_of


@dataclass(frozen=True)
class DistributedLevels(OneVisit):
    """Noisy sums on the levels that epsilon and the clients allow, for one of two aims.

    As :class:`ldpspatial.release.central.CentralLevels`, over sums that a server sees of shards of
    clients. How many clients there are is public, so nothing is spent on their number. A round a
    level, or two of the last one; each client answers every round by the node that it is in, or by
    zeros where that node is not asked for.

    Where clients fail, in each round others are summed up. As long as who fails does not depend on
    where they are, and is drawn afresh in each round, a sum over f of the clients errs by a
    variance of (1 - f) / f for each client in the node, which the map and its intervals
    (:func:`ldpspatial.level_intervals`) reckon with.

    Attributes
    ----------
    cohort : Cohort
        Shards, drop-outs and modulus. Noise is added a shard, so the first level follows from the
        noise of all of them together.
    aim : {"distance", "cells"}
        What the map is for, as there. "cells" is one round, as long as there are cells.

    Raises
    ------
    InputError
        A field breaks its rule.

    Examples
    --------
    >>> from ldpspatial.places.users import cells_by_user
    >>> people = cells_by_user(range(4000), [0] * 3200 + [3] * 800, (2, 2))
    >>> released = DistributedLevels().release(people, 1.0, np.random.default_rng(1))
    >>> released.density.round(1).tolist(), released.facts["rounds"]
    ([[0.8, 0.0], [0.0, 0.2]], 1)
    """

    name: ClassVar[str] = "distributed-levels"

    aim: Aim = "distance"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("aim", self.aim, get_args(Aim))

    def publish(
        self, users: UserCells, cells: Ints, epsilon: float, rng: np.random.Generator
    ) -> Published:
        """Ask level after level, the same visit every time."""
        tree = Quadtree(users.shape, even=True)
        leaves = tree.leaf_numbers(cells)
        clients = len(cells)
        survivors: list[int] = []

        def ask(level: int, nodes: Ints, micro: int) -> NoisyLevel:
            # A client is in one node of a level at most, so the epsilons of the rounds add up.
            inside = leaves >> 2 * (tree.depth - level)
            seen = self.cohort.sum(answers(inside, nodes), micro / MICRO, 1, rng)
            survivors.append(seen.survivors)
            return noisy_level(level, nodes, seen, clients, micro / MICRO)

        whole = NoisyLevel(0, tree.numbers(0), np.array([float(clients)]), 0.0)
        budget = Budget(epsilon)
        micro = budget.pay_all()
        levels = [whole]
        if tree.depth:
            # None where so many fail that every sum is withheld.
            noise = self.cohort.deviation(epsilon, 1, clients) or noise_deviation(epsilon, 1)
            first, parts = planned(sqrt(2) * clients / noise, micro, tree.depth, self.aim)
            wide = 0
            if self.aim == "distance" and asks_wide_areas(noise):
                wide = of_wide_areas(first, parts, tree.depth)
            levels = measure(tree, whole, first, [parts[0] - wide, *parts[1:]], ask, wide)
        found = combined(tree, levels)
        asked = [level for level in found.levels[1:] if np.isfinite(level.variance)]
        facts = {
            "vector_length": sum(len(level.nodes) for level in asked),
            "rounds": len(survivors),
            "level": asked[-1].level if asked else 0,
            "survivors": min(survivors, default=clients),
        }
        return Published(found.density, micro / MICRO, facts, found)


def asks_wide_areas(deviation: float) -> bool:
    """Tell whether a part of epsilon for wide areas is worth what single cells lose by it.

    Where most noise is 0, a tenth of epsilon more makes it rarer by a third and more.

    Parameters
    ----------
    deviation : float
        Of the noise of all of epsilon, in people.
    """
    return deviation**2 >= MOSTLY_NONE


def noisy_level(level: int, nodes: Ints, seen: NoisySum, people: int, epsilon: float) -> NoisyLevel:
    """Return what sums over some people tell of all: survivors, at random, stand in for the others.

    Parameters
    ----------
    level : int
    nodes : (m,) int64 array
        Ascending.
    seen : NoisySum
        In the order of the nodes.
    people : int
        Whom the sums are to stand for, ``seen.survivors`` at least.
    epsilon : float > 0
        Of these sums.
    """
    if not seen.survivors:
        return NoisyLevel.unmeasured(level, nodes)
    scale = people / seen.survivors
    sums = seen.counts.astype(np.float64) * scale
    one = noise_deviation(epsilon, 1) ** 2
    # Of k times the noise of a shard (3 + 1 / one) / k, which is discrete Laplace noise's;
    # more than 3 is in its atoms, for which there is the step.
    excess = min((3 * one + 1) / max(seen.deviation**2, 1 / 3), 3.0)
    variance = (seen.deviation * scale) ** 2
    return NoisyLevel(level, nodes, sums, variance, scale - 1, step=scale, excess=excess)


def answers(inside: Ints, nodes: Ints) -> sparse.csr_array:
    """Return one row a client, with a one at its node if that is asked for.

    Parameters
    ----------
    inside : (clients,) int64 array
        The node of that level that each is in.
    nodes : (m,) int64 array
        Ascending.

    Examples
    --------
    >>> answers(np.array([5, 2, 4]), np.array([4, 5])).toarray().tolist()
    [[0, 1], [0, 0], [1, 0]]
    """
    at = np.minimum(np.searchsorted(nodes, inside), len(nodes) - 1)
    counted = nodes[at] == inside
    starts = np.concatenate([[0], np.cumsum(counted)])
    ones = np.ones(int(starts[-1]), dtype=np.int64)
    return sparse.csr_array((ones, at[counted], starts), shape=(len(inside), len(nodes)))
