"""The commands on central heat maps, on small files of the real layout."""

import csv
import gzip
from collections.abc import Iterable
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from experiments.generated import generated, head
from experiments.papers.heatmaps.covid import covid
from experiments.papers.heatmaps.data import counties, gaze, weighted_cells
from experiments.papers.heatmaps.epsilon import heatmap_epsilon
from experiments.papers.heatmaps.examples import heatmap_examples
from experiments.papers.heatmaps.gaze import gaze_maps
from experiments.papers.heatmaps.plays import blocks_of, with_tops
from experiments.papers.heatmaps.resolution import heatmap_resolution
from experiments.papers.heatmaps.users import heatmap_users
from experiments.sources import COUNTIES, GAZE, GOWALLA
from ldpspatial.errors import InputError

PART_DEGREES = 50 / 300, 75 / 300  # height and width of a part of the United States


def write_table(path: Path, header: str, rows: Iterable[Iterable[object]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header.split(","))
        writer.writerows(rows)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with two cities, some counties and two images."""
    folder = tmp_path / "data"
    folder.mkdir()
    rng = np.random.default_rng(1)
    high, wide = PART_DEGREES
    corners = (180 * high, -135 + 150 * wide), (240 * high, -135 + 40 * wide)
    checkins = [
        (f"{user:02}", f"{south + high * y:.6f}", f"{west + wide * x:.6f}", 1 + user % 3, poi)
        for (south, west), users in zip(corners, (12, 10), strict=True)
        for user in range(users)
        for poi, (y, x) in enumerate(rng.uniform(0.1, 0.9, (4, 2)))
    ]
    write_table(folder / GOWALLA, "user,lat,lon,count,poi", checkins)
    places = [(41.0, -100.0, 7), (41.0, -100.0, 1), (24.0, -125.0, 3), (39.5, -75.0, 0)]
    places += [(0.0, 0.0, 9), (61.2, -149.9, 4)]
    columns = "fips,county,state,lat,lon,population,deaths_2020-03-01,deaths_2020-07-24"
    write_table(
        folder / COUNTIES,
        columns,
        (
            [k, f"County {k}", "State", lat, lon, 1000, 0, n]
            for k, (lat, lon, n) in enumerate(places)
        ),
    )
    looks: list[tuple[object, ...]] = [("00", 3, 0, 0.0, 0.0, 300), ("00", 3, 1, 561.9, 761.9, 100)]
    looks += [
        (f"{user:02}", image, 0, 281.0, 381.0, 250) for user in range(1, 6) for image in (3, 7)
    ]
    write_table(folder / GAZE, "user,image,order,x,y,dur_ms", looks)
    return folder


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the real docs."""
    monkeypatch.setattr("experiments.papers.heatmaps.plays.DOCS", tmp_path)
    return tmp_path


def succeed(command: click.Command, *arguments: object) -> str:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as stream:
        return list(csv.DictReader(stream))


SMALL = ("--repeats", 1, "--jobs", 1, "--write")


def test_metrics_over_epsilon(data: Path, docs: Path) -> None:
    arguments = ("--data", data, "--out", docs / "out", *SMALL)
    small = ("--side", 8, "--users", 8, "--places", 2)
    found = {}
    for sigma in (4, 0):
        shown = succeed(heatmap_epsilon, *arguments, *small, "--sigma", sigma)
        name = f"heatmap-epsilon-sigma-{sigma}"
        assert "2 places" in shown
        page = generated(docs, f"{name}.md").read_text()
        assert page.startswith(head(name))
        assert page.count("| EMD | sparse-emd |") == 1
        found[sigma] = rows_of(docs / "out" / f"{name}.csv")
        assert len(found[sigma]) == 2 * 6 * 5
        assert {float(row["sigma"]) for row in found[sigma]} == {float(sigma)}
    assert generated(docs, "heatmap-epsilon.png").exists()
    # One trial: the same users for every release and epsilon, and the same maps at every sigma.
    for place in ("place 01", "place 02"):
        assert len({row["people_seed"] for row in found[4] if row["data"] == place}) == 1
    assert [row["seed"] for row in found[4]] == [row["seed"] for row in found[0]]
    assert [row["w1"] for row in found[4]] != [row["w1"] for row in found[0]]


def test_a_command_goes_on_in_its_folder(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    small = ("--side", 8, "--repeats", 1, "--jobs", 1, "--out", out)
    succeed(heatmap_users, "--data", data, *small, "--users", 4)
    runs = out / "epsilon-1" / "place-01" / "runs.jsonl"
    before = runs.read_bytes()
    succeed(heatmap_users, "--data", data, *small, "--users", 4, "--users", 6)
    assert runs.read_bytes().startswith(before)
    assert len(rows_of(out / "heatmap-users.csv")) == 2 * 5


def test_metrics_over_users(data: Path, docs: Path) -> None:
    numbers = ("--users", 4, "--users", 12)
    shown = succeed(
        heatmap_users, "--data", data, "--out", docs / "out", *SMALL, "--side", 16, *numbers
    )
    assert "4 users | 12 users" in shown
    assert "± nan" not in shown  # one trial has no interval
    assert {row["users"] for row in rows_of(docs / "out" / "heatmap-users.csv")} == {"4", "12"}


def test_metrics_over_resolution(data: Path, docs: Path) -> None:
    sides = ("--side", 16, "--side", 32)
    shown = succeed(
        heatmap_resolution, "--data", data, "--out", docs / "out", *SMALL, "--users", 8, *sides
    )
    assert "D = 16 | D = 32" in shown
    rows = rows_of(docs / "out" / "heatmap-resolution.csv")
    assert {(row["cells"], row["sigma"]) for row in rows} == {("16", "0.25"), ("32", "0.5")}
    assert len({row["people_seed"] for row in rows}) == 1  # the same people at every resolution


def test_examples(data: Path, docs: Path) -> None:
    asked = ("--data", data, "--out", docs / "out", "--side", 16, "--users", 8)
    shown = succeed(heatmap_examples, *asked, "--place", 2, "--write")
    assert shown.count("| sparse-emd |") == 2
    assert generated(docs, "heatmap-examples.png").exists()
    again = succeed(heatmap_examples, *asked, "--place", 2)
    assert again == shown
    assert succeed(heatmap_examples, *asked) != shown  # the busiest place is another
    result = CliRunner().invoke(heatmap_examples, [*map(str, asked), "--place", "3"])
    assert result.exit_code == 1
    assert "the data hold 2 places with 8 users, not 3" in result.output


def test_covid(data: Path, docs: Path) -> None:
    sides = ("--side", 4, "--side", 8)
    shown = succeed(covid, "--data", data, "--out", docs / "out", *SMALL, *sides)
    assert "3 counties, 4 x 4 cells" in shown
    assert "1 at (0, 0), 1 outside the box, 1 without deaths" in shown
    assert {row["cells"] for row in rows_of(docs / "out" / "covid.csv")} == {"4", "8"}
    assert generated(docs, "covid-maps.png").exists()


def test_gaze(data: Path, docs: Path) -> None:
    asked = ("--data", data, "--out", docs / "out", *SMALL, "--pixels", 40)
    shown = succeed(gaze_maps, *asked)
    assert "2 images of 5 or 6 observers, 20 x 15 cells" in shown
    assert {row["data"] for row in rows_of(docs / "out" / "gaze.csv")} == {"image 003", "image 007"}
    same_weight = succeed(gaze_maps, *asked, "--weight", "fixations")
    assert same_weight != shown


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(covid, ["--data", str(tmp_path)])
    assert result.exit_code == 1
    assert result.output.startswith("Error: --data must hold jhu_covid")


def test_counties_stand_where_they_are_and_weigh_the_same(data: Path) -> None:
    found = counties(data)
    assert found.deaths.tolist() == [7, 1, 3]
    assert found.left_out == {"at (0, 0)": 1, "outside the box": 1, "without deaths": 1}
    people = found.on(2)  # 37 degrees north and 95.5 west are the middle of the box
    assert people.density.tolist() == [[1 / 3, 0.0], [2 / 3, 0.0]]  # 7 deaths count as 1 does
    assert people.visits.sum() == 11


def test_an_image_lies_upright_and_looks_weigh_what_they_last(data: Path) -> None:
    looks = gaze(data)
    people = looks.on(3, 6)
    assert people.shape == (127, 94)
    corners = people.distributions[0].toarray().reshape(people.shape)
    assert corners[126, 0] == 0.75  # x = y = 0 is the top left, the north-west
    assert corners[0, 93] == 0.25
    same = looks.on(3, 6, "fixations").distributions[0].toarray().reshape(people.shape)
    assert same[126, 0] == same[0, 93] == 0.5
    assert len(people) == 6
    assert people.density[(762 - 382) // 6, 281 // 6] == pytest.approx(5 / 6)
    assert len(looks.on(7, 6)) == 5  # who did not look at an image is no user of its map


@pytest.mark.parametrize(("x", "y"), [(-1, 3), (562, 3), (3, -1), (3, 762)])
def test_a_look_beside_the_image_is_refused(tmp_path: Path, x: float, y: float) -> None:
    write_table(tmp_path / GAZE, "user,image,order,x,y,dur_ms", [("00", 1, 0, x, y, 100)])
    with pytest.raises(InputError, match=r"inside its images, got 1 out"):
        gaze(tmp_path)


def test_cells_of_any_size_hold_the_whole_image(data: Path) -> None:
    looks = gaze(data)
    for pixels in (1, 4, 6, 7, 40, 762):
        people = looks.on(3, pixels)
        assert people.shape == (-(-762 // pixels), -(-562 // pixels))
        assert people.visits.sum() == 400 + 5 * 250


def test_visits_to_one_cell_add_up() -> None:
    found = weighted_cells(np.array([5, 5, 9]), np.array([1, 1, 3]), np.array([2, 3, 4]), (2, 2))
    assert found.visits.toarray().tolist() == [[0, 5, 0, 0], [0, 0, 0, 4]]


def test_releases_and_blocks() -> None:
    assert list(with_tops(0.01, 1)) == [
        "sparse-emd", "laplace", "laplace-top 0.01 %", "laplace-top 1 %"
    ]  # fmt: skip
    assert [blocks_of(shape) for shape in ((256, 256), (64, 64), (127, 94))] == [64, None, None]
