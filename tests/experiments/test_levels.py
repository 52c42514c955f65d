"""The comparison of levels with rivals at their best: the rivals, and how they are summed up."""

import numpy as np
import pyarrow as pa
import pytest

from experiments.level_rivals import PrivTree, QuadtreeLeastSquares, Rival, UniformGrid
from experiments.studies.levels import FAMILIES, METRICS, best_of, errors_of, ratios, releases_of
from ldpspatial.places.users import cells_by_user

RIVALS = [UniformGrid(9), QuadtreeLeastSquares(9), PrivTree()]


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
@pytest.mark.parametrize("shape", [(16, 16), (5, 13)], ids=str)
def test_rivals_find_the_map_where_there_is_no_noise(rival: Rival, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    cells = rng.choice(shape[0] * shape[1], 3000)
    users = cells_by_user(np.arange(3000), cells, shape)
    density = rival.release(users, 1e6, rng).density
    assert density == pytest.approx(users.density, abs=1e-6)


def test_least_squares_of_a_quadtree_are_nearer_than_its_leaves() -> None:
    """Mean square of 40 runs: all levels tell of a large region, not its many cells alone."""
    rng = np.random.default_rng(2)
    users = cells_by_user(np.arange(4000), rng.choice(1024, 4000), (32, 32))
    west = np.zeros((32, 32), bool)
    west[:, :16] = True
    errors = [
        [
            (rival.release(users, 0.2, rng).density[west].sum() - users.density[west].sum()) ** 2
            for _ in range(40)
        ]
        for rival in (QuadtreeLeastSquares(5), UniformGrid(5))
    ]
    assert np.mean(errors[0]) < np.mean(errors[1])


def test_a_rival_is_taken_at_its_best_for_each_error() -> None:
    model = "central-levels"
    labels = list(releases_of(model))
    rows = [
        {
            **dict(zip(METRICS, errors, strict=True)),
            "release": label,
            **{"data": "town", "cells": 64, "users": 1000, "epsilon": 1.0},
        }
        for label in labels
        for errors in ([2.0, 2.0, 2.0], [4.0, 4.0, 4.0])  # two repeats: mean 3
    ]
    for row in rows:
        if row["release"] == "uniform grid: level 3":
            row["w2"] = 1.0
        if row["release"] == "uniform grid: level 4":
            row["mse"] = 1.5
    ((_, errors),) = errors_of(pa.Table.from_pylist(rows)).items()
    assert np.exp(best_of("uniform grid", errors)) == pytest.approx([1.0, 3.0, 1.5])
    assert np.exp(best_of(model, errors)) == pytest.approx([3.0, 3.0, 3.0])
    table = ratios(model, errors_of(pa.Table.from_pylist(rows)))
    assert "| uniform grid | W2 | 3.00 | 0.00 | 0.00 | 3.00 |" in table
    assert "| the best of all | L1 | 1.00 | 1.00 | 1.00 | 1.00 |" in table


def test_every_family_has_releases_of_its_model() -> None:
    for model, families in FAMILIES.items():
        kinds = {release.model for some in families.values() for release in some.values()}
        assert kinds == {model.partition("-")[0]}
