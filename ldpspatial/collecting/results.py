"""Results: an estimate written to files, and read again.

Every file is there in full or not at all (:mod:`ldpspatial.files.atomic`). Rows run south to north,
columns west to east. Densities and intervals are shares of the people of the whole square.
"""

import json
import math
import os
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from client_sdk import Collection, Grid, ResponseTable
from ldpspatial.channels.disk import StampChannel
from ldpspatial.errors import InputError
from ldpspatial.estimation import Estimate, check_counts, goodness_of_fit, influence
from ldpspatial.estimation.estimate import restored
from ldpspatial.estimation.field import Field
from ldpspatial.estimation.field.known import Known
from ldpspatial.estimation.intervals import Uncertainty
from ldpspatial.files.atomic import replacing
from ldpspatial.files.geojson import feature_collection
from ldpspatial.files.table_layout import existing_file
from ldpspatial.places.cell_maps import cell_map
from ldpspatial.validate import (
    file_path,
    finite_number,
    input_errors,
    instance,
    number_array,
    shown,
    true_or_false,
    whole_number,
)

Path_ = str | os.PathLike[str]
Maps = dict[str, NDArray[np.float64]]

ROUNDING = 1e-6  # of a density's sum
FORGED = (0.01, 0.05)  # shares of all reports that a summary tells the influence of
# Entries of every estimate.npz, and names that numpy's writer keeps for itself.
_ENTRIES = frozenset(
    {
        *("density", "counts", "trace", "lower", "upper", "level", "method", "collection"),
        *("digest", "n", "log_likelihood", "iterations", "converged", "rule"),
        *("file", "allow_pickle", "samples"),
    }
)
_CELL = {"row": pa.int32(), "col": pa.int32()}


def write_json(path: Path_, document: dict[str, Any]) -> None:
    """Write a summary that people read too.

    Raises
    ------
    InputError
        The document holds what JSON has no form for, such as NaN or a set.
    """
    instance("document", document, dict)
    try:
        text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"document must hold what JSON can: {error}") from None
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
    """Write collection.json, estimate.npz, .geojson and .csv, heatmap.png and summary.json.

    Parameters
    ----------
    folder : path
        A folder that exists.
    collection : Collection
    estimate : Estimate
    uncertainty : Uncertainty, optional
        Intervals of the cells.
    summary : dict
        What else summary.json says, of what JSON can hold.
    truth : (d, d) array, optional
        Drawn beside the estimate.

    Raises
    ------
    InputError
        There is no such folder, a file cannot be written, or a summary that JSON has no form for.
    """
    # Here: matplotlib takes a third of the time in which commands that draw nothing start.
    from ldpspatial.plotting.heat_map import heat_map_figure, save_figure  # noqa: PLC0415

    folder = file_path("folder", folder, "folder")
    if not folder.is_dir():
        raise InputError(f"folder must name a folder that exists, got {str(folder)!r}")
    instance("summary", summary, dict)
    write_npz(folder / "estimate.npz", collection, estimate, uncertainty)
    (folder / "collection.json").write_bytes(collection.to_json().encode())
    write_geojson(folder / "estimate.geojson", collection.grid, estimate, uncertainty)
    write_csv(folder / "estimate.csv", collection.grid, estimate, uncertainty)
    figure = heat_map_figure(collection.grid, estimate, truth, uncertainty, collection.name)
    save_figure(figure, folder / "heatmap.png")
    intervals = _interval_summary(estimate, uncertainty)
    write_json(folder / "summary.json", {**summary, "intervals": intervals})


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
    step; with an uncertainty ``lower`` and ``upper`` (d, d) float64; ``samples`` (S, d, d) float32,
    where the estimator draws from a posterior; ``support`` and ``prior`` (d, d) float64,
    where the field was given them.

    Scalars: ``collection`` (the canonical document), ``digest``, ``n``, ``log_likelihood``,
    ``iterations``, ``converged``, ``rule``; with an uncertainty ``level`` and ``method``; and what
    the estimator found besides: ``smoothing`` of EM ("none", a name, or "custom" for a function,
    which no file can hold), ``verdict`` and more of the field, the details of any other.

    Raises
    ------
    InputError
        The estimate is not one of this collection's grid and output domain, or not one that
        :func:`read_estimate` would take; or the file cannot be written.
    """
    instance("collection", collection, Collection)
    maps = _maps(collection.grid, estimate, uncertainty)
    side = collection.table.cells + 2 * collection.table.radius
    if estimate.of_all < 1:
        raise InputError(
            "estimate must be of all who reported, got one of the people in an area "
            f"(of_all = {estimate.of_all:.3g}): write the whole one, and cut it after reading"
        )
    if estimate.counts.shape != (side, side):
        raise InputError(
            f"estimate.counts must have the shape {(side, side)} of the collection's output "
            f"domain, got {estimate.counts.shape}"
        )
    check_counts(StampChannel(collection.table), estimate.counts)
    iterations = whole_number("estimate.iterations", estimate.iterations, 0)
    trace = number_array("estimate.trace", estimate.trace, ("steps",))
    likelihood = finite_number("estimate.log_likelihood", estimate.log_likelihood)
    if fault := _fault_of_path(iterations, trace.tolist(), likelihood):
        raise InputError(f"estimate.trace {fault}")
    entries: dict[str, Any] = {
        **maps,
        "counts": estimate.counts.astype(np.int64),
        "trace": trace,
        "collection": collection.to_json(),
        "digest": collection.digest,
        "n": estimate.n,
        "log_likelihood": likelihood,
        "iterations": iterations,
        "converged": true_or_false("estimate.converged", estimate.converged),
        "rule": instance("estimate.rule", estimate.rule, str),
        **_facts(estimate),
    }
    try:
        restored(estimate.rule, entries)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"estimate.details must be such that {estimate.rule!r}, the name of the estimator, "
            f"is restored from them, got {type(error).__name__}: {error}"
        ) from None
    if uncertainty is not None:
        entries |= {"level": uncertainty.level, "method": uncertainty.method}
    if estimate.samples is not None:
        entries["samples"] = estimate.samples.astype(np.float32)
    if isinstance(estimate.estimator, Field):
        known = vars(estimate.estimator.known)
        entries |= {name: value for name, value in known.items() if value is not None}
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
    shares = cell_map("estimate.density", estimate.density, grid)
    if abs(shares.sum() - 1) > ROUNDING:
        raise InputError(f"estimate.density must sum to 1, got {shares.sum():g}")
    maps = {"density": shares}
    if uncertainty is not None:
        maps["lower"] = cell_map("uncertainty.lower", uncertainty.lower, grid)
        maps["upper"] = cell_map("uncertainty.upper", uncertainty.upper, grid)
    return maps


def _facts(estimate: Estimate) -> dict[str, Any]:
    """Return the details of an estimate, checked to be what files hold and files can be read with.

    Raises
    ------
    InputError
        One has the name of an entry that every file has, or is no number, bool or text.
    """
    details = estimate.details
    if details is not None and not (is_dataclass(details) and not isinstance(details, type)):
        raise InputError(f"estimate.details must be a dataclass, got {shown(details)}")
    found: dict[str, Any] = {}
    for name, value in estimate.facts.items():
        if name in _ENTRIES:
            raise InputError(
                f"estimate.details must not have a field {name!r}: files have their own"
            )
        plain = value.item() if isinstance(value, np.generic) else value
        if not isinstance(plain, bool | int | float | str):
            raise InputError(
                f"estimate.details must hold numbers and texts, got {shown(value)} as {name!r}"
            )
        if isinstance(plain, int) and not -(1 << 63) <= plain < 1 << 63:
            raise InputError(f"estimate.details must hold numbers of 64 bits, got {name!r} beyond")
        found[name] = plain
    return found


def _fault_of_path(iterations: int, trace: Sequence[float], likelihood: float) -> str:
    """Say what of an estimate contradicts its trace, or nothing."""
    if iterations != len(trace) - 1:
        return f"must hold {iterations + 1} values, one more than iterations, got {len(trace)}"
    if likelihood != trace[-1]:
        return f"must end at the log-likelihood {likelihood}, got {trace[-1]}"
    return ""


def _in_folder(folder: Path) -> Path:
    """Return the estimate of a folder of results; one of a series has it in that of a window."""
    file = folder / "estimate.npz"
    windows = sorted(folder.glob("window-*/estimate.npz"))
    if windows and not file.exists():
        raise InputError(
            f"path must be the folder of one window of a series, such as "
            f"{str(windows[0].parent)!r}, got {str(folder)!r}, which holds {len(windows)}"
        )
    return existing_file(file)


def read_estimate(path: Path_) -> tuple[Collection, Estimate]:
    """Read what ``write_npz`` wrote: the collection and the estimate of its reports."""
    given = file_path("path", path)
    file = _in_folder(given) if given.is_dir() else existing_file(given)
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
            samples = held.get("samples")
            told = {name: each.item() for name, each in held.items() if each.shape == ()}
            if fault := _fault_of_path(iterations, trace, likelihood):
                raise ValueError(fault)
            estimator, details = restored(rule, told)
            if isinstance(estimator, Field):
                support, prior = (held.get(each.name) for each in fields(Known))
                estimator = replace(estimator, support=support, prior=prior)
    except (OSError, EOFError, AttributeError, KeyError, TypeError, ValueError, RuntimeError,
            zipfile.BadZipFile, zlib.error):  # fmt: skip
        raise InputError(
            "path must be an estimate.npz of simulate or estimate, or the folder that holds "
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
        estimator=estimator,
        details=details,
        samples=samples,
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
            "iterations": estimate.iterations,
            "converged": estimate.converged,
            "log_likelihood": estimate.log_likelihood,
            **_found(estimate),
        },
        "fit": {
            "statistic": fit.statistic,
            "expected": fit.expected,
            "p_value": fit.p_value,
            "plausible": fit.is_plausible(),
            # What they look like is worth telling of counts that do not fit alone.
            "misfit": None if fit.is_plausible() else fit.misfit,
            "share": None if fit.is_plausible() else fit.share,
            "interval": None if fit.is_plausible() else fit.interval,
        },
        "forged": [_forged(table, estimate.density, share) for share in FORGED],
    }


def _forged(table: ResponseTable, density: NDArray[np.float64], share: float) -> dict[str, float]:
    """Return how far this share of forged reports can move a map, as a summary names it."""
    found = influence(StampChannel(table), density, share)
    return {
        "share": share,
        "w2_cells": found.w2,
        "reached_cells": found.reached,
        "proven_cells": found.proven,
    }


def _found(estimate: Estimate) -> dict[str, Any]:
    """Return what the estimator found besides, as a summary names it."""
    facts = _facts(estimate)
    # JSON has no infinity and no NaN.
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in facts.items()
    }


def squared_radius(table: ResponseTable) -> int | None:
    """Return the squared radius of a plain disk; the others have whole radii alone."""
    return table.squared_radius if table.mechanism == "disk" else None


def real_radius(squared: int | None) -> str:
    """Return what to say after the disk's reach in cells: the radius that tells disks apart."""
    return "" if squared is None else f", squared radius {squared} ({math.sqrt(squared):.2f} cells)"
