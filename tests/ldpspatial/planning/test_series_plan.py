"""What a plan says of a series: error of its maps beside the risk of a device that stays."""

from dataclasses import replace

import numpy as np
import pytest

from client_sdk import response_table
from ldpspatial.datasets import SyntheticMap, synthetic_maps
from ldpspatial.errors import InputError
from ldpspatial.planning import plan as planning
from ldpspatial.planning import series_plan
from ldpspatial.planning.designs import Design, Lead
from ldpspatial.planning.plan import plan
from ldpspatial.planning.rehearsal import Misfit, People
from ldpspatial.planning.series_plan import Series, SeriesMap, plan_series
from ldpspatial.privacy.still_device import one_report_risk, still_device_risk
from tests.support.short_chains import shorten_chains

UNIT = SyntheticMap("unit", 0.0, 0.0, 1.0, lambda n, rng: rng.random((n, 2)))
LEVEL = Lead(0.0, 0.0)
DAM = Design("dam", None, "scaled", 0.0, 0.0, 0.0, LEVEL, LEVEL, ())


@pytest.fixture(autouse=True)
def short_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_chains(monkeypatch)


def seeded(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_series_is_planned_for_the_reports_of_one_window() -> None:
    calls: list[tuple[int, int]] = []
    found = plan(
        12_000, 3.5, 14_000, seeded(), cells=[4, 8], repeats=2, windows=7, answers=2,
        progress=lambda *at: calls.append(at),
    )  # fmt: skip
    alone = plan(12_000, 3.5, 4000, seeded(), cells=[4, 8], repeats=2)
    assert alone.series is None
    assert replace(found, series=None) == alone  # the same numbers, and the same draws
    series = found.series
    assert series is not None
    assert (series.windows, series.answers, series.devices) == (7, 2, 14_000)
    assert (found.devices, series.window.reports, series.together.reports) == (4000, 4000, 28_000)
    assert series.design is found.recommended_design
    assert series.total_epsilon == 7.0
    assert series.together.w2_m < series.window.w2_m
    assert series.together.total_m < series.window.total_m < found.uniform_m
    plays = 2 * (2 + 2 + 2)  # repeats; grids, designs, and the two maps of the series
    assert calls == [(k + 1, plays) for k in range(plays)]


def test_the_risk_is_that_of_the_table_that_is_collected_with() -> None:
    laws = {"normal": synthetic_maps()["normal"]}
    table = response_table("disk", 2.0, 8, squared_radius=5)
    design = replace(DAM, mechanism="disk", squared_radius=5)
    planned = response_table("dam", 2.0, 8)
    assert one_report_risk(planned) != one_report_risk(table)
    found = plan_series(Series(5, 2, 500), design, planned, laws, 1.0, 2, seeded(), lambda: None)
    assert found.one_report == float(one_report_risk(table))
    for reports, risk in ((2, found.risk), (5, found.every_window)):
        assert (risk.reports, risk.trials) == (reports, series_plan.RISK_TRIALS)
        other = still_device_risk(table, reports, 20_000, seeded(9)).exact_cell
        # Two means with standard errors: farther apart than six of them once in 5e8.
        error = np.hypot(risk.exact_cell.standard_error, other.standard_error)
        assert abs(risk.exact_cell.estimate - other.estimate) < 6 * error
    assert (
        found.one_report < found.risk.exact_cell.estimate < found.every_window.exact_cell.estimate
    )


def test_the_truth_is_the_map_of_all_devices_and_each_gives_its_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[People] = []

    def rehearse(people: People, *_: object) -> Misfit:
        seen.append(people)
        return Misfit(next(w2), 0.0, 0.5, 0.0)

    w2 = iter([0.1, 0.01, 0.3, 0.03])  # window and all together, in two repeats
    monkeypatch.setattr(series_plan, "rehearse", rehearse)
    told: list[None] = []
    found = plan_series(
        Series(4, 3, 40), DAM, response_table("dam", 2.0, 3), {"m": UNIT}, 100.0, 2, seeded(),
        lambda: told.append(None),
    )  # fmt: skip
    assert len(told) == 4
    for window, together in (seen[:2], seen[2:]):
        assert window.truth is together.truth
        cells = together.rows * 3 + together.cols
        assert np.bincount(cells, minlength=9).tolist() == (120 * together.truth).ravel().tolist()
        assert len(window.rows) == 30
        of_window = np.bincount(window.rows * 3 + window.cols, minlength=9)
        assert (of_window <= np.round(40 * window.truth).ravel()).all()  # nobody twice
    assert not np.array_equal(seen[0].truth, seen[2].truth)
    assert found.window == SeriesMap(30, pytest.approx(20), pytest.approx(10), pytest.approx(50))
    assert found.together == SeriesMap(120, pytest.approx(2), pytest.approx(1), pytest.approx(50))


def test_long_series_are_simulated_with_fewer_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series_plan, "RISK_WORK", 400 * 30 * 9)
    table = response_table("dam", 2.0, 3)
    assert series_plan._risk(table, 30, seeded()).trials == 400
    assert series_plan._risk(table, 300, seeded()).trials == series_plan.FEWEST_TRIALS
    assert series_plan._risk(table, 1, seeded()).trials == series_plan.RISK_TRIALS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answers": None}, "windows and answers must be given together, got no answers"),
        ({"windows": None}, "windows and answers must be given together, got no windows"),
        ({"answers": 8}, "answers must be at most windows, 7, got 8"),
        ({"answers": 0}, "answers must be a whole number from 1 to 100000, got 0"),
        ({"windows": 0}, "windows must be a whole number from 1 to 100000, got 0"),
        ({"windows": 7.0}, "windows must be a whole number"),
        ({"devices": 3}, "devices must give at least one report a window, got 3 devices with 2"),
        ({"devices": 5_000_001}, "devices times answers must be at most 10000000, got 10000002"),
    ],
)
def test_bad_series_are_named(change: dict[str, object], message: str) -> None:
    arguments = {
        "side_m": 1000, "epsilon": 1, "devices": 100, "rng": seeded(), "windows": 7, "answers": 2,
    }  # fmt: skip
    with pytest.raises(InputError, match=message):
        planning.plan(**arguments | change)  # type: ignore[arg-type]


def test_one_report_a_window_is_enough() -> None:
    assert Series.of(7, 1, 7, 1000).window_reports == 1
