"""A whole collection played on known positions: devices, counts, estimate, error.

Every position goes through the real client code (:mod:`client_sdk.kernels`, entropy from the
operating system), so two runs differ as two collections would.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from client_sdk import Collection, kernels
from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.playing import count_outputs, draw_reports
from ldpspatial.errors import InputError
from ldpspatial.estimation import Estimate
from ldpspatial.estimation.estimate import Rule, estimator_for, fitted
from ldpspatial.estimation.smoothing import Smoother
from ldpspatial.metrics import wasserstein
from ldpspatial.places.cell_maps import people_map
from ldpspatial.validate import (
    callback,
    input_errors,
    instance,
    number_array,
    one_of,
    true_or_false,
)

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
OUTSIDERS = ("drop", "nearest")
Stage = Callable[[str], None]


@dataclass(frozen=True)
class Simulation:
    """One collection together with the truth.

    Attributes
    ----------
    collection : Collection
    truth : (d, d) array
        Share of the participating users in each cell; sums to 1.
    reports : (rows, cols)
        Reported output cell of each user, two (n,) arrays.
    estimate : Estimate
    n, outside : int
        Users taking part, and positions outside the square (dropped or moved to its edge).
    w2_cells, w2_metres : float or None
        Exact W2 between truth and estimate, in cells of unit side and on the ground; metres
        are None on a plane grid, and both are None where the exact solver was not used.
    seconds : dict of str to float
        Wall time of each stage.
    """

    collection: Collection
    truth: Array
    reports: tuple[Ints, Ints] = field(repr=False)
    estimate: Estimate
    n: int
    outside: int
    w2_cells: float | None
    w2_metres: float | None
    seconds: dict[str, float]


def simulate(
    collection: Collection,
    coordinates: NDArray[np.float64],
    outsiders: str = "drop",
    rule: Rule | None = None,
    smoothing: "str | Smoother | None" = None,
    exact_error: bool = True,
    on_stage: Stage | None = None,
) -> Simulation:
    """Play a collection on the positions of its users.

    Parameters
    ----------
    collection : Collection
    coordinates : (n, 2) array
        Latitude and longitude (y and x on a plane grid) of n users, one position each.
    outsiders : {"drop", "nearest"}
        Positions outside the square: leave them out of truth and reports, or let them report
        from the nearest cell, as a device does.
    rule, smoothing
        As in :func:`ldpspatial.estimate`.
    exact_error : bool
        Whether to compute the exact Wasserstein distance, whose cost grows fast with the grid.
    on_stage : callable (name of the stage that begins), optional

    Raises
    ------
    InputError
        No position inside the square, or a bad argument.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import Collection, Grid
    >>> collection = Collection.create("park", Grid.plane(0, 0, 8, 5), epsilon=3.5)
    >>> people = np.random.default_rng(1).normal(4, 1, (10_000, 2))
    >>> played = simulate(collection, people)  # reports from the operating system's entropy
    >>> played.n, played.estimate.density.shape, played.w2_cells < 0.5
    (10000, (5, 5), True)
    """
    instance("collection", collection, Collection)
    one_of("outsiders", outsiders, OUTSIDERS)
    true_or_false("exact_error", exact_error)
    channel = StampChannel(collection.table)
    estimator = estimator_for(channel, rule, smoothing)
    watch = _Stopwatch(callback("on_stage", on_stage))
    watch.start("randomise")
    reports, truth, outside = reports_from(collection, coordinates, outsiders)
    watch.start("estimate")
    result = fitted(estimator, channel, count_outputs(collection.table, *reports))
    errors: tuple[float | None, float | None] = None, None
    if exact_error:
        watch.start("exact error")
        errors = map_errors(collection, truth, result.density)
    n = len(reports[0])
    return Simulation(collection, truth, reports, result, n, outside, *errors, watch.stop())


def reports_from(
    collection: Collection, coordinates: NDArray[np.float64], outsiders: str
) -> tuple[tuple[Ints, Ints], Array, int]:
    """Return what users at these positions report, their shares by cell, and how many are outside.

    Arguments and errors are those of :func:`simulate`, which has checked all but coordinates.
    """
    rows, cols, outside = _input_cells(collection, coordinates, outsiders)
    truth = people_map(rows, cols, collection.grid.cells) / len(rows)
    return draw_reports(collection.table, rows, cols), truth, outside


def count_cells(collection: Collection, rows: Ints, cols: Ints) -> Ints:
    """Return the (d + 2b, d + 2b) counts of reported cells.

    Parameters
    ----------
    collection : Collection
    rows, cols : (n,) integer arrays in [-b, d + b)

    Raises
    ------
    InputError
        Arrays that are not of integers or of one length, or cells beyond those counts.
    """
    table = instance("collection", collection, Collection).table
    return count_outputs(table, rows, cols)


def map_errors(collection: Collection, truth: Array, density: Array) -> tuple[float, float | None]:
    """Return the exact W2 between two maps in cells and, on geographic grids, in metres."""
    in_cells = wasserstein(truth, density)
    height, width = collection.grid.cell_size
    if collection.grid.kind == "plane":
        return in_cells, None
    # Distances of square cells are all scaled alike, and so is W2: no second program is solved.
    if abs(height / width - 1) < 1e-9:
        return in_cells, in_cells * height
    return in_cells, wasserstein(truth, density, cell=(height, width))


def _input_cells(
    collection: Collection, coordinates: NDArray[np.float64], outsiders: str
) -> tuple[Ints, Ints, int]:
    points = number_array("coordinates", coordinates, ("n", 2))
    with input_errors():
        rows, cols, inside = kernels.cells_of(collection.grid, points[:, 0], points[:, 1])
    outside = int((~inside).sum())
    if outside == len(points):
        raise InputError(
            f"positions must lie in the square, but all {outside} lie outside: "
            "check the square, and that latitude and longitude are not swapped"
        )
    if outsiders == "drop":
        rows = rows[inside]
        cols = cols[inside]
    return rows, cols, outside


class _Stopwatch:
    """Seconds by stage, and who is told that a stage begins."""

    def __init__(self, on_stage: Stage | None):
        self._on_stage = on_stage
        self._seconds: dict[str, float] = {}
        self._stage: str | None = None
        self._since = 0.0

    def start(self, stage: str) -> None:
        self.stop()
        self._stage, self._since = stage, time.perf_counter()
        if self._on_stage is not None:
            self._on_stage(stage)

    def stop(self) -> dict[str, float]:
        if self._stage is not None:
            self._seconds[self._stage] = time.perf_counter() - self._since
            self._stage = None
        return self._seconds
