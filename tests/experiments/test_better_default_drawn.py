"""The recommended release in settings drawn at random, on a small folder of invented data."""

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.cities import HELD_BACK, MORE, TUNED
from experiments.generated import generated
from experiments.studies import better_default_drawn as module
from experiments.studies.better_default import SIDES, Case
from experiments.studies.better_default_drawn import DRAWS, better_default_drawn, drawn
from tests.support.invented_cities import write_cities


def test_settings_are_drawn_from_the_middle_and_from_cities_held_back() -> None:
    cases = drawn(DRAWS, 1)
    pairs = Counter((case.map, case.cells) for case in cases)
    assert set(pairs) == {(name, side) for name in (*HELD_BACK, *MORE) for side in SIDES}
    assert set(pairs.values()) == {7}
    assert not {case.map for case in cases} & set(TUNED)
    assert all(2_000 <= case.users <= 200_000 and 0.5 <= case.epsilon <= 6 for case in cases)
    assert sum(case.users < 20_000 for case in cases) == pytest.approx(DRAWS / 2, abs=31)  # 4 sd
    assert drawn(DRAWS, 1) == cases != drawn(DRAWS, 2)


@pytest.mark.usefixtures("short_chains")
def test_the_command_runs_resumes_and_writes_the_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_cities(tmp_path / "data")
    cases = [Case("austin", 5, 2_000, 3.5), Case("seattle", 5, 30_000, 1.0)]
    monkeypatch.setattr(module, "drawn", lambda draws, seed: cases)
    monkeypatch.setattr(module, "DOCS", tmp_path)
    page = tmp_path / "recommended.md"
    page.write_text("<!-- better-default-drawn -->\n<!-- /better-default-drawn -->\n")
    given = ["--data", data, "--out", tmp_path / "out", "--jobs", 1, "--write"]
    first = CliRunner().invoke(better_default_drawn, [*map(str, given)])
    assert first.exit_code == 0, first.output
    held = page.read_text()
    assert held.count("\n| all | 2 |") == held.count("\n| eps below 2 | 1 |") == 1
    assert "seattle" not in held
    by_map = generated(tmp_path, "better-default-drawn.md").read_text()
    assert by_map.count("\n| seattle | 1 |") == by_map.count("\n| austin | 1 |") == 1
    monkeypatch.setattr(module, "play", int)  # nothing is played again: it would fail
    assert CliRunner().invoke(better_default_drawn, [*map(str, given)]).exit_code == 0
    assert page.read_text() == held
