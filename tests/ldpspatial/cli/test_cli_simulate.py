"""``ldpspatial simulate``: files of positions in, files of results out."""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from client_sdk import Collection, response_table
from ldpspatial import recommended
from ldpspatial.cli.output import RESULTS
from ldpspatial.collecting.counting import count_reports
from ldpspatial.metrics import wasserstein
from tests.support.command_line import people, refusal, run, succeed, write_people
from tests.support.files import write_file

FIVE_CELLS = ("--cells", 5, "--epsilon", 2)
QUICK = ("--intervals", "none", "--estimator", "em")
PLAY = (*FIVE_CELLS, "--radius", 1, *QUICK)
SQUARE = ("--center", "48,11", "--side-km", 4)


def simulate(out: Path, *arguments: object) -> dict[str, Any]:
    succeed("simulate", *arguments, "--out", out)
    return summary_of(out)


def summary_of(out: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return document


def test_all_files_are_written_and_speak_of_one_collection(tmp_path: Path) -> None:
    out = tmp_path / "out"
    file = write_people(tmp_path / "visits.csv")
    found = simulate(out, file, *FIVE_CELLS, *SQUARE)
    assert sorted(p.name for p in out.iterdir()) == sorted(RESULTS)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
    collection = Collection.from_json((out / "collection.json").read_text(), found["collection"])
    assert collection.name == "visits.csv"
    counted = count_reports(out / "reports.parquet", collection)
    assert counted.ids_checked
    assert counted.n == found["n"]
    with np.load(out / "estimate.npz", allow_pickle=False) as npz:
        np.testing.assert_array_equal(npz["counts"], counted.counts)
        density = npz["density"]
        assert {"lower", "upper"} <= set(npz)
    table = np.genfromtxt(out / "estimate.csv", delimiter=",", names=True)
    np.testing.assert_array_equal(table["density"].reshape(5, 5), density)
    features = json.loads((out / "estimate.geojson").read_text())["features"]
    assert [f["properties"]["density"] for f in features] == density.ravel().tolist()
    assert (out / "heatmap.png").read_bytes().startswith(b"\x89PNG")


def test_the_summary_holds_what_was_asked_for_and_what_came_out(tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = simulate(out, write_people(tmp_path / "visits.csv"), *FIVE_CELLS, *SQUARE)
    collection = Collection.from_json((out / "collection.json").read_text())
    grid = collection.grid
    inside = [grid.cell(*at) for at in people().tolist() if grid.contains(*at)]
    truth = np.zeros((5, 5))
    np.add.at(truth, tuple(np.array(inside).T), 1 / len(inside))
    with np.load(out / "estimate.npz", allow_pickle=False) as npz:
        error = wasserstein(truth, npz["density"])
    assert found["n"] == len(inside)
    assert found["outside"] == 300 - len(inside) > 0
    assert (found["epsilon"], found["cells"], found["missing"]) == (2, 5, 0)
    assert found["radius"] == collection.table.radius
    assert found["claim"]["epsilon_of_ratio"] <= 2
    assert found["w2_cells"] == pytest.approx(error, rel=1e-12)
    assert found["w2_metres"] == pytest.approx(800 * error, rel=1e-4)
    assert found["w2_note"] is None
    assert set(found["seconds"]) == {"randomise", "estimate", "exact error", "intervals", "all"}


@pytest.mark.parametrize(
    ("name", "columns", "mark"),
    [
        ("visits.csv", ("Latitude", " LON "), ","),
        ("visits.csv.gz", ("lat", "lng"), ","),
        ("visits.tsv", ("y", "x"), "\t"),
        ("semicolons.csv", ("Breite °", "Länge (O)"), ";"),
        ("visits.parquet", ("φ", "the longitude"), None),
    ],
)
def test_any_table_with_any_names_is_read(
    name: str, columns: tuple[str, str], mark: str | None, tmp_path: Path
) -> None:
    file = tmp_path / name
    if mark is None:
        pq.write_table(pa.table(dict(zip(columns, people().T, strict=True))), file)
    else:
        plain = write_people(tmp_path / "plain", columns, mark)
        write_file(tmp_path, name, plain.read_bytes())
    usual = columns[0].strip().lower() in ("latitude", "lat", "y")
    named = () if usual else ("--lat", columns[0], "--lon", columns[1])
    found = simulate(tmp_path / "out", file, *PLAY, *named)
    assert (found["n"], found["outside"]) == (300, 0)  # the fitted square holds everybody


@pytest.mark.parametrize(
    ("square", "sizes"),
    [
        (SQUARE, {"cell_height_m": 800, "cell_width_m": 800}),
        (("--bounds", "47.9,10.9,0.2"), {"cell_height_m": 4447.8, "cell_width_m": 2984.5}),
        (("--plane", "47.9,10.9,0.2"), {"cell_height": 0.04, "cell_width": 0.04}),
    ],
    ids=["center", "bounds", "plane"],
)
def test_a_square_can_be_given_in_three_ways(
    square: tuple[object, ...], sizes: dict[str, float], tmp_path: Path
) -> None:
    found = simulate(tmp_path / "out", write_people(tmp_path / "visits.csv"), *PLAY, *square)
    assert {name: found[name] for name in sizes} == pytest.approx(sizes, rel=1e-3)
    assert (found["w2_metres"] is None) == (square[0] == "--plane")


def test_a_map_brings_its_own_square_and_people(tmp_path: Path) -> None:
    found = simulate(tmp_path / "out", "--map", "szipf", "--people", 500, *PLAY)
    assert (found["n"], found["outside"], found["cell_width"]) == (500, 0, 0.2)


def test_a_disk_may_have_a_real_radius(tmp_path: Path) -> None:
    arguments = ("--map", "szipf", "--people", 500, *FIVE_CELLS, *QUICK)
    disk = ("--mechanism", "disk", "--squared-radius", 5)
    found = simulate(tmp_path / "out", *arguments, *disk)
    table = Collection.from_json((tmp_path / "out" / "collection.json").read_text()).table
    assert table == response_table("disk", 2, 5, squared_radius=5)
    assert (found["mechanism"], found["radius"], found["n"]) == ("disk", 2, 500)


@pytest.mark.parametrize("squared", [5, 8])
def test_disks_of_one_reach_are_told_apart(squared: int, tmp_path: Path) -> None:
    arguments = ("--map", "szipf", "--people", 50, *FIVE_CELLS, *QUICK)
    disk = ("--mechanism", "disk", "--squared-radius", squared)
    text = succeed("simulate", *arguments, *disk, "--out", tmp_path / "disk").stdout
    assert f"disk, disk radius 2, squared radius {squared} ({squared**0.5:.2f} cells)\n" in text
    found = summary_of(tmp_path / "disk")
    assert (found["radius"], found["squared_radius"]) == (2, squared)
    assert simulate(tmp_path / "dam", *arguments, "--mechanism", "dam")["squared_radius"] is None


def test_a_disk_may_have_the_recommended_radius(tmp_path: Path) -> None:
    arguments = ("--map", "szipf", "--people", 500, *FIVE_CELLS, *QUICK)
    found = simulate(tmp_path / "out", *arguments, "--for-users", 10_000)
    release = recommended(cells=5, epsilon=2, n_users=10_000)
    table = response_table("disk", 2, 5, squared_radius=release.squared_radius)
    assert Collection.from_json((tmp_path / "out" / "collection.json").read_text()).table == table
    assert found["squared_radius"] == table.squared_radius
    assert found["mechanism"] == "disk"
    own = simulate(tmp_path / "own", *arguments)
    assert own["squared_radius"] == recommended(cells=5, epsilon=2, n_users=500).squared_radius


def test_all_choices_may_be_those_of_a_document(tmp_path: Path) -> None:
    points = write_file(tmp_path, "p.csv", "lat,lon\n" + "48.01,11.02\n" * 50)
    document = tmp_path / "c.json"
    square = ("--center", "48.0,11.0", "--side-km", 12, "--cells", 5, "--epsilon", 2)
    succeed("collection", "new", "noon", *square, "--out", document)
    asked = ("simulate", points, "--collection", document, "--out", tmp_path / "r", "--overwrite")
    succeed(*asked)
    assert (tmp_path / "r" / "collection.json").read_bytes() == document.read_bytes()
    assert summary_of(tmp_path / "r")["n"] == 50
    for more in (("--cells", 5), ("--epsilon", 2), ("--mechanism", "disk"), ("--side-km", 12)):
        assert refusal(*asked, *more) == f"--collection takes the place of {more[0]}."
    assert "takes the place of --map" in refusal(*asked, "--map", "normal")
    assert "--collection needs a file of POINTS." in refusal("simulate", *asked[2:])
    assert "Missing option '--epsilon'" in refusal("simulate", points, "--out", tmp_path / "s")


def test_another_estimator_may_be_asked_for(tmp_path: Path) -> None:
    arguments = ("--map", "normal", "--people", 500, *FIVE_CELLS, "--rule", "likelihood")
    found = simulate(tmp_path / "out", *arguments)["estimator"]
    assert (found["rule"], found["smoothing"]) == ("likelihood", "none")


def test_everybody_in_one_place_still_gives_a_square(tmp_path: Path) -> None:
    file = write_file(tmp_path, "one.csv", "lat,lon\n48,11\n48,11\n")
    found = simulate(tmp_path / "out", file, *PLAY)
    assert found["n"] == 2
    assert found["cell_height_m"] == pytest.approx(1, rel=0.01)


def test_people_outside_are_left_out_or_moved_to_the_edge(tmp_path: Path) -> None:
    file = write_people(tmp_path / "visits.csv")
    dropped = simulate(tmp_path / "drop", file, *PLAY, *SQUARE)
    kept = simulate(tmp_path / "edge", file, *PLAY, *SQUARE, "--outsiders", "nearest")
    assert dropped["outside"] == kept["outside"] > 0
    assert (dropped["n"] + dropped["outside"], kept["n"]) == (300, 300)
    told = succeed(
        "simulate", file, *PLAY, *SQUARE, "--outsiders", "nearest", "--out", tmp_path / "told"
    ).stdout
    assert re.search(f"moved to the edge +{kept['outside']} outside", told)


def test_rows_without_a_position_are_left_out_on_request_and_counted(tmp_path: Path) -> None:
    file = write_file(tmp_path, "gaps.csv", "lat,lon\n48,11\n,11\n48,NaN\n48.01,11.01\n")
    found = simulate(tmp_path / "out", file, *PLAY, "--on-missing", "drop")
    assert (found["n"], found["missing"]) == (2, 2)


def test_a_grid_too_fine_for_the_exact_distance_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = importlib.import_module("ldpspatial.cli.simulate")
    assert command.EXACT_CELLS == 256  # type: ignore[attr-defined]
    monkeypatch.setattr(command, "EXACT_CELLS", 4)
    found = simulate(tmp_path / "out", "--map", "normal", "--people", 500, *PLAY)
    assert (found["w2_cells"], found["w2_metres"]) == (None, None)
    assert found["w2_note"] == "exact W2 is computed up to 4 cells a side"


def test_a_quick_look_at_a_fine_grid_has_no_intervals(tmp_path: Path) -> None:
    arguments = ("--map", "normal", "--people", 50, "--cells", 66, "--epsilon", 7)
    simulate(tmp_path / "out", *arguments, "--estimator", "em")
    with np.load(tmp_path / "out" / "estimate.npz", allow_pickle=False) as npz:
        assert "lower" not in npz


def test_a_disk_of_one_cell_is_warned_of_once_on_standard_error(tmp_path: Path) -> None:
    arguments = ("--map", "normal", "--people", 50, "--cells", 4, "--epsilon", 3.5)
    arguments += ("--mechanism", "dam")
    result = run("simulate", *arguments, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: the disk radius is 0 at epsilon 3.5 and 4 cells")
    assert result.stderr.count("\n") == 1
    assert "Warning" not in result.stdout


@pytest.mark.parametrize(
    "name",
    [
        "two  spaces",
        'it\'s "quoted"',
        "Zürich 東京 😀",
        "[b] :smile:",
        r"$\frac$ 5",
        "a%sb{c}",
        "#",
    ],
)
def test_any_path_works_and_names_the_collection(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    file = write_people(folder / f"{name}.csv")
    result = succeed("simulate", file, *PLAY, "--out", folder / "out")
    assert f"Written to {folder / 'out'}: see heatmap.png\n" in result.stdout
    assert Collection.from_json((folder / "out" / "collection.json").read_bytes().decode())
    shown = succeed("collection", "show", folder / "out" / "collection.json").stdout
    assert shown.startswith(" ".join(name.split()))


def test_a_file_name_that_no_collection_may_have_is_cut_to_one(tmp_path: Path) -> None:
    file = write_people(tmp_path / f" line\nbr\u200beak  {'n' * 220}.csv")
    simulate(tmp_path / "out", file, *PLAY)
    text = (tmp_path / "out" / "collection.json").read_text()
    assert Collection.from_json(text).name == f"linebreak {'n' * 190}"
