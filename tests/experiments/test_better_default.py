"""The recommended release against its rivals, on a small folder of invented data."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from client_sdk import response_table
from experiments.cities import HELD_BACK, SQUARES, TUNED
from experiments.generated import generated
from experiments.studies import better_default as module
from experiments.studies.better_default import (
    OURS,
    PLAIN,
    RIVALS,
    SYNTHETIC,
    Case,
    Outcome,
    better_default,
)
from experiments.tables import DOCS
from ldpspatial.channels.playing import play
from tests.support.invented_cities import write_cities


@pytest.mark.usefixtures("short_chains")
def test_the_command_runs_resumes_and_writes_the_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_cities(tmp_path / "data")
    small = {"SIDES": (5,), "EPSILONS": (3.5,), "USERS": (1_000,)}
    for name, value in {**small, "DOCS": tmp_path}.items():
        monkeypatch.setattr(module, name, value)
    page = tmp_path / "recommended.md"
    page.write_text("Before.\n<!-- better-default -->\n<!-- /better-default -->\nAfter.\n")
    given = ["--data", data, "--out", tmp_path / "out", "--jobs", 1, "--every", 1]
    command = [*map(str, given), "--write"]
    first = CliRunner().invoke(better_default, command)
    assert first.exit_code == 0, first.output
    held = page.read_text()
    assert held.count(f"\n| cities that nothing was chosen on | {len(HELD_BACK)} |") == 1
    by_map = generated(tmp_path, "better-default.md").read_text()
    for name in (*SQUARES, *SYNTHETIC):
        assert by_map.count(f"\n| {name} | 1 |") == 1
    assert generated(tmp_path, "recommended.png").stat().st_size > 5_000
    lines = (tmp_path / "out" / "runs" / "runs.jsonl").read_text().splitlines()
    assert len(lines) == len(SQUARES) + len(SYNTHETIC)
    assert set(json.loads(lines[0])["row"]["results"][0]["errors"]) == {OURS, *RIVALS}
    monkeypatch.setattr(module, "play", int)  # nothing is played again: it would fail
    assert CliRunner().invoke(better_default, command).exit_code == 0
    assert page.read_text() == held


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    given = ["--data", tmp_path, "--out", tmp_path / "out", "--most-users", 1_000, "--jobs", 1]
    result = CliRunner().invoke(better_default, [*map(str, given)])
    assert result.exit_code != 0
    assert "--data must hold" in result.output


@pytest.mark.parametrize("left_out", [("--least-users", 1_001), ("--least-epsilon", 7.5)])
def test_options_that_leave_no_setting_are_one_line(
    left_out: tuple[str, float], tmp_path: Path
) -> None:
    given = ["--data", tmp_path, "--out", tmp_path / "out", "--most-users", 1_000, *left_out]
    result = CliRunner().invoke(better_default, [*map(str, given)])
    assert result.exit_code != 0
    assert f"{left_out[0]} {left_out[1]} must leave a setting" in result.output


def test_reports_cell_by_cell_have_the_law_of_reports_one_by_one() -> None:
    """Means of 400 collections of each kind agree within 6 standard errors in every output cell."""
    table = response_table("disk", 1.5, 4, squared_radius=2)
    people = np.zeros((4, 4), np.int64)
    people[0, 1], people[3, 2] = 30, 50
    rows, cols = np.nonzero(people)
    times = people[rows, cols]
    rng = np.random.default_rng(1)
    ours = np.mean([module.reported(table, people, rng) for _ in range(400)], axis=0)
    each = [play(table, rows.repeat(times), cols.repeat(times), rng) for _ in range(400)]
    theirs = np.mean(each, axis=0)
    assert ours.sum() == pytest.approx(80)
    assert np.abs(ours - theirs).max() < 6 * np.sqrt(2 * np.maximum(theirs, 1).max() / 400)


def outcome(ratio: float, name: str = HELD_BACK[0], epsilon: float = 3.5) -> Outcome:
    errors = dict.fromkeys(RIVALS, 1.0) | {OURS: ratio}
    return Outcome(Case(name, 15, 100, epsilon), errors, 5, "converged")


def test_tables_have_geometric_means_and_the_worst_setting() -> None:
    both = [outcome(0.5), outcome(0.98, epsilon=1.0), outcome(1.2, TUNED[0])]
    assert f"| {HELD_BACK[0]} | 2 | 0.70 | 0.70 | 0.70 | 0.98 | 0 |" in module.by_map(both)
    assert "| cities that nothing was chosen on | 2 | 0.70 |" in module.by_group(both)
    assert "| 15 cells | 2 | 0.70 |" in module.by_kind(both)
    assert f"| {TUNED[0]} | 15 | 100 | 3.5 | 1.20 |" in module.losses(both)
    assert "nearer in 1 of 3 settings" in module.losses(both)
    assert module.losses(both[:2]) == "No rival was nearer in any setting."
    assert both[0].ratio(PLAIN) == 0.5


def test_the_short_table_is_that_of_the_page() -> None:
    by_map = generated(DOCS, "better-default.md").read_text(encoding="utf-8")
    groups = [line.replace("**", "") for line in by_map.splitlines() if line.startswith("| **")]
    assert len(groups) == len(module.GROUPS)
    assert "\n".join(groups) in (DOCS / "recommended.md").read_text(encoding="utf-8")
