"""The recommended release against its rivals, on a small folder of invented data."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.generated import generated
from experiments.sources import CHICAGO, CHICAGO_SQUARE, NEW_YORK, NEW_YORK_SQUARE
from experiments.studies import better_default as module
from experiments.studies.better_default import BASELINE, OURS, RIVALS, Case, Outcome, better_default
from experiments.tables import DOCS
from ldpspatial.release.local import Dam, Disk


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hundred points a city, in the columns of the real files."""
    folder = tmp_path_factory.mktemp("data")
    files = ((CHICAGO, CHICAGO_SQUARE), (NEW_YORK, NEW_YORK_SQUARE))
    for name, (south, west, side) in files:
        at = np.array([south, west]) + side * np.random.default_rng(1).beta(3, 2, (300, 2))
        with gzip.open(folder / name, "wt") as stream:
            stream.write("\n".join(["lat,lon", *(f"{y:.5f},{x:.5f}" for y, x in at)]) + "\n")
    return folder


def test_the_command_runs_resumes_and_writes_the_docs(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DOCS", tmp_path)
    monkeypatch.setattr(module, "CELLS", (5,))
    monkeypatch.setattr(module, "EPSILONS", (3.5,))
    monkeypatch.setattr(module, "RIVALS", dict.fromkeys(RIVALS, Dam()))
    monkeypatch.setattr("os.fsync", lambda _: None)  # no power cut here, and many runs
    page = tmp_path / "recommended.md"
    page.write_text("Before.\n<!-- better-default -->\n<!-- /better-default -->\nAfter.\n")
    given = ["--data", data, "--out", tmp_path / "out", "--users", 400, "--jobs", 1, "--write"]
    first = CliRunner().invoke(better_default, [*map(str, given), "--repeats", "1"])
    assert first.exit_code == 0, first.output
    held = page.read_text()
    assert "over 10 settings" in held
    assert generated(tmp_path, "recommended.png").stat().st_size > 5_000
    kept = {path: path.stat().st_size for path in (tmp_path / "out").rglob("runs.jsonl")}
    assert len(kept) == 5
    again = CliRunner().invoke(better_default, [*map(str, given), "--repeats", "1"])
    assert again.exit_code == 0
    assert page.read_text() == held
    assert {path: path.stat().st_size for path in kept} == kept


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    given = ["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--quick", "--repeats", "1"]
    settings = [*given, "--users", "100"]
    result = CliRunner().invoke(better_default, settings)
    assert result.exit_code != 0
    assert "--data must hold" in result.output


def outcome(ours: float, **rivals: float) -> Outcome:
    errors = dict.fromkeys(RIVALS, 9.0) | {BASELINE: 1.0, OURS: ours} | rivals
    spread = np.array([0.99, 1.0, 1.01])  # the same people are hard for all
    runs = {label: error * spread for label, error in errors.items()}
    return Outcome(Case("normal", 15, 3.5, 100), runs, Disk(squared_radius=5))


def test_the_numbers_that_were_asked_for() -> None:
    near, sieved = outcome(0.5), outcome(0.8, **{"dam, sieve": 0.7})
    text = module.summary([near, sieved])
    assert "over 2 settings, 3 repeats: 36.8% ± 0.0% below" in text  # 1 - sqrt(.5 * .8)
    assert "in 50% of the settings, ahead of it in 50%; behind by more than 10% beyond" in text
    assert "in 1 settings. In 100% within 10% of the best rival that has not" in text
    assert sieved.best_rival == "dam, sieve"
    assert sieved.behind == pytest.approx(8 / 7)
    assert "0.700 | 0.800 | yes |" in module.far_behind([near, sieved])
    assert module.far_behind([near]) == "No rival was ahead by more than 10 % in any setting."


def test_a_lead_is_beyond_chance_only_with_its_interval_beyond_ten_per_cent() -> None:
    sieved = outcome(0.8, **{"dam, sieve": 0.7})
    noisy = {**sieved.runs, OURS: np.array([0.5, 0.8, 1.1])}
    unsure = Outcome(sieved.case, noisy, sieved.release)
    assert unsure.behind == pytest.approx(8 / 7)
    assert not unsure.is_far_behind
    assert "0.700 | 0.800 | no |" in module.far_behind([unsure])
    assert "in 0 settings" in module.summary([unsure])
    few = Outcome(sieved.case, {**sieved.runs, "dam, sieve": np.array([0.69, 0.7])}, sieved.release)
    assert few.is_far_behind  # fewer repeats of a slow rival: the pairs that there are
    one = Outcome(sieved.case, {label: runs[:1] for label, runs in sieved.runs.items()}, Disk())
    assert "1 repeats: 20.0% below" in module.summary([one])
    assert not one.is_far_behind


def test_the_best_estimator_is_that_of_each_map() -> None:
    first = outcome(0.5, **{"dam, sieve": 0.2, "dam, em (scaled stop)": 0.8})
    second = outcome(0.5, **{"dam, sieve": 0.8, "dam, em (scaled stop)": 0.2})
    row = module.by_setting([first, second]).splitlines()[-1]
    assert row.split(" | ")[6:8] == ["0.50", "0.200"]


def test_the_docs_have_a_place_for_it() -> None:
    assert "<!-- better-default -->" in (DOCS / "recommended.md").read_text()
