"""``--support`` and ``--prior``: what is known of a place goes into its map, and is told."""

import json
from pathlib import Path

import numpy as np
import pytest

from ldpspatial.errors import InputError
from tests.support import command_line

SQUARE = ("--plane", "0,0,8", "--cells", "6", "--epsilon", "2")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    people = np.column_stack([rng.uniform(0, 8, 800), rng.uniform(0, 3.9, 800)])
    lines = [f"{y:.6f},{x:.6f}" for y, x in people]
    (tmp_path / "people.csv").write_text("\n".join(["y,x", *lines]) + "\n")
    (tmp_path / "land.csv").write_text("name,south,west,north,east\nwest,0,0,8,4\n")
    (tmp_path / "towns.csv").write_text("y,x,pop,rooms\n1,1,500,0\n7,3,400,3\n4,7,10,0\n")
    return tmp_path


def run(*arguments: object) -> tuple[int, str]:
    result = command_line.run(*arguments)
    return result.exit_code, result.output


def test_a_map_keeps_to_its_support_and_tells_what_its_prior_said(place: Path) -> None:
    out = place / "out"
    code, told = run(
        "simulate", place / "people.csv", *SQUARE, "--rule", "field", "--support",
        place / "land.csv", "--prior", place / "towns.csv", "--out", out,
    )  # fmt: skip
    assert code == 0, told
    found = json.loads((out / "summary.json").read_text())["estimator"]
    assert found["possible"] == 18
    assert "people can be in 18 of 36 cells" in told
    assert f"the public map to the power {found['exponent']:.2f}" in told
    assert found["exponent"] != 0
    with np.load(out / "estimate.npz") as file:
        assert file["density"][:, 3:].max() == 0
        assert file["upper"][:, 3:].max() == 0
    again = place / "again"
    code, told = run(
        "estimate", out / "collection.json", out / "reports.parquet", "--rule", "field", "--prior",
        place / "towns.csv", "--prior-column", "rooms", "--out", again,
    )  # fmt: skip
    assert code == 0, told
    found = json.loads((again / "summary.json").read_text())["estimator"]
    assert (found["possible"], found["exponent"] != 0) == (36, True)
    assert "people can be in" not in told
    assert "the public map to the power" in told


def test_a_support_without_the_people_is_told(place: Path) -> None:
    lines = "name,south,west,north,east\neast,0,4,8,8\n"  # all people are in the west
    (place / "sea.csv").write_text(lines)
    play = ("simulate", place / "people.csv", *SQUARE, "--intervals", "none")
    code, told = run(*play, "--support", place / "sea.csv", "--out", place / "out")
    assert code == 0
    assert "Warning: support leaves out people: the counts are explained " in told
    summary = json.loads((place / "out" / "summary.json").read_text())
    assert summary["estimator"]["outside"] > 10
    code, told = run(*play, "--support", place / "land.csv", "--out", place / "right")
    assert code == 0
    assert "Warning" not in told


def test_a_prior_of_the_same_reports_is_refused(place: Path) -> None:
    out = place / "out"
    quick = ("--estimator", "em", "--intervals", "none")
    code, told = run("simulate", place / "people.csv", *SQUARE, *quick, "--out", out)
    assert code == 0, told
    given = ("estimate", out / "collection.json", out / "reports.parquet")
    for name in ("estimate.npz", "estimate.csv", "estimate.geojson"):
        code, told = run(*given, "--prior", out / name, "--out", place / "again")
        assert code == 1
        assert "--prior must not be made of the reports that are estimated" in told
        assert not (place / "again").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--rule", "em", "--support", "land.csv"),
            "--support and --prior need --estimator field, robust or map-alone.",
        ),
        (("--rule", "field", "--prior-column", "pop"), "--prior-column needs --prior."),
        (("--rule", "field", "--prior-layer", "pop"), "--prior-layer needs --prior."),
        (("--rule", "field", "--support-layer", "pop"), "--support-layer needs --support."),
        (("--rule", "field", "--support", "land.csv", "--support-layer", "pop"), "got 'pop'"),
        (("--rule", "field", "--prior", "towns.csv", "--prior-layer", "pop"), "got 'pop'"),
        (("--rule", "field", "--prior", "none.csv"), "none.csv"),
        (
            ("--rule", "field", "--prior", "land.csv"),
            "--prior must hold places (latitude, longitude) or a number",
        ),
        (("--rule", "field", "--prior", "towns.csv", "--prior-column", "beds"), "'beds'"),
    ],
)
def test_side_information_that_cannot_be_used_is_refused(
    place: Path, options: tuple[str, ...], message: str
) -> None:
    files = [str(place / each) if each.endswith(".csv") else each for each in options]
    code, told = run("simulate", place / "people.csv", *SQUARE, *files, "--out", place / "out")
    assert code != 0
    assert message in " ".join(told.split())
    assert not (place / "out").exists()


def test_what_cannot_be_typed_is_not_advised() -> None:
    error = InputError("are they swapped, or is this a plane ({remedy})?", ("plane", True))
    assert error.with_options({}) == "are they swapped, or is this a plane?"
    assert error.with_options({"plane": "--plane"}) == str(error).replace("plane=True", "--plane")
