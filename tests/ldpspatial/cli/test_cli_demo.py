"""``ldpspatial demo``: the first command that anybody runs."""

import json
import os
import socket
from pathlib import Path

import pytest

from ldpspatial.cli.output import RESULTS
from tests.support.command_line import succeed

SMALL = ("demo", "--people", 500, "--cells", 8)


def test_the_demo_runs_offline_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("this machine has no network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert "Written to demo-output: see heatmap.png\n" in succeed(*SMALL).stdout
        assert sorted(os.listdir("demo-output")) == sorted(RESULTS)
    assert os.listdir() == ["demo-output"]
    found = json.loads(Path("demo-output/summary.json").read_text())
    assert (found["n"], found["epsilon"], found["cells"]) == (500, 3.5, 8)
    assert found["w2_metres"] > 0


def test_the_options_of_the_demo_are_obeyed(tmp_path: Path) -> None:
    succeed(*SMALL, "--epsilon", 1.4, "--out", tmp_path / "private")
    found = json.loads((tmp_path / "private" / "summary.json").read_text())
    assert found["epsilon"] == 1.4
