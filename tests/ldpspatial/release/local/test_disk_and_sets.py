"""Disk and sets: who reports by which, what becomes of both, and what it brings for cells."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpspatial import recommended
from ldpspatial.errors import InputError
from ldpspatial.estimation import Field
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.release.local import (
    Dam,
    DifferenceSets,
    Disk,
    DiskAndSets,
    LocalRelease,
    Recommended,
    SubsetSelection,
    disk_and_sets,
)
from ldpspatial.release.local.disk_and_sets import LEAST, MOST, Sets, field_kept
from ldpspatial.release.local.disks.disk_radius import disk_squared_radius
from ldpspatial.release.local.sets.subset_selection import subset_variances


def crowd(n: int, side: int = 15, seed: int = 1) -> UserCells:
    """Most people on a hill, a quarter in three single cells."""
    rng = np.random.default_rng(seed)
    at = np.clip(rng.normal(side / 2, side / 6, (n, 2)), 0, side - 1e-9).astype(int)
    cells = at[:, 0] * side + at[:, 1]
    stops = np.array([1, side, side**2 - 2])
    waits = rng.random(n) < 0.25
    cells[waits] = stops[rng.integers(3, size=int(waits.sum()))]
    return cells_by_user(np.arange(n), cells, (side, side))


def everywhere(n: int, side: int = 15) -> UserCells:
    """As many people in every cell, but for chance."""
    cells = np.random.default_rng(5).integers(side**2, size=n)
    return cells_by_user(np.arange(n), cells, (side, side))


@pytest.mark.parametrize(
    ("cells", "epsilon", "users", "share"),
    [
        (64, 0.5, 1000, 1.0),
        (32, 0.1, 10_000, 1.0),
        (15, 5.0, 1_000_000, LEAST),
        (1, 5.0, 10, 1.0),
        (15, 9.0, 1000, 1.0),
    ],
)
def test_all_report_by_the_disk_where_sets_tell_nothing_and_few_where_they_tell_all(
    cells: int, epsilon: float, users: int, share: float
) -> None:
    release = DiskAndSets.chosen(cells, epsilon, users)
    assert release.share == share
    on_disk = round(share * users)
    assert release.squared_radius == disk_squared_radius(cells, epsilon, on_disk)
    assert recommended(cells, epsilon, users, aim="cells") == release


def test_the_share_falls_with_users_and_with_epsilon() -> None:
    by_users = [DiskAndSets.chosen(32, 1.0, n).share for n in (10**2, 10**3, 10**4, 10**5, 10**12)]
    by_epsilon = [DiskAndSets.chosen(32, e, 10_000).share for e in (0.1, 1.0, 2.0, 5.0, 8.0)]
    for shares in (by_users, by_epsilon):
        assert shares == sorted(shares, reverse=True)
        assert (shares[0], shares[-1]) == (1.0, LEAST)


def test_where_reports_are_cells_nobody_is_lost() -> None:
    """At eps 20 nearly every report of a single cell is the own one: the map is that of all."""
    users = crowd(1000)
    release = DiskAndSets.chosen(15, 20.0, 1000)
    assert (release.share, release.squared_radius) == (1, 0)
    found = release.release(users, 20.0, np.random.default_rng(4)).density
    assert np.abs(found - users.density).sum() < 1e-3


def test_it_claims_what_every_local_report_does() -> None:
    assert DiskAndSets(0.5, 3).claim(2.0) == Dam().claim(2.0)
    with pytest.raises(InputError, match="epsilon must"):
        DiskAndSets(0.5, 3).claim(21)


def test_a_coin_that_looks_at_nothing_decides_who_reports_by_which() -> None:
    # The same coins for other people; and so many of 4,000 are within six deviations of 2,000.
    release = DiskAndSets(0.5, 3, rule="em")
    first, other = (
        release.release(users, 2.0, np.random.default_rng(7)).facts["on_disk"]
        for users in (crowd(4000), everywhere(4000))
    )
    assert first == other
    assert isinstance(first, int)
    assert abs(first - 2000) < 6 * np.sqrt(1000)


def test_where_all_report_by_the_disk_its_posterior_mean_is_drawn_to_the_uniform_map() -> None:
    users = crowd(2000)
    release = DiskAndSets.chosen(15, 0.3, 2000)
    assert release.share == 1
    found = release.release(users, 0.3, np.random.default_rng(3))
    field = Field(point="mean", map_alone=True)
    alone = Disk(field, release.squared_radius)  # type: ignore[arg-type]
    plain = alone.release(users, 0.3, np.random.default_rng(3)).density
    kept = field_kept(225, 2000, 0.3)
    assert 0.2 < kept < 0.8
    np.testing.assert_allclose(found.density, kept * plain + (1 - kept) / 225)
    assert found.facts["estimator"] == "field"
    assert found.estimate is None


@pytest.mark.parametrize("cells", [1, 2, 3])
@pytest.mark.parametrize("users", [1, 2, 30])
def test_a_few_people_on_a_few_cells_have_a_map(cells: int, users: int) -> None:
    people = cells_by_user(np.arange(users), np.arange(users) % cells**2, (cells, cells))
    for share in (1e-9, 0.5, 1.0):
        for epsilon in (0.01, 20.0):
            release = DiskAndSets(share, 1)
            density = release.release(people, epsilon, np.random.default_rng(1)).density
            assert density.sum() == pytest.approx(1)
            assert density.min() >= 0


def test_an_observer_guesses_as_well_as_of_both_kinds() -> None:
    release = DiskAndSets(0.25, 5)
    disk = Disk(squared_radius=5).local_privacy(8, 2.0)
    sets = SubsetSelection().local_privacy(8, 2.0)
    assert release.local_privacy(8, 2.0) == pytest.approx(0.25 * disk + 0.75 * sets)


def errors(release: LocalRelease, users: UserCells, epsilon: float, runs: int) -> np.ndarray:
    """Return the mean L1 and squared error of some runs."""
    off = [
        release.release(users, epsilon, np.random.default_rng(seed)).density - users.density
        for seed in range(runs)
    ]
    return np.array([[np.abs(each).sum(), (each**2).sum()] for each in off]).mean(axis=0)


def test_it_is_better_at_single_cells_where_these_are_crowded() -> None:
    # Of ten other crowds MSE is .27 of that of aim distance in the geometric mean, and L1 .92, with
    # deviations of .17 and .07 of their logarithms: false alarms of 1e-4 and 1e-3.
    users = crowd(5000)
    ours, other = (errors(Recommended(aim=aim), users, 2.0, 2) for aim in ("cells", "distance"))
    assert ours[0] < 1.15 * other[0]
    assert ours[1] < 0.5 * other[1]


def test_where_reports_tell_nothing_it_is_near_the_uniform_map() -> None:
    # A field alone makes crowds of noise.
    users = everywhere(1000)
    ours, other = (errors(Recommended(aim=aim), users, 0.1, 3) for aim in ("cells", "distance"))
    uniform = 1 / 225 - users.density
    assert ours[1] < 1.1 * (uniform**2).sum()
    assert ours[1] < other[1]


def test_by_name_it_is_that_of_each_runs_own_numbers() -> None:
    users = crowd(3000, side=8)
    by_name = Recommended("em", aim="cells").release(users, 3.0, np.random.default_rng(2))
    by_hand = DiskAndSets.chosen(8, 3.0, 3000, "em").release(users, 3.0, np.random.default_rng(2))
    assert np.array_equal(by_name.density, by_hand.density)
    assert by_name.facts == by_hand.facts
    told = Recommended(n_users=10**6, aim="cells").chosen(8, 3.0, 10)
    assert told == recommended(8, 3.0, 10**6, aim="cells")


def test_where_subsets_would_take_hours_sets_are_of_one_design() -> None:
    few, many = (DiskAndSets.chosen(64, 1.0, n) for n in (10**6, 10**7))
    assert (few.sets, many.sets) == ("subset-selection", "difference-sets")
    assert DiskAndSets.chosen(512, 1.0, 10**6).sets == "difference-sets"
    # There no prime fits well, so sets of a design tell less: subsets, while that takes minutes.
    rough = [DiskAndSets.chosen(4096, 7.0, n).sets for n in (200_000, 10**7)]
    assert rough == ["subset-selection", "difference-sets"]
    assert DiskAndSets.chosen(15, 0.1, 10**5).sets == "subset-selection"
    users = crowd(5000)
    of_subsets = DiskAndSets.chosen(15, 2.0, 5000)
    of_design = replace(of_subsets, sets="difference-sets")
    ours, other = (errors(each, users, 2.0, 6)[1] for each in (of_design, of_subsets))
    assert 0.3 < ours / other < 3.0
    ours = DiskAndSets(1e-9, 2, sets="difference-sets").local_privacy(8, 2.0)
    assert ours == pytest.approx(DifferenceSets().local_privacy(8, 2.0))


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("share", 0.0),
        ("share", 1.5),
        ("share", "half"),
        ("squared_radius", -1),
        ("rule", "none"),
        ("sets", "olh"),
    ],
)
def test_bad_numbers_are_refused(field: str, bad: object) -> None:
    with pytest.raises(InputError, match=f"{field} must"):
        replace(DiskAndSets(0.5, 1), **{field: bad})  # type: ignore[arg-type]


def test_sets_are_told_their_own_noise_and_that_any_cell_may_be_crowded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def told(shares: NDArray, variances: float, expected: NDArray) -> NDArray:
        seen.append((variances, expected))
        return expected

    monkeypatch.setattr(disk_and_sets, "posterior_shares", told)
    users = cells_by_user(np.arange(3000), np.zeros(3000, int), (8, 8))
    found = DiskAndSets(0.5, 2, "scaled").release(users, 5.0, np.random.default_rng(1))
    ((variances, expected),) = seen
    assert variances == subset_variances(64, 3000 - int(found.facts["on_disk"]), 5.0)
    assert expected.min() >= 0.999 * (1 - MOST) / 64


def test_the_disk_is_that_of_those_who_report_by_it() -> None:
    chosen = DiskAndSets.chosen(64, 2.0, 100_000)
    on_disk = round(chosen.share * 100_000)
    assert chosen.squared_radius == disk_squared_radius(64, 2.0, on_disk)
    assert chosen.squared_radius != disk_squared_radius(64, 2.0, 100_000)


def test_the_field_is_kept_as_far_as_the_people_on_the_disk_tell_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others' reports are none of its own."""
    seen = []

    def kept(*law: float) -> float:
        seen.append(law)
        return 0.5

    monkeypatch.setattr(disk_and_sets, "field_kept", kept)
    found = DiskAndSets(0.25, 2, "scaled").release(crowd(2000, 8), 2.0, np.random.default_rng(1))
    on_disk = found.facts["on_disk"]
    assert seen == [(64, on_disk, 2.0)]
    assert on_disk < 1000


@pytest.mark.parametrize("sets", ["subset-selection", "difference-sets"])
def test_everybody_reports_once(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reported by the disk and by a set as well would spend epsilon twice."""
    reported: list[list[int]] = []
    kind = type(DiskAndSets(0.5, 2, sets=sets).others)
    play, frequencies = disk_and_sets.play, kind.frequencies

    def played(table: Any, rows: NDArray, columns: NDArray, rng: Any) -> Any:
        reported.append((rows * 8 + columns).tolist())
        return play(table, rows, columns, rng)

    def counted(release: Any, values: NDArray, *law: Any) -> Any:
        reported.append(values.tolist())
        return frequencies(release, values, *law)

    monkeypatch.setattr(disk_and_sets, "play", played)
    monkeypatch.setattr(kind, "frequencies", counted)
    cells = np.arange(2000) ** 2 % 64
    users = cells_by_user(np.arange(2000), cells, (8, 8))
    found = DiskAndSets(0.5, 2, "scaled", sets).release(users, 2.0, np.random.default_rng(1))
    on_disk, others = reported
    assert len(on_disk) == found.facts["on_disk"]
    assert sorted(on_disk + others) == sorted(cells.tolist())
