"""A comparison as files that others open: tables of runs and of curves, and figures."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from ldpspatial.comparison.curves import SHUFFLE_DELTA, Against, error_curve, plot_error_curves
from ldpspatial.files.atomic import replacing
from ldpspatial.plotting import save_figure

SETTINGS: tuple[Against, ...] = ("epsilon", "users", "cells")


def varying(table: pa.Table) -> list[Against]:
    """Return which settings a curve can run over: that which alone takes several values.

    Where several settings vary, no figure shows all; where none does, epsilon is as good as any.
    """
    several = [name for name in SETTINGS if len(pc.unique(table[name])) > 1]
    if len(several) > 1:
        return []
    only: Against = several[0] if several else "epsilon"
    return ["epsilon", "replacement_epsilon"] if only == "epsilon" else [only]


def write_results(
    folder: str | os.PathLike[str],
    table: pa.Table,
    metrics: Sequence[str],
    shuffle_delta: float | None = None,
) -> list[Path]:
    """Write errors.csv, errors.parquet, curves.csv and a figure a metric; return their paths.

    Parameters
    ----------
    folder : path of a folder that exists
    table : pyarrow.Table
        As :func:`ldpspatial.compare` returns it.
    metrics : names of metrics in the table
    shuffle_delta : float in (0, 1), optional
        Draw the curves over epsilon also with local reports as if they had been shuffled, at this
        delta.
    """
    target = Path(folder)
    written = [target / "errors.csv", target / "errors.parquet"]
    with replacing(written[0]) as stream:
        pa_csv.write_csv(table, stream)
    with replacing(written[1]) as stream:
        pq.write_table(table, stream)
    rows = list(curve_rows(table, metrics))
    if rows:
        written.append(target / "curves.csv")
        with replacing(written[-1]) as stream:
            pa_csv.write_csv(pa.Table.from_pylist(rows), stream)
    readings = varying(table)
    delta = SHUFFLE_DELTA if shuffle_delta is None else shuffle_delta
    if shuffle_delta is not None and "epsilon" in readings:
        readings.append("shuffled_epsilon")
    for metric in metrics:
        for against in readings:
            written.append(target / f"{metric}-{against.split('_')[0]}.png")
            figure = plot_error_curves(table, metric, against, shuffle_delta=delta)
            save_figure(figure, written[-1])
    return written


def curve_rows(table: pa.Table, metrics: Iterable[str]) -> Iterator[dict[str, str | float]]:
    """Yield a row for every point of every curve: mean, interval, number of runs."""
    labels = pc.unique(table["release"]).to_pylist()
    for against in varying(table)[:1]:
        for metric in metrics:
            for label in labels:
                curve = error_curve(table, label, metric, against)
                points = zip(curve.x, curve.mean, curve.lower, curve.upper, curve.runs, strict=True)
                for x, mean, lower, upper, runs in points:
                    yield {
                        "release": label,
                        "model": curve.model,
                        "metric": metric,
                        against: float(x),
                        "mean": float(mean),
                        "lower": float(lower),
                        "upper": float(upper),
                        "runs": int(runs),
                    }
