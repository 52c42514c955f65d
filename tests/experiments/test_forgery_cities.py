"""The command on one setting."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.cities import City
from experiments.studies import forgery_cities as module
from experiments.studies.forgery_cities import EPSILONS, SHARES, forgery_cities
from experiments.tables import DOCS


def test_the_command_writes_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "experiments" / "forged-reports.md"
    page.parent.mkdir()
    page.write_text("<!-- forgery-cities -->\n<!-- /forgery-cities -->\n")
    monkeypatch.setattr(module, "DOCS", tmp_path)
    points = np.random.default_rng(1).beta(2, 3, (1_000, 2))
    monkeypatch.setattr(module, "cities", lambda *_: [City("town", (0, 0, 1), points)])
    monkeypatch.setattr(module, "PLACES", {5: ("town",)})
    monkeypatch.setattr(module, "EPSILONS", (3.5,))
    monkeypatch.setattr(module, "SHARES", (0.01,))
    arguments = ["--data", str(tmp_path), "--write"]
    result = CliRunner().invoke(forgery_cities, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    row = page.read_text().splitlines()[3]
    assert row.startswith("| 3.5 | 1.0% | ")
    assert row.endswith(" | no |")


def test_the_table_in_the_docs_has_all_settings() -> None:
    text = (DOCS / "experiments" / "forged-reports.md").read_text()
    block = text[text.index("<!-- forgery-cities -->") : text.index("<!-- /forgery-cities -->")]
    rows = block.strip().splitlines()[3:]
    assert len(rows) == len(EPSILONS) * len(SHARES)
    assert not any(row.endswith("| yes |") for row in rows)
