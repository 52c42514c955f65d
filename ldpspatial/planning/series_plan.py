"""What a series buys, and what it tells of a device that stays.

A series repeats a collection in W windows of time. Every device answers A of them, which it draws
at random when it joins, so a window is answered by devices * A / W of the devices and a device has
spent A epsilon at the end. Two maps come out: one of each window, and one of all reports together,
which is a map of anything only if people are where they are in every window.

Both are measured against the map of *all* devices. A window's estimate thus bears the noise of its
reports and the chance of who answered.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from client_sdk import ResponseTable, response_table
from client_sdk.shared import MAX_WINDOWS
from ldpspatial.datasets import SyntheticMap
from ldpspatial.errors import InputError
from ldpspatial.planning.designs import Design, standard_error
from ldpspatial.planning.rehearsal import Misfit, People, rehearse
from ldpspatial.privacy.still_device import StillDeviceRisk, one_report_risk, still_device_risk
from ldpspatial.validate import whole_number

RISK_TRIALS = 4000  # standard errors below 0.008
FEWEST_TRIALS = 200
RISK_WORK = 1 << 32  # additions, some seconds


@dataclass(frozen=True)
class SeriesMap:
    """How far off one map of a series is; lengths in metres, means over maps and repeats.

    Attributes
    ----------
    reports : int
        Reports that it is estimated from.
    w2_m, standard_error_m : float
        Exact W2 between the cell map of all devices and the estimate, and the standard error of
        that mean by chance of the repeats.
    total_m : float
        Upper bound of W2 between the people and the estimate.
    """

    reports: int
    w2_m: float
    standard_error_m: float
    total_m: float


@dataclass(frozen=True)
class SeriesPlan:
    """A series on the recommended grid: error of its maps beside the risk of a device that stays.

    Attributes
    ----------
    windows, answers, devices : int
        The series; each device answers ``answers`` windows.
    design : Design
        Mechanism and estimator that were played: the recommended ones.
    total_epsilon : float
        What a device has spent at the end: ``answers`` times epsilon.
    window : SeriesMap
        Of one window.
    together : SeriesMap
        Of all windows together, of people who are in every window where they are in the first.
    risk : StillDeviceRisk
        Of a device that stays in its cell during all of the windows that it answers.
    one_report : float
        Its probability of being located by a single report, exact.
    every_window : StillDeviceRisk
        Its risk if devices answered all windows at the same epsilon.
    """

    windows: int
    answers: int
    devices: int
    design: Design
    total_epsilon: float
    window: SeriesMap
    together: SeriesMap
    risk: StillDeviceRisk
    one_report: float
    every_window: StillDeviceRisk


@dataclass(frozen=True)
class Series:
    """Windows and answers that were asked for, valid for a number of devices.

    Attributes
    ----------
    windows, answers, devices : int
    """

    windows: int
    answers: int
    devices: int

    @classmethod
    def of(cls, windows: object, answers: object, devices: int, most_reports: int) -> "Series":
        """Check what was asked for.

        Raises
        ------
        InputError
            One of the two is missing, more answers than windows, no report per window, or more
            than ``most_reports`` in all.
        """
        if windows is None or answers is None:
            missing = "windows" if windows is None else "answers"
            raise InputError(f"windows and answers must be given together, got no {missing}")
        w, a = (
            whole_number(field, value, 1, MAX_WINDOWS)
            for field, value in (("windows", windows), ("answers", answers))
        )
        if a > w:
            raise InputError(f"answers must be at most windows, {w}, got {a}")
        if devices * a < w:
            raise InputError(
                f"devices must give at least one report a window, got {devices} devices with "
                f"{a} answers in {w} windows"
            )
        if devices * a > most_reports:
            raise InputError(
                f"devices times answers must be at most {most_reports}, got {devices * a}"
            )
        return cls(w, a, devices)

    @property
    def window_reports(self) -> int:
        """Reports that one window is expected to hold, rounded down."""
        return self.devices * self.answers // self.windows


def plan_series(
    series: Series,
    design: Design,
    planned: ResponseTable,
    laws: Mapping[str, SyntheticMap],
    side_m: float,
    repeats: int,
    rng: np.random.Generator,
    tell: Callable[[], None],
) -> SeriesPlan:
    """Play a window, and all windows together, with one design on one grid; measure the risk.

    Parameters
    ----------
    series : Series
    design : Design
        What to collect and to estimate with.
    planned : ResponseTable
        Table of the planned mechanism: gives the grid, epsilon, and the table where it is taken.
    laws : mapping of names to SyntheticMap
    side_m : float
        Side of the square in metres.
    repeats : int
    rng : numpy.random.Generator
    tell : callable
        Called after every collection that was played.
    """
    table = planned
    if design.squared_radius is not None:
        table = response_table(
            design.mechanism, planned.epsilon, planned.cells, squared_radius=design.squared_radius
        )
    everybody = np.tile(np.arange(series.devices), series.answers)
    window: list[list[Misfit]] = []
    together: list[list[Misfit]] = []
    for law in laws.values():
        window.append([])
        together.append([])
        for _ in range(repeats):
            people = People.on_grid(law, law.draw(series.devices, rng), table.cells)
            chosen = rng.permutation(series.devices)[: series.window_reports]
            for runs, answering in ((window, chosen), (together, everybody)):
                # The truth stays that of all devices.
                reporting = replace(
                    people, rows=people.rows[answering], cols=people.cols[answering]
                )
                runs[-1].append(rehearse(reporting, table, rng, design.rule))
                tell()
    return SeriesPlan(
        series.windows,
        series.answers,
        series.devices,
        design,
        series.answers * table.epsilon,
        _map(series.window_reports, window, side_m),
        _map(len(everybody), together, side_m),
        risk=_risk(table, series.answers, rng),
        one_report=float(one_report_risk(table)),
        every_window=_risk(table, series.windows, rng),
    )


def _map(reports: int, runs: list[list[Misfit]], side_m: float) -> SeriesMap:
    """Summarise the misfits of one map, by map of people and repeat."""
    w2 = side_m * np.array([[misfit.w2 for misfit in row] for row in runs])
    total = side_m * np.array([[misfit.total for misfit in row] for row in runs])
    return SeriesMap(reports, float(w2.mean()), standard_error(w2), float(total.mean()))


def _risk(table: ResponseTable, reports: int, rng: np.random.Generator) -> StillDeviceRisk:
    """Simulate as many devices as take some seconds."""
    work = reports * min(len(table.weights), table.cells**2)
    trials = min(RISK_TRIALS, max(FEWEST_TRIALS, RISK_WORK // work))
    return still_device_risk(table, reports, trials, rng)
