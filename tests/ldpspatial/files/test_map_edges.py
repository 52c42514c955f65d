"""read_map at the edge of what a file may hold: a single row, numbers and places beyond all."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpspatial.errors import InputError
from ldpspatial.files.maps import read_map
from tests.support.files import write_file


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("row.csv", "1,2,3\n", [[1, 2, 3]]),
        ("row.csv", "\n1,2,3", [[1, 2, 3]]),
        ("row.csv", "1;2", [[1, 2]]),
        ("row.tsv.gz", "1\t2\n", [[1, 2]]),
        ("cell.csv", "7\n", [[7]]),
        ("column.csv", "1\n2\n", [[1], [2]]),
    ],
)
def test_rows_of_plain_numbers_may_be_one(
    name: str, text: str, values: Any, tmp_path: Path
) -> None:
    assert read_map(write_file(tmp_path, name, text)).values.tolist() == values


@pytest.mark.parametrize("sign", ["", "-"])
def test_whole_numbers_beyond_all_floats_are_refused(sign: str, tmp_path: Path) -> None:
    text = '{"features": [{"properties": {"row": 0, "col": 0, "density": NUMBER}}]}'
    number = f"{sign}1{'0' * 400}"
    file = write_file(tmp_path, "m.geojson", text.replace("NUMBER", number))
    rule = f"density must be finite and 0 or more, got {sign}inf at row 0, col 0 of 'm.geojson'"
    with pytest.raises(InputError, match=f"^{rule}$"):
        read_map(file)
    file.write_text(text.replace("NUMBER", f"1{'0' * 308}"))
    assert read_map(file).values.tolist() == [[1e308]]


@pytest.mark.parametrize(
    ("south", "north", "good"),
    [(80, 99.9, True), (80, 100, False), (80, 110, False), (-150, -40, False), (-89, 89, True)],
)
def test_the_centre_of_a_map_must_lie_between_the_poles(
    south: float, north: float, good: bool, tmp_path: Path
) -> None:
    cells = '[{"properties": {"row": 0, "col": 0, "density": 2}}]'
    for plane in ("false", "true"):
        box = f'"plane": {plane}, "bbox": [0, {south}, 1, {north}]'
        file = write_file(tmp_path, "pole.geojson", f'{{"features": {cells}, {box}}}')
        if good or plane == "true":
            place = read_map(file).place
            assert place is not None
            assert min(place.cell_size((1, 1))) > 0
        else:
            rule = "^latitude must lie between -90 and 90 at the centre of the map, but in "
            with pytest.raises(InputError, match=f"{rule}'pole.geojson' it is -?[0-9]+$"):
                read_map(file)


@pytest.mark.parametrize("text", ['{"bad":1}', "[]", "no JSON", "3"])
def test_a_damaged_collection_is_named_with_its_file(text: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", density=[[1, 2], [3, 4]], collection=text)
    with pytest.raises(InputError, match=r"^collection in 'c.npz': "):
        read_map(tmp_path / "c.npz")


def test_what_is_no_regular_file_is_not_called_missing() -> None:
    with pytest.raises(InputError, match=r"^path must name a file, .* which is not a regular file"):
        read_map("/dev/null")
