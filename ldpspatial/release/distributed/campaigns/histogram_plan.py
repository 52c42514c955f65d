"""A campaign that grows an adaptive histogram: a turn asks by one tree.

A turn asks as many cohorts as it takes to hear the people that the histogram wants; the last turn
asks all that are left.
"""

from dataclasses import replace

import numpy as np

from client_sdk.rounds import Asked, Campaign
from ldpspatial.errors import InputError
from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.adaptive.rounds import Round, facts, grown, last_revealed
from ldpspatial.release.distributed.adaptive.turns import Turn, Turns
from ldpspatial.release.distributed.campaigns.plan import CampaignPlan, Heard
from ldpspatial.release.distributed.sums.cohort import NoisySum
from ldpspatial.release.release import Released


class HistogramPlan(CampaignPlan):
    """Rounds of :class:`ldpspatial.release.distributed.AdaptiveHierarchical`.

    Parameters
    ----------
    campaign, people, tolerated
        As of `CampaignPlan`.
    histogram : AdaptiveHierarchical
        With cohort, rounds and depth of its class: those of the campaign take their place.

    Raises
    ------
    InputError
        A bad argument, a cohort, rounds or depth of its own, or a histogram that asks people more
        than once.
    client_sdk.ClientError
        The campaign allows no such round.
    """

    def __init__(
        self,
        campaign: Campaign,
        people: int,
        tolerated: float = 0.1,
        histogram: AdaptiveHierarchical | None = None,
    ) -> None:
        super().__init__(campaign, people, tolerated)
        given = self._left_open(histogram or AdaptiveHierarchical(), "cohort", "rounds", "depth")
        if given.asked != "once":
            raise InputError(f"asked must be once, as each person has one round, got {given.asked}")
        self._histogram = replace(
            given,
            cohort=self.cohort,
            rounds=min(campaign.rounds, 1000),
            depth=max(campaign.depth, 1),
        )
        shape = campaign.grid.cells, campaign.grid.cells
        self._turns = Turns(self._histogram, shape, people, self.epsilon, self._grown)
        self._heard: Heard = []  # in this turn
        self.document(1)  # or the campaign cannot begin

    def released(self) -> Released:
        """Return the map of the last turn that has a sum, with its claim."""
        trace = list(self._turns.trace)
        if any(each.asked for _, each in self._heard):
            trace.append(self._turns.round_of(self._turn(), self._seen()))
        claim = self._claim(self._histogram)
        if not trace:
            tree = PrefixTree.quadrants((self.campaign.grid.cells,) * 2)
            return Released(tree.density(np.zeros(len(tree))), claim, {"rounds": 0})
        final = last_revealed(trace)
        density = final.density(self._histogram.shown)
        return Released(density, claim, {**facts(trace, once=True), "cohorts": self._taken})

    def _asks(self) -> Asked:
        return Asked(nodes=self._turn().tree.elements)

    def _hear(self, heard: Heard) -> None:
        self._heard += heard
        asked = sum(each.asked for _, each in self._heard)
        # The last turn, or one that has asked everybody who was expected, goes on to the end.
        wanted = self._turn().people
        if wanted <= asked < self._turns.people and self._taken < self.campaign.rounds:
            self._turns.take(self._seen())
            self._heard = []

    def _turn(self) -> Turn:
        """Return the turn that is open: one always is, for the last goes on to the end."""
        turn = self._turns.next()
        if turn is None:
            raise InputError("the campaign is over")
        return turn

    def _grown(self, step: Round) -> PrefixTree:
        """Grow as the histogram does, as long as vectors are not longer than the campaign has."""
        after = grown(step.tree, step.counts, step.threshold, self._histogram.depth)
        return after if len(after) <= self.campaign.most_length else step.tree

    def _seen(self) -> NoisySum:
        """Add up the sums of this turn."""
        turn = self._turn()
        return self._added_up(self._heard, turn.length, turn.sensitivity)
