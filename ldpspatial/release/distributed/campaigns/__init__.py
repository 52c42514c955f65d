"""Campaigns: what rounds of secure sums ask of cohorts of people, and the map they come to."""

from client_sdk.rounds import Campaign
from ldpspatial.errors import InputError
from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.campaigns.histogram_plan import HistogramPlan
from ldpspatial.release.distributed.campaigns.levels_plan import LevelsPlan
from ldpspatial.release.distributed.campaigns.plan import CampaignPlan, SessionSum
from ldpspatial.release.distributed.levels.distributed_levels import DistributedLevels
from ldpspatial.release.registry import find_releases
from ldpspatial.release.release import Release

RECOMMENDED = DistributedLevels.name

__all__ = [
    "RECOMMENDED",
    "CampaignPlan",
    "HistogramPlan",
    "LevelsPlan",
    "SessionSum",
    "campaign_plan",
]


def campaign_plan(
    campaign: Campaign,
    people: int,
    tolerated: float = 0.1,
    release: str | Release = RECOMMENDED,
) -> CampaignPlan:
    """Return the plan by which a campaign collects a release.

    Parameters
    ----------
    campaign : Campaign
    people : int
        How many people are expected in all rounds together.
    tolerated : float in [0, 1)
        Share of a session's clients that may fail.
    release : str or Release
        `DistributedLevels` or `AdaptiveHierarchical`, or a text such as "distributed-levels",
        "distributed-levels:aim=cells" or "adaptive-hierarchical:c=1". Cohort, rounds and depth are
        those of the campaign, and must be left out.

    Raises
    ------
    InputError
        A bad argument, or a release that campaigns cannot collect.
    client_sdk.ClientError
        The campaign allows no such round.

    Examples
    --------
    >>> from client_sdk import Grid
    >>> campaign = Campaign("noon", Grid.from_center(52.5, 13.4, 8000, 8), rounds=20,
    ...     first_start=0, round_seconds=3600, micro_epsilon=10**6, sensitivity=1, most_length=4096,
    ...     most_clients=100, least_honest=60, colluding_ppm=50_000)
    >>> plan = campaign_plan(campaign, people=2000, tolerated=0.2)
    >>> first = plan.document(1)
    >>> first.asked, first.clients, first.threshold, first.honest
    (Asked(levels=(3,), nodes=()), 100, 80, 75)
    """
    known = (DistributedLevels.name, AdaptiveHierarchical.name)
    found: Release | None = None
    # Of a text only these are looked up: nothing that a store names is loaded.
    if not isinstance(release, str) or release.partition(":")[0] in known:
        (found,) = find_releases([release]).values()
    if isinstance(found, DistributedLevels) and found.name in known:
        return LevelsPlan(campaign, people, tolerated, found)
    if isinstance(found, AdaptiveHierarchical):
        return HistogramPlan(campaign, people, tolerated, found)
    got = release if found is None else found.name
    raise InputError(f"release must be {' or '.join(known)}, got {got!r}")
