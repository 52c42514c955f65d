"""``ldpspatial collection``: new documents, and documents of others."""

import os
from pathlib import Path

import pytest

from client_sdk import Collection, Grid, response_table
from ldpspatial import recommended
from tests.support.command_line import refusal, run, succeed

SQUARE = ("--center", "52.52,13.405", "--side-km", 20)
NEW = ("--cells", 15, "--epsilon", 3.5)
DISK = ("--mechanism", "disk")
DAM = ("--mechanism", "dam")


def test_a_new_document_is_that_of_its_parameters(tmp_path: Path) -> None:
    path = tmp_path / "berlin.json"
    options = ("--mechanism", "huem", "--radius", 4, "--max-reports", 3)
    result = succeed("collection", "new", "noon", *SQUARE, *NEW, *options, "--out", path)
    grid = Grid.from_center(52.52, 13.405, 20_000, 15)
    made = Collection.create("noon", grid, 3.5, "huem", 4, 3)
    assert path.read_bytes() == made.to_json().encode()
    assert f"  id            {made.digest}\n" in result.stdout
    assert "3.5-LDP per report (local), 10.5 per device and collection" in result.stdout
    assert result.stdout.endswith(f"Written to {path}\n")


def test_a_disk_may_have_a_real_radius(tmp_path: Path) -> None:
    path = tmp_path / "berlin.json"
    options = ("--mechanism", "disk", "--squared-radius", 13)
    result = succeed("collection", "new", "noon", *SQUARE, *NEW, *options, "--out", path)
    grid = Grid.from_center(52.52, 13.405, 20_000, 15)
    made = Collection.create("noon", grid, 3.5, "disk", squared_radius=13)
    assert path.read_bytes() == made.to_json().encode()
    assert "disk, disk radius 3 cells, 437 output cells" in result.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (4, "squared radius 4 (2.00 cells)"),
        (5, "squared radius 5 (2.24 cells)"),
        (7, "squared radius 5 (2.24 cells)"),  # the same cells
        (8, "squared radius 8 (2.83 cells)"),
    ],
)
def test_disks_of_one_reach_are_told_apart(given: int, said: str, tmp_path: Path) -> None:
    options = (*SQUARE, *NEW, *DISK, "--squared-radius", given, "--out", tmp_path / "c.json")
    text = succeed("collection", "new", "noon", *options).stdout
    assert f"output cells, {said}\n" in text
    assert "disk radius 2 cells" in text
    plain = succeed(
        "collection", "new", "c", *SQUARE, *NEW, *DAM, "--out", tmp_path / "dam.json"
    ).stdout
    assert "squared" not in plain


def test_the_radius_for_so_many_users_is_the_recommended_one(tmp_path: Path) -> None:
    path = tmp_path / "berlin.json"
    options = (*SQUARE, *NEW, "--for-users", 10_000, "--out", path)
    text = succeed("collection", "new", "noon", *options).stdout
    release = recommended(cells=15, epsilon=3.5, n_users=10_000)
    table = Collection.from_json(path.read_text()).table
    assert table == response_table("disk", 3.5, 15, squared_radius=release.squared_radius)
    assert "squared radius 5 (2.24 cells)" in text


@pytest.mark.parametrize(
    ("square", "grid"),
    [
        (("--bounds", "41.64,-87.90,0.36"), Grid.from_bounds(41.64, -87.90, 0.36, 15)),
        (("--plane", "-1,-2,3"), Grid.plane(-1, -2, 3, 15)),
    ],
)
def test_the_square_may_be_bounds_or_a_plane(
    square: tuple[str, ...], grid: Grid, tmp_path: Path
) -> None:
    path = tmp_path / "c.json"
    succeed("collection", "new", "c", *square, *NEW, "--out", path)
    assert Collection.from_json(path.read_text()).grid == grid


def test_show_repeats_what_new_showed(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    name = "[/b] :smile: $x 東京"
    made = succeed("collection", "new", name, *SQUARE, *NEW, "--out", path).stdout
    shown = succeed("collection", "show", path).stdout
    assert shown.startswith(f"{name}\n")
    assert made == f"{shown}Written to {path}\n"


def test_an_existing_file_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text("mine")
    for out in (path, tmp_path):
        error = refusal("collection", "new", "c", *SQUARE, *NEW, "--out", out)
        assert error == f"--out must be a new file, got {out}: documents never change"
    assert path.read_text() == "mine"


def test_a_disk_of_one_cell_is_warned_of_once(tmp_path: Path) -> None:
    arguments = (*SQUARE, "--cells", 4, "--epsilon", 3.5, "--out", tmp_path / "c.json")
    result = run("collection", "new", "c", *arguments, *DAM)
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: the disk radius is 0")
    assert result.stderr.count("\n") == 1
    assert succeed("collection", "show", tmp_path / "c.json").stdout.startswith("c\n")


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("c", *NEW), "Give the square: --center and --side-km, --bounds, or --plane."),
        (("", *SQUARE, *NEW), "NAME must be a text of 1 to 200 visible characters"),
        (("a\nb", *SQUARE, *NEW), "NAME must be a text of 1 to 200 visible characters"),
        (("c", *SQUARE, *NEW, "--max-reports", 0), "--max-reports must be a whole number from 1"),
        (("c", *SQUARE, "--cells", 15, "--epsilon", 0.1234567), "a whole number of millionths"),
        (
            ("c", *SQUARE, *NEW, *DAM, "--squared-radius", 5),
            "--squared-radius is for mechanism disk",
        ),
        (("c", *SQUARE, *NEW, *DISK, "--squared-radius", 901), "from 0 to 900, got 901"),
        (("c", *SQUARE, *NEW, *DISK, "--squared-radius", -1), "from 0 to 900, got -1"),
        (("c", *SQUARE, *NEW, *DISK, "--squared-radius", 2.5), "is not a valid integer"),
        (("c", *SQUARE, *NEW, *DISK, "--squared-radius", 4, "--radius", 2), "must not both be"),
        (("c", *SQUARE, "--cells", 15), "Missing option '--epsilon'"),
        (("c", *SQUARE, *NEW, *DISK, "--for-users", 9, "--radius", 0), "takes the place of"),
        (("c", *SQUARE, *NEW, *DISK, "--for-users", 9, "--squared-radius", 5), "takes the place"),
        (("c", *SQUARE, *NEW, *DISK, "--for-users", 0), "0 is not in the range 1<=x<="),
    ],
)
def test_bad_designs_are_refused_and_write_nothing(
    arguments: tuple[object, ...], rule: str, tmp_path: Path
) -> None:
    error = refusal("collection", "new", *arguments, "--out", tmp_path / "c.json")
    assert rule in error
    assert os.listdir(tmp_path) == []


def test_a_document_needs_a_folder_that_exists(tmp_path: Path) -> None:
    out = tmp_path / "no" / "c.json"
    error = refusal("collection", "new", "c", *SQUARE, *NEW, "--out", out)
    assert f"got {str(out)!r}: No such file or directory" in error
    assert os.listdir(tmp_path) == []
