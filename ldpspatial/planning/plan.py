"""What epsilon, cells and devices buy, before a collection starts.

Whole collections are played on maps of known people, on grids of several sizes. What ranks them is
the distance from the *people* to the estimate, including what a grid itself loses: the distance
between two cell maps alone would favour coarse grids. :mod:`ldpspatial.planning.rehearsal` defines
it and proves the bound.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from fractions import Fraction
from itertools import count

import numpy as np
from numpy.typing import NDArray

from client_sdk import ResponseTable, response_table
from client_sdk.shared import MECHANISMS
from ldpspatial.datasets import SyntheticMap, city_map
from ldpspatial.errors import InputError
from ldpspatial.estimation import Influence
from ldpspatial.planning.designs import (
    Design,
    better_design,
    maps_lost,
    measure_designs,
    standard_error,
    total_of_uniform,
    warnings_of_map,
)
from ldpspatial.planning.forged import forged_influence
from ldpspatial.planning.grid_size import recommended_cells
from ldpspatial.planning.rehearsal import People, rehearse
from ldpspatial.planning.series_plan import Series, SeriesPlan, plan_series
from ldpspatial.release.local.disks.disk_radius import disk_squared_radius
from ldpspatial.validate import (
    MICRO,
    callback,
    check_generator,
    input_errors,
    instance,
    micro_epsilons,
    number_in,
    one_of,
    shown,
    whole_number,
)

Array = NDArray[np.float64]
Progress = Callable[[int, int], None]

LADDER = (10, 20, 32, 64, 128)
DISK = "disk"
MAX_CELLS = 128  # an exact distance takes a second there and ten beyond
MAX_DEVICES = 10_000_000  # 160 MB of points; more of them change next to nothing
WORTH = 0.9  # of the error without reports; with more nothing is recommended
NEGLIGIBLE = 1.05  # a finer grid may cost no more than 5 % of the error


@dataclass(frozen=True)
class PlanRow:
    """What one grid size gives; lengths in metres, means over maps and repeats.

    Attributes
    ----------
    cells : int
        Side of the grid in cells.
    cell_m : float
        Side of a cell.
    radius : int
        Reach of the disk in cells; 0 means k-ary randomised response.
    w2_m : float
        Exact W2 between true and estimated cell map.
    standard_error_m : float
        Standard error of ``w2_m``: chance of the repeats, not choice of the maps.
    resolution_m : float
        Root mean square distance from people to the centre of their cell.
    total_m : float
        Upper bound of W2 between people and estimate.
    misplaced : float in [0, 1]
        Share of the mass in a wrong cell: total variation between the two cell maps.
    no_better_than_uniform : tuple of str
        Maps on which ``total_m`` is no smaller than that of a uniform map.
    """

    cells: int
    cell_m: float
    radius: int
    w2_m: float
    standard_error_m: float
    resolution_m: float
    total_m: float
    misplaced: float
    no_better_than_uniform: tuple[str, ...]

    @property
    def is_randomised_response(self) -> bool:
        """Whether the disk is a single cell, so that reports ignore distance."""
        return self.radius == 0


@dataclass(frozen=True)
class Plan:
    """What a collection will give, by grid size.

    Attributes
    ----------
    side_m : float
    epsilon : float
    devices : int
        Those that report; in a series, those expected to answer one window.
    mechanism : str
    maps : tuple of str
        Names of the maps that the people were drawn from.
    rows : tuple of PlanRow
        By ascending number of cells.
    uniform_m : float
        What knowing nothing gives: the total of a uniform map on 32 x 32 cells, mean over maps.
    warnings : tuple of str
        What a designer would want to know, in plain sentences.
    designs : tuple of Design
        On the recommended grid: the planned mechanism with plain EM, and the disk that
        :func:`ldpspatial.recommended` returns with its field.
    series : SeriesPlan or None
        For a series only: the recommended design played on a window and on all windows, and the
        risk of a device that stays.
    forged : tuple of Influence
        Of 1 % and 5 % of forged reports on the recommended grid, as its disk was planned, each on
        the map that they move most.
    """

    side_m: float
    epsilon: float
    devices: int
    mechanism: str
    maps: tuple[str, ...]
    rows: tuple[PlanRow, ...]
    uniform_m: float
    warnings: tuple[str, ...]
    designs: tuple[Design, ...] = ()
    series: SeriesPlan | None = None
    forged: tuple[Influence, ...] = ()

    @property
    def recommended(self) -> PlanRow:
        """The finest grid whose total is within 5 % of the smallest.

        Fine cells cost no privacy, as the disk grows with them, and shares of regions need them.
        """
        return _recommended(self.rows)

    @property
    def recommended_design(self) -> Design:
        """What to collect with on that grid: what was planned, unless the other is ahead of it.

        Ahead means by more than chance makes of the paired differences of the totals (95 %). Of two
        estimators of the same reports it is the field, unless plain EM is ahead.
        """
        return better_design(self.designs)

    @property
    def tells_something(self) -> bool:
        """Whether the recommended design is ahead of no reports, by a tenth and beyond chance."""
        best = self.recommended_design
        return best.over_nothing.is_ahead and best.total_m <= WORTH * best.nothing_m


def plan(
    side_m: float,
    epsilon: object,
    devices: int,
    rng: np.random.Generator,
    cells: Sequence[int] | None = None,
    mechanism: str = DISK,
    maps: Mapping[str, SyntheticMap] | None = None,
    repeats: int = 5,
    progress: Progress | None = None,
    windows: int | None = None,
    answers: int | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> Plan:
    """Simulate collections on grids of several sizes and measure how far their maps are off.

    Every repeat draws the people of a map once and collects their reports on every grid, through
    the client's own code and a quick look (EM).

    Parameters
    ----------
    side_m : float in (0, 20,000,000]
        Side of the square in metres. The maps are scaled to it.
    epsilon : number in [0.000001, 20], whole millionths
        Privacy loss of one report.
    devices : int in [1, 10,000,000]
        Reports that will arrive, one per device. With ``windows`` and ``answers``, the devices of
        the series; the grids are then planned for the reports of one window.
    rng : numpy.random.Generator
    cells : sequence of int in [1, 128], optional
        Grid sizes. By default those of 10, 20, 32, 64, 128 up to
        :func:`ldpspatial.planning.grid_size.recommended_cells`, and that one.
    mechanism : {"dam", "dam-ns", "huem", "disk"}
    maps : mapping of name to SyntheticMap, optional
        What people might look like; by default a synthetic city, which is as rough as real ones.
    repeats : int in [2, 1000]
        Collections played on each map.
    progress : callable (collections done, collections in all), optional
    windows, answers : int in [1, 100,000], optional
        Both for a series: the collection is repeated in ``windows`` windows of time, of which each
        device answers ``answers`` drawn at random. A window is expected to hold devices x answers /
        windows reports. devices x answers may be at most 10,000,000.
    on_stage : callable (name of the stage that begins), optional

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> import numpy as np
    >>> small = plan(20_000, 3.5, 2_000, np.random.default_rng(1), cells=[2, 10], repeats=2)
    >>> small.recommended.cells, small.recommended.cell_m
    (10, 2000.0)
    """
    side = number_in("side_m", side_m, "(0, 20000000]")
    micro = micro_epsilons(epsilon)
    n = whole_number("devices", devices, 1, MAX_DEVICES)
    check_generator(rng)
    callback("progress", progress)
    stage = callback("on_stage", on_stage) or (lambda _: None)
    series = None
    if windows is not None or answers is not None:
        series = Series.of(windows, answers, n, MAX_DEVICES)
        n = series.window_reports
    sizes = _sizes(cells, side, n)
    laws = _maps(maps)
    rounds = whole_number("repeats", repeats, 2, 1000)
    one_of("mechanism", mechanism, MECHANISMS)
    with input_errors():
        tables = [_table(mechanism, Fraction(micro, MICRO), d, n) for d in sizes]

    plays = len(tables) + 2 + (2 if series else 0)
    tell = _counter(progress, len(laws) * rounds * plays)
    stage(f"play collections on grids of {', '.join(map(str, sizes))} cells a side")
    measured, uniform = _played(laws, tables, n, rounds, rng, tell)
    names = tuple(laws)
    total = side * float(uniform.mean())
    rows = tuple(
        _row(table, measured[:, :, s], uniform, names, side) for s, table in enumerate(tables)
    )
    taken = tables[rows.index(_recommended(rows))]
    stage(f"play what is recommended on {taken.cells} cells a side")
    designs = measure_designs(taken, laws, side, n, rounds, rng, tell)
    collection = f"{n} {mechanism} reports at epsilon {micro / MICRO:g}"
    warnings = tuple(_warnings(rows, names, collection, designs))
    stage("forge reports")
    forged = forged_influence(taken, laws, rng)
    found = Plan(
        side, micro / MICRO, n, mechanism, names, rows, total, warnings, designs, None, forged
    )
    if series is None:
        return found
    best = found.recommended_design
    stage("play the series")
    played = plan_series(series, best, taken, laws, side, rounds, rng, tell)
    return replace(found, series=played)


def _played(
    laws: Mapping[str, SyntheticMap], tables: Sequence[ResponseTable], devices: int, repeats: int,
    rng: np.random.Generator, tell: Callable[[], None],
) -> tuple[Array, Array]:  # fmt: skip
    """Return the misfits of collections by map, repeat and grid, and of uniform maps by the first.

    The last axis of the first array has the four numbers of a misfit.
    """
    measured = np.empty((len(laws), repeats, len(tables), 4))
    uniform = np.empty((len(laws), repeats))
    for m, law in enumerate(laws.values()):
        for k in range(repeats):
            points = law.draw(devices, rng)
            uniform[m, k] = total_of_uniform(law, points)
            for s, table in enumerate(tables):
                people = People.on_grid(law, points, table.cells)
                measured[m, k, s] = astuple(rehearse(people, table, rng))
                tell()
    return measured, uniform


def _counter(progress: Progress | None, plays: int) -> Callable[[], None]:
    """Return what to call after every collection that was played."""
    done = count(1)
    return (lambda: None) if progress is None else lambda: progress(next(done), plays)


def _recommended(rows: tuple[PlanRow, ...]) -> PlanRow:
    least = min(row.total_m for row in rows)  # rows ascend: below, the last is the finest
    return next(row for row in reversed(rows) if row.total_m <= NEGLIGIBLE * least)


def _table(mechanism: str, epsilon: Fraction, cells: int, devices: int) -> ResponseTable:
    """Return a mechanism's table; a disk has the recommended radius."""
    square = disk_squared_radius(cells, float(epsilon), devices) if mechanism == DISK else None
    return response_table(mechanism, epsilon, cells, squared_radius=square)


def _row(
    table: ResponseTable, runs: Array, uniform: Array, names: tuple[str, ...], side: float
) -> PlanRow:
    """Summarise (maps, repeats, 4) measurements of one grid size."""
    w2, resolution, total, misplaced = (float(x) for x in runs.mean(axis=(0, 1)))
    return PlanRow(
        cells=table.cells,
        cell_m=side / table.cells,
        radius=table.radius,
        w2_m=side * w2,
        standard_error_m=side * standard_error(runs[:, :, 0]),
        resolution_m=side * resolution,
        total_m=side * total,
        misplaced=misplaced,
        no_better_than_uniform=maps_lost(names, runs[:, :, 2], uniform),
    )


def _warnings(
    rows: tuple[PlanRow, ...], names: tuple[str, ...], collection: str, designs: tuple[Design, ...]
) -> list[str]:
    """Say what is wrong; ``collection`` names mechanism, epsilon and devices."""
    warnings = []
    taken = _recommended(rows)
    if taken.is_randomised_response:
        warnings.append(
            f"{taken.cells} cells: the disk radius is 0, so that {collection} are "
            "k-ary randomised response, which ignores distance"
        )
    for name in names:
        lost = [row.cells for row in rows if name in row.no_better_than_uniform]
        warnings += warnings_of_map(name, collection, lost, len(rows), designs)
    return warnings


def _sizes(cells: Sequence[int] | None, side: float, devices: int) -> list[int]:
    if cells is None:
        most = recommended_cells(devices, side)
        return sorted({d for d in LADDER if d < most} | {most})
    if isinstance(cells, (str, bytes)) or not isinstance(cells, (Sequence, np.ndarray)):
        raise InputError(f"cells must be a sequence of whole numbers, got {shown(cells)}")
    sizes = sorted({whole_number("cells", d, 1, MAX_CELLS) for d in cells})
    if not sizes:
        raise InputError("cells must hold at least one grid size, got none")
    return sizes


def _maps(maps: Mapping[str, SyntheticMap] | None) -> Mapping[str, SyntheticMap]:
    laws = {"city": city_map()} if maps is None else maps
    if not isinstance(laws, Mapping) or not laws:
        raise InputError(
            f"maps must be a mapping with at least one SyntheticMap, got {shown(maps)}"
        )
    for name, law in laws.items():
        instance(f"maps[{name!r}]", law, SyntheticMap)
    return laws
