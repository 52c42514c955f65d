"""The data that experiments measure on, from a folder given with --data.

File names and columns are those of the folder; nothing of it is part of this project.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.files.points import read_points
from ldpspatial.places.points import Points
from ldpspatial.places.users import UserCells, cells_by_user

Array = NDArray[np.float64]

GOWALLA = "gowalla_18737users_partial.csv.gz"
CHICAGO = "chicago_agg_assaults_2010_2019.csv.gz"
CRIMES = "chicago_crimes_2001_2019_sample50k.csv.gz"
TOKYO = "foursquare_tky.csv.gz"
MANHATTAN = "manhattan_nyt_heatmap_216.npz"
COUNTIES = "jhu_covid_deaths_us_counties.csv.gz"
GAZE = "gaze_fixations_uniss_fgd.csv.gz"
NEW_YORK = "green_taxi_2016_01_sample10k.csv.gz"
CABS = "cabspotting_5taxis.csv.gz"

CHICAGO_SQUARE = (41.64, -87.90, 0.36)  # south, west, side in degrees
NEW_YORK_SQUARE = (40.56, -74.05, 0.32)
US_WEST = -135.0
US_EAST = -60.0
US_SOUTH = 0.0
US_NORTH = 50.0
PARTS = 300  # the partition of the box above from which city cells are taken


class _Columns(dict[str, NDArray[Any]]):
    """Columns by name; one that is missing is an error of the file."""

    def __missing__(self, name: str) -> NDArray[Any]:
        raise InputError(
            f"--data must hold files of the known layout, and a column {name} is missing"
        )


def data_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --data, the folder of data files."""
    return click.option(
        "--data", type=click.Path(path_type=Path, exists=True, file_okay=False), required=True,
        help="Folder with the data files.",
    )(command)  # fmt: skip


def table(data: Path, name: str) -> dict[str, NDArray[Any]]:
    """Return the columns of a CSV file in the folder."""
    path = data / name
    if not path.exists():
        raise InputError(f"--data must hold {name}, and {data} does not")
    read = pa_csv.read_csv(path)
    return _Columns(
        {column: read[column].to_numpy(zero_copy_only=False) for column in read.column_names}
    )


def gowalla(data: Path) -> Points:
    """Return Gowalla's check-ins with their users, as often as they were made."""
    columns = table(data, GOWALLA)
    rows = np.repeat(np.arange(len(columns["user"])), columns["count"])
    at = np.column_stack([columns["lat"], columns["lon"]])[rows]
    return Points(at, columns["user"][rows].astype(np.int64))


def chicago(data: Path) -> Points:
    """Return assaults in Chicago, one person each."""
    return _points(data, CHICAGO)


def crimes(data: Path) -> Points:
    """Return crimes of all kinds in Chicago, one person each."""
    return _points(data, CRIMES)


def _points(data: Path, name: str) -> Points:
    if not (data / name).exists():
        raise InputError(f"--data must hold {name}, and {data} does not")
    return read_points(data / name, "lat", "lon", on_missing="drop")


def new_york(data: Path) -> Points:
    """Return where green taxis of New York picked people up, one person each."""
    columns = table(data, NEW_YORK)
    return Points(np.column_stack([columns["lat"], columns["lon"]]), None)


def tokyo(data: Path) -> Points:
    """Return Foursquare's check-ins in Tokyo with their users."""
    columns = table(data, TOKYO)
    at = np.column_stack([columns["lat"], columns["lon"]])
    return Points(at, columns["user"].astype(np.int64))


def manhattan(data: Path) -> Array:
    """Return the luminosity of the Manhattan map, (216, 216), row 0 the south."""
    path = data / MANHATTAN
    if not path.exists():
        raise InputError(f"--data must hold {MANHATTAN}, and {data} does not")
    with np.load(path) as held:
        luminosity: Array = held["luminosity"][::-1].astype(np.float64)
    return luminosity


def people_of(density: Array, users: int, rng: np.random.Generator) -> UserCells:
    """Draw users with one position each from a map."""
    cells = rng.choice(density.size, size=users, p=density.ravel() / density.sum())
    return cells_by_user(np.arange(users), cells, (density.shape[0], density.shape[1]))


def city_cells(points: Points, side: int, least_users: int, most_cells: int) -> list[UserCells]:
    """Return the users of the busiest parts of the United States, each part as a map.

    Ghazi et al. (AAAI 2023), section 4: a box is cut into 300 x 300 parts, and those with the most
    check-ins are taken. Every part is a map of side x side cells.

    Parameters
    ----------
    points : Points
        With users.
    side : int
        Cells of a map along a side.
    least_users : int
        A part with fewer users is left out.
    most_cells : int
        How many parts to take.
    """
    users = points.users
    if users is None:
        raise InputError("points must tell users apart")
    y = (points.coordinates[:, 0] - US_SOUTH) / (US_NORTH - US_SOUTH) * PARTS
    x = (points.coordinates[:, 1] - US_WEST) / (US_EAST - US_WEST) * PARTS
    inside = (y >= 0) & (y < PARTS) & (x >= 0) & (x < PARTS)
    y = y[inside]
    x = x[inside]
    who = users[inside]
    part = np.floor(y).astype(np.int64) * PARTS + np.floor(x).astype(np.int64)
    parts, checkins = np.unique(part, return_counts=True)
    found: list[UserCells] = []
    for chosen in parts[np.argsort(-checkins, kind="stable")]:
        here = part == chosen
        if len(np.unique(who[here])) < least_users:
            continue
        row, col = (np.floor(at[here] % 1 * side).astype(np.int64) for at in (y, x))
        found.append(cells_by_user(who[here], row * side + col, (side, side)))
        if len(found) == most_cells:
            break
    return found
