"""Plan of a campaign: an adaptive histogram over cohorts of people who each drew their round.

A campaign document fixes how many rounds there are, and every person draws one of them, all equally
likely. So cohorts are of about one size, and a turn of the histogram asks as many of them as it
takes to hear the people that it wants; the last turn asks all that are left. Everything follows
from the sums of the rounds and public numbers: whoever kept the sums can make the plan again.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from client_sdk.rounds import Asked, Campaign, RoundDocument, choose_neighbours
from ldpspatial.errors import InputError
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.adaptive.rounds import Round, facts, grown, last_revealed
from ldpspatial.release.distributed.adaptive.turns import Turn, Turns
from ldpspatial.release.distributed.sums.cohort import Cohort, NoisySum
from ldpspatial.release.distributed.sums.secure_sum import decode
from ldpspatial.release.release import Released
from ldpspatial.validate import MICRO, number_in, whole_number

Ints = NDArray[np.int64]
MILLION = 10**6
MOST_PEOPLE = 1 << 32
# Of so many clients all are neighbours of all, whatever the server is trusted with: that hides a
# client among more, at 0.1 ms a neighbour.
ALL_NEIGHBOURS = 256


class SessionSum(NamedTuple):
    """What came of one secure sum.

    Attributes
    ----------
    asked : int
        Clients who had a seat.
    survivors : int
        Whose vectors are in the sum; 0 where there is none.
    total : (length,) int64 array, or None
        Residues modulo 2^bits of the round's document.
    """

    asked: int
    survivors: int
    total: Ints | None


class CampaignPlan:
    """What the rounds of a campaign ask, and the map that comes of them.

    Parameters
    ----------
    campaign : Campaign
    people : int
        How many people are expected in all rounds together: it decides how many cohorts a turn
        asks, and nothing of what is promised.
    tolerated : float in [0, 1)
        Share of a session's clients that may fail.
    calibration : float > 0
        As of `AdaptiveHierarchical`.

    Raises
    ------
    InputError
        A bad argument.
    client_sdk.ClientError
        The campaign allows no such round: too few honest clients would be left, for example.

    Examples
    --------
    >>> from client_sdk import Grid
    >>> campaign = Campaign("noon", Grid.from_center(52.5, 13.4, 8000, 8), rounds=20,
    ...     first_start=0, round_seconds=3600, micro_epsilon=10**6, sensitivity=1, most_length=4096,
    ...     most_clients=100, least_honest=60, colluding_ppm=50_000)
    >>> plan = CampaignPlan(campaign, people=2000, tolerated=0.2)
    >>> first = plan.document(1)
    >>> first.length, first.clients, first.threshold, first.honest
    (4, 100, 80, 75)
    """

    def __init__(
        self, campaign: Campaign, people: int, tolerated: float = 0.1, calibration: float = 0.1
    ) -> None:
        self.campaign = campaign
        clients = campaign.most_clients
        people = whole_number("people", people, 1, MOST_PEOPLE)
        number_in("tolerated", tolerated, "[0, 1)")
        self.threshold = clients - floor(Fraction(str(tolerated)) * clients)
        self.colluding = ceil(Fraction(campaign.colluding_ppm * clients, MILLION))
        if self.colluding >= self.threshold:
            raise InputError(
                f"tolerated must leave more than the {self.colluding} clients who may collude, "
                f"got {tolerated!r} of {clients}"
            )
        self.neighbours = None
        if campaign.server == "honest" and clients > ALL_NEIGHBOURS:
            self.neighbours = choose_neighbours(clients, self.threshold, self.colluding)
        cohort = Cohort(clients, tolerated=tolerated, colluding=campaign.colluding_ppm / MILLION)
        histogram = AdaptiveHierarchical(
            cohort, calibration, rounds=min(campaign.rounds, 1000), depth=max(campaign.depth, 1)
        )
        self._histogram = histogram
        shape = campaign.grid.cells, campaign.grid.cells
        epsilon = campaign.micro_epsilon / MICRO
        self._turns = Turns(histogram, shape, people, epsilon, self._grown)
        self._taken = 0  # rounds
        self._heard: list[tuple[RoundDocument, SessionSum]] = []  # in this turn
        self.document(1)  # or the campaign cannot begin

    def document(self, number: int) -> RoundDocument:
        """Return what a round asks, once the rounds before it are over.

        Raises
        ------
        InputError
            Another round is next.
        client_sdk.ClientError
            The campaign does not allow it: its longest vector is too short for the tree.
        """
        turn = self._turn()
        if number != self._taken + 1 or number > self.campaign.rounds:
            raise InputError(f"number must be that of the next round, got {number!r}")
        return self._round(number, Asked(nodes=turn.tree.elements))

    def _round(self, number: int, asked: Asked) -> RoundDocument:
        return RoundDocument.create(
            self.campaign, number, asked, clients=self.campaign.most_clients,
            threshold=self.threshold, colluding=self.colluding, neighbours=self.neighbours,
            server=self.campaign.server,
        )  # fmt: skip

    def take(self, sums: Sequence[SessionSum]) -> None:
        """Take the sums of the next round's sessions; of a round that asked nobody, none."""
        document = self.document(self._taken + 1)
        self._taken += 1
        self._heard += [(document, each) for each in sums]
        turn = self._turn()
        asked = sum(each.asked for _, each in self._heard)
        # The last turn, or one that has asked everybody who was expected, goes on to the end.
        if turn.people <= asked < self._turns.people and self._taken < self.campaign.rounds:
            self._turns.take(self._seen())
            self._heard = []

    @property
    def rounds_taken(self) -> int:
        """How many rounds are over."""
        return self._taken

    def released(self) -> Released:
        """Return the map of the rounds so far, with its claim.

        Of the last turn that has a sum; the uniform map where none has.
        """
        trace = list(self._turns.trace)
        if any(each.asked for _, each in self._heard):
            trace.append(self._turns.round_of(self._turn(), self._seen()))
        epsilon = self.campaign.micro_epsilon / MICRO
        claim = self._histogram.claim(epsilon)
        words = self._round(1, Asked(levels=(0,))).claim()
        claim = replace(claim, conditions=(*claim.conditions, words))
        if not trace:
            tree = PrefixTree.quadrants((self.campaign.grid.cells,) * 2)
            return Released(tree.density(np.zeros(len(tree))), claim, {"rounds": 0})
        final = last_revealed(trace)
        density = final.tree.density(final.counts)
        return Released(density, claim, {**facts(trace, once=True), "cohorts": self._taken})

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
        counts = np.zeros(turn.length, dtype=np.int64)
        shares = 0.0
        revealed = [(document, each) for document, each in self._heard if each.total is not None]
        for document, each in revealed:
            counts += decode(np.asarray(each.total), 1 << document.bits)
            shares += each.survivors / document.honest
        asked = sum(each.asked for _, each in self._heard)
        survivors = sum(each.survivors for _, each in revealed)
        spread = noise_deviation(turn.micro / MICRO, turn.sensitivity) * sqrt(shares)
        sessions = len(self._heard)
        return NoisySum(counts, sessions, len(revealed), asked, survivors, spread)
