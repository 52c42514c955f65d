"""Forged reports: what forgers send, what is measured of it, and the command on few people."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import chisquare

from client_sdk import response_table
from experiments.forgers import FORGERS, busiest, disk_alone, drawn, farthest, noise, unrandomised
from experiments.generated import generated, head
from experiments.places import places
from experiments.sources import CHICAGO, CHICAGO_SQUARE, NEW_YORK, NEW_YORK_SQUARE
from experiments.studies import forged_reports as module
from experiments.studies.forged_reports import (
    CELLS,
    CORNER,
    CROWD,
    EPSILONS,
    KINDS,
    MECHANISMS,
    PEOPLE,
    SHARES,
    forged_number,
    forged_reports,
    played,
)
from experiments.tables import DOCS
from ldpspatial import StampChannel

TABLE = response_table("dam", 2.0, 5)
CHANNEL = StampChannel(TABLE)
PLACE = (4, 1)


def law_at(place: tuple[int, int]) -> np.ndarray:
    density = np.zeros((5, 5))
    density[place] = 1
    return np.asarray(CHANNEL.forward(density))


def agrees(counts: np.ndarray, law: np.ndarray) -> bool:
    """Tell whether counts come from a law, wrong once in a million; none where it has none."""
    held = law > 0
    expected = counts.sum() * law[held] / law[held].sum()
    return not counts[~held].any() and chisquare(counts[held], expected).pvalue >= 1e-6


@pytest.mark.parametrize("sent", FORGERS)
def test_as_many_reports_as_asked_for_are_possible_ones(sent: str) -> None:
    counts = FORGERS[sent](TABLE, PLACE, 777, np.random.default_rng(1))
    assert counts.shape == CHANNEL.output_shape
    assert counts.sum() == 777
    assert not counts[~CHANNEL.support].any()


def test_forgers_send_what_they_say() -> None:
    rng = np.random.default_rng(2)
    radius = TABLE.radius
    raw = unrandomised(TABLE, PLACE, 50, rng)
    assert raw[PLACE[0] + radius, PLACE[1] + radius] == 50
    honest = law_at(PLACE)
    likelier = honest - honest[CHANNEL.support].min() * CHANNEL.support
    laws = {drawn: honest, noise: CHANNEL.support * 1.0, disk_alone: likelier}
    assert 0 < np.count_nonzero(likelier > 1e-12) < CHANNEL.support.sum()
    for forger, law in laws.items():
        counts = forger(TABLE, PLACE, 100_000, rng)
        # Each law is told from the others, so none of them passes for another.
        for other in laws.values():
            assert agrees(counts, np.where(other > 1e-12, other, 0)) == (other is law)


def test_the_places_of_forgers() -> None:
    density = np.zeros((6, 6))
    density[1, 4] = 0.7
    density[2, 2] = 0.3
    assert busiest(density) == (1, 4)
    assert farthest(density) == (5, 0)
    rows, cols = np.indices((6, 6))
    cost = [
        (density * ((rows - row) ** 2 + (cols - col) ** 2)).sum()
        for row in range(6)
        for col in range(6)
    ]
    assert int(np.argmax(cost)) == 5 * 6


@pytest.mark.parametrize("share", SHARES)
def test_a_share_is_one_of_all_reports(share: float) -> None:
    n = forged_number(100_000, share)
    assert n / (100_000 + n) == pytest.approx(share, abs=1e-5)


def test_forgeries_move_the_map_and_only_coarse_ones_are_noticed() -> None:
    table = response_table("dam", 3.5, CELLS)
    found = played(places(CELLS, None)["normal"], table, 20_000, np.random.default_rng(3))
    assert not found.alarms
    coarse = found.forged[("unrandomised", CORNER), 0.05]
    careful = found.forged[("drawn", CORNER), 0.05]
    assert coarse.noticed
    assert not careful.noticed
    for outcome in (coarse, careful):
        assert 0.03 < outcome.added < 0.1
        assert outcome.moved > found.error
        # By the triangle inequality, with the share of everything that is off.
        assert outcome.error <= outcome.moved + found.error + 1e-9
    assert found.forged[("drawn", CORNER), 0.001].moved < careful.moved


def cities(folder: Path) -> Path:
    rng = np.random.default_rng(1)
    for name, (south, west, side) in ((CHICAGO, CHICAGO_SQUARE), (NEW_YORK, NEW_YORK_SQUARE)):
        at = np.array([south, west]) + side * rng.random((50, 2))
        with gzip.open(folder / name, "wt") as stream:
            stream.write("\n".join(["lat,lon", *(f"{y:.5f},{x:.5f}" for y, x in at)]) + "\n")
    return folder


def test_the_command_writes_a_line_for_every_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    (docs / "experiments").mkdir(parents=True)
    page = docs / "experiments" / "forged-reports.md"
    page.write_text("before\n<!-- forged-reports -->\n<!-- /forged-reports -->\nafter\n")
    monkeypatch.setattr(module, "DOCS", docs)
    monkeypatch.setattr(module, "CELLS", 6)
    monkeypatch.setattr(module, "PEOPLE", (300,))
    monkeypatch.setattr(module, "EPSILONS", (6.0,))
    given = ["--data", str(cities(tmp_path)), "--repeats", "2", "--write"]
    result = CliRunner().invoke(forged_reports, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    text = generated(docs, "forged-reports.md").read_text()
    assert text.startswith(head("forged-reports"))
    assert "Maps: normal, szipf, mnormal, chicago, new york, city; 2 collections on each." in text
    assert "nan" not in text
    lines = re.findall(r"^\| (?:dam|huem) \| 300 \| 6 \|", text, re.M)
    assert len(lines) == 2 * (1 + len(KINDS) * len(SHARES))
    assert re.search(r"False alarms: \d+ of 24 in all", text)
    summary = page.read_text()
    assert summary.count("\n| unrandomised, far corner, ") == len(SHARES)
    assert summary.endswith(" |\n<!-- /forged-reports -->\nafter\n")


def test_the_page_in_the_docs_is_of_all_settings_and_its_summary_is_in_the_study() -> None:
    text = generated(DOCS, "forged-reports.md").read_text()
    every = len(MECHANISMS) * len(PEOPLE) * len(EPSILONS)
    assert len(re.findall(r"^\| (?:dam|huem) \|", text, re.M)) == every * (
        1 + len(KINDS) * len(SHARES)
    )
    study = (DOCS / "experiments" / "forged-reports.md").read_text()
    block = study[study.index("<!-- forged-reports -->") : study.index("<!-- /forged-reports -->")]
    assert len(re.findall(r"^\| \w.*%", block, re.M)) == len(KINDS) * len(SHARES)
    assert f"unrandomised, {CROWD}, " in block
