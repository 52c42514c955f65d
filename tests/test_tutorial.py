"""The tutorial, run: every block in order, in one empty folder, and what comes out as it quotes."""

import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.pages import BLOCK, run

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e-\d+)?")

# How far each number of a line may be from the one that the page quotes, by what the block begins
# with and a word of the line. All others must be equal. Reports are drawn from the operating
# system: over 30 runs the standard deviation was 0.3 points for the share and those of cells inside
# and touched, 0.8 for its bounds, and 0.03 cells for W2, so a false alarm is rarer than one in 1e6.
TOLERANCES = {
    ("ldpspatial estimate", "satellite town"): (100, 100, 100, 50, 100, 100),  # fifty: any
    ("ldpspatial simulate", "exact W2"): (0.25, 150),
    ("ldpspatial simulate", "check"): (1,),
    ("ldpspatial ranges", "satellite town"): (5, 5, 5, 1500, 5, 5),
}
SEEDED = "ldpspatial plan", 0.1  # the same maps and reports everywhere; rounding may move a stop


@dataclass(frozen=True)
class Step:
    """A block of the page, what it printed, and what the page says that it prints."""

    block: str
    printed: str
    quoted: str


def play(folder: Path) -> list[Step]:
    """Run the page."""
    found = []
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    for place, (language, block) in enumerate(blocks):
        if language == "text":
            continue
        after = blocks[place + 1] if place + 1 < len(blocks) else ("", "")
        printed = run(language, block, folder)
        found.append(Step(block, printed, after[1] if after[0] == "text" else ""))
    return found


def matches(block: str, quoted: str, printed: str) -> bool:
    """Tell whether two lines have the same words, and numbers within the tolerance."""
    if NUMBER.sub("#", quoted).split() != NUMBER.sub("#", printed).split():
        return False
    said, found = numbers(quoted), numbers(printed)
    command, share = SEEDED
    allowed = [0.0] * len(said)
    if block.startswith(command):  # of two repeats, standard errors say little
        chance = [quoted[: at.start()].endswith("± ") for at in NUMBER.finditer(quoted)]
        allowed = [
            (1.0 if is_error else share) * n for n, is_error in zip(said, chance, strict=True)
        ]
    for (begin, word), tolerances in TOLERANCES.items():
        if block.startswith(begin) and word in quoted:
            allowed = list(tolerances)
    return all(abs(a - b) <= most for a, b, most in zip(said, found, allowed, strict=True))


def same_lines(block: str, quoted: list[str], printed: list[str]) -> bool:
    """Tell whether lines match in order; three dots stand for lines that are left out, or none."""
    if not quoted:
        return not printed
    if quoted[0].strip() == "...":
        rests = range(len(printed) + 1)
        return any(same_lines(block, quoted[1:], printed[skipped:]) for skipped in rests)
    first = bool(printed) and matches(block, quoted[0], printed[0])
    return first and same_lines(block, quoted[1:], printed[1:])


def numbers(line: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(line)]


def test_lines_are_told_apart() -> None:
    share = "  satellite town  11.05%  10.60%  14.04%    3314    9.99% to 12.16%"
    assert matches("ldpspatial ranges", share, share.replace("11.05", "11.9").replace("  ", " "))
    assert not matches("ldpspatial ranges", share, share.replace("11.05", "17.0"))
    assert not matches("ldpspatial ranges", share, share.replace("town", "city"))
    assert not matches("ldpspatial estimate", "50 reports", "51 reports")
    fits = "  check  the counts fit this collection (p = 0.56)"
    assert matches("ldpspatial simulate", fits, fits.replace("0.56", "1.2e-05"))
    assert not matches("ldpspatial simulate", fits, fits.replace("fit", "do not fit"))
    assert matches("ldpspatial plan", "W2 205 m", "W2 206 m")
    assert not matches("ldpspatial plan", "W2 205 m", "W2 230 m")


@pytest.mark.slow
def test_the_page_does_what_it_says(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """Playing the page takes most of a minute, so it is played once for all that is to be seen."""
    steps = play(tmp_path)
    for check in (
        check_blocks_print_what_the_page_quotes,
        check_every_file_that_the_page_names_is_there,
        check_the_interval_covers_the_truth_that_the_page_knows,
        check_both_estimates_count_every_device_and_nothing_is_found_wrong,
    ):
        with subtests.test(check.__name__):
            check(steps, tmp_path)


def check_blocks_print_what_the_page_quotes(steps: list[Step], _: Path) -> None:
    assert sum(bool(step.quoted) for step in steps) == 6
    for step in steps:
        printed = [line for line in step.printed.splitlines() if line]
        quoted = step.quoted.splitlines()
        assert not quoted or same_lines(step.block, quoted, printed), step.printed


def check_every_file_that_the_page_names_is_there(_: list[Step], folder: Path) -> None:
    results = ["heatmap.png", "estimate.npz", "estimate.csv", "estimate.geojson", "summary.json"]
    files = ["people.csv", "district.geojson", "collection.json", "devices.jsonl", "shares.csv"]
    files += [f"{out}/{name}" for out in ("few", "result") for name in results]
    assert [name for name in files if not (folder / name).stat().st_size] == []
    assert len(list((folder / "devices").iterdir())) == 50
    (feature,) = json.loads((folder / "shares.geojson").read_text())["features"]
    assert feature["properties"]["name"] == "satellite town"


def check_the_interval_covers_the_truth_that_the_page_knows(
    steps: list[Step], folder: Path
) -> None:
    """Stretched three times about its middle, the interval misses less often than once in 1e6.

    At 95 % it is 1.96 standard errors to each side, so 5.9 then, of which the cut cells take 0.2.
    As it is it leaves out 0 and twice the share, by six standard errors of the wider of the two
    that the page tells of.
    """
    truth = numbers(steps[0].printed)[0] / 100
    with (folder / "shares.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    lower, upper = float(row["lower"]), float(row["upper"])
    middle, reach = (lower + upper) / 2, 3 * (upper - lower) / 2
    assert abs(truth - middle) <= reach
    assert lower > 0
    assert upper < 2 * truth
    assert f"{lower:.2%}  {upper:.2%}" in steps[-1].printed


def check_both_estimates_count_every_device_and_nothing_is_found_wrong(
    _: list[Step], folder: Path
) -> None:
    few, result = (
        json.loads((folder / out / "summary.json").read_text()) for out in ("few", "result")
    )
    assert (few["n"], result["n"]) == (50, 30_000)
    assert result["fit"]["plausible"]
    assert few["collection"] in PAGE.read_text(encoding="utf-8")
