"""The comparison of levels with rivals at their best: how it is summed up."""

import re

import numpy as np
import pyarrow as pa
import pytest

from experiments.generated import generated
from experiments.studies.levels import (
    FAMILIES,
    KINDS,
    METRICS,
    Setting,
    best_at_once,
    best_of,
    best_of_others,
    errors_of,
    in_full,
    in_short,
    of_family,
    over_all,
    over_rivals,
    played,
    releases_of,
    repeats_of,
)
from experiments.tables import DOCS
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
    run = "Run: maps 2; sides 64; users 1,000, 10,000; eps 0.5; "
    run += "repeats 8 of 1,000 users, 6 of 10,000 users."
    assert played(settings) == run
    text = in_full("central-levels", settings)
    assert text.startswith(f"{run}\n\n## Over the best of all\n\n**central-levels, cities held")
    for kind in ("cities held back", "generated towns"):
        assert text.count(f"**central-levels, {kind}: 2 settings**") == 2
    assert "## By setting\n\n| map | cells |" in text


def test_the_short_table_has_each_error_with_its_aim_and_the_luck_of_the_best() -> None:
    model = "central-levels"
    errors = {label: np.full((2, 3), 4.0) for label in releases_of(model)}
    errors[f"{model}: distance"] = np.full((2, 3), [4.0, 9.0, 9.0])
    errors[f"{model}: cells"] = np.full((2, 3), [9.0, 4.0, 8.0])
    errors["privtree: alpha = 0.25"] = np.array([[1.0] * 3, [5.0] * 3])  # a mean of 3 by luck
    text = in_short(model, {Setting("tokyo", 64, 1000, 1.0): errors})
    of = "| cities held back | 1 |"
    # Chosen by the other repeat it is played once, where it is worst: 4.5 in the mean.
    assert f"{of} W2 | 1.33 | 0.00 | 1.00 | 1.00 | 1.33 |" in text
    assert f"{of} L1 | 1.33 | 0.00 | 1.00 | 1.00 | 1.33 |" in text
    assert f"{of} MSE | 2.67 | 0.00 | 0.00 | 0.00 | 2.67 |" in text


@pytest.mark.parametrize("model", FAMILIES)
def test_the_short_table_of_the_docs_is_that_of_the_page(model: str) -> None:
    page = generated(DOCS, f"{model}.md").read_text(encoding="utf-8")
    short = (DOCS / "experiments" / "levels.md").read_text(encoding="utf-8")
    short = short.split(f"<!-- {model} -->")[1].split(f"<!-- /{model} -->")[0]
    best = page.split("## Over the best of all")[1].split("## Over each rival")[0]
    found = 0
    for kind in KINDS:
        if f", {kind}: " not in best:
            continue
        rows = best.split(f", {kind}: ")[1].split("**central")[0].split("**distributed")[0]
        for aim, error in (("distance", "W2"), ("cells", "L1"), ("cells", "MSE")):
            (told,) = re.findall(rf"\| {aim} \| the best of all \| {error} \|(.*)\|", rows)
            ratio, near, third, worst = told.split("|")
            row = rf"\| {kind} \| \d+ \| {error} \|{ratio}\|{near}\|[ \d.]+\|{third}\|{worst}\|"
            assert re.search(row, short)
            found += 1
    assert found >= 12


def test_every_family_has_releases_of_its_model() -> None:
    for model, families in FAMILIES.items():
        kinds = {release.model for some in families.values() for release in some.values()}
        assert kinds == {model.partition("-")[0]}


def test_settings_of_few_users_are_played_more_often() -> None:
    found = [repeats_of(users) for users in (10, 1_000, 1_001, 100_000, 1_000_000, 10**8)]
    assert found == [8, 8, 6, 3, 2, 2]
