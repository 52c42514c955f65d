"""A comparison as files that other tools open: tables of runs and of curves, and figures."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from ldpspatial.comparison.curves import (
    COMMON,
    SHUFFLE_DELTA,
    Against,
    error_curve,
    plot_error_curves,
    promise_of,
)
from ldpspatial.files.atomic import replacing
from ldpspatial.plotting.heat_map import save_figure

SETTINGS: tuple[Against, ...] = ("epsilon", "users", "cells")


@dataclass(frozen=True)
class Part:
    """Runs along which one setting varies, of releases that promise one kind of thing.

    Attributes
    ----------
    table : pyarrow.Table
    setting : {"epsilon", "users", "cells"}
        What varies.
    name : str
        What tells it from other parts, for file names; empty if it is the only one.
    """

    table: pa.Table
    setting: Against
    name: str


def parts(table: pa.Table) -> Iterator[Part]:
    """Cut a table so that in each part one setting varies, and promises are of one kind.

    The setting is epsilon where that varies.
    """
    for kind, alike in _by_promise(table):
        for part in _by_setting(alike):
            yield replace(part, name=part.name + kind)


def _by_promise(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Cut a table by what its releases promise; file names tell what is not the usual."""
    releases = pc.unique(table["release"]).to_pylist()
    kinds = {name: promise_of(table.filter(pc.equal(table["release"], name))) for name in releases}
    for kind in dict.fromkeys(kinds.values()):
        some = [name for name in releases if kinds[name] == kind]
        ending = "" if kind == COMMON else "-" + "-".join(re.findall(r"\w+", kind))
        yield ending, table.filter(pc.is_in(table["release"], pa.array(some)))


def _by_setting(table: pa.Table) -> Iterator[Part]:
    several = [name for name in SETTINGS if len(pc.unique(table[name])) > 1] or ["epsilon"]
    setting, *others = several
    for values in product(*(pc.unique(table[name]).to_pylist() for name in others)):
        held = table
        for name, value in zip(others, values, strict=True):
            held = held.filter(pc.equal(held[name], value))
        ending = "".join(f"-{name}{value}" for name, value in zip(others, values, strict=True))
        if held.num_rows:
            yield Part(held, setting, ending)


def write_results(
    folder: str | os.PathLike[str],
    table: pa.Table,
    metrics: Sequence[str],
    shuffle_delta: float | None = None,
) -> list[Path]:
    """Write errors.csv, errors.parquet, curves.csv and one figure per metric; return their paths.

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
    """
    target = Path(folder)
    written = [target / name for name in ("errors.csv", "errors.parquet", "curves.csv")]
    with replacing(written[0]) as stream:
        pa_csv.write_csv(table, stream)
    with replacing(written[1]) as stream:
        pq.write_table(table, stream)
    rows = [
        row
        for part in parts(table)
        for metric in metrics
        for row in curve_rows(part, metric, shuffle_delta)
    ]
    with replacing(written[2]) as stream:
        pa_csv.write_csv(pa.Table.from_pylist(rows), stream)
    for part, metric in product(parts(table), metrics):
        for against in _readings(part.setting, shuffle_delta):
            reading = against.split("_")[0]
            written.append(target / f"{metric}-{reading}{part.name}.png")
            figure = plot_error_curves(
                part.table, metric, against, shuffle_delta=shuffle_delta or SHUFFLE_DELTA
            )
            save_figure(figure, written[-1])
    return written


def curve_rows(
    part: Part, metric: str, shuffle_delta: float | None = None
) -> Iterator[dict[str, str | float | int | None]]:
    """Yield a row for every point of every curve: settings, mean, interval, number of runs."""
    delta = shuffle_delta or SHUFFLE_DELTA
    for label in pc.unique(part.table["release"]).to_pylist():
        first = part.table.filter(pc.equal(part.table["release"], label)).slice(0, 1).to_pylist()[0]
        settings: dict[str, str | float | int | None] = {name: first[name] for name in SETTINGS}
        curve = error_curve(part.table, label, metric, part.setting)
        readings = {
            against: error_curve(part.table, label, metric, against, delta).x
            for against in _readings(part.setting, shuffle_delta)
        }
        for k, x in enumerate(curve.x):
            yield {
                "release": label,
                "model": curve.model,
                "metric": metric,
                **(settings | {part.setting: float(x)}),
                **{str(against): float(at[k]) for against, at in readings.items()},
                "shuffle_delta": shuffle_delta,
                "mean": float(curve.mean[k]),
                "lower": float(curve.lower[k]),
                "upper": float(curve.upper[k]),
                "runs": int(curve.runs[k]),
            }


def _readings(setting: Against, shuffle_delta: float | None) -> tuple[Against, ...]:
    if setting != "epsilon":
        return (setting,)
    shuffled: tuple[Against, ...] = () if shuffle_delta is None else ("shuffled_epsilon",)
    return ("epsilon", "replacement_epsilon", *shuffled)
