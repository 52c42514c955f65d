"""A campaign that collects the levels of a quadtree: rounds take the place of parts of epsilon.

The rule is that of :mod:`ldpspatial.release.level_sums`. There everybody answers on every level and
epsilon is divided; here each person answers once, with all of epsilon, and the rounds are divided.
A level's sums stand for everybody who was heard on any level: of a share f of these, a sum over f
errs by noise and by (1 - f) / f for each person, which least squares, map and intervals reckon
with.
"""

from dataclasses import dataclass, field, replace
from math import sqrt

import numpy as np

from client_sdk.rounds import Asked, Campaign
from ldpspatial.errors import InputError
from ldpspatial.estimation.levels import NoisyLevel, combined
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.release.distributed.campaigns.plan import CampaignPlan, Heard, Ints
from ldpspatial.release.distributed.levels.distributed_levels import (
    LEAST_NOISE,
    DistributedLevels,
    noisy_level,
)
from ldpspatial.release.distributed.sums.cohort import NoisySum
from ldpspatial.release.level_sums import budget_parts, nodes_to_divide, planned
from ldpspatial.release.release import Fact, Released


@dataclass
class _Turn:
    """Rounds that ask the same.

    Attributes
    ----------
    level : int
    nodes : (m,) int64 array
        Ascending numbers of nodes of that level.
    rounds : int
    heard : list
    """

    level: int
    nodes: Ints
    rounds: int
    heard: Heard = field(default_factory=list)


class LevelsPlan(CampaignPlan):
    """Rounds of :class:`ldpspatial.release.distributed.DistributedLevels`.

    Parameters
    ----------
    campaign, people, tolerated
        As of `CampaignPlan`.
    levels : DistributedLevels
        With the cohort of its class: that of the campaign takes its place. Whatever its ``asked``
        says, each person has one round.

    Raises
    ------
    InputError
        A bad argument, a cohort of its own, or single cells are asked for and the campaign's
        vectors are too short.
    client_sdk.ClientError
        The campaign allows no such round.
    """

    def __init__(
        self,
        campaign: Campaign,
        people: int,
        tolerated: float = 0.1,
        levels: DistributedLevels | None = None,
    ) -> None:
        super().__init__(campaign, people, tolerated)
        given = self._left_open(levels or DistributedLevels(), "cohort")
        self._levels = replace(given, cohort=self.cohort, asked="every round")
        self._tree = Quadtree((campaign.grid.cells,) * 2, even=True)
        self._parts: list[int] = []  # rounds of the first level and of those below it
        self._first = 0
        self._turns = [self._begun()]
        self.document(1)  # or the campaign cannot begin

    def released(self) -> Released:
        """Return the map of all sums so far, with its claim, and what intervals need."""
        seen = {turn.level: (turn, self._seen(turn)) for turn in self._turns}
        people = sum(each.survivors for _, each in seen.values())
        levels = [NoisyLevel(0, self._tree.numbers(0), np.array([float(people)]), 0.0)]
        deepest = max((at for at, (_, each) in seen.items() if each.survivors), default=0)
        for level in range(1, deepest + 1):
            if level in seen:
                turn, each = seen[level]
                levels.append(noisy_level(level, turn.nodes, each, people, self.epsilon))
            else:
                levels.append(NoisyLevel.unmeasured(level, self._tree.numbers(level)))
        found = combined(self._tree, levels)
        one = f"each user is asked in one of {self.campaign.rounds} rounds, drawn by the user"
        asked = [each.clients for _, each in seen.values() if each.clients]
        facts: dict[str, Fact] = {
            "rounds": len(asked),  # as a histogram has them: turns, each of several cohorts
            "vector_length": max(len(turn.nodes) for turn in self._turns),
            "level": deepest,
            "asked": " ".join(map(str, asked)),
            "survivors": people,
            "cohorts": self._taken,
        }
        claim = self._claim(self._levels, one)
        return Released(found.density, claim, facts, levels=found)

    def _begun(self) -> _Turn:
        """Return the first turn: of all nodes of the first level."""
        rounds, depth = self.campaign.rounds, self._tree.depth
        longest = _deepest(self.campaign.most_length)
        aim = self._levels.aim
        if aim == "cells" and longest < depth:
            raise InputError(
                f"aim must be distance where vectors are shorter than the {4**depth} cells, "
                f"got {aim!r} of a campaign with most_length {self.campaign.most_length}"
            )
        noise = max(self.cohort.deviation(self.epsilon, 1, self.people), LEAST_NOISE)
        if not depth:
            self._parts = [rounds]
        else:
            per_noise = sqrt(2) * self.people / noise
            self._first, self._parts = planned(per_noise, rounds, depth, aim, "once")
        if self._first > longest:
            self._first, self._parts = longest, budget_parts(rounds, depth - longest + 1)
        return _Turn(self._first, self._tree.numbers(self._first), self._parts[0])

    def _asks(self) -> Asked:
        turn = self._turns[-1]
        if len(turn.nodes) == 4**turn.level:
            return Asked(levels=(turn.level,))
        places = np.sort(self._tree.positions(turn.level, turn.nodes))
        rows, columns = np.divmod(places, 1 << turn.level)
        at = zip(rows.tolist(), columns.tolist(), strict=True)
        return Asked(nodes=tuple((turn.level, row, column) for row, column in at))

    def _hear(self, heard: Heard) -> None:
        self._turns[-1].heard += heard
        over = sum(turn.rounds for turn in self._turns)
        if self._taken == over < self.campaign.rounds:
            self._go_on()

    def _go_on(self) -> None:
        """Begin the next turn, or let this one go on to the end."""
        turn = self._turns[-1]
        here = turn.level - self._first
        below = self._parts[here + 1]
        seen = self._seen(turn)
        asked = noisy_level(turn.level, turn.nodes, seen, seen.survivors, self.epsilon)
        # A sum over k cohorts has k times the variance, and stands for k times as many people.
        deviation = sqrt(asked.variance * self._parts[here] / below)
        divided = nodes_to_divide(asked, deviation)
        most = self.campaign.most_length // 4
        if divided is None or not most:
            turn.rounds = self.campaign.rounds - sum(each.rounds for each in self._turns[:-1])
            return
        if divided.sum() > most:  # those of the most people
            order = np.argsort(np.where(divided, -asked.sums, np.inf), kind="stable")
            divided = np.isin(np.arange(len(divided)), order[:most])
        nodes = self._tree.numbers_below(turn.level + 1, turn.nodes[divided])
        self._turns.append(_Turn(turn.level + 1, nodes, below))

    def _seen(self, turn: _Turn) -> NoisySum:
        """Add up the sums of a turn, in the order of its nodes."""
        seen = self._added_up(turn.heard, len(turn.nodes), 1)
        order = np.argsort(self._tree.positions(turn.level, turn.nodes), kind="stable")
        counts = np.empty_like(seen.counts)
        counts[order] = seen.counts
        return replace(seen, counts=counts)


def _deepest(length: int) -> int:
    """Return the deepest level whose nodes a vector of this length has room for.

    Examples
    --------
    >>> [_deepest(length) for length in (1, 63, 64, 4096)]
    [0, 2, 3, 6]
    """
    return (length.bit_length() - 1) // 2
