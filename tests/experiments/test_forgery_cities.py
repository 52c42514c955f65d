"""The command on one setting."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.cities import City
from experiments.studies import forgery_cities as module
from experiments.studies.forgery_cities import forgery_cities


def test_the_command_prints_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(1).beta(2, 3, (1_000, 2))
    monkeypatch.setattr(module, "cities", lambda *_: [City("town", (0, 0, 1), points)])
    monkeypatch.setattr(module, "PLACES", {5: ("town",)})
    monkeypatch.setattr(module, "EPSILONS", (3.5,))
    monkeypatch.setattr(module, "SHARES", (0.01,))
    arguments = ["--data", str(tmp_path)]
    result = CliRunner().invoke(forgery_cities, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    row = result.output.splitlines()[-1]
    assert row.startswith("| 5 | 3.5 | 1.0% | ")
    assert row.endswith(" | no |")
