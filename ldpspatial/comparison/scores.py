"""Errors of a map against the truth, one number each."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ldpspatial.comparison.range_queries import QUERIES, standard_range_error
from ldpspatial.errors import InputError
from ldpspatial.metrics import (
    block_sums,
    earth_movers_distance,
    heat_map,
    kl_divergence,
    l1,
    mean_squared_error,
    pearson,
    similarity,
    wasserstein,
)
from ldpspatial.validate import one_of, shown

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """A number for two maps, the truth first.

    Attributes
    ----------
    label : str
        For axes of figures, with the unit.
    measure : callable (truth, density) -> float
    grows : bool
        Whether more is better.
    moves : bool
        Whether it measures how far mass has to be moved, and so can be measured between blocks.
    range : (float, float)
        Its smallest and its largest value, over all maps.
    """

    label: str
    measure: Callable[[Array, Array], float]
    grows: bool = False
    moves: bool = False
    range: tuple[float, float] = (0.0, inf)


def _w2(truth: Array, density: Array) -> float:
    # Of a map that is not square the longer side is 1.
    return wasserstein(truth, density, order=2, cell=1 / max(truth.shape))


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "w2": Metric("exact W2, Euclidean (sides of the square)", _w2, moves=True),
        "w1": Metric(
            "exact W1, 1-norm: EMD (sides of the square)", earth_movers_distance, moves=True
        ),
        "l1": Metric("L1 distance", l1, range=(0.0, 2.0)),
        "mse": Metric("mean squared error", mean_squared_error),
        "similarity": Metric("similarity", similarity, grows=True, range=(0.0, 1.0)),
        "pearson": Metric("Pearson correlation", pearson, grows=True, range=(-1.0, 1.0)),
        "kl": Metric("Kullback-Leibler divergence (nats)", kl_divergence),
        "range": Metric(
            f"mean absolute error of {QUERIES} random rectangles",
            standard_range_error,
            range=(0.0, 1.0),
        ),
    }
)
DEFAULT_METRICS = ("w2", "w1", "l1", "mse", "similarity", "pearson", "kl")


def score(
    truth: Array,
    density: Array,
    metrics: Sequence[str],
    sigma: float = 0.0,
    blocks: int | None = None,
) -> dict[str, float]:
    """Return the named metrics of two maps, both seen through a Gaussian filter.

    Parameters
    ----------
    truth, density : (rows, columns) arrays
    metrics : names in METRICS
    sigma : float >= 0
        Standard deviation of the filter in cells; 0 for none.
    blocks : int, optional
        Measure how far mass has to be moved between blocks x blocks parts of a square map.
    """
    seen = heat_map(truth, sigma), heat_map(density, sigma)
    coarse = seen
    if blocks is not None:
        coarse = block_sums(seen[0], blocks), block_sums(seen[1], blocks)
    chosen = {name: METRICS[name] for name in metrics}
    return {
        name: float(metric.measure(*(coarse if metric.moves else seen)))
        for name, metric in chosen.items()
    }


def check_metrics(metrics: Sequence[str]) -> None:
    """Check names of metrics."""
    if not isinstance(metrics, Iterable):
        raise InputError(f"metrics must be names of {', '.join(METRICS)}, got {shown(metrics)}")
    for name in metrics:
        one_of("metrics", name, METRICS)
    if not metrics:
        raise InputError("metrics must name at least one metric, got none")
