"""Forgeries that are optimised: what they are, and the command on one setting."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from client_sdk import response_table
from experiments.optimised_forgers import ascended, far_from, fitting, starts
from experiments.studies import forgery_bound as module
from experiments.studies.forgery_bound import EPSILONS, SHARES, forgery_bound, maps
from experiments.tables import DOCS
from ldpspatial import EM, StampChannel, wasserstein
from tests.support.forgeries import fitted

CHANNEL = StampChannel(response_table("dam", 3.5, 4))
MATRIX = CHANNEL.matrix()
HILL = maps(4, np.random.default_rng(1))[1]


def moved(forged: np.ndarray, share: float) -> float:
    fit = fitted(MATRIX, (1 - share) * (MATRIX @ HILL.ravel()) + share * forged)
    return wasserstein(HILL, fit.reshape(4, 4))


def test_forgeries_are_distributions_and_better_than_honest_reports_of_a_corner() -> None:
    share = 0.05
    exact = fitting(CHANNEL, HILL, share)
    better, fit = ascended(CHANNEL, HILL, share, far_from(HILL), exact[0])
    for forged in (
        *exact,
        better,
        *starts(CHANNEL, HILL, share, np.random.default_rng(1)).values(),
    ):
        assert forged.min() >= 0
        assert forged.sum() == pytest.approx(1)
    honest = moved(MATRIX[:, -1], share)
    assert moved(exact[0], share) > honest
    assert moved(better, share) >= moved(exact[0], share)
    assert moved(better, share) == pytest.approx(wasserstein(HILL, fit), rel=1e-3)


def test_the_command_writes_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "experiments" / "forged-reports.md"
    page.parent.mkdir()
    page.write_text("<!-- forgery-bound -->\n<!-- /forgery-bound -->\n")
    monkeypatch.setattr(module, "DOCS", tmp_path)
    monkeypatch.setattr(module, "EPSILONS", (6.0,))
    monkeypatch.setattr(module, "SHARES", (0.05,))
    monkeypatch.setattr(module, "ESTIMATORS", {"em": EM()})
    monkeypatch.setattr(module, "SINGLE", 4)
    monkeypatch.setattr(module, "FITS", 20)
    result = CliRunner().invoke(forgery_bound, ["--cells", "4", "--write"], catch_exceptions=False)
    assert result.exit_code == 0
    table = page.read_text().splitlines()
    assert table[3].startswith("| 6 | 5% | ")
    assert table[3].endswith(" | no |")


def test_the_table_in_the_docs_has_all_settings() -> None:
    text = (DOCS / "experiments" / "forged-reports.md").read_text()
    block = text[text.index("<!-- forgery-bound -->") : text.index("<!-- /forgery-bound -->")]
    rows = block.strip().splitlines()[3:]
    assert len(rows) == len(EPSILONS) * len(SHARES)
    assert not any(row.endswith("| yes |") for row in rows)
