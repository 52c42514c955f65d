"""The comparison of levels with rivals at their best: how it is summed up."""

import numpy as np
import pyarrow as pa
import pytest

from experiments.studies.levels import FAMILIES, METRICS, best_of, errors_of, ratios, releases_of


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
        if row["release"] == "uniform grid: 8 parts":
            row["w2"] = 1.0
        if row["release"] == "uniform grid: 16 parts":
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
