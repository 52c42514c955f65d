"""A folder with the columns of the cities' files, and invented points in their squares."""

import gzip
from pathlib import Path

import numpy as np

from experiments.cities import MORE, SQUARES
from experiments.sources import CHICAGO, CRIMES

HEADER = "lat,lon,hour,time,drop_lat,drop_lon"


def write_cities(folder: Path, points: int = 300) -> Path:
    """Write so many points a square; return the folder."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    rows: dict[str, list[str]] = {}
    for file, (south, west, side) in (*SQUARES.values(), *MORE.values()):
        at = np.array([south, west]) + side * rng.beta(3, 2, (points, 2))
        end = 2 * np.array([south, west]) + side - at  # seen from the other side
        hours = rng.integers(0, 24, points)
        rows.setdefault(file, []).extend(
            f"{y:.5f},{x:.5f},{hour},2008-05-17T{hour:02d}:10:00Z,{to[0]:.5f},{to[1]:.5f}"
            for (y, x), hour, to in zip(at, hours, end, strict=True)
        )
    rows[CRIMES] = rows[CHICAGO]
    for file, lines in rows.items():
        with gzip.open(folder / file, "wt") as stream:
            stream.write("\n".join([HEADER, *lines]) + "\n")
    return folder
