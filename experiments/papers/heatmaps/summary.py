"""Tables of means, of paired differences and of single maps, in Markdown."""

from collections.abc import Mapping
from math import isnan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from experiments.papers.heatmaps.clusters import ClusterMeans, cluster_means
from experiments.papers.heatmaps.plays import METRICS, OURS, blocks_of
from experiments.tables import markdown
from ldpspatial.comparison.scores import METRICS as SCORES
from ldpspatial.comparison.scores import score

NAMES = {"similarity": "similarity", "pearson": "Pearson", "kl": "KL", "w1": "EMD"}
DIGITS = {"kl": 2}
OTHERWISE = 3
COLUMNS = {"epsilon": "eps {:g}", "users": "{:g} users", "cells": "D = {:g}"}


def labels(table: pa.Table) -> list[str]:
    """Return the releases of a table in the order of its rows."""
    found: list[str] = pc.unique(table["release"]).to_pylist()
    return found


def means_table(table: pa.Table, against: str, cluster: str) -> str:
    """Return means with 95 % intervals over clusters: a row for each metric and release.

    The best mean of a metric in each column is bold, where intervals overlap or not.
    """
    rows = []
    for metric in METRICS:
        found = {name: cluster_means(table, name, metric, against, cluster)
                 for name in labels(table)}  # fmt: skip
        choose = max if SCORES[metric].grows else min
        best = [choose(values) for values in zip(*(m.mean for m in found.values()), strict=True)]
        for name, means in found.items():
            cells = [
                f"**{text}**" if mean == top else text
                for text, mean, top in zip(_cells(means, metric), means.mean, best, strict=True)
            ]
            rows.append([NAMES[metric], name, *cells])
    return markdown(_header("release", table, against), rows)


def differences_table(table: pa.Table, against: str, cluster: str) -> str:
    """Return sparse EMD minus each baseline, paired by cluster: a row for each metric and baseline.

    A star marks an interval that says sparse EMD is better, a cross one that says it is worse.
    """
    rows = []
    for metric in METRICS:
        ours = cluster_means(table, OURS, metric, against, cluster)
        sign = 1 if SCORES[metric].grows else -1
        for name in labels(table):
            if name != OURS:
                found = ours - cluster_means(table, name, metric, against, cluster)
                verdicts = [
                    _verdict(sign * mean, half)
                    for mean, half in zip(found.mean, found.half_width, strict=True)
                ]
                cells = [text + verdict
                         for text, verdict in zip(_cells(found, metric, "+"), verdicts,
                                                  strict=True)]  # fmt: skip
                rows.append([NAMES[metric], name, *cells])
    return markdown(_header("sparse-emd minus", table, against), rows)


def scores_table(
    truth: NDArray[np.float64],
    found: Mapping[tuple[float, str], NDArray[np.float64]],
    sigma: float,
) -> str:
    """Return the metrics of single maps, by epsilon and release."""
    rows = []
    for (epsilon, name), density in found.items():
        errors = score(truth, density, METRICS, sigma, blocks_of(truth.shape))
        cells = [f"{errors[m]:.{DIGITS.get(m, OTHERWISE)}f}" for m in METRICS]
        rows.append([f"{epsilon:g}", name, *cells])
    return markdown(["eps", "release", *(NAMES[metric] for metric in METRICS)], rows)


def _verdict(better_by: float, half: float) -> str:
    if better_by > half:
        return " *"
    return " ×" if better_by < -half else ""


def _cells(means: ClusterMeans, metric: str, sign: str = "") -> list[str]:
    digits = DIGITS.get(metric, OTHERWISE)
    return [
        f"{mean:{sign}.{digits}f}" + ("" if isnan(half) else f" ± {half:.{digits}f}")
        for mean, half in zip(means.mean, means.half_width, strict=True)
    ]


def _header(second: str, table: pa.Table, against: str) -> list[str]:
    settings = sorted(pc.unique(table[against]).to_pylist())
    return ["metric", second, *(COLUMNS[against].format(setting) for setting in settings)]
