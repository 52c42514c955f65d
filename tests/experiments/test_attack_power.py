"""The page on attacks has a row for what leaves each release, and stops where too much is seen."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.studies import attack_power as study
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.release.attack import Attack, attack
from ldpspatial.release.attack_inputs import Inputs
from ldpspatial.release.central import CentralLevels
from ldpspatial.release.central.central_levels import FOR_ALL
from ldpspatial.release.central.level_plan import plan
from ldpspatial.release.registry import releases

FEW = ["--runs", "60", "--maps", "12", "--local-maps", "4"]


def test_reports_of_local_releases_and_maps_of_the_others() -> None:
    found = CliRunner().invoke(study.attack_power, [*FEW, "--only", "k-rr,laplace-top,flat"])
    assert found.exit_code == 0, found.output
    rows = [line for line in found.output.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0] for row in rows if "---" not in row] == [
        *("| release", "| k-rr", "| release", "| flat", "| laplace-top")
    ]
    assert "| laplace-top | central | 2 x 2; 12, 12, 12 | 12 | 1 |" in found.output


def test_recommended_releases_have_rows_for_each_way_of_asking() -> None:
    found = CliRunner().invoke(study.attack_power, [*FEW, "--only", "central-levels"])
    rows = [line.split(" | ")[0] for line in found.output.splitlines() if " | central | " in line]
    larger = [f"| {name}" for name in study.LARGER if name.startswith("central-levels, ")]
    assert rows == ["| central-levels", *larger]


def test_what_is_attacked_on_larger_maps_is_what_the_rows_say() -> None:
    def levels(name: str) -> list[int]:
        release, inputs = study.LARGER[name]
        users = inputs.pair(release.claim(1.0).under_replacement())[0]
        found = release.release(users, study.OF_MAPS, np.random.default_rng(1)).levels
        assert found is not None
        return [each.level for each in found.levels[1:] if np.isfinite(each.variance)]

    assert levels("central-levels, whole levels") == [5, 6]
    assert levels("central-levels, wide areas") == [2, 5]
    assert levels("distributed-levels, sixteen sums") == [2]
    assert levels("distributed-levels, several levels") == [3, 4]
    assert levels("distributed-levels, wide areas") == [2, 5]
    for name, shapes in (("where a shape begins", {True, False}), ("shape", {True})):
        _, inputs = study.LARGER[f"central-levels, {name}"]
        claim = CentralLevels().claim(1.0)
        counts = [len(users) * (1 - 1 / FOR_ALL) for users in inputs.pair(claim)]
        size, depth = prod(inputs.shape), Quadtree(inputs.shape, even=True).depth
        plans = [plan(count, 968_750, size, depth, "distance") for count in counts]
        assert {each.by_shape for each in plans} == shapes


def test_inputs_are_looked_for_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "best_inputs", lambda *_, **__: Inputs((1, 3), 7))
    found = CliRunner().invoke(study.attack_power, [*FEW, "--only", "laplace", "--search"])
    assert "| laplace | central | 1 x 3; 7, 0, 0 |" in found.output


def test_a_release_that_shows_too_much_is_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = attack(releases()["laplace"], 1.0, 2, 4, np.random.default_rng(1))

    def too_much(*_: object, **__: object) -> Attack:
        return replace(broken, seen=1.5)

    monkeypatch.setattr(study, "attack", too_much)
    found = CliRunner().invoke(study.attack_power, [*FEW, "--only", "laplace"])
    assert found.exit_code == 1
    assert "laplace loses 1.500: 1 is claimed" in found.output


def test_every_release_that_is_named_there_is_one() -> None:
    known = {**releases(), **study.BOTH_AIMS}
    assert set(study.BEST) | set(study.SLOW) <= set(known)
