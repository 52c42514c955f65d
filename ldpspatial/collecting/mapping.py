"""From counts to a folder with the map: estimate, intervals, check of the fit, files."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from client_sdk import Collection
from ldpspatial.channels.disk import StampChannel
from ldpspatial.collecting.results import estimate_summary, write_estimate
from ldpspatial.estimation import Estimate, cell_intervals
from ldpspatial.estimation import estimate as recover
from ldpspatial.estimation.estimate import Rule
from ldpspatial.estimation.intervals import Uncertainty
from ldpspatial.estimation.intervals.fisher import informative

LEVEL = 0.95

Stage = Callable[[str], None]


def intervals(estimate: Estimate, method: str) -> Uncertainty | None:
    """Return 95 % intervals by a method of ``cell_intervals``, or None for "none".

    "auto" makes no field for an estimate without samples: beyond the sides that fisher takes a
    quick look stays without intervals.
    """
    if method == "none":
        return None
    if method == "auto" and estimate.samples is None:
        return informative(estimate, LEVEL)
    return cell_intervals(estimate, LEVEL, method)


def write_map(
    folder: Path,
    collection: Collection,
    counts: ArrayLike,
    facts: Mapping[str, Any],
    rule: Rule | None = None,
    smoothing: str | None = None,
    method: str = "auto",
    stage: Stage = lambda name: None,
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
    stage : function
        Is told what is being done.
    """
    began = time.perf_counter()
    stage("estimate")
    result = recover(StampChannel(collection.table), counts, rule, smoothing)
    return write_result(folder, collection, result, facts, method, stage, began)


def write_result(
    folder: Path,
    collection: Collection,
    result: Estimate,
    facts: Mapping[str, Any],
    method: str = "auto",
    stage: Stage = lambda name: None,
    began: float | None = None,
) -> dict[str, Any]:
    """Write what :func:`write_map` writes of an estimate that is there already.

    Parameters
    ----------
    folder, collection, facts, method, stage
        As in :func:`write_map`.
    result : Estimate
    began : float, optional
        When the work began, by ``time.perf_counter``; by default now.
    """
    began = time.perf_counter() if began is None else began
    stage("intervals")
    uncertainty = intervals(result, method)
    stage("write files")
    summary = {
        **estimate_summary(collection, result),
        **facts,
        "seconds": {"all": time.perf_counter() - began},
    }
    write_estimate(folder, collection, result, uncertainty, summary)
    return summary
