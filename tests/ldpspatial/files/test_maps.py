"""read_map: what the project writes comes back, and what is no map is refused in one line."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from client_sdk import Grid
from ldpspatial.collecting.results import write_csv, write_geojson, write_npz
from ldpspatial.errors import InputError
from ldpspatial.files.map_place import Place
from ldpspatial.files.maps import CellMap, common_place, read_map
from tests.support.files import write_file
from tests.support.results import CITY, GRIDS, INTERVALS, RESULT, collection_on, result_on

WRITERS = ("npz", "csv", "geojson")
ROWS = "row,col,density\n0,0,1\n0,1,2\n1,0,3\n1,1,4\n"
SQUARE = [[1, 2], [3, 4]]


@pytest.fixture(params=GRIDS)
def grid(request: pytest.FixtureRequest) -> Grid:
    return GRIDS[request.param]


def written(folder: Path, grid: Grid, suffix: str) -> Path:
    """Write an estimate as the commands do."""
    path = folder / f"estimate.{suffix}"
    if suffix == "npz":
        counts = np.zeros((grid.cells + 2, grid.cells + 2))
        counts[1, 1] = 1  # a report from the corner
        write_npz(path, collection_on(grid), dataclasses.replace(result_on(grid), counts=counts))
    elif suffix == "csv":
        write_csv(path, grid, result_on(grid))
    else:
        write_geojson(path, grid, result_on(grid))
    return path


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_written_estimate_comes_back_to_the_bit_and_where_it_lies(
    suffix: str, grid: Grid, tmp_path: Path
) -> None:
    found = read_map(written(tmp_path, grid, suffix))
    np.testing.assert_array_equal(found.values, result_on(grid).density)
    if grid.cells == 1 and suffix == "csv":
        assert found.place is None  # one centre tells no size
        return
    assert found.place is not None
    assert found.place.kind == grid.kind
    assert found.place.unit == ("m" if grid.kind == "geographic" else "plane units")
    # Corners of cells in GeoJSON are rounded to 1e-7 of a degree.
    precision = 1e-12 if suffix == "npz" else 2e-7 * grid.cells / min(grid.height, grid.width) * 1e7
    assert found.place.cell_size(found.values.shape) == pytest.approx(
        grid.cell_size, rel=max(precision, 1e-9)
    )


def test_formats_of_one_estimate_lie_in_one_place(grid: Grid, tmp_path: Path) -> None:
    maps = [read_map(written(tmp_path, grid, suffix)) for suffix in WRITERS]
    for one in maps:
        for other in maps:
            assert common_place(one, other) in (one.place, other.place)


def test_other_columns_can_be_read(tmp_path: Path) -> None:
    write_npz(tmp_path / "e.npz", CITY, RESULT, INTERVALS)
    write_csv(tmp_path / "e.csv", CITY.grid, RESULT, INTERVALS)
    write_geojson(tmp_path / "e.geojson", CITY.grid, RESULT, INTERVALS)
    for suffix in WRITERS:
        found = read_map(tmp_path / f"e.{suffix}", "upper")
        np.testing.assert_array_equal(found.values, INTERVALS.upper)
    people = read_map(tmp_path / "e.geojson", "people").values
    np.testing.assert_array_equal(people, RESULT.density * RESULT.n)
    counts = read_map(tmp_path / "e.npz", "counts")  # with their margin, so not on the grid
    np.testing.assert_array_equal(counts.values, RESULT.counts)
    assert counts.place is None


def test_tables_of_other_programs(tmp_path: Path) -> None:
    table = pa_csv.read_csv(write_file(tmp_path, "a.csv", ROWS))
    pq.write_table(table.take(pa.array([2, 0, 3, 1])), tmp_path / "shuffled.parquet")
    texts = {
        "b.tsv": ROWS.replace(",", "\t"),
        "c.csv": ROWS.replace(",", ";"),
        "d.csv.gz": ROWS,
        "e.csv": "note, Density ,COL,Row\nx,1,0,0\nx,2,1,0\nx,3,0,1\nx,4,1,1\n",
        "matrix.csv": "1,2\n3,4\n",
        "matrix.tsv": "1.0\t2e0\n3\t4\n",
    }
    for name, text in texts.items():
        write_file(tmp_path, name, text)
    np.save(tmp_path / "array.npy", np.array(SQUARE, np.int32))
    np.savez(tmp_path / "arrays.npz", density=SQUARE)
    for path in sorted(tmp_path.iterdir()):
        found = read_map(path)
        assert found.values.tolist() == SQUARE, path.name
        assert found.place is None


def test_a_table_need_not_be_square_and_its_centres_place_it(tmp_path: Path) -> None:
    lines = ["row,col,latitude,longitude,density"]
    for row in range(3):
        for col in range(5):
            longitude = (179.3 + 0.4 * col + 180) % 360 - 180  # across the antimeridian
            lines.append(f"{row},{col},{50.1 + 0.2 * row:.4f},{longitude:.4f},{row + col}")
    place = read_map(write_file(tmp_path, "m.csv", "\n".join(lines) + "\n")).place
    assert place is not None
    assert (place.south, place.west, place.height, place.width) == pytest.approx(
        (50.0, 179.1, 0.6, 2.0)
    )
    height, width = place.cell_size((3, 5))
    assert height == pytest.approx(22_250, rel=1e-3)
    assert width == pytest.approx(28_500, rel=1e-2)


def place(**changes: Any) -> Place:
    city: dict[str, Any] = {
        "kind": "geographic",
        "south": 48.0,
        "west": 11.0,
        "height": 0.1,
        "width": 0.2,
    }
    return Place(**(city | changes))


@pytest.mark.parametrize(
    ("other", "agree"),
    [
        (place(), True),
        (None, True),
        (place(south=48.0 + 4e-5), True),  # 0.4 % of a cell
        (place(west=371.0), True),
        (place(south=48.001), False),
        (place(west=11.001), False),
        (place(height=0.101), False),
        (place(width=0.201), False),
        (place(kind="plane"), False),
    ],
)
def test_maps_must_lie_in_one_place(other: Place | None, agree: bool) -> None:
    one, two = CellMap(np.ones((10, 10)), place()), CellMap(np.ones((10, 10)), other)
    if agree:
        assert common_place(one, two) == common_place(one, one) == place()
        assert common_place(two, one) == (other or place())
    else:
        with pytest.raises(InputError, match="both maps must have one grid, but their cells lie"):
            common_place(one, two)


def test_maps_must_have_one_shape() -> None:
    with pytest.raises(InputError, match="one grid, got 2 x 3 and 3 x 2 cells"):
        common_place(CellMap(np.ones((2, 3))), CellMap(np.ones((3, 2))))


CENTRES = "row,col,latitude,longitude,density\n0,0,{},1,1\n0,1,{},{},1\n1,0,{},1,1\n1,1,{},{},1\n"


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("m.csv", "row,col,people\n0,0,1\n", "column must name one column, got 'density': no co"),
        ("m.csv", "row,density\n0,1\n", "row must name|col must name one column, got 'col'"),
        ("m.csv", "row,col,density\n0,0,1\n0,0,1\n", "'m.csv' holds row 0, col 0 more often"),
        ("m.csv", "row,col,density\n0,0,1\n1,1,1\n", "2 x 2 cells once.*'m.csv' holds 2 of 4"),
        ("m.csv", "row,col,density\n1,1,1\n", "2 x 2 cells once.*'m.csv' holds 1 of 4"),
        ("m.csv", "row,col,density\n-1,0,1\n", "row must be a whole number from 0 on, got -1 in"),
        ("m.csv", "row,col,density\n0,0.5,1\n", "col must be a whole number from 0 on, got 0.5"),
        ("m.csv", "row,col,density\n0,9e9,1\n", "col must be a whole number from 0 on, got 9e"),
        ("m.csv", "row,col,density\n0,0,-0.5\n", r"finite and 0 or more, got -0.5 at row 0, col 0"),
        ("m.csv", "row,col,density\n0,0,inf\n", "finite and 0 or more, got inf at row 0, col 0"),
        ("m.csv", "row,col,density\n0,0,nan\n", "'density' must hold a number in every row, but 1"),
        ("m.csv", "row,col,density\n0,0,\n", "'density' must hold a number in every row, but 1 of"),
        ("m.csv", "row,col,density\n0,0,many\n", "'density' must hold a number in every row, but"),
        ("m.csv", "row,col,density\n0,0,0\n", "density must be above 0 somewhere, but 'm.csv' ho"),
        ("m.csv", "row,col,density\n0,0\n", "must have 3 fields in every row, but 1 rows"),
        ("m.csv", "row,col,density\n", "path must hold rows, but 'm.csv' has only a header"),
        ("m.csv", "1,x\n", "path must hold rows, but 'm.csv' has only a header"),
        ("m.csv", "1,2\n3,4,5\n", "must have 2 fields in every row, but 1 rows"),
        ("m.csv", "1,2\n3,\n", r"column 2 must hold a number in every row, but 1 of 2 .*row 2\)"),
        ("m.csv", "", "path must name a file with content"),
        ("m.csv", CENTRES.format(2, 2, 2, 1, 1, 2), r"latitude \(y\) must rise evenly .* 'm.csv'"),
        ("m.csv", CENTRES.format(1, 1.5, 2, 2, 2, 2), r"latitude \(y\) must rise evenly"),
        ("m.csv", CENTRES.format(-1e308, -1e308, 2, 1e308, 1e308, 2), r"latitude \(y\) must rise"),
        ("m.csv", CENTRES.format(1, 1, "inf", 2, 2, "inf"), r"longitude \(x\) must rise evenly"),
        ("m.csv", CENTRES.format(89, 89, 2, 92, 92, 2), "latitude .* 'm.csv' it is 90.5"),
        ("m.csv", CENTRES.format(1, 1, 0.5, 2, 2, 0.5), r"longitude \(x\) must rise evenly with"),
        ("m.json", "{", "path must be GeoJSON whose features have the properties row and col"),
        ("m.json", "[]", "path must be GeoJSON"),
        ("m.json", '{"features": []}', "path must be GeoJSON"),
        ("m.json", '{"features": [{"properties": null}]}', "path must be GeoJSON"),
        ("m.json", '{"features": [{"properties": {"row": 9e9, "col": 0, "density": 1}}]}', "row"),
        ("m.npz", "no numpy", "path must hold arrays of numbers as numpy writes them, but 'm.npz'"),
        ("m.npy", "", "path must hold arrays of numbers"),
        ("m.xlsx", "1,2\n", "end in one of .csv, .*.pq, .npy, .npz, .geojson, .json, got"),
    ],
)  # fmt: skip
def test_what_is_no_map_is_refused(name: str, text: str, rule: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rule) as caught:
        read_map(write_file(tmp_path, name, text))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("value", ["null", '"3"', "true", "[1]"])
def test_a_property_must_be_a_number_at_every_cell(value: str, tmp_path: Path) -> None:
    cells = [{"row": 0, "col": 0, "density": 1}, {"row": 0, "col": 1, "density": json.loads(value)}]
    text = json.dumps({"features": [{"properties": cell} for cell in cells]})
    with pytest.raises(InputError, match=r"at every cell, got 'density': row 0, col 1 of 'm.json'"):
        read_map(write_file(tmp_path, "m.json", text))
    with pytest.raises(InputError, match=r"got 'people': row 0, col 0 .* properties row, col"):
        read_map(write_file(tmp_path, "m.json", text), "people")


@pytest.mark.parametrize(
    "box", ["[1, 2]", "null", '["a", 1, 2, 3]', "[0, 0, 0, 1]", "[0, 0, NaN, 1]", f"[1{'0' * 400}]"]
)
def test_a_bounding_box_that_is_none_gives_no_place(box: str, tmp_path: Path) -> None:
    features = '[{"properties": {"row": 0, "col": 0, "density": 2}}]'
    text = f'{{"features": {features}, "bbox": {box}}}'
    found = read_map(write_file(tmp_path, "m.geojson", text))
    assert found.place is None
    assert found.values.tolist() == [[2.0]]


def test_arrays_that_are_no_maps(tmp_path: Path) -> None:
    np.save(tmp_path / "line.npy", np.ones(3))
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    np.save(tmp_path / "objects.npy", np.array([[{}]]), allow_pickle=True)
    np.savez(tmp_path / "named.npz", people=SQUARE)
    for name, rule in (
        ("line.npy", r"density must have rows and columns, got the shape \(3,\)"),
        ("text.npy", "must be an array of numbers, got one of type <U1"),
        ("objects.npy", "path must hold arrays of numbers"),
        ("named.npz", "column must name an array of 'named.npz', got 'density': it has people"),
        ("none.npz", "path must name a file, got .* which does not exist"),
        ("none.geojson", "path must name a file, got .* which does not exist"),
        ("none.csv", "path must name a file, got .* which does not exist"),
    ):
        with pytest.raises(InputError, match=rule):
            read_map(tmp_path / name)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz", "npy", "geojson"])
def test_binary_files_in_place_of_maps(seed: int, suffix: str, tmp_path: Path) -> None:
    content = np.random.default_rng(seed).bytes(3000)
    for magic in (b"", b"\x93NUMPY\x01\x00", b"PK\x03\x04"):
        with pytest.raises(InputError):
            read_map(write_file(tmp_path, f"m.{suffix}", magic + content))


def test_half_of_a_place_is_none(tmp_path: Path) -> None:
    """A column y beside no x is one of something else."""
    table = "row,col,density,y\n0,0,1,9\n0,1,2,9\n"
    found = read_map(write_file(tmp_path, "m.csv", table), "density")
    assert (found.values.tolist(), found.place) == ([[1.0, 2.0]], None)
