"""A series played on known positions, or in a synthetic city whose people move.

Reports come out as the service would export them, a file for each window; beside them the truth.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from client_sdk import Grid, Series
from client_sdk.shared import UNIT, metres_per_degree
from ldpspatial.collecting.report_files import write_reports
from ldpspatial.collecting.simulation import reports_from
from ldpspatial.datasets import CITY_CENTER, CITY_SIDE_M, city
from ldpspatial.files.atomic import replacing

Array = NDArray[np.float64]

TRUTH = "truth.csv"
MOVED = 0.5  # of the people of the last window, who are where the city seen in a mirror has them


def people_of_series(series: Series, people: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield where those are who answer each window, in a synthetic city laid over the square.

    Each of the people draws which windows to answer, as devices do. From the first window to the
    last a growing part of them, up to a half, is where the mirror image of the city has them.

    Yields
    ------
    (n, 2) array
        Latitudes and longitudes, or y and x; n is 0 in a window that nobody answers.
    """
    answered = _answered(series, people, rng)
    for window in range(1, series.windows + 1):
        n = int(np.count_nonzero(answered == window))
        if n == 0:
            yield np.empty((0, 2))
            continue
        places = (city(n, rng) - CITY_CENTER) * metres_per_degree(CITY_CENTER[0]) / CITY_SIDE_M
        part = MOVED * (window - 1) / max(series.windows - 1, 1)
        places[rng.random(n) < part, 1] *= -1
        yield _on_grid(series.template.grid, places + 0.5)


def play_series(
    folder: Path, series: Series, windows: Iterable[Array], outsiders: str
) -> list[dict[str, Any]]:
    """Let everybody report in their windows; write a file of reports for each, and the truth.

    Parameters
    ----------
    folder : Path
        Exists.
    series : client_sdk.Series
    windows : iterable of (n, 2) arrays
        Positions of each window, the first one first; none where n is 0.
    outsiders : {"drop", "nearest"}
        As in :func:`ldpspatial.simulate`.

    Returns
    -------
    list of dict
        ``window``, ``n`` and ``outside`` of each with reports.

    Raises
    ------
    InputError
        Nobody in a window with positions is in the square.
    """
    facts = []
    truths = []
    width = len(str(series.windows))
    for window, coordinates in enumerate(windows, 1):
        if not len(coordinates):
            continue
        collection = series.collection(window)
        reports, truth, outside = reports_from(collection, coordinates, outsiders)
        n = len(reports[0])
        ids = np.frombuffer(os.urandom(16 * n), np.uint8).reshape(-1, 16)
        write_reports(folder / f"reports-{window:0{width}d}.parquet", collection, *reports, ids)
        truths.append(_truth(window, truth))
        facts.append({"window": window, "n": n, "outside": outside})
    with replacing(folder / TRUTH) as stream:
        pa_csv.write_csv(pa.concat_tables(truths), stream)
    return facts


def _answered(series: Series, people: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the windows that people answer, each person's as often as a device answers."""
    if series.answers == 1:
        return rng.integers(1, series.windows + 1, people)
    chosen = [rng.choice(series.windows, series.answers, replace=False) for _ in range(people)]
    return 1 + np.concatenate(chosen)


def _on_grid(grid: Grid, places: Array) -> Array:
    """Return coordinates of places in sides of the square from its south-west corner."""
    return np.asarray(((grid.south, grid.west) + places * (grid.height, grid.width)) / UNIT)


def _truth(window: int, truth: Array) -> pa.Table:
    rows, cols = np.nonzero(truth)
    return pa.table(
        {
            "window": np.full(len(rows), window),
            "row": rows,
            "col": cols,
            "share": truth[rows, cols],
        }
    )
