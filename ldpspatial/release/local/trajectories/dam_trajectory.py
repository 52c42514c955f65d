"""DAM on trajectories: a public number of reports a trajectory, or one report a visit.

Du et al. (arXiv 2412.06541, appendix D) compare DAM with mechanisms for trajectories, and let DAM
spend epsilon on every visit where the others spend it on all. Here stand both: the comparison at
equal epsilon per trajectory, and the published one under its own name and claim.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from client_sdk import ResponseTable, response_table
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.claims import TAKING_PART, PrivacyClaim
from ldpspatial.release.local.disks.dam import DiskRelease
from ldpspatial.release.local.local_release import PUBLIC_MAP
from ldpspatial.release.local.trajectories.trajectory_release import (
    Ints,
    check_share,
    drawn_visits,
    share_of,
    trails_of,
    trajectory_claim,
)
from ldpspatial.release.release import Fact, Released

MOST_SLOTS = 4096
LENGTHS_TOLD = "the number of a user's reports is told: it is the length of the trajectory"
LOSSES_ADD_UP = "a trajectory of T visits loses T times epsilon"


@dataclass(frozen=True)
class DamTrajectory(DiskRelease):
    """DAM on visits drawn from each trajectory, at equal epsilon per trajectory.

    A report on a visit that was drawn uniformly is eps/s-LDP of the whole trajectory, as its law
    is a mixture of the table's rows; s reports compose to epsilon. Its local privacy is that of
    one report, at eps/s, about the visit that it is of: the reports of all slots tell more.

    Attributes
    ----------
    slots : int in [1, 4096]
        Reports a user, public; each on a visit drawn uniformly with replacement, at epsilon /
        slots.
    """

    name: ClassVar[str] = "dam-trajectory"
    slots: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep_whole("slots", 1, MOST_SLOTS)

    @property
    def privacy_of_all_reports(self) -> bool:
        """Whether there is one slot; with more, local privacy is of the report in one of them."""
        return self.slots == 1

    def table(self, cells: int, epsilon: float) -> ResponseTable:
        """Return the table of one report, which spends epsilon / slots."""
        return response_table("dam", share_of(epsilon, Fraction(1, self.slots)), cells)

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP of the trajectory: slots reports of epsilon / slots each."""
        claim = trajectory_claim(epsilon, f"reports a user: {self.slots}")
        if self.slots > 1:
            check_share(epsilon, Fraction(1, self.slots))
        return claim

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Draw each user's reports from the table and estimate the density from all of them."""
        visits = drawn_visits(trails_of(self.name, users), self.slots, rng)
        found = super()._release(_one_visit_each(visits, users), epsilon, rng)
        spent = share_of(epsilon, Fraction(1, self.slots))
        facts: dict[str, Fact] = {
            "realised_epsilon": self.slots * float(found.facts["realised_epsilon"]),
            "reports_per_user": self.slots,
            "epsilon_per_report": spent,
        }
        return replace(found, facts={**found.facts, **facts})


@dataclass(frozen=True)
class DamPoints(DiskRelease):
    """DAM on every visit, epsilon each: the comparison of the paper, not one at equal privacy.

    Its map weighs visits equally and not users. Its local privacy is that of one report about the
    visit that it is of: the reports of a trajectory tell more.
    """

    name: ClassVar[str] = "dam-points"

    @property
    def privacy_of_all_reports(self) -> bool:
        """False: local privacy is of the report on one visit."""
        return False

    def table(self, cells: int, epsilon: float) -> ResponseTable:
        """Return the table of one report."""
        return response_table("dam", epsilon, cells)

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP of one report on one visit; a trajectory loses more."""
        conditions = (LOSSES_ADD_UP, LENGTHS_TOLD, PUBLIC_MAP, TAKING_PART)
        return replace(super().claim(epsilon), unit="report", conditions=conditions)

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Draw a report on every visit and estimate the density of visits from all of them."""
        trails = trails_of(self.name, users)
        found = super()._release(_one_visit_each(trails.cells, users), epsilon, rng)
        longest = int(trails.lengths.max())
        facts: dict[str, Fact] = {
            "reports_per_user_most": longest,
            "epsilon_of_longest_trajectory": longest * epsilon,
        }
        return replace(found, facts={**found.facts, **facts})


def _one_visit_each(visits: Ints, users: UserCells) -> UserCells:
    """Return users of one visit, one for every visit given."""
    return cells_by_user(np.arange(visits.size), visits.ravel(), users.shape)
