"""The comparison of levels with rivals at their best: how it is summed up."""

import numpy as np
import pyarrow as pa
import pytest

from experiments.studies.levels import (
    FAMILIES,
    METRICS,
    Setting,
    best_at_once,
    best_of,
    best_of_others,
    errors_of,
    of_family,
    over_all,
    over_rivals,
    releases_of,
    repeats_of,
    shown,
)
from experiments.towns import towns
from ldpspatial.release.central import CentralQuadtree, Wavelets


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
    assert best_of(of_family("uniform grid", errors)) == pytest.approx([1.0, 3.0, 1.5])
    assert best_of(of_family(model, errors)) == pytest.approx([3.0, 3.0, 3.0])
    settings = errors_of(pa.Table.from_pylist(rows))
    rivals = over_rivals(model, settings)
    assert "| uniform grid | W2 | 3.00 | 0.00 | 0.00 | 3.00 |" in rivals
    table = over_all(model, settings)
    assert "| the best of all | L1 | 1.00 | 1.00 | 1.00 | 1.00 |" in table
    # One choice: level 3, the better by a third of W2 than level 4 by a half of MSE.
    assert "| the best of all, one for all errors | W2 | 3.00 |" in table
    assert "| the best of all, one for all errors | MSE | 1.00 |" in table


def test_a_choice_by_the_other_repeats_has_no_luck() -> None:
    errors = {"a: 1": np.array([[1.0], [3.0], [3.0]]), "a: 2": np.array([[2.0], [2.0], [4.0]])}
    # Left out 1, 2, 3: means of the others are (3, 3), (2, 3) and (2, 2): a tie takes the first.
    assert best_of_others(errors) == pytest.approx([(1 + 3 + 3) / 3])
    lucky = {"a: 1": np.array([[1.0], [9.0]]), "a: 2": np.array([[4.0], [4.0]])}
    assert best_of(lucky) == pytest.approx([4.0])
    # Without the first repeat 9 loses to 4, without the second 1 wins, and 9 is what comes of it.
    assert best_of_others(lucky) == pytest.approx([(4 + 9) / 2])
    assert best_of({"a: 1": np.array([[2.0, 3.0]])}) == pytest.approx([2.0, 3.0])
    assert best_of_others({"a: 1": np.array([[2.0, 3.0]])}) == pytest.approx([2.0, 3.0])
    both = {"a: 1": np.array([[1.0, 9.0]]), "a: 2": np.array([[2.0, 2.0]])}
    assert best_at_once(both) == pytest.approx([2.0, 2.0])


def test_no_release_is_played_twice_under_two_names() -> None:
    for model in FAMILIES:
        labels = releases_of(model, 32)
        trees = [each for each in labels.values() if isinstance(each, CentralQuadtree | Wavelets)]
        assert max((tree.depth for tree in trees), default=0) <= 5
        assert {label.partition(":")[0] for label in labels} == set(FAMILIES[model])
        assert "uniform grid: 64 parts" not in labels
        assert len(set(map(repr, labels.values()))) == len(labels)
    assert len(releases_of("central-levels", 32)) < len(releases_of("central-levels", 256))


def test_towns_are_reproducible_places_inside_the_square() -> None:
    seen = set()
    for town in towns(range(20)):
        points = town.people(3000, np.random.default_rng(4))
        assert points.shape == (3000, 2)
        assert points.min() >= 0
        assert points.max() < 1
        assert (points == town.people(3000, np.random.default_rng(4))).all()
        cells = (points * 16).astype(int) @ np.array([16, 1])
        seen.add(round(float((np.bincount(cells, minlength=256) ** 2).sum())))
    assert len(seen) == 20
    # From near a plain, where any two people share one of 256 cells by chance, to a few addresses.
    assert min(seen) < 3 * 3000**2 / 256
    assert max(seen) > 15 * 3000**2 / 256


def test_the_page_says_what_was_run() -> None:
    settings = {
        Setting(name, 64, users, 0.5): {
            label: np.ones((repeats_of(users), 3)) for label in releases_of("central-levels")
        }
        for name in ("tokyo", "town 2601")
        for users in (1000, 10_000)
    }
    text = shown("central-levels", settings, over_all)
    run = "Run: maps 2; sides 64; users 1,000, 10,000; eps 0.5; "
    assert text.startswith(f"{run}repeats 8 of 1,000 users, 6 of 10,000 users.")
    assert "**central-levels, cities held back: 2 settings**" in text
    assert "**central-levels, generated towns: 2 settings**" in text


def test_every_family_has_releases_of_its_model() -> None:
    for model, families in FAMILIES.items():
        kinds = {release.model for some in families.values() for release in some.values()}
        assert kinds == {model.partition("-")[0]}


def test_settings_of_few_users_are_played_more_often() -> None:
    found = [repeats_of(users) for users in (10, 1_000, 1_001, 100_000, 1_000_000, 10**8)]
    assert found == [8, 8, 6, 3, 2, 2]
