"""Designs against each other: paired differences, and what is said where none helps."""

from itertools import cycle

import numpy as np
import pytest
from scipy import stats

from client_sdk import response_table
from ldpspatial.datasets import SyntheticMap
from ldpspatial.planning import designs
from ldpspatial.planning.designs import (
    Design,
    Lead,
    better_design,
    lead,
    maps_lost,
    measure_designs,
    standard_error,
    warnings_of_map,
    wary_lead,
)
from ldpspatial.planning.rehearsal import Misfit

UNIT = SyntheticMap("unit", 0.0, 0.0, 1.0, lambda n, rng: rng.random((n, 2)))
FAR = Lead(1000.0, 1.0)
PLANNED = Design("dam", None, "em", 500.0, 9.0, 600.0, Lead(0.0, 0.0), FAR, ())


def disk(over_planned: Lead, *lost: str) -> Design:
    total = PLANNED.total_m - over_planned.mean_m
    return Design("disk", 5, "field", 300.0, 9.0, total, over_planned, FAR, lost)


def measure(
    totals: list[float], repeats: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[Design, ...]:
    """Play one map with given totals, in sides of a square of 100 m, planned and disk in turn."""
    given = cycle(totals)
    monkeypatch.setattr(designs, "rehearse", lambda *_: Misfit(0.1, 0.1, next(given), 0.0))
    table, rng = response_table("dam", 3.5, 5), np.random.default_rng(1)
    return measure_designs(table, {"m": UNIT}, 100.0, 50, repeats, rng, lambda: None)


@pytest.mark.parametrize(
    ("over_planned", "taken"),
    [
        (Lead(8.0, 15.0), 0),  # 426 against 418
        (Lead(0.0, 0.0), 0),
        (Lead(20.0, 10.0), 0),
        (Lead(20.1, 10.0), 1),
        (Lead(-50.0, 1.0), 0),
    ],
)
def test_what_was_planned_is_kept_unless_the_disk_is_ahead_by_more_than_chance(
    over_planned: Lead, taken: int
) -> None:
    both = (PLANNED, disk(over_planned))
    assert better_design(both) is both[taken]


def test_a_lead_is_ahead_level_or_behind() -> None:
    assert [Lead(mean, 10.0).is_ahead for mean in (20.1, 20.0, 0.0, -20.1)] == [True] + 3 * [False]
    assert [Lead(mean, 10.0).is_level for mean in (20.1, 20.0, -20.0, -20.1)] == [
        False, True, True, False,
    ]  # fmt: skip
    assert Lead(0.0, 0.0).is_level
    assert not Lead(0.0, 0.0).is_ahead


def test_differences_are_paired_so_that_hard_people_count_for_both() -> None:
    planned = np.array([[100.0, 300.0], [900.0, 500.0]])
    found = lead(planned - [[10.0, 12.0], [8.0, 8.0]], planned)
    # Differences 10 and 12 have variance 2, over 2 repeats; 8 and 8 none; the mean of two maps.
    assert (found.mean_m, found.standard_error_m) == pytest.approx((9.5, 0.5))
    assert standard_error(planned) == pytest.approx(np.sqrt(20_000 / 2 + 80_000 / 2) / 2)


def test_few_repeats_tell_of_little() -> None:
    """Of differences that are chance alone one in twenty is no longer taken for chance."""
    assert wary_lead(np.zeros((1, 2)), np.ones((1, 2))).times == pytest.approx(12.706, abs=1e-3)
    assert wary_lead(np.zeros((3, 5)), np.arange(15.0).reshape(3, 5)).times == pytest.approx(
        stats.t.ppf(0.975, 12)
    )
    rng = np.random.default_rng(7)
    scales = np.array([[1.0], [4.0]])
    for repeats in (2, 3, 5):
        runs = scales * rng.normal(size=(4000, 2, repeats))
        sure = np.mean([not wary_lead(each, np.zeros_like(each)).is_level for each in runs])
        assert 0.01 < sure < 0.065  # 0.05 and four deviations of 4000 draws; Welch's law is wary


def test_people_who_are_hard_for_both_designs_hide_no_lead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The total varies by 4 m from people to people, the difference of 1 m next to nothing.
    planned, other = measure([0.20, 0.19, 0.24, 0.2301], 2, monkeypatch)
    assert (planned.total_m, other.total_m) == pytest.approx((22, 21.005))
    assert other.over_planned.is_ahead
    assert (planned.over_planned.mean_m, planned.over_planned.standard_error_m) == (0, 0)
    assert planned.over_planned.is_level


def test_a_lead_within_chance_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    planned, other = both = measure([0.2, 0.14, 0.2, 0.25], 2, monkeypatch)
    assert other.total_m < planned.total_m
    assert other.over_planned.is_level
    assert better_design(both) is planned


@pytest.mark.parametrize("helps", [True, False])
def test_every_design_is_held_against_a_uniform_map(
    helps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Fifty people spread evenly are some 0.1 to 0.2 of the side from a uniform map.
    for design in measure([0.01, 0.02] if helps else [1.0, 0.9], 2, monkeypatch):
        assert design.over_nothing.is_ahead == helps
        assert design.no_better_than_uniform == (() if helps else ("m",))


def test_maps_are_lost_by_their_means() -> None:
    totals = np.array([[1.0, 3.0], [1.0, 2.0]])
    assert maps_lost(["a", "b"], totals, np.full((2, 2), 2.0)) == ("a",)


NOTHING = (
    "m: 9 reports are too few, or the cells too large: on every grid tried the estimate is no "
    "better than a uniform map, "
)
GRIDS = "m, 5, 8 cells: the estimate is no better than a uniform map, which is to know nothing"
DISK = "disk with rule field is"


@pytest.mark.parametrize(
    ("lost", "other", "said"),
    [
        ([], disk(FAR), []),
        ([], disk(FAR, "other map"), []),
        ([], disk(FAR, "m"), [f"m: {DISK} no better than a uniform map"]),
        ([], disk(Lead(0.0, 1.0), "m"), []),  # the disk is not what is recommended
        ([5, 8], disk(FAR), [GRIDS]),
        ([5, 8], disk(FAR, "m"), [GRIDS, f"m: {DISK} no better than a uniform map"]),
        ([5, 8, 9], disk(FAR), [f"{NOTHING}which is to know nothing; {DISK} better"]),
        ([5, 8, 9], disk(FAR, "m"), [f"{NOTHING}which is to know nothing; {DISK} no better"]),
        (
            [5, 8, 9],
            disk(Lead(0.0, 1.0), "m"),
            [f"{NOTHING}which is to know nothing; {DISK} no better"],
        ),
    ],
)
def test_warnings_look_at_the_recommended_disk_too(
    lost: list[int], other: Design, said: list[str]
) -> None:
    assert warnings_of_map("m", "9 reports", lost, 3, (PLANNED, other)) == said
