"""The study of supports, on small maps."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.studies import supports as study
from experiments.studies.fit_check import Array


def maps(cells: int, _: Path) -> dict[str, Array]:
    found = {}
    for k, name in enumerate(study.MAPS):
        found[name] = np.random.default_rng([cells, k]).dirichlet(np.full(cells**2, 0.1))
        found[name] = found[name].reshape(cells, cells)
    return found


def test_supports_hold_everybody_or_leave_out_no_more_than_said() -> None:
    density = maps(12, Path())["tokyo"]
    found = list(study.cases(density, np.random.default_rng(1)))
    labels = [label for label, *_ in found]
    assert labels == [study.HOLDS, study.HOLDS, "1%", "2%", "5%", "15%"][-len(labels) :]
    for label, people, support in found:
        assert people.sum() == pytest.approx(1)
        assert set(np.unique(support)) == {0, 1}
        outside = people[support == 0].sum()
        if label == study.HOLDS:
            assert outside == 0
        else:
            assert outside < float(label.rstrip("%")) / 100


def test_the_command_counts_what_was_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "maps_of", maps)
    monkeypatch.setattr(study, "EPSILONS", (6.0,))
    monkeypatch.setattr(study, "USERS", (2_000, 1_000_000))
    monkeypatch.setattr(study, "MECHANISMS", ("dam",))
    written = []
    monkeypatch.setattr(study, "write_page", lambda _, name, page: written.append((name, page)))
    monkeypatch.setattr(study, "SIDES", (6,))
    given = ["--data", str(tmp_path), "--write"]
    result = CliRunner().invoke(study.supports, given)
    assert result.exit_code == 0
    ((name, page),) = written
    assert name == "supports"
    assert page.startswith("0 false alarms in 14 collections")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| 1,000,000 | ")]
    assert rows[0][1].startswith("0.00 of ")
    assert float(rows[0][-1].split()[0]) > 0.5
    assert page.count("| reports | holds all |") == 1


def test_a_part_is_not_written(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        study.supports, ["--data", str(tmp_path), "--side", "15", "--write"]
    )
    assert result.exit_code == 2
    assert "leave --side out" in result.output
    result = CliRunner().invoke(study.supports, ["--data", str(tmp_path)])
    assert result.exit_code == 1
    assert "--data must hold" in result.output
