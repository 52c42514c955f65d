"""Means and intervals where runs come in clusters: several runs of one city say less than cities.

Runs are averaged in each cluster first. The interval is a t interval over clusters.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class ClusterMeans:
    """A metric of a release by cluster and setting, or the difference of two such.

    Attributes
    ----------
    x : (k,) array, rising
        What was varied.
    values : (clusters, k) array
        Mean over the runs of a cluster.
    """

    x: Array
    values: Array

    @property
    def mean(self) -> Array:
        """Mean over clusters, shape (k,)."""
        mean: Array = self.values.mean(axis=0)
        return mean

    @property
    def half_width(self) -> Array:
        """Half the 95 % interval of the mean, shape (k,); NaN where there is one cluster."""
        clusters = len(self.values)
        if clusters < 2:
            return np.full(len(self.x), np.nan)
        error = self.values.std(axis=0, ddof=1) / np.sqrt(clusters)
        half: Array = error * stats.t.ppf((1 + LEVEL) / 2, clusters - 1)
        return half

    def __sub__(self, other: "ClusterMeans") -> "ClusterMeans":
        """Return the difference, paired by cluster."""
        return ClusterMeans(self.x, self.values - other.values)


def cluster_means(
    table: pa.Table, release: str, metric: str, against: str, cluster: str
) -> ClusterMeans:
    """Return the means of a metric by cluster and setting.

    Parameters
    ----------
    table : pyarrow.Table
        As :func:`ldpspatial.compare` returns it; every cluster with every setting.
    release : str
        Label.
    metric, against, cluster : names of columns
    """
    rows = table.filter(pc.equal(table["release"], release))
    x, setting = np.unique(rows[against].to_numpy(), return_inverse=True)
    names, member = np.unique(rows[cluster].to_pylist(), return_inverse=True)
    sums, runs = np.zeros((2, len(names), len(x)))
    np.add.at(sums, (member, setting), rows[metric].to_numpy())
    np.add.at(runs, (member, setting), 1)
    return ClusterMeans(x.astype(np.float64), sums / runs)
