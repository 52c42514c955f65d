"""The page on attacks has a row for what leaves each release, and stops where too much is seen."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.studies import attack_power as study
from ldpspatial.release.attack import Attack, attack
from ldpspatial.release.attack_inputs import Inputs
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
