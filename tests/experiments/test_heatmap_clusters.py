"""Means, intervals and differences over places."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from experiments.papers.heatmaps.clusters import ClusterMeans, cluster_means
from experiments.papers.heatmaps.summary import differences_table, means_table
from experiments.sources import table
from ldpspatial.errors import InputError


def runs(metric: str, values: dict[tuple[str, str, float], list[float]]) -> pa.Table:
    """A table of runs from release, place, epsilon -> values of a metric; others are 0."""
    rows = [
        {"release": release, "data": place, "epsilon": epsilon, "repeat": repeat, "w1": 0.0,
         "similarity": 0.0, "pearson": 0.0, "kl": 0.0, metric: value}
        for (release, place, epsilon), found in values.items()
        for repeat, value in enumerate(found)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows)


def test_runs_of_a_place_count_as_one() -> None:
    table = runs("w1", {
        ("a", "x", 1.0): [1.0, 2.0, 3.0], ("a", "y", 1.0): [4.0], ("a", "z", 1.0): [9.0, 9.0],
        ("b", "x", 1.0): [100.0],
    })  # fmt: skip
    found = cluster_means(table, "a", "w1", "epsilon", "data")
    assert found.values.tolist() == [[2.0], [4.0], [9.0]]
    interval = stats.t.interval(0.95, 2, loc=5.0, scale=stats.sem([2.0, 4.0, 9.0]))
    assert found.mean == 5.0
    assert found.mean - found.half_width == pytest.approx(interval[0])
    assert found.mean + found.half_width == pytest.approx(interval[1])


def test_the_order_of_rows_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    table = runs("w1", {
        ("a", place, epsilon): rng.random(3).tolist()
        for place in "xyz" for epsilon in (1.0, 0.5, 5.0)
    })  # fmt: skip
    shuffled = table.take(rng.permutation(table.num_rows))
    first, second = (cluster_means(t, "a", "w1", "epsilon", "data") for t in (table, shuffled))
    assert first.x.tolist() == second.x.tolist() == [0.5, 1.0, 5.0]
    assert first.values == pytest.approx(second.values, rel=1e-12)


def test_means_over_places_hold_the_truth_as_often_as_they_say() -> None:
    """Runs of a place resemble each other; an interval over runs would hold it far too seldom."""
    rng = np.random.default_rng(1)
    trials, held, held_by_runs = 2000, 0, 0
    for _ in range(trials):
        values = rng.normal(0, 1, (8, 1)) + rng.normal(0, 0.3, (8, 5))
        found = ClusterMeans(np.ones(1), values.mean(axis=1, keepdims=True))
        held += bool(abs(found.mean[0]) <= found.half_width[0])
        every = ClusterMeans(np.ones(1), values.reshape(-1, 1))
        held_by_runs += bool(abs(every.mean[0]) <= every.half_width[0])
    low, high = stats.binom(trials, 0.95).ppf([5e-7, 1 - 5e-7])  # false alarms: 1e-6
    assert low <= held <= high
    assert held_by_runs < low


def test_a_difference_is_paired_by_place() -> None:
    one = ClusterMeans(np.ones(1), np.array([[1.0], [5.0], [9.0]]))
    two = ClusterMeans(np.ones(1), np.array([[0.9], [4.9], [8.9]]))
    assert (one - two).mean == pytest.approx(0.1)
    assert (one - two).half_width == pytest.approx(0.0, abs=1e-12)
    assert one.half_width > 5


def test_tables_say_which_is_better(tmp_path: Path) -> None:
    def of(metric: str, ours: list[float], other: list[float]) -> pa.Table:
        cells: dict[tuple[str, str, float], list[float]] = {}
        for place, (a, b) in enumerate(zip(ours, other, strict=True)):
            cells["sparse-emd", str(place), 1.0] = [a]
            cells["laplace", str(place), 1.0] = [b]
        return runs(metric, cells)

    def line(text: str, start: str) -> str:
        (found,) = (row for row in text.splitlines() if row.startswith(f"| {start} "))
        return found

    cases: list[tuple[str, str, list[float], str]] = [
        ("similarity", "similarity", [0.8, 0.81, 0.79], " *"),
        ("w1", "EMD", [0.8, 0.81, 0.79], " ×"),
        ("kl", "KL", [0.1, 0.11, 0.09], " *"),
        ("pearson", "Pearson", [0.5, 0.9, 0.1], ""),
    ]
    for metric, name, ours, verdict in cases:
        table = of(metric, ours, [0.5, 0.52, 0.49])
        difference = line(differences_table(table, "epsilon", "data"), f"{name} | laplace")
        assert difference.endswith(f"{verdict} |"), metric
        assert ("*" in difference, "×" in difference) == ("*" in verdict, "×" in verdict)
        means = means_table(table, "epsilon", "data")
        ours_best = verdict == " *"
        if verdict:
            assert ("**" in line(means, f"{name} | sparse-emd")) == ours_best
            assert ("**" in line(means, f"{name} | laplace")) != ours_best


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "x.csv.gz", "wt") as stream:
        stream.write("user,lon\n1,2\n")
    with pytest.raises(InputError, match="a column lat is missing"):
        _ = table(tmp_path, "x.csv.gz")["lat"]
