"""Local privacy beside claim and error: the command on few people, and the figure."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.generated import generated, head
from experiments.studies import attacks as module
from experiments.studies.attacks import BLIND, GEOS, SINGLE, TRAILS, Point, attacks, draw
from ldpspatial import releases
from ldpspatial.release.local import LocalRelease


def test_every_local_release_has_a_row() -> None:
    shown = [*SINGLE.values(), *TRAILS.values(), *(geo.release for geo in GEOS.values())]
    known = {name for name, each in releases().items() if isinstance(each, LocalRelease)}
    # The recommended release is a disk, of the radius that the number of users asks for.
    assert {release.name for release in shown} == known - {"recommended"}


def test_the_command_runs_resumes_and_writes_the_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs, out = tmp_path / "docs", tmp_path / "out"
    docs.mkdir()
    monkeypatch.setattr(module, "DOCS", docs)
    monkeypatch.setattr(module, "CELLS", 4)
    monkeypatch.setattr(module, "EPSILONS", (0.7, 5.0))
    given = ["--out", str(out), "--repeats", "2", "--users", "60", "--jobs", "1"]
    first = CliRunner().invoke(attacks, [*given, "--write"], catch_exceptions=False)
    assert first.exit_code == 0, first.output
    page = generated(docs, "attacks.md").read_text()
    assert generated(docs, "attacks.png").stat().st_size > 10_000
    assert page.startswith(head("attacks"))
    assert "nan" not in page
    promised, errors = page.split("## Local privacy and error")
    rows = errors.count("eps-LDP"), errors.count("geo-ind.")
    assert rows == (len(SINGLE) * 2, sum(len(geo.rates) for geo in GEOS.values()))
    assert all("NOT eps-LDP" in line for line in promised.splitlines() if "per cell" in line)
    assert "eps-LDP, per trajectory" in promised
    assert re.search(r"dam-points \| eps-LDP, per report", promised)
    runs = {p: p.read_bytes() for p in out.rglob("*.jsonl")}
    assert len(runs) == len(module.MAPS)
    again = CliRunner().invoke(attacks, given, catch_exceptions=False)
    assert again.output.split("| ", 1)[1] == first.output.split("| ", 1)[1]
    assert {p: p.read_bytes() for p in out.rglob("*.jsonl")} == runs


def test_the_figure_keeps_the_notions_apart() -> None:
    errors = dict.fromkeys(module.MAPS, np.array([0.3, 0.4]))
    points = [Point(label, label in GEOS, 1.0, 2.0, errors) for label in (*SINGLE, *GEOS)]
    figure = draw(points)
    for axes in figure.axes:
        lines = {line.get_label(): line for line in axes.get_lines()}
        for label in SINGLE:
            assert lines[label].get_linestyle() == "-"
            assert lines[label].get_markerfacecolor() != "white"
        for label in GEOS:
            assert lines[label].get_linestyle() == "--"
            assert lines[label].get_markerfacecolor() == "white"
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    notions = labels.index(module.LDP), labels.index(module.GEO)
    assert notions == (0, 1 + len(SINGLE))
    assert labels[1 : notions[1]] == list(SINGLE)
    assert labels[notions[1] + 1 :] == list(GEOS)
    caption = figure.texts[-1].get_text() if figure.texts else figure.get_supxlabel()
    assert "not a promise" in caption


def test_without_a_report_a_guess_is_half_a_map_off() -> None:
    assert pytest.approx(7.804, abs=1e-3) == BLIND
