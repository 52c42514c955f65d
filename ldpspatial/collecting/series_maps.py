"""The windows of a series mapped together: a folder for each, and what they have in common above.

Windows lend each other what they share, and their samples are drawn together, so that changes have
intervals (:mod:`ldpspatial.estimation.intervals.changes`). Windows without reports have no map;
those on either side of one count as if they followed each other.
"""

import re
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from client_sdk import Series
from ldpspatial.channels.disk import StampChannel
from ldpspatial.collecting.counting import ReportCounts
from ldpspatial.collecting.mapping import Stage, write_result
from ldpspatial.collecting.results import write_json
from ldpspatial.collecting.window_counts import WindowCounts
from ldpspatial.errors import InputError, InputWarning
from ldpspatial.estimation import Estimate, Field
from ldpspatial.estimation.estimate import Rule, estimator_for, fitted
from ldpspatial.estimation.field.estimator import MOST_WINDOWS
from ldpspatial.files.atomic import replacing

DOCUMENT, TABLE, PICTURE = "series.json", "windows.csv", "maps.png"
MANY = 12  # maps in one picture: more are drawn with fewer points
DPI, DPI_OF_MANY = 150, 60


@dataclass(frozen=True)
class WindowMap:
    """The map of one window.

    Attributes
    ----------
    window : int
        Counted from 1.
    folder : str
        That of its files, in that of the series.
    estimate : Estimate
    summary : dict
        As its summary.json.
    """

    window: int
    folder: str
    estimate: Estimate
    summary: dict[str, Any]


@dataclass(frozen=True)
class SeriesMaps:
    """The maps of the windows of a series.

    Attributes
    ----------
    maps : tuple of WindowMap
        In the order of time.
    summary : dict
        As summary.json of the series.
    """

    maps: tuple[WindowMap, ...]
    summary: dict[str, Any]


def folder_of(series: Series, window: int) -> str:
    """Return the name of a window's folder, which sorts by time."""
    return f"window-{window:0{len(str(series.windows))}d}"


def write_series(
    folder: Path,
    series: Series,
    counted: WindowCounts,
    rule: Rule | None = None,
    smoothing: str | None = None,
    method: str = "auto",
    minimum: int = 1,
    stage: Stage = lambda name: None,
) -> SeriesMaps:
    """Estimate the windows and write all that ``ldpspatial series estimate`` writes.

    Parameters
    ----------
    folder : Path
        Exists.
    series : client_sdk.Series
    counted : WindowCounts
    rule, smoothing
        As of :func:`ldpspatial.estimate`. A field is fitted to all windows together; what any other
        estimator makes of a window is its own.
    method : str
        Of the intervals.
    minimum : int >= 1
        Windows with fewer reports get no map.
    stage : function
        Is told what is being done.

    Raises
    ------
    InputError
        No window has so many reports, or more than 100 have and are to be fitted together.
    """
    began = time.perf_counter()
    kept = {k: each for k, each in counted.windows.items() if each.n >= minimum}
    if not kept:
        raise InputError(f"minimum must be at most the reports of some window, got {minimum}")
    stage("estimate")
    estimates = _estimates(series, kept, rule, smoothing)
    maps = []
    for (window, each), estimate in zip(kept.items(), estimates, strict=True):
        stage(f"window {window}")
        name = folder_of(series, window)
        (folder / name).mkdir()
        summary = write_result(
            folder / name, series.collection(window), estimate, each.facts, method
        )
        maps.append(WindowMap(window, name, estimate, summary))
    stage("write files")
    (folder / DOCUMENT).write_bytes(series.to_json().encode())
    _write_table(folder / TABLE, series, maps)
    _draw(folder / PICTURE, series, maps)
    summary = _summary(series, counted, maps, minimum)
    summary["seconds"] = {"all": time.perf_counter() - began}
    write_json(folder / "summary.json", summary)
    return SeriesMaps(tuple(maps), summary)


def _estimates(
    series: Series, kept: Mapping[int, ReportCounts], rule: Rule | None, smoothing: str | None
) -> tuple[Estimate, ...]:
    channel = StampChannel(series.template.table)
    estimator = estimator_for(channel, rule, smoothing)
    counts = [each.counts for each in kept.values()]
    if not isinstance(estimator, Field):
        return tuple(fitted(estimator, channel, each) for each in counts)
    if len(counts) > MOST_WINDOWS:
        first = min(kept)
        raise InputError(
            f"windows must be at most {MOST_WINDOWS} to be estimated together, and {len(counts)} "
            "have reports ({remedy} takes a part of them)",
            remedy=("windows", f"{first}-{first + MOST_WINDOWS - 1}"),
        )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", InputWarning)
        found = estimator.fit_windows(channel, counts)
    windows = list(kept)
    for each in said:
        text = str(each.message)
        place = re.match(r"windows\[(\d+)\]", text)  # in the list
        if place is not None:
            text = f"window {windows[int(place[1])]}{text[place.end() :]}"
        warnings.warn(text, each.category, stacklevel=3)
    return found


def _summary(
    series: Series, counted: WindowCounts, maps: list[WindowMap], minimum: int
) -> dict[str, Any]:
    mapped = {each.window for each in maps}
    # Of most of the windows: those unlike them, or of people outside the support, are fitted apart.
    most = max(maps, key=_standing)
    estimator = {
        name: value
        for name, value in most.summary["estimator"].items()
        if name not in ("log_likelihood", "iterations", "outside")
    }
    return {
        "series": series.digest,
        "name": series.name,
        "epsilon": series.epsilon,
        "answers": series.answers,
        "windows_in_all": series.windows,
        "n": sum(each.estimate.n for each in maps),
        "estimator": estimator,
        "windows": [
            {
                "window": each.window,
                "folder": each.folder,
                "opens": moment(series.start(each.window)),
                **{name: each.summary[name] for name in ("n", "rejected", "repeated")},
                "ids_checked": each.summary["ids_checked"],
                "p_value": each.summary["fit"]["p_value"],
                "plausible": each.summary["fit"]["plausible"],
                **_of_field(each),
            }
            for each in maps
        ],
        # Those between mapped ones, whose neighbours count as if they followed each other.
        "gaps": [k for k in range(min(mapped), max(mapped)) if k not in mapped],
        "minimum": minimum,
        "too_few": {str(k): each.n for k, each in counted.windows.items() if k not in mapped},
        "rejected": counted.rejected,
    }


def _standing(map_: WindowMap) -> tuple[bool, int]:
    """Return whether the support holds the people of a window, and with how many it was fitted."""
    facts = map_.estimate.facts
    return float(facts.get("outside", 0)) <= 0, int(facts.get("windows", 0))


def _of_field(map_: WindowMap) -> dict[str, Any]:
    """Return with how many windows one was fitted, and what is to be thought of it."""
    facts = map_.estimate.facts
    if "verdict" not in facts:
        return {}
    return {
        "fitted_together": facts["windows"],
        "verdict": facts["verdict"],
        "outside": facts["outside"],
    }


def _write_table(path: Path, series: Series, maps: list[WindowMap]) -> None:
    """Write a line for each window that has a map."""
    fields = [_of_field(each) for each in maps]
    columns = {
        "window": [each.window for each in maps],
        "opens": [moment(series.start(each.window)) for each in maps],
        "reports": [each.estimate.n for each in maps],
        "p_value": [float(each.summary["fit"]["p_value"]) for each in maps],
        **{name: [each[name] for each in fields] for name in fields[0]},
        "folder": [each.folder for each in maps],
    }
    table = pa.table(columns)
    with replacing(path) as stream:
        pa_csv.write_csv(table, stream)


def _draw(path: Path, series: Series, maps: list[WindowMap]) -> None:
    # Here, as matplotlib takes long to import: the commands of a series load this module.
    from ldpspatial.plotting.heat_map import save_figure, window_maps_figure  # noqa: PLC0415

    named = {
        f"Window {each.window}, {moment(series.start(each.window))}": each.estimate.density
        for each in maps
    }
    figure = window_maps_figure(series.template.grid, named, series.name)
    save_figure(figure, path, DPI if len(maps) <= MANY else DPI_OF_MANY)


def moment(seconds: int) -> str:
    """Return a time in seconds since 1970 for people."""
    try:
        return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # beyond the year 9999
        return f"{seconds} s after 1970"
