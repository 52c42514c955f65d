"""The walk of docs/recommended.md: its commands run as printed, and devices can report."""

import csv
import shlex
from pathlib import Path

import pytest

from client_sdk import Collection, Randomizer
from tests.support.command_line import refusal, succeed

PAGE = Path(__file__).parents[3] / "docs" / "recommended.md"
FIELDS = ("id", "row", "col", "collection")


def test_the_walk_runs_from_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shell = PAGE.read_text(encoding="utf-8").split("```sh\n")[1].split("```")[0]
    commands = [shlex.split(line, comments=True) for line in shell.replace("\\\n", "").splitlines()]
    assert [words[1] for words in commands] == ["plan", "simulate", "estimate", "collection"]
    for name, *arguments in commands:
        assert name == "ldpspatial"
        succeed(*arguments)
    assert Path("map", "estimate.npz").is_file()
    other = refusal("estimate", "noon.json", "result/reports.parquet", "--out", "noon")
    assert "collection" in other

    collection = Collection.from_json(Path("noon.json").read_text(encoding="utf-8"))
    device = Randomizer(collection)
    with Path("reports.csv").open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(FIELDS)
        for k in range(50):
            report = device.report(52.52 + k / 1000, 13.405)
            table.writerow(getattr(report, field) for field in FIELDS)
    succeed("estimate", "noon.json", "reports.csv", "--rule", "cross-validated", "--out", "noon")
