"""DAM per trajectory and per visit: the client's table, a public number of reports."""

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from scipy import stats

from client_sdk import Grid, response_table
from ldpspatial import StampChannel, wasserstein
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.datasets import density_walks
from ldpspatial.places.users import UserCells, cells_by_user, user_cells
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.privacy.local_privacy import local_privacy
from ldpspatial.release.local import Dam
from ldpspatial.release.local.trajectories.dam_trajectory import DamPoints, DamTrajectory


def walkers(walks: int, side: int) -> UserCells:
    """Walks on a map with people in one corner."""
    crowd = np.exp(-np.add.outer(np.arange(40), np.arange(40)) / 8)
    crowd[crowd < 0.1] = 0
    points = density_walks(crowd, walks, np.random.default_rng(1), longest=40)
    return user_cells(points, Grid.plane(0, 0, 1.0, side))


def _counts(release: DamTrajectory | DamPoints, trajectory: list[int], users: int) -> np.ndarray:
    """Reports of that many users of the same trajectory, by output cell of a 3 x 3 map."""
    who = np.repeat(np.arange(users), len(trajectory))
    people = cells_by_user(who, np.tile(trajectory, users), (3, 3))
    found = release.release(people, 1.0, np.random.default_rng(5)).estimate
    assert found is not None
    return found.counts


@pytest.mark.parametrize("slots", [1, 3])
def test_reports_are_of_visits_drawn_uniformly(slots: int) -> None:
    # The law of a report is the mixture of the rows of the user's visits: chi-square, 1e-6.
    counts = _counts(DamTrajectory(slots=slots), [0, 0, 0, 8], 6000)
    assert counts.sum() == 6000 * slots
    channel = StampChannel(response_table("dam", 1.0 / slots, 3))
    law = channel.forward(np.diag([0.75, 0, 0.25]))[channel.support] * counts.sum()
    assert stats.chisquare(counts[channel.support], law).pvalue > 1e-6
    if slots == 1:  # the same test tells a report that is always of the first visit
        first = channel.forward(np.eye(1, 9).reshape(3, 3))[channel.support] * counts.sum()
        assert stats.chisquare(counts[channel.support], first).pvalue < 1e-6


def test_every_visit_is_reported_once_by_the_release_of_points() -> None:
    counts = _counts(DamPoints(), [0, 0, 0, 8], 2000)
    assert counts.sum() == 8000
    channel = StampChannel(response_table("dam", 1.0, 3))
    law = channel.forward(np.diag([0.75, 0, 0.25]))[channel.support] * 8000
    assert stats.chisquare(counts[channel.support], law).pvalue > 1e-6


def test_the_slots_together_spend_epsilon() -> None:
    for slots in (1, 2, 3, 7):
        table = DamTrajectory(slots=slots).table(5, 2.1)
        assert Fraction(table.epsilon) * slots <= Fraction(2.1)
        assert float(table.max_ratio()) ** slots <= exp(2.1)
    found = DamTrajectory(slots=3).release(walkers(20, 5), 2.1, np.random.default_rng(1))
    assert found.facts["reports_per_user"] == 3
    assert found.facts["epsilon_per_report"] == pytest.approx(0.7)


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_the_realised_epsilon_is_that_of_all_reports_of_a_trajectory(slots: int) -> None:
    release = DamTrajectory(slots=slots)
    found = release.release(walkers(20, 5), 2.0, np.random.default_rng(1))
    together = slots * log(release.table(5, 2.0).max_ratio())
    assert found.facts["realised_epsilon"] == pytest.approx(together, rel=1e-12)
    assert 1.9999 < together <= 2.0


def test_one_slot_is_the_table_of_dam_and_its_local_privacy() -> None:
    assert DamTrajectory().table(6, 2.0) == Dam().table(6, 2.0) == DamPoints().table(6, 2.0)
    assert DamTrajectory().local_privacy(6, 2.0) == Dam().local_privacy(6, 2.0)
    half = local_privacy(StampChannel(response_table("dam", 1.0, 6)))
    assert DamTrajectory(slots=2).local_privacy(6, 2.0) == pytest.approx(half, rel=1e-12)


@pytest.mark.parametrize(("slots", "one", "all_of_them"), [(1, 0.024, 0.024), (3, 1.160, 0.769)])
def test_local_privacy_is_of_one_report_and_says_whether_that_is_all(
    slots: int, one: float, all_of_them: float
) -> None:
    # A user of one visit at epsilon 7, every tuple of reports on a 3 x 3 map enumerated.
    release = DamTrajectory(slots=slots)
    assert release.local_privacy(3, 7.0) == pytest.approx(one, abs=5e-4)
    row = StampChannel(release.table(3, 7.0)).matrix()
    joint = row[row.sum(axis=1) > 0]
    for _ in range(slots - 1):
        joint = (joint[:, None] * row[row.sum(axis=1) > 0]).reshape(-1, 9)
    together = MatrixChannel(joint, (3, 3), 7.0)
    assert local_privacy(together) == pytest.approx(all_of_them, abs=5e-4)
    assert release.privacy_of_all_reports == (slots == 1)


def test_it_finds_the_map() -> None:
    users, rng = walkers(2000, 6), np.random.default_rng(2)
    flat = wasserstein(users.density, np.full((6, 6), 1 / 36))
    errors = [
        wasserstein(users.density, release.release(users, 4.0, rng).density)
        for release in (DamPoints(), DamTrajectory(), DamTrajectory(slots=2))
    ]
    assert flat > 1.5
    assert max(errors) < 0.6
    assert errors[0] < errors[1]  # which is bought with epsilon a visit


def test_points_tell_what_a_trajectory_loses() -> None:
    users = cells_by_user([0, 0, 0, 1], [0, 1, 2, 3], (2, 2))
    found = DamPoints().release(users, 2.0, np.random.default_rng(1))
    assert found.facts["reports_per_user_most"] == 3
    assert found.facts["epsilon_of_longest_trajectory"] == 6.0


def test_a_long_trajectory_cannot_be_told_from_a_short_one_beyond_epsilon() -> None:
    # 100,000 users a side; the statistic: the first cell is reported. At twice epsilon it is seen.
    n = 100_000
    short = cells_by_user(np.arange(n), np.zeros(n, int), (3, 3))
    long = cells_by_user(np.repeat(np.arange(n), 4), np.full(4 * n, 8), (3, 3))
    bounds = []
    for epsilon in (1.0, 2.0):
        table = DamTrajectory().table(3, epsilon)
        samples = []
        for users in (short, long):
            run = DamTrajectory().release(users, epsilon, np.random.default_rng(4)).estimate
            assert run is not None
            own = int(run.counts[table.radius, table.radius])
            samples.append(np.random.default_rng(5).permutation(np.arange(n) < own))
        bounds.append(lower_bound_epsilon(*samples))
    assert 0.5 < bounds[0] <= 1.0 < bounds[1]
