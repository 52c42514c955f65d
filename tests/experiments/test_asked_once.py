"""The study of clients who are asked once, beside those who are asked in every round."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.studies import asked_once as study


def test_the_command_resumes_and_has_a_line_for_each_number_of_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a town, which needs no data."""
    monkeypatch.setattr(study, "EPSILONS", (0.1, 5.0))
    given = [
        *("--data", str(tmp_path), "--out", str(tmp_path / "out"), "--map", "town 2671"),
        *("--users", "300", "--users", "500", "--repeats", "1", "--jobs", "1"),
    ]
    first = CliRunner().invoke(study.asked_once, given)
    assert first.exit_code == 0, first.output
    lines = [line for line in first.output.splitlines() if line.startswith("|")]
    assert lines[0] == "| users | eps 0.1 | eps 5 |"
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| 300", "| 500"]
    monkeypatch.setattr(study, "play", print)  # nothing is played again
    again = CliRunner().invoke(study.asked_once, given)
    assert [line for line in again.output.splitlines() if line.startswith("|")] == lines


def test_ratios_are_means_over_places_with_their_error_and_the_worst() -> None:
    errors = [
        study.Errors(study.Case(name, 10, 1.0), once, 2.0)
        for name, once in (("a", 1.0), ("b", 4.0))
    ]
    assert study.table(errors).splitlines()[-1] == "| 10 | 1.00 ± 0.69 (2.00) |"
