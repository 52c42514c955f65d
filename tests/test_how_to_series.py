"""The page on mapping a series, from an empty folder: its commands, as they are printed."""

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support.command_line import succeed

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "map-a-series.md"
PEOPLE = "4000"  # in place of the page's, for the sake of time
CELLS = "8"


def block(language: str) -> str:
    """Return the one block of the page in a language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (text,) = (text for name, text in found if name == language)
    return str(text)


@pytest.mark.slow
def test_the_page_leads_from_an_empty_folder_to_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("districts.csv").write_text(block(""))
    lines = block("sh").replace("\\\n", " ").splitlines()
    assert len(lines) == 4
    for line in lines:
        words = shlex.split(re.sub("--people [0-9]+", f"--people {PEOPLE}", line))
        words = [CELLS if before == "--cells" else word for before, word in
                 zip(["", *words], words, strict=False)]  # fmt: skip
        named = [sorted(map(str, Path().glob(word))) if "*" in word else [word] for word in words]
        program, *arguments = [word for several in named for word in several]
        assert program == "ldpspatial"
        text = succeed(*arguments).stdout
    assert "windows of one fit" in text
    with Path("changes.csv").open(encoding="utf-8", newline="") as stream:
        west, centre = csv.DictReader(stream)
    assert float(west["lower"]) <= float(west["change"]) <= float(west["upper"])
    assert centre["name"] == "centre"
    summary = json.loads(Path("week", "summary.json").read_text())
    assert summary["n"] == int(PEOPLE)
    assert [each["window"] for each in summary["windows"]] == list(range(1, 8))
    for name in re.findall(r"^\| `([\w.]+)`[^|]*\|", PAGE.read_text(), re.MULTILINE):
        assert Path("week", name).exists(), name
