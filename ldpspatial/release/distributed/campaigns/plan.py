"""Plan of a campaign: what the rounds ask of cohorts of people who each drew their round.

A campaign document fixes how many rounds there are, and every person draws one of them, all equally
likely. So cohorts are of about one size, and a turn of a release asks as many of them as it takes.
Everything follows from the sums of the rounds and public numbers: whoever kept the sums can make
the plan again.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, sqrt
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from client_sdk.rounds import Asked, Campaign, RoundDocument, choose_neighbours
from ldpspatial.errors import InputError
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.distributed.sums.cohort import Cohort, NoisySum
from ldpspatial.release.distributed.sums.secure_sum import decode
from ldpspatial.release.release import Release, Released
from ldpspatial.validate import MICRO, number_in, whole_number

Kind = TypeVar("Kind", bound=Release)
Ints = NDArray[np.int64]
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


Heard = list[tuple[RoundDocument, SessionSum]]


class CampaignPlan(ABC):
    """What the rounds of a campaign ask, and the map that comes of them.

    Parameters
    ----------
    campaign : Campaign
    people : int
        How many people are expected in all rounds together: it decides how many cohorts a turn
        asks, and nothing of what is promised.
    tolerated : float in [0, 1)
        Share of a session's clients that may fail.

    Raises
    ------
    InputError
        A bad argument.
    client_sdk.ClientError
        The campaign allows no such round: too few honest clients would be left, for example.
    """

    def __init__(self, campaign: Campaign, people: int, tolerated: float = 0.1) -> None:
        self.campaign = campaign
        clients = campaign.most_clients
        self.people = whole_number("people", people, 1, MOST_PEOPLE)
        number_in("tolerated", tolerated, "[0, 1)")
        self.threshold = clients - floor(Fraction(str(tolerated)) * clients)
        self.colluding = ceil(Fraction(campaign.colluding_ppm * clients, MICRO))
        if self.colluding >= self.threshold:
            raise InputError(
                f"tolerated must leave more than the {self.colluding} clients who may collude, "
                f"got {tolerated!r} of {clients}"
            )
        self.neighbours = None
        if campaign.server == "honest" and clients > ALL_NEIGHBOURS:
            self.neighbours = choose_neighbours(clients, self.threshold, self.colluding)
        self.cohort = Cohort(clients, tolerated=tolerated, colluding=campaign.colluding_ppm / MICRO)
        self._taken = 0  # rounds

    @property
    def epsilon(self) -> float:
        """What each person loses at most."""
        return self.campaign.micro_epsilon / MICRO

    @property
    def rounds_taken(self) -> int:
        """How many rounds are over."""
        return self._taken

    def document(self, number: int) -> RoundDocument:
        """Return what a round asks, once the rounds before it are over.

        Raises
        ------
        InputError
            Another round is next.
        client_sdk.ClientError
            The campaign does not allow it: its longest vector is too short, for example.
        """
        if number != self._taken + 1 or number > self.campaign.rounds:
            raise InputError(f"number must be that of the next round, got {number!r}")
        return self._round(number, self._asks())

    def take(self, sums: Sequence[SessionSum]) -> None:
        """Take the sums of the next round's sessions; of a round that asked nobody, none."""
        document = self.document(self._taken + 1)
        self._taken += 1
        self._hear([(document, each) for each in sums])

    @abstractmethod
    def released(self) -> Released:
        """Return the map of the rounds so far, with its claim; the uniform one without a sum."""

    @abstractmethod
    def _asks(self) -> Asked:
        """Return what the next round asks."""

    @abstractmethod
    def _hear(self, heard: Heard) -> None:
        """Take what a round came to."""

    def _round(self, number: int, asked: Asked) -> RoundDocument:
        return RoundDocument.create(
            self.campaign, number, asked, clients=self.campaign.most_clients,
            threshold=self.threshold, colluding=self.colluding, neighbours=self.neighbours,
            server=self.campaign.server,
        )  # fmt: skip

    def _left_open(self, release: Kind, *fields: str) -> Kind:
        """Return a release that leaves fields as its class has them, for the campaign to fill."""
        usual = type(release)()
        for name in fields:
            if getattr(release, name) != getattr(usual, name):
                raise InputError(
                    f"{name} must be left to the campaign, got {getattr(release, name)!r}"
                )
        return release

    def _claim(self, release: Release, *more: str) -> PrivacyClaim:
        """Return a release's claim with more conditions, and what rounds rest on."""
        claim = release.claim(self.epsilon)
        words = self._round(1, Asked(levels=(0,))).claim()
        return replace(claim, conditions=(*claim.conditions, *more, words))

    def _added_up(self, heard: Heard, length: int, sensitivity: int) -> NoisySum:
        """Add up the sums of a turn, whose vectors have this length and largest L1 norm."""
        counts = np.zeros(length, dtype=np.int64)
        shares = 0.0
        revealed = [(document, each) for document, each in heard if each.total is not None]
        for document, each in revealed:
            counts += decode(np.asarray(each.total), 1 << document.bits)
            shares += each.survivors / document.honest
        asked = sum(each.asked for _, each in heard)
        survivors = sum(each.survivors for _, each in revealed)
        spread = noise_deviation(self.epsilon, sensitivity) * sqrt(shares)
        return NoisySum(counts, len(heard), len(revealed), asked, survivors, spread)
