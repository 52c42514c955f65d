"""From counts to a folder with the map: estimate, intervals, check of the fit, files."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from client_sdk import Collection
from ldpspatial.channels.disk import StampChannel
from ldpspatial.collecting.results import estimate_summary, write_estimate
from ldpspatial.estimation import Estimate, cell_intervals
from ldpspatial.estimation import estimate as recover
from ldpspatial.estimation.estimate import Rule
from ldpspatial.estimation.intervals import Uncertainty

REPLICATES = 40
SEED = 0  # of the replicates, so that the same reports give the same intervals

Stage = Callable[[str], None]
Advance = Callable[[int, int], None]


def intervals(estimate: Estimate, method: str, advance: Advance) -> Uncertainty | None:
    """Return 95 % intervals by a method of ``cell_intervals``, or None for "none"."""
    if method == "none":
        return None
    return cell_intervals(
        estimate,
        method=method,
        rng=np.random.default_rng(SEED),
        replicates=REPLICATES,
        progress=lambda done: advance(done, REPLICATES),
    )


def write_map(
    folder: Path,
    collection: Collection,
    counts: ArrayLike,
    facts: Mapping[str, Any],
    rule: Rule = "scaled",
    smoothing: str | None = None,
    method: str = "auto",
    stage: Stage = lambda name: None,
    advance: Advance = lambda done, total: None,
) -> dict[str, Any]:
    """Estimate the map and write all that ``ldpspatial estimate`` writes; return the summary.

    Parameters
    ----------
    folder : Path
        Exists.
    collection : Collection
    counts : (d + 2b, d + 2b) array
        Reports by output cell.
    facts : mapping
        What the summary says of the reports besides.
    rule, smoothing
        As of :func:`ldpspatial.estimate`.
    method : str
        Of the intervals.
    stage, advance : functions
        Are told what is being done, and how far it is.
    """
    began = time.perf_counter()
    stage("estimate")
    result = recover(StampChannel(collection.table), counts, rule, smoothing)
    stage("intervals")
    uncertainty = intervals(result, method, advance)
    stage("write files")
    summary = {
        **estimate_summary(collection, result),
        **facts,
        "seconds": {"all": time.perf_counter() - began},
    }
    write_estimate(folder, collection, result, uncertainty, summary)
    return summary
