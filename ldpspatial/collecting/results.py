"""Results: an estimate written to files, and read again.

Every file is there in full or not at all (:mod:`ldpspatial.files.atomic`). Rows run south to north,
columns west to east. Densities and intervals are shares of the people of the whole square.
"""

import json
import math
import os
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import ArrayLike, NDArray

from client_sdk import Collection, Grid, ResponseTable
from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.protocol import Channel
from ldpspatial.errors import InputError
from ldpspatial.estimation import Estimate, goodness_of_fit
from ldpspatial.estimation.counts import check_counts
from ldpspatial.estimation.em import Smoothing
from ldpspatial.estimation.estimate import restored
from ldpspatial.estimation.intervals.cells import Uncertainty
from ldpspatial.estimation.result import Estimator, Progress
from ldpspatial.files.atomic import replacing
from ldpspatial.files.geojson import feature_collection
from ldpspatial.files.table_layout import existing_file
from ldpspatial.places.cell_maps import cell_map
from ldpspatial.plotting.heat_map import heat_map_figure, save_figure
from ldpspatial.validate import file_path, input_errors, instance

Path_ = str | os.PathLike[str]
Maps = dict[str, NDArray[np.float64]]

ROUNDING = 1e-6  # of a density's sum
# What files hold where an estimator has nothing of the kind, or where they are older than it.
ABSENT: dict[str, Any] = {"width": 0.0, "sparsity": 0.0, "smoothing": "none"}
_CELL = {"row": pa.int32(), "col": pa.int32()}


def write_json(path: Path_, document: dict[str, Any]) -> None:
    """Write a summary that people read too."""
    text = json.dumps(instance("document", document, dict), indent=2, allow_nan=False) + "\n"
    with replacing(path) as stream:
        stream.write(text.encode())


def write_estimate(
    folder: Path_,
    collection: Collection,
    estimate: Estimate,
    uncertainty: Uncertainty | None,
    summary: dict[str, Any],
    truth: NDArray[np.float64] | None = None,
) -> None:
    """Write collection.json, estimate.npz, .geojson and .csv, heatmap.png and summary.json."""
    folder = file_path("folder", folder, "folder")
    if not folder.is_dir():
        raise InputError(f"folder must name a folder that exists, got {str(folder)!r}")
    instance("summary", summary, dict)
    write_npz(folder / "estimate.npz", collection, estimate, uncertainty)
    (folder / "collection.json").write_bytes(collection.to_json().encode())
    write_geojson(folder / "estimate.geojson", collection.grid, estimate, uncertainty)
    write_csv(folder / "estimate.csv", collection.grid, estimate, uncertainty)
    summary["intervals"] = _interval_summary(estimate, uncertainty)
    figure = heat_map_figure(collection.grid, estimate, truth, uncertainty, collection.name)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # or letters that the font lacks
        save_figure(figure, folder / "heatmap.png")
    write_json(folder / "summary.json", summary)


def write_npz(
    path: Path_,
    collection: Collection,
    estimate: Estimate,
    uncertainty: Uncertainty | None = None,
) -> None:
    """Write all that is known of an estimate, for ``numpy.load(path, allow_pickle=False)``.

    Parameters
    ----------
    path : path
    collection : Collection
        What the reports belong to.
    estimate : Estimate
    uncertainty : Uncertainty, optional

    Notes
    -----
    Arrays: ``density`` (d, d) float64; ``counts`` (d + 2b, d + 2b) int64, output cell (row, col)
    at [row + b, col + b]; ``trace`` float64, log-likelihood in nats at the start and after each
    step; with an uncertainty ``lower`` and ``upper`` (d, d) float64.

    Scalars: ``collection`` (the canonical document), ``digest``, ``n``, ``log_likelihood``,
    ``iterations``, ``converged``, ``rule``, ``width``, ``sparsity``, ``smoothing`` ("none", a
    name, or "custom" for a function, which no file can hold); with an uncertainty ``level`` and
    ``method``.

    Raises
    ------
    InputError
        The estimate is not one of this collection's grid and output domain, or the file cannot
        be written.
    """
    instance("collection", collection, Collection)
    maps = _maps(collection.grid, estimate, uncertainty)
    side = collection.table.cells + 2 * collection.table.radius
    if estimate.counts.shape != (side, side):
        raise InputError(
            f"estimate.counts must have the shape {(side, side)} of the collection's output "
            f"domain, got {estimate.counts.shape}"
        )
    entries: dict[str, Any] = {
        **maps,
        "counts": estimate.counts.astype(np.int64),
        "trace": np.array(estimate.trace, np.float64),
        "collection": collection.to_json(),
        "digest": collection.digest,
        "n": estimate.n,
        "log_likelihood": estimate.log_likelihood,
        "iterations": estimate.iterations,
        "converged": estimate.converged,
        "rule": estimate.rule,
        **ABSENT,
        **estimate.facts,
    }
    if uncertainty is not None:
        entries |= {"level": uncertainty.level, "method": uncertainty.method}
    with replacing(path) as stream:
        np.savez_compressed(stream, **entries)


def write_geojson(
    path: Path_, grid: Grid, estimate: Estimate, uncertainty: Uncertainty | None = None
) -> None:
    """Write every cell as a polygon with its density (GeoJSON, RFC 7946), one to a line.

    Parameters
    ----------
    path : path
    grid : Grid
        Neighbouring cells share their edges to the last digit (1e-7 degree or plane unit).
    estimate : Estimate
    uncertainty : Uncertainty, optional

    Notes
    -----
    Feature "row-col" has the properties ``row``, ``col``, ``density``, ``people`` (the expected
    number, density times reports) and with an uncertainty ``lower`` and ``upper``, shares like
    the density. The collection has ``reports`` (their number), and ``level`` and ``method`` of
    the intervals.

    Polygons and bounding box of a square across the antimeridian are not cut in two as RFC 7946
    recommends: their longitudes run on past 180, which keeps every cell one polygon.

    A plane grid is written in its own coordinates, x before y, and marked by the member
    ``"plane": true``. GeoJSON knows degrees only, so a viewer must be told what they are.

    Raises
    ------
    InputError
        The estimate does not fit the grid, or the file cannot be written.
    """
    maps = _maps(grid, estimate, uncertainty)
    members: dict[str, Any] = {"plane": True} if grid.kind == "plane" else {}
    members["reports"] = estimate.n
    if uncertainty is not None:
        members |= {"level": uncertainty.level, "method": uncertainty.method}
    density = maps.pop("density")
    properties = {"density": density, "people": density * estimate.n, **maps}
    with replacing(path) as stream:
        for text in feature_collection(grid, members, properties):
            stream.write(text.encode())


def write_csv(
    path: Path_, grid: Grid, estimate: Estimate, uncertainty: Uncertainty | None = None
) -> None:
    """Write a table with a line for every cell, by row, then column.

    Columns: row, col, latitude and longitude of the centre in degrees (y and x on a plane grid),
    density, and with an uncertainty lower and upper. Longitudes lie in [-180, 180).

    Raises
    ------
    InputError
        The estimate does not fit the grid, or the file cannot be written.
    """
    maps = _maps(grid, estimate, uncertainty)
    names = ("latitude", "longitude") if grid.kind == "geographic" else ("y", "x")
    # The centre of cell (k, k) has the latitude of row k and the longitude of column k.
    centers = np.array([grid.center(k, k) for k in range(grid.cells)])
    schema = pa.schema(_CELL | {name: pa.float64() for name in (*names, *maps)})
    cols = np.arange(grid.cells, dtype=np.int32)
    with replacing(path) as stream, pa_csv.CSVWriter(stream, schema) as writer:
        for row in range(grid.cells):
            latitude = np.full(grid.cells, centers[row, 0])
            values = [values[row] for values in maps.values()]
            arrays = [np.full_like(cols, row), cols, latitude, centers[:, 1], *values]
            writer.write_batch(pa.record_batch(list(map(pa.array, arrays)), schema=schema))


def _maps(grid: Grid, estimate: Estimate, uncertainty: Uncertainty | None) -> Maps:
    """Return the density and the bounds of its intervals, checked against the grid."""
    instance("grid", grid, Grid)
    instance("estimate", estimate, Estimate)
    if uncertainty is not None:
        instance("uncertainty", uncertainty, Uncertainty)
    maps = {"density": cell_map("estimate.density", estimate.density, grid)}
    if uncertainty is not None:
        maps["lower"] = cell_map("uncertainty.lower", uncertainty.lower, grid)
        maps["upper"] = cell_map("uncertainty.upper", uncertainty.upper, grid)
    return maps


def read_estimate(path: Path_) -> tuple[Collection, Estimate]:
    """Read what ``write_npz`` wrote: the collection and the estimate of its reports."""
    given = file_path("path", path)
    file = existing_file(given / "estimate.npz" if given.is_dir() else given)
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as npz:
            held = {name: npz[name] for name in npz.files}
            document = str(held["collection"])
            rule = str(held["rule"])
            density = held["density"]
            counts = held["counts"]
            trace = held["trace"].tolist()
            iterations = int(held["iterations"])
            converged = bool(held["converged"])
            likelihood = float(held["log_likelihood"])
            told = {name: each.item() for name, each in held.items() if each.shape == ()}
            if iterations != len(trace) - 1 or likelihood != trace[-1]:
                raise ValueError("the trace is of another estimate")
            known = restored(rule, told, density.shape)
    except (OSError, EOFError, AttributeError, KeyError, TypeError, ValueError, RuntimeError,
            zipfile.BadZipFile, zlib.error):  # fmt: skip
        raise InputError(
            "ESTIMATE must be an estimate.npz of simulate or estimate, or the folder that holds "
            f"it, but {str(file)!r} is not"
        ) from None
    with input_errors():
        collection = Collection.from_json(document)
    channel = StampChannel(collection.table)
    shares = cell_map("density", density, collection.grid)
    if abs(shares.sum() - 1) > ROUNDING:
        raise InputError(f"density must sum to 1, got {shares.sum():g} in {str(file)!r}")
    return collection, Estimate(
        density=shares,
        log_likelihood=likelihood,
        iterations=iterations,
        converged=converged,
        trace=tuple(trace),
        channel=channel,
        counts=check_counts(channel, counts),
        estimator=known[0] if known else Lost(rule),
        details=known[1] if known else Smoothing(str(told.get("smoothing", "none"))),
    )


@dataclass(frozen=True)
class Lost(Estimator):
    """The estimator of a file that only its maker has, with a smoothing or rule without a name.

    It is needed only to estimate again, which is refused.
    """

    kind = "lost"

    called: str

    @property
    def name(self) -> str:
        """What the file calls it."""
        return self.called

    def fit(
        self, channel: Channel, counts: ArrayLike, progress: Progress | None = None
    ) -> Estimate:
        """Refuse."""
        raise InputError(
            "method bootstrap estimates again, but ESTIMATE was made in Python with a smoothing or "
            "rule that its file cannot hold: use --method fisher or likelihood"
        )


def _interval_summary(estimate: Estimate, uncertainty: Uncertainty | None) -> dict[str, Any] | None:
    """Say which intervals were written, and how many cells' estimates lie outside theirs."""
    if uncertainty is None:
        return None
    density = estimate.density
    outside = (density < uncertainty.lower) | (density > uncertainty.upper)
    return {
        "method": uncertainty.method,
        "level": uncertainty.level,
        "cells_outside": int(outside.sum()),
    }


def estimate_summary(collection: Collection, estimate: Estimate) -> dict[str, Any]:
    """Return what every summary.json holds: the claim, the grid, the estimate, its check."""
    table = instance("collection", collection, Collection).table
    fit = goodness_of_fit(estimate)
    facts = {**ABSENT, **estimate.facts}
    return {
        "collection": collection.digest,
        "claim": {
            "model": "local",
            "guarantee": "epsilon-LDP",
            "unit": "report",
            "epsilon": collection.epsilon,
            "max_ratio": float(table.max_ratio()),
            "epsilon_of_ratio": math.log(table.max_ratio()),
        },
        "mechanism": table.mechanism,
        "epsilon": collection.epsilon,
        "cells": table.cells,
        "radius": table.radius,
        "squared_radius": squared_radius(table),
        "output_cells": table.output_size,
        "n": estimate.n,
        "estimator": {
            "rule": estimate.rule,
            "kernel_width_cells": finite_width(facts["width"]),
            "sparsity_users": facts["sparsity"],
            "smoothing": facts["smoothing"],
            "iterations": estimate.iterations,
            "converged": estimate.converged,
            "log_likelihood": estimate.log_likelihood,
        },
        "fit": {
            "statistic": fit.statistic,
            "expected": fit.expected,
            "p_value": fit.p_value,
            "plausible": fit.is_plausible(),
        },
    }


def finite_width(width: float | str) -> float | str:
    """Return a width of kernels for files and tables, which have no infinity: "all" for it."""
    return "all" if width == math.inf else width


def squared_radius(table: ResponseTable) -> int | None:
    """Return the squared radius of a plain disk; the others have whole radii alone."""
    return table.squared_radius if table.mechanism == "disk" else None


def real_radius(squared: int | None) -> str:
    """Return what to say after the disk's reach in cells: the radius that tells disks apart."""
    return "" if squared is None else f", squared radius {squared} ({math.sqrt(squared):.2f} cells)"


def fit_verdict(summary: dict[str, Any]) -> str:
    """Return one line on whether the reports fit the collection's channel."""
    fit = summary["fit"]
    p = f"p = {fit['p_value']:.2g}"
    if fit["plausible"]:
        return f"the counts fit this collection ({p})"
    return (
        f"THE COUNTS DO NOT FIT THIS COLLECTION ({p}): other parameters on the devices, "
        "unrandomised, forged or mixed reports"
    )
