"""The files of an estimate: most commands write them, ``ranges`` reads the npz again."""

import math
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client_sdk import Collection, ResponseTable
from ldpspatial.cell_maps import cell_map
from ldpspatial.channel import StampChannel
from ldpspatial.cli.output import write_json
from ldpspatial.errors import InputError
from ldpspatial.estimation import Estimate
from ldpspatial.estimation.counts import check_counts
from ldpspatial.estimation.kernel_channel import ALL, WIDTHS, tried_widths
from ldpspatial.estimation.sieve import SPARSER, SPARSITY
from ldpspatial.estimation.smoothing import SMOOTHERS, Smoother
from ldpspatial.estimation.stopping import CROSS_VALIDATED, RULES, STOPPING_RULES, stopping_rule
from ldpspatial.estimation.uncertainty import Uncertainty
from ldpspatial.files.export import write_csv, write_geojson, write_npz
from ldpspatial.files.table_layout import existing_file
from ldpspatial.plotting import heat_map_figure, save_figure

INTERVALS = ("auto", "fisher", "bootstrap", "none")
RULE_HELP = (
    "When the estimation stops; cross-validated finds out how smooth the map is as well: nearer to "
    "the truth in up to some thousand times the time. It takes no --smoothing."
)
REPLICATES = 40
ROUNDING = 1e-6  # of a density's sum
SEED = 0  # of the replicates, so that the same reports give the same intervals
# Beyond it the fisher interval of a cell is wider than what any cell holds (docs/estimation.md).
INFORMATIVE_CELLS = 20


def intervals(
    estimate: Estimate, method: str, advance: Callable[[int, int], None]
) -> Uncertainty | None:
    """Return 95 % intervals; "auto" is fisher as far as it tells something, else bootstrap."""
    if method == "none":
        return None
    if method == "auto":
        method = "bootstrap"
        if max(estimate.channel.input_shape) <= INFORMATIVE_CELLS:
            try:
                return estimate.uncertainty(method="fisher")
            except InputError:
                pass  # the counts do not determine every cell
    return estimate.uncertainty(
        method=method,
        rng=np.random.default_rng(SEED),
        replicates=REPLICATES,
        progress=lambda done: advance(done, REPLICATES),
    )


def write_estimate(
    folder: Path,
    collection: Collection,
    estimate: Estimate,
    uncertainty: Uncertainty | None,
    summary: dict[str, Any],
    truth: NDArray[np.float64] | None = None,
) -> None:
    """Write collection.json, estimate.npz, .geojson and .csv, heatmap.png and summary.json."""
    (folder / "collection.json").write_bytes(collection.to_json().encode())
    write_npz(folder / "estimate.npz", collection, estimate, uncertainty)
    write_geojson(folder / "estimate.geojson", collection.grid, estimate, uncertainty)
    write_csv(folder / "estimate.csv", collection.grid, estimate, uncertainty)
    summary["intervals"] = _interval_summary(estimate, uncertainty)
    figure = heat_map_figure(collection.grid, estimate, truth, uncertainty, collection.name)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # or letters that the font has not
        save_figure(figure, folder / "heatmap.png")
    write_json(folder / "summary.json", summary)


def read_estimate(path: Path) -> tuple[Collection, Estimate]:
    """Read what ``write_npz`` wrote: the collection and the estimate of its reports."""
    file = path / "estimate.npz" if path.is_dir() else path
    existing_file(file)
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as npz:
            held = {name: npz[name] for name in npz.files}
            document, rule = str(held["collection"]), str(held["rule"])
            density, counts, trace = held["density"], held["counts"], held["trace"].tolist()
            iterations, converged = int(held["iterations"]), bool(held["converged"])
            likelihood = float(held["log_likelihood"])
            smoothing = str(held.get("smoothing", "none"))  # older files do not tell
            if iterations != len(trace) - 1 or likelihood != trace[-1]:
                raise ValueError("the trace is of another estimate")
            width, sparsity = _kernels(held, rule)
    except (OSError, EOFError, AttributeError, KeyError, TypeError, ValueError, RuntimeError,
            zipfile.BadZipFile, zlib.error):  # fmt: skip
        raise InputError(
            "ESTIMATE must be an estimate.npz of simulate or estimate, or the folder that holds "
            f"it, but {str(file)!r} is not"
        ) from None
    collection = Collection.from_json(document)
    channel, shares = StampChannel(collection.table), cell_map("density", density, collection.grid)
    if abs(shares.sum() - 1) > ROUNDING:
        raise InputError(f"density must sum to 1, got {shares.sum():g} in {str(file)!r}")
    return collection, Estimate(
        density=shares,
        log_likelihood=likelihood,
        iterations=iterations,
        converged=converged,
        rule=rule,
        trace=tuple(trace),
        channel=channel,
        counts=check_counts(channel, counts),
        smooth=_smoother(smoothing, rule),
        stop=stopping_rule(rule, channel) if rule in STOPPING_RULES else None,
        width=width,
        sparsity=sparsity,
    )


def _kernels(held: Mapping[str, Any], rule: str) -> tuple[float, float]:
    """Return width and sparsity, which only estimates by cross-validation have."""
    if rule != CROSS_VALIDATED:
        return 0.0, 0.0
    width, sparsity = float(held["width"]), float(held["sparsity"])
    if width == ALL:
        is_found = sparsity == 0
    else:
        is_found = width in tried_widths(WIDTHS, held["density"].shape)
        is_found &= sparsity in (SPARSITY, *SPARSER)
    if not is_found or int(held["iterations"]) < 1 or held["smoothing"] != "none":
        raise ValueError("no such kernels are ever found")
    return width, sparsity


def _smoother(smoothing: str, rule: str) -> Smoother | None:
    """Return the smoother of an estimate that was read, by its names there.

    What only its maker has, a smoother or stopping rule without a name here, is needed to
    estimate again, and for nothing else: it is refused then.
    """
    if rule in RULES and smoothing in ("none", *SMOOTHERS):
        return SMOOTHERS.get(smoothing)
    return _lost


def _lost(density: NDArray[np.float64]) -> NDArray[np.float64]:
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
    table = collection.table
    fit = estimate.goodness_of_fit()
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
            "kernel_width_cells": estimate.kernel_width,
            "sparsity_users": estimate.sparsity,
            "smoothing": estimate.smoothing,
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
