"""A comparison as files that other tools open: tables of runs and of curves, and figures."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from ldpspatial.comparison.curves import (
    SHUFFLE_DELTA,
    error_curve,
    plot_error_curves,
    setting_of,
)
from ldpspatial.comparison.promises import (
    COMMON,
    KIND,
    RELATION,
    Against,
    by_promise,
    promising,
)
from ldpspatial.comparison.scores import METRICS
from ldpspatial.files.atomic import replacing
from ldpspatial.plotting.heat_map import save_figure

SETTINGS: tuple[Against, ...] = ("epsilon", "users", "cells")
TABLES = ("errors.csv", "errors.parquet", "curves.csv")
MIXED = "mixed"
NO_PROMISE = (None, 1.0)  # no epsilon, for a delta of 1 allows everything
FIGURE = re.compile(rf"({'|'.join(METRICS)})-(epsilon|replacement|shuffled|users|cells)(-.+)?\.png")


@dataclass(frozen=True)
class Part:
    """Runs along which one setting varies.

    Attributes
    ----------
    table : pyarrow.Table
    setting : {"epsilon", "users", "cells"}
        What varies.
    others : dict
        Values of the settings that tell it from other parts; empty if it is the only one.
    """

    table: pa.Table
    setting: Against
    others: Mapping[str, float | int | None]

    @property
    def name(self) -> str:
        """What tells it from other parts, for file names."""
        return "".join(f"-{name}{value}" for name, value in self.others.items())

    @property
    def told(self) -> str:
        """The same in words, as in ``, cells 8``."""
        return "".join(f", {name} {value}" for name, value in self.others.items())


def parts(table: pa.Table) -> Iterator[Part]:
    """Cut a table so that in each part one setting varies: epsilon, where that does."""
    several = [name for name in SETTINGS if len(pc.unique(table[name])) > 1] or ["epsilon"]
    setting, *others = several
    for values in product(*(pc.unique(table[name]).to_pylist() for name in others)):
        held = table
        for name, value in zip(others, values, strict=True):
            held = held.filter(pc.equal(held[name], value))
        if held.num_rows:
            yield Part(held, setting, dict(zip(others, values, strict=True)))


def write_results(
    folder: str | os.PathLike[str],
    table: pa.Table,
    metrics: Sequence[str],
    shuffle_delta: float | None = None,
    mixed: bool = False,
) -> list[Path]:
    """Write errors.csv, errors.parquet, curves.csv and figures of each metric; return their paths.

    A figure holds promises of one kind, and its name says which where that is not differential
    privacy per user under replacement. Runs whose delta is 1 promise nothing: they are in the
    table of runs alone. Figures of earlier results in the folder are replaced.

    Parameters
    ----------
    folder : path of a folder that exists
    table : pyarrow.Table
        As :func:`ldpspatial.compare` returns it. Where several settings vary, there is a figure
        for each value of the others.
    metrics : names of metrics in the table
    shuffle_delta : float in (0, 1), optional
        Give the curves over epsilon also with local reports as if they had been shuffled, at this
        delta.
    mixed : bool
        Where promises are of several kinds, draw them into one figure as well, each curve marked.
    """
    target = Path(folder)
    written = [target / name for name in TABLES]
    with replacing(written[0]) as stream:
        pa_csv.write_csv(table, stream)
    with replacing(written[1]) as stream:
        pq.write_table(table, stream)
    measured = [
        (metric, part)
        for metric in metrics
        for part in parts(table.filter(pc.is_valid(table[metric])))
    ]
    rows = [row for metric, part in measured for row in curve_rows(part, metric, shuffle_delta)]
    with replacing(written[2]) as stream:
        pa_csv.write_csv(pa.Table.from_pylist(rows), stream)
    for metric, part in measured:
        for name, figure in _figures(metric, part, shuffle_delta, mixed):
            written.append(target / name)
            save_figure(figure, written[-1])
    for earlier in target.iterdir():
        if FIGURE.fullmatch(earlier.name) and earlier not in written:
            earlier.unlink()
    return written


def _figures(
    metric: str, part: Part, shuffle_delta: float | None, mixed: bool
) -> Iterator[tuple[str, Figure]]:
    delta = shuffle_delta or SHUFFLE_DELTA
    for against in _readings(part.setting, shuffle_delta):
        start = f"{metric}-{against.split('_')[0]}{part.name}"
        kinds = by_promise(part.table, against)
        for kind, rows in kinds.items():
            # Of the usual kind nothing is said but the relation, where the axis leaves it open.
            words = re.findall(r"\w+", kind.removeprefix(COMMON))
            drawn = plot_error_curves(rows, metric, against, None, None, delta)
            yield "-".join([start, *words]) + ".png", drawn
        if mixed and len(kinds) > 1:
            kept = promising(part.table, against)
            drawn = plot_error_curves(kept, metric, against, None, None, delta, mixed)
            yield f"{start}-{MIXED}.png", drawn


def curve_rows(
    part: Part, metric: str, shuffle_delta: float | None = None
) -> Iterator[dict[str, str | float | int | None]]:
    """Yield a row for every point of every curve: settings, promise, mean, interval, runs."""
    for label in pc.unique(part.table["release"]).to_pylist():
        rows = part.table.filter(pc.equal(part.table["release"], label))
        for of_one_kind in by_promise(rows, part.setting).values():
            yield from _of_one_kind(of_one_kind, label, metric, part.setting, shuffle_delta)


def _of_one_kind(
    rows: pa.Table, label: str, metric: str, setting: Against, shuffle_delta: float | None
) -> Iterator[dict[str, str | float | int | None]]:
    first = rows.slice(0, 1).to_pylist()[0]
    settings: dict[str, str | float | int | None] = {name: first[name] for name in SETTINGS}
    curve = error_curve(rows, label, metric, setting)
    readings = {
        against: _reading(rows, label, metric, against, shuffle_delta or SHUFFLE_DELTA)
        for against in _readings(setting, shuffle_delta)
    }
    replaced = readings.get("replacement_epsilon")
    shuffled = readings.get("shuffled_epsilon")
    for k, x in enumerate(curve.x.tolist()):
        yield {
            "release": label,
            "model": curve.model,
            **{name: first.get(name) for name in (*KIND, RELATION)},
            "metric": metric,
            **(settings | {setting: x}),
            **{str(against): at.get(x, NO_PROMISE)[0] for against, at in readings.items()},
            "claim_delta": float(curve.delta[k]),
            "replacement_delta": None if replaced is None else replaced.get(x, NO_PROMISE)[1],
            "shuffle_delta": None if shuffled is None else shuffled.get(x, NO_PROMISE)[1],
            "mean": float(curve.mean[k]),
            "lower": float(curve.lower[k]),
            "upper": float(curve.upper[k]),
            "runs": int(curve.runs[k]),
        }


def _reading(
    rows: pa.Table, label: str, metric: str, against: Against, delta: float
) -> dict[float, tuple[float | None, float]]:
    """Return epsilon and delta in a reading by the place on the curve, where there is a promise."""
    held = promising(rows, against)
    if held.num_rows == 0:
        return {}
    curve = error_curve(held, label, metric, against, delta)
    places = np.unique(held[setting_of(against)].to_numpy()).tolist()
    return dict(zip(places, zip(curve.x.tolist(), curve.delta.tolist(), strict=True), strict=True))


def _readings(setting: Against, shuffle_delta: float | None) -> tuple[Against, ...]:
    if setting != "epsilon":
        return (setting,)
    shuffled: tuple[Against, ...] = () if shuffle_delta is None else ("shuffled_epsilon",)
    return ("epsilon", "replacement_epsilon", *shuffled)
