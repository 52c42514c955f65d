"""Planning: the error bound against exact transport, and what a plan says to its reader."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk import response_table
from ldpspatial.datasets import SyntheticMap, synthetic_maps
from ldpspatial.errors import InputError
from ldpspatial.planning import plan as planning
from ldpspatial.planning.plan import Plan, PlanRow, plan
from ldpspatial.planning.rehearsal import Misfit, People, rehearse
from ldpspatial.release.local.disks.disk_radius import disk_squared_radius
from tests.support import naive_planning
from tests.support.short_attacks import shorten_attacks
from tests.support.short_chains import shorten_chains

UNIT = SyntheticMap("unit", 0.0, 0.0, 1.0, lambda n, rng: rng.random((n, 2)))


@pytest.fixture(autouse=True)
def less_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_chains(monkeypatch)
    shorten_attacks(monkeypatch)


def seeded(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def lattice(k: int) -> np.ndarray:
    """Return k x k points, the centres of k x k cells of the unit square."""
    line = (np.arange(k) + 0.5) / k
    return np.column_stack([np.repeat(line, k), np.tile(line, k)])


@given(st.integers(0, 10**6), st.integers(1, 25), st.integers(1, 4), st.floats(0.1, 8))
@settings(max_examples=80)
def test_the_total_bounds_the_exact_distance_from_people_to_map(
    seed: int, n: int, d: int, lumpiness: float
) -> None:
    rng = seeded(seed)
    points = rng.random((n, 2)) ** lumpiness
    density = rng.dirichlet(np.full(d * d, 0.5)).reshape(d, d)
    people = People.on_grid(UNIT, points, d)
    misfit = people.misfit(density)
    exact = naive_planning.w2_to_cell_map(points, density)
    rounding = 1e-6  # positions are rounded to 1e-7 of a unit, the program to 1e-9 of the cost
    assert exact <= misfit.total + rounding
    assert exact >= max(misfit.resolution, misfit.w2 - misfit.resolution) - rounding
    assert people.drift <= people.resolution + 1e-12
    assert misfit.total <= misfit.w2 + misfit.resolution + 1e-12


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 9))
@settings(max_examples=40)
def test_people_on_a_grid_equal_their_twin(seed: int, n: int, d: int) -> None:
    points = seeded(seed).random((n, 2))
    people = People.on_grid(UNIT, points, d)
    truth, resolution, drift = naive_planning.people_on_grid(points, d)
    assert np.array_equal(people.truth, truth)
    assert people.resolution == pytest.approx(resolution, rel=1e-9)
    assert people.drift == pytest.approx(drift, rel=1e-9)


def test_people_spread_evenly_lose_a_sixth_of_the_squared_cell() -> None:
    people = People.on_grid(UNIT, lattice(240), 6)
    assert people.resolution == pytest.approx(1 / 6 / np.sqrt(6), rel=1e-3)
    assert people.drift == pytest.approx(0, abs=1e-12)


def test_people_all_off_centre_to_one_side_drift_as_far_as_the_grid_is_coarse() -> None:
    people = People.on_grid(UNIT, np.full((10, 2), 0.1), 2)
    assert people.drift == pytest.approx(people.resolution)
    assert people.resolution == pytest.approx(np.hypot(0.15, 0.15))


def test_a_single_cell_has_no_distance_between_maps_and_all_of_the_error() -> None:
    misfit = rehearse(People.on_grid(UNIT, lattice(30), 1), response_table("dam", 2, 1), seeded())
    assert misfit.w2 == misfit.misplaced == 0
    assert misfit.total == misfit.resolution == pytest.approx(1 / np.sqrt(6), rel=1e-3)


def test_reports_that_cannot_lie_give_the_truth_back() -> None:
    people = People.on_grid(UNIT, seeded().random((3000, 2)) ** 2, 5)
    # At epsilon 20 a report is a lie with probability 24 / (e^20 + 24) = 5e-8.
    misfit = rehearse(people, response_table("dam", 20, 5), seeded())
    assert misfit.misplaced < 1e-3
    assert misfit.total == pytest.approx(misfit.resolution, rel=0.05)


def test_a_map_measured_against_itself_misses_nothing_but_the_resolution() -> None:
    people = People.on_grid(UNIT, seeded().random((500, 2)), 7)
    assert people.misfit(people.truth) == Misfit(0.0, people.resolution, people.resolution, 0.0)


def test_coarse_grids_are_not_favoured_and_more_devices_help() -> None:
    few = plan(10_000, 3.5, 300, seeded(), cells=[1, 3, 8], repeats=2)
    many = plan(10_000, 3.5, 30_000, seeded(), cells=[1, 3, 8], repeats=2)
    assert few.rows[0].w2_m == many.rows[0].w2_m == 0
    assert many.recommended.cells == 8
    for before, after in zip(few.rows[1:], many.rows[1:], strict=True):
        assert after.w2_m < before.w2_m
        assert after.total_m < before.total_m
        assert after.misplaced < before.misplaced
    for row in many.rows:
        assert row.total_m >= max(row.resolution_m, row.w2_m)
        assert row.cell_m == 10_000 / row.cells
        assert row.resolution_m == pytest.approx(row.cell_m / np.sqrt(6), rel=0.4)


def test_the_side_sets_the_scale_and_the_seed_the_rest() -> None:
    one = plan(1000, 2, 500, seeded(3), cells=[4, 6], repeats=2)
    two = plan(2000, 2, 500, seeded(3), cells=(6, 4, 4), repeats=2)
    assert one == plan(1000, 2, 500, seeded(3), cells=np.array([6, 4]), repeats=2)  # type: ignore[arg-type]
    assert two.uniform_m == pytest.approx(2 * one.uniform_m)
    for a, b in zip(one.rows, two.rows, strict=True):
        assert (a.cells, a.radius, a.misplaced) == (b.cells, b.radius, b.misplaced)
        for field in ("cell_m", "w2_m", "standard_error_m", "resolution_m", "total_m"):
            assert getattr(b, field) == pytest.approx(2 * getattr(a, field))
    assert plan(1000, 2, 500, seeded(4), cells=[4, 6], repeats=2) != one


def test_rows_are_means_and_the_standard_error_is_that_of_the_repeats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    w2 = iter([0.1, 0.3, 0.5, 0.5])  # two repeats on each of two maps
    monkeypatch.setattr(planning, "rehearse", lambda *_: Misfit(next(w2), 0.2, 0.4, 0.6))
    laws = {"a": UNIT, "b": replace(UNIT, name="other")}
    (row,) = plan(100, 1, 50, seeded(), cells=[3], maps=laws, repeats=2).rows
    assert row.w2_m == pytest.approx(35)
    # Variance 0.02 over 2 repeats on the first map, none on the second; the mean of two maps.
    assert row.standard_error_m == pytest.approx(100 * np.sqrt(0.02 / 2) / 2)
    assert (row.resolution_m, row.total_m, row.misplaced) == pytest.approx((20, 40, 0.6))


def test_single_cell_disks_are_named() -> None:
    maps = {"normal": synthetic_maps()["normal"]}
    found = plan(5000, 3.5, 5000, seeded(), [3, 4, 10], "dam", maps, repeats=2)
    assert [row.is_randomised_response for row in found.rows] == [True, True, False]
    assert found.warnings == ()  # of those that are not taken the table tells
    coarse = plan(5000, 3.5, 5000, seeded(), [3, 4], "dam", maps, repeats=2)
    assert coarse.warnings == (
        "4 cells: the disk radius is 0, so that 5000 dam reports at epsilon 3.5 are k-ary "
        "randomised response, which ignores distance",
    )


def test_too_few_devices_are_named() -> None:
    maps = {"szipf": synthetic_maps()["szipf"]}
    found = plan(5000, 0.5, 20, seeded(), [5, 8], "dam", maps, repeats=2)
    assert all("szipf" in row.no_better_than_uniform for row in found.rows)
    assert any(
        text.startswith("szipf: 20 dam reports at epsilon 0.5 are too few, or the cells")
        for text in found.warnings
    )


def test_a_grid_too_coarse_for_one_map_is_named() -> None:
    # People at the centres of 2 x 2 cells: 1 x 1 cells lose more than a uniform map does.
    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        return lattice(2)[rng.integers(4, size=n)]

    found = plan(1, 12, 4000, seeded(), cells=[1, 2], maps={"four": replace(UNIT, draw=draw)})
    assert found.rows[0].no_better_than_uniform == ("four",)
    assert found.rows[1].no_better_than_uniform == ()
    assert found.warnings[1:] == (
        "four, 1 cells: the estimate is no better than a uniform map, which is to know nothing",
    )


def test_the_recommendation_is_the_finest_grid_near_the_best() -> None:
    def row(cells: int, total: float) -> PlanRow:
        return PlanRow(cells, 1.0, 1, 0.0, 0.0, 0.0, total, 0.0, ())

    def best(*totals: float) -> int:
        rows = tuple(row(cells, total) for cells, total in enumerate(totals, start=1))
        return Plan(1.0, 1.0, 1, "dam", ("m",), rows, 1.0, ()).recommended.cells

    assert best(200, 100, 101, 105) == 4
    assert best(200, 106, 100, 150) == 3
    assert best(100, 106) == 1
    assert best(7) == 1


@pytest.mark.parametrize(
    ("side", "devices", "expected"),
    [
        (20_000, 20, [10, 20, 32, 64]),
        (20_000, 10**6, [10, 20, 32, 64, 128]),
        (300, 10**4, [10, 20, 30]),
        (85, 10**4, [8]),
        (1, 10**4, [1]),
    ],
)
def test_the_default_grids_suit_side_and_devices(
    side: float, devices: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def stop(mechanism: str, epsilon: object, cells: int, devices: int) -> None:
        tried.append(cells)
        if len(tried) == len(expected):
            raise StopIteration

    monkeypatch.setattr(planning, "_table", stop)
    with pytest.raises(StopIteration):
        plan(side, 4, devices, seeded())
    assert tried == expected


def test_progress_counts_every_play() -> None:
    calls = []
    maps = {"szipf": synthetic_maps()["szipf"]}
    stages: list[str] = []
    found = plan(
        *(120, 4, 230, seeded()),
        maps=maps,
        repeats=2,
        progress=lambda *at: calls.append(at),
        on_stage=stages.append,
    )
    assert [row.cells for row in found.rows] == [10, 12]
    plays = 2 * (2 + 2)  # and two designs on the grid that is taken
    assert calls == [(k + 1, plays) for k in range(plays)]
    assert stages == [
        "play collections on grids of 10, 12 cells a side",
        f"play what is recommended on {found.recommended.cells} cells a side",
        "forge reports",
    ]
    assert (found.side_m, found.epsilon, found.devices) == (120, 4, 230)
    assert (found.mechanism, found.maps) == ("disk", ("szipf",))


def test_the_better_design_on_the_grid_that_is_taken_is_recommended() -> None:
    found = plan(12_000, 3.5, 3000, seeded(), [6, 12], "dam", synthetic_maps(), repeats=2)
    planned, disk = found.designs
    assert (planned.mechanism, planned.squared_radius, planned.rule) == ("dam", None, "em")
    cells = found.recommended.cells
    square = disk_squared_radius(cells, 3.5, 3000)
    square = response_table("disk", 3.5, cells, squared_radius=square).squared_radius
    assert (disk.mechanism, disk.squared_radius, disk.rule) == ("disk", square, "field")
    assert found.recommended_design is min(found.designs, key=lambda design: design.total_m)
    assert disk.over_planned.mean_m == pytest.approx(planned.total_m - disk.total_m)
    assert disk.over_planned.is_ahead
    assert found.tells_something
    # About half of the error, over maps and repeats; chance is a few per cent of it.
    assert disk.w2_m + 4 * disk.standard_error_m < planned.w2_m
    assert planned.w2_m == pytest.approx(found.recommended.w2_m, rel=0.3)


def test_where_nothing_beats_a_uniform_map_it_is_said_of_the_recommended_disk_too() -> None:
    found = plan(12_000, 0.01, 100, seeded(), [5], "dam", synthetic_maps(), repeats=2)
    assert not found.tells_something
    no_better = found.designs[1].no_better_than_uniform
    assert "szipf" in no_better
    assert len(found.warnings) == len(found.maps)
    for name, text in zip(found.maps, found.warnings, strict=True):
        assert text.startswith(f"{name}: 100 dam reports at epsilon 0.01 are too few, or the ")
        assert text.endswith("; disk with rule field is no better") == (name in no_better)


@pytest.mark.parametrize("mechanism", ["dam-ns", "huem"])
def test_other_mechanisms_can_be_planned(mechanism: str) -> None:
    found = plan(1000, 2, 2000, seeded(), cells=[6], mechanism=mechanism, repeats=2)
    assert found.mechanism == mechanism
    assert found.rows[0].total_m < found.uniform_m


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"side_m": 0}, r"side_m must be a number in \(0, 20000000\], got 0"),
        ({"cells": []}, "cells must hold at least one grid size"),
        ({"cells": 8}, "cells must be a sequence of whole numbers, got 8"),
        ({"cells": "58"}, "cells must be a sequence of whole numbers"),
        ({"cells": [5, 129]}, "cells must be a whole number from 1 to 128, got 129"),
        ({"cells": [5, 7.5]}, "cells must be a whole number from 1 to 128, got 7.5"),
        ({"maps": {"here": 3}}, "maps.'here'. must be a SyntheticMap, got int"),
    ],
)
def test_bad_arguments_are_named(change: dict[str, object], message: str) -> None:
    arguments = {"side_m": 1000, "epsilon": 1, "devices": 10, "rng": seeded()} | change
    with pytest.raises(InputError, match=message):
        plan(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 21}, "epsilon must be a number from"),
        ({"epsilon": 1e-6 / 3}, "epsilon must be"),
        ({"epsilon": 0.12345678}, "epsilon must be a whole number of millionths"),
        ({"mechanism": "laplace"}, "mechanism must be one of dam, dam-ns, huem"),
    ],
)
def test_the_rules_of_a_collection_hold_for_its_plan(
    change: dict[str, object], message: str
) -> None:
    arguments = {"side_m": 1000, "epsilon": 1, "devices": 10, "rng": seeded()} | change
    with pytest.raises(InputError, match=message):
        plan(**arguments)  # type: ignore[arg-type]
