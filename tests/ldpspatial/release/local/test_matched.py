"""A release at another one's local privacy: the right epsilon, and the claim that goes with it."""

import numpy as np
import pytest

from client_sdk import Grid
from ldpspatial.errors import InputError
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.local import (
    DamPoints,
    DamTrajectory,
    LdpTrace,
    LocalRelease,
    PivotTrace,
    Recommended,
    Rhombus,
    SquareWave,
)
from ldpspatial.release.local.disks.dam import Dam
from ldpspatial.release.local.geo.planar_laplace import PlanarLaplace
from ldpspatial.release.local.geo.sem_geo_i import SemGeoI, least_epsilon
from ldpspatial.release.local.matched import Matched


@pytest.mark.parametrize(("epsilon", "geo"), [(5, 0.8416), (7, 1.466), (9, 3.4128)])
def test_sem_geo_i_has_dams_local_privacy_at_the_known_epsilons(epsilon: float, geo: float) -> None:
    match = Matched(SemGeoI(), Dam(), 15).match(epsilon)
    assert round(match.epsilon, 4) == geo
    assert match.inner == SemGeoI(1)
    assert not match.jumped
    assert match.standard_error == 0
    privacy = match.inner.local_privacy(15, match.epsilon)
    assert privacy == pytest.approx(Dam().local_privacy(15, epsilon), abs=1e-6)
    assert privacy == pytest.approx(match.local_privacy, abs=1e-9)


@pytest.mark.parametrize("epsilon", [2.8, 3.5])
def test_where_k_jumps_over_the_target_the_smaller_one_is_held(epsilon: float) -> None:
    match = Matched(SemGeoI(), Dam(), 15).match(epsilon)
    assert match.jumped
    assert match.inner == SemGeoI(1)
    target = Dam().local_privacy(15, epsilon)
    assert match.inner.local_privacy(15, match.epsilon) == pytest.approx(target, abs=1e-6)
    edge = least_epsilon(15, 1)  # where the formula comes to 1, from 2 cells
    assert match.epsilon < edge
    assert SemGeoI(1).local_privacy(15, edge) < target < SemGeoI(2).local_privacy(15, edge)


def test_where_the_formula_meets_the_target_at_more_than_one_cell_it_is_kept() -> None:
    for size in (2, 4):
        middle = (least_epsilon(5, size) + least_epsilon(5, size - 1)) / 2
        assert SemGeoI().subset_size(5, middle) == size
        match = Matched(SemGeoI(), SemGeoI(), 5).match(middle)
        assert match.inner == SemGeoI(size)
        assert match.epsilon == pytest.approx(middle)
        assert not match.jumped


def test_a_held_k_stays_and_the_estimator_too() -> None:
    match = Matched(SemGeoI(3), Dam(), 5).match(2.0)
    assert match.inner == SemGeoI(3)
    assert not match.jumped
    match = Matched(SemGeoI(estimator="em"), Dam(), 5).match(3.0)
    assert match.inner == SemGeoI(1, "em")


def test_the_claim_is_that_of_the_release_inside_and_says_what_was_matched() -> None:
    matched = Matched(SemGeoI(), Dam(), 5)
    claim, match = matched.claim(5.0), matched.match(5.0)
    assert (claim.notion, claim.distance) == ("geo-indistinguishability", "cell")
    assert claim.epsilon == match.epsilon
    equal = "local privacy equal to that of dam at epsilon 5 on 5 x 5 cells, uniform prior"
    assert claim.conditions == (*SemGeoI(1).claim(match.epsilon).conditions, equal)


def test_a_run_has_the_facts_of_the_match_and_equals_a_run_of_the_release_inside() -> None:
    matched = Matched(SemGeoI(), Dam(), 5)
    match = matched.match(3.5)
    users = cells_by_user(np.arange(500), np.arange(500) % 25, (5, 5))
    found = matched.release(users, 3.5, np.random.default_rng(1))
    alone = match.inner.release(users, match.epsilon, np.random.default_rng(1))
    assert (found.density == alone.density).all()
    assert found.claim == matched.claim(3.5)
    assert found.facts["matched_epsilon"] == match.epsilon
    assert found.facts["local_privacy"] == match.local_privacy
    assert found.facts["local_privacy_error"] == 0
    assert found.facts["subset_size"] == 1
    assert found.facts["jumped"] == int(match.jumped)
    assert matched.local_privacy(5, 3.5) == pytest.approx(Dam().local_privacy(5, 3.5), abs=1e-9)


def test_planar_laplace_is_matched_and_noises_raw_positions() -> None:
    matched = Matched(PlanarLaplace(), Dam(), 6)
    grid = Grid.plane(0, 0, 6, 6)
    for epsilon in (1.0, 3.5, 6.0):
        match = matched.match(epsilon)
        privacy = PlanarLaplace().local_privacy(6, match.epsilon)
        assert privacy == pytest.approx(Dam().local_privacy(6, epsilon), abs=1e-6)
    match = matched.match(6.0)
    points = np.full((5_000, 2), 2.999)  # at the corner of a cell: cells would hide that
    found = matched.run(points, grid, 6.0, np.random.default_rng(1))
    alone = PlanarLaplace().run(points, grid, match.epsilon, np.random.default_rng(1))
    assert (found.density == alone.density).all()
    assert "epsilon_per_metre" in found.facts
    assert found.estimate is not None
    counts = found.estimate.counts.reshape(6, 6)
    assert counts[3, 3] > counts[1, 1]  # two cells off are those beyond the corner


@pytest.mark.parametrize("inner", [SemGeoI(), PlanarLaplace(), Dam()])
def test_a_single_cell(inner) -> None:  # type: ignore[no-untyped-def]
    matched = Matched(inner, Dam(), 1)
    users = cells_by_user([0], [0], (1, 1))
    assert matched.release(users, 1.0, np.random.default_rng(1)).density.tolist() == [[1.0]]


@pytest.mark.parametrize(
    "several", [DamTrajectory(slots=2), DamPoints(), LdpTrace(), LdpTrace("all"), PivotTrace()]
)
def test_the_local_privacy_of_one_report_of_several_is_not_equalled(several: LocalRelease) -> None:
    rule = f"of all that one user sends, got {several.name}, whose is of one report"
    with pytest.raises(InputError, match=f"to must be a release whose local privacy is {rule}"):
        Matched(Rhombus(), several, 3)
    with pytest.raises(InputError, match=f"inner must be a release whose local privacy is {rule}"):
        Matched(several, Dam(), 3)


def test_a_trajectory_of_one_report_is_equalled() -> None:
    assert Matched(Rhombus(), DamTrajectory(), 3).match(2.0) == Matched(Rhombus(), Dam(), 3).match(
        2.0
    )


def test_its_name_label_and_printed_form() -> None:
    matched = Matched(SemGeoI(), Dam(), 15)
    assert (matched.name, matched.model) == ("matched", "local")
    assert matched.label == "sem-geo-i matched to dam"
    assert "SemGeoI" in repr(matched)
    assert "cells=15" in repr(matched)


def test_bad_input() -> None:
    rng = np.random.default_rng(1)
    matched = Matched(SemGeoI(), Dam(), 3)
    with pytest.raises(InputError, match="to must be a release of square maps, got sw-ems"):
        Matched(SemGeoI(), SquareWave(), 3)
    with pytest.raises(InputError, match="inner must be a release of square maps, got sw-ems"):
        Matched(SquareWave(), Dam(), 3)
    with pytest.raises(InputError, match=r"must have 3 x 3 cells, on which .* got 4 x 4"):
        matched.release(cells_by_user([0], [0], (4, 4)), 1.0, rng)
    with pytest.raises(InputError, match=r"must have 3 x 3 cells, on which .* got 4 x 4"):
        matched.run([[0.5, 0.5]], Grid.plane(0, 0, 4, 4), 1.0, rng)
    with pytest.raises(InputError, match="needs a square map, got 2 x 3 cells"):
        matched.release(cells_by_user([0], [0], (2, 3)), 1.0, rng)
    with pytest.raises(InputError, match=r"is matched on 3 x 3 cells, got 4"):
        matched.local_privacy(4, 1.0)
    with pytest.raises(InputError, match="target must lie in"):
        Matched(PlanarLaplace(), Dam(), 3).match(19.0)
    for epsilon in (0, -1.0, float("nan"), "1", None, True):
        with pytest.raises(InputError, match="epsilon must"):
            matched.match(epsilon)  # type: ignore[arg-type]


def test_the_largest_k_is_found_too() -> None:
    match = Matched(SemGeoI(), Dam(), 3).match(0.01)
    assert match.inner == SemGeoI(5)
    assert SemGeoI().subset_size(3, 1e-6) == 5
    assert not match.jumped


@pytest.mark.parametrize("pair", [(Recommended(), Dam()), (Dam(), Recommended(aim="cells"))])
def test_a_recommended_release_is_matched_as_the_one_that_runs(
    pair: tuple[LocalRelease, LocalRelease],
) -> None:
    """What it is depends on how many report, and so does its local privacy."""
    with pytest.raises(InputError, match=r"does not depend on who comes, .*recommended:n_users="):
        Matched(*pair, 32)
    told = Matched(Recommended("em", n_users=300), Dam(), 32)
    points = np.random.default_rng(1).normal(4, 1, (50, 2))
    found = told.run(points, Grid.plane(0, 0, 8, 32), 2.0, np.random.default_rng(2))
    match = told.match(2.0)
    ran = Recommended(n_users=300).chosen(32, match.epsilon)
    assert found.facts["radius"] == pytest.approx(ran.table(32, match.epsilon).radius)
    assert ran.local_privacy(32, match.epsilon) == pytest.approx(match.local_privacy, abs=1e-6)
