"""The recommended distributed release: secure sums on the levels of a quadtree, least squares."""

from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import ClassVar, get_args

import numpy as np
from scipy import sparse

from ldpspatial.estimation.levels import NoisyLevel, combined
from ldpspatial.estimation.levels.law_of_counts import MOSTLY_NONE
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.distributed._checks import check_clients, micro_of
from ldpspatial.release.distributed.levels.map_levels import Ints
from ldpspatial.release.distributed.levels.one_visit import OneVisit, Published
from ldpspatial.release.distributed.schedule import Budget
from ldpspatial.release.distributed.sums.cohort import Cohort, NoisySum
from ldpspatial.release.level_sums import Aim, Asked, Fineness, measure, of_wide_areas, planned
from ldpspatial.release.release import Released
from ldpspatial.validate import MICRO, one_of

ONE_ROUND = "each user is asked in one round; which one does not depend on the data, and is public"
ONE_OR_EVERY = (
    "each user is asked in one round, or in every one at parts of epsilon; which of these does not "
    "depend on the data, and is public"
)
LEAST_NOISE = 1e-9  # in people: that of an epsilon whose noise is 0 in floats


@dataclass(frozen=True)
class DistributedLevels(OneVisit):
    """Noisy sums on the levels that epsilon and the clients allow, for one of two aims.

    As :class:`ldpspatial.release.central.CentralLevels`, over sums that a server sees of shards of
    clients. How many clients there are is public, so nothing is spent on their number. A round a
    level, or two of the last one; a client answers by the node that it is in, or by zeros where
    that node is not asked for.

    Where clients fail, in each round others are summed up. As long as who fails does not depend on
    where they are, and is drawn afresh in each round, a sum over f of the clients errs by a
    variance of (1 - f) / f for each client in the node, which the map and its intervals
    (:func:`ldpspatial.level_intervals`) reckon with. Rounds that ask disjoint cohorts err against
    each other, so of them together that is somewhat too much.

    Attributes
    ----------
    cohort : Cohort
        Shards, drop-outs and modulus. Noise is added a shard, so the first level follows from the
        noise of all of them together.
    aim : {"distance", "cells"}
        What the map is for, as there. "cells" is one round, as long as there are cells.
    asked : {"either", "every round", "once"}
        Every client answers every round, at parts of epsilon, or rounds ask disjoint cohorts, each
        client once at all of epsilon, as rounds on devices do (:mod:`..campaigns.levels_plan`).
        Parts of epsilon have more noise than parts of the people where these are several shards; a
        part of the people is left to chance, which is more than the noise where epsilon is large.
        "either", the default, is the one by which sums are nearer on the level where everybody
        in every round would begin (:meth:`settled`). Intervals of clients asked once hold single
        cells of some dozens of people somewhat too seldom, of which a level counts a tenth
        (docs/levels.md).

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
    asked: Asked = "either"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("aim", self.aim, get_args(Aim))
        one_of("asked", self.asked, get_args(Asked))

    def claim_of(self, epsilon: float, clients: int | None) -> PrivacyClaim:
        """Return the claim of a run with so many clients, where that is known."""
        if self.asked == "every round":
            return super().claim_of(epsilon, clients)
        claim = super().claim_of(epsilon, None)
        said = ONE_ROUND if self.asked == "once" else ONE_OR_EVERY
        return replace(claim, conditions=(*claim.conditions, said))

    def settled(self, clients: int, shape: tuple[int, int], epsilon: float) -> "DistributedLevels":
        """Return this release with a choice of who is asked when, by public numbers alone.

        A sum over a share q of the clients, which stands for all of them, errs by the noise of
        those clients' shards over q and by (1 - q) / q for each person in the node; a sum over all
        clients by the noise of all shards at a share q of epsilon. Of people who are spread evenly
        over the level where everybody in every round would begin, that with the smaller variance.
        Where a share f of the clients stays, sums are divided by f: variances of noise by f^2, and
        what people add to them by f.

        Parameters
        ----------
        clients : int >= 1
        shape : (rows, columns)
        epsilon : float, a millionth at least

        Examples
        --------
        >>> [DistributedLevels().settled(n, (64, 64), 0.1).asked for n in (10_000, 100_000)]
        ['every round', 'once']
        """
        micro_of(epsilon)
        if self.asked != "either":
            return self
        tree = Quadtree(shape, even=True)
        if not tree.depth:
            return replace(self, asked="every round")  # or none: everybody is in the one cell
        noise = noise_of(self.cohort, epsilon, clients)
        first, parts = planned(sqrt(2) * clients / noise, clients, tree.depth, self.aim, "secure")
        share = parts[0] / clients
        in_node = clients / prod(tree.sides(first))
        of_people = in_node * (1 - share) / share * (1 - self.cohort.drop_out)
        once = (noise_of(self.cohort, epsilon, parts[0]) / share) ** 2 + of_people
        every_round = noise_of(self.cohort, share * epsilon, clients) ** 2
        return replace(self, asked="once" if once < every_round else "every round")

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Simulate a run; of a user with many positions one visit counts, drawn uniformly."""
        if self.asked != "either":
            return super().release(users, epsilon, rng)
        check_clients(users, epsilon, rng)
        return self.settled(len(users), users.shape, epsilon).release(users, epsilon, rng)

    def publish(
        self, users: UserCells, cells: Ints, epsilon: float, rng: np.random.Generator
    ) -> Published:
        """Ask level after level, the same visit every time."""
        tree = Quadtree(users.shape, even=True)
        clients = len(cells)
        once = self.settled(clients, users.shape, epsilon).asked == "once"
        rounds = _Rounds(self.cohort, tree, cells, epsilon, once, rng)
        whole = NoisyLevel(0, tree.numbers(0), np.array([float(clients)]), 0.0)
        levels = [whole]
        if tree.depth:
            noise = noise_of(self.cohort, epsilon, clients)
            per_noise = sqrt(2) * clients / noise
            fineness: Fineness = "once" if once else "secure"
            first, parts = planned(per_noise, rounds.divided, tree.depth, self.aim, fineness)
            wide = 0
            # Who is asked once would not be counted twice by it.
            if self.aim == "distance" and not rounds.once and asks_wide_areas(noise):
                wide = of_wide_areas(first, parts, tree.depth)
            parts[0] -= wide
            levels = measure(tree, whole, first, parts, rounds.ask, wide, rounds.noisier)
        found = combined(tree, levels)
        asked = [level.level for level in found.levels[1:] if np.isfinite(level.variance)]
        facts = {**rounds.facts(), "level": asked[-1] if asked else 0}
        return Published(found.density, rounds.micro / MICRO, facts, found)


class _Rounds:
    """The rounds of one run.

    Attributes
    ----------
    micro : int
        Millionths of epsilon that each client spends in all.
    once : bool
        Whether rounds ask disjoint cohorts.
    divided : int
        What is divided into parts: clients where each is asked once, else ``micro``.
    """

    def __init__(
        self,
        cohort: Cohort,
        tree: Quadtree,
        cells: Ints,
        epsilon: float,
        once: bool,
        rng: np.random.Generator,
    ) -> None:
        self._cohort, self._tree, self._rng = cohort, tree, rng
        self._epsilon = epsilon
        self._leaves = tree.leaf_numbers(cells)
        self._clients = len(cells)
        self.micro = Budget(epsilon).pay_all()
        self.once = once
        self.divided = self._clients if self.once else self.micro
        # Who is asked when is drawn, and so says nothing of anybody's place.
        self._waiting = rng.permutation(self._clients) if self.once else np.arange(self._clients)
        self._survivors: list[int] = []
        self._lengths: list[int] = []

    def ask(self, level: int, nodes: Ints, part: int) -> NoisyLevel:
        """Hold a round with a part of epsilon, or of the clients."""
        who, spent = self._waiting, part
        if self.once:
            who, self._waiting = np.split(self._waiting, [part])
            spent = self.micro
        # A client is in one node of a level at most, so the epsilons of its rounds add up.
        inside = self._leaves[who] >> 2 * (self._tree.depth - level)
        seen = self._cohort.sum(answers(inside, nodes), spent / MICRO, 1, self._rng)
        self._survivors.append(seen.survivors)
        self._lengths.append(len(nodes))
        return noisy_level(level, nodes, seen, self._clients, spent / MICRO)

    def noisier(self, part: int, other: int) -> float:
        """Return the noise of a sum by another part over that by this one, in all people."""
        if not self.once:
            return part / other
        one, another = (noise_of(self._cohort, self._epsilon, each) for each in (part, other))
        return another / other / (one / part)

    def facts(self) -> dict[str, int]:
        """Return how long all is that a client sends, how many rounds, and who survived."""
        of_all = max if self.once else sum
        survived = sum if self.once else min
        return {
            "vector_length": of_all(self._lengths) if self._lengths else 0,
            "rounds": len(self._lengths),
            "survivors": survived(self._survivors) if self._survivors else self._clients,
        }


def noise_of(cohort: Cohort, epsilon: float, people: int) -> float:
    """Return the deviation of the noise of a sum over so many people, above 0.

    Parameters
    ----------
    cohort : Cohort
    epsilon : float > 0
        Of the sum.
    people : int >= 1
    """
    # None where so many fail that every sum is withheld.
    noise = cohort.deviation(epsilon, 1, people)
    return max(noise or noise_deviation(epsilon, 1), LEAST_NOISE)


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
