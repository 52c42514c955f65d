"""A folder with the columns of the cities' files, and invented points in their squares."""

import gzip
from pathlib import Path

import numpy as np

from experiments.cities import SQUARES


def write_cities(folder: Path, points: int = 300) -> Path:
    """Write so many points a square; return the folder."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    rows: dict[str, list[str]] = {}
    for file, (south, west, side) in SQUARES.values():
        at = np.array([south, west]) + side * rng.beta(3, 2, (points, 2))
        rows.setdefault(file, []).extend(f"{y:.5f},{x:.5f}" for y, x in at)
    for file, lines in rows.items():
        with gzip.open(folder / file, "wt") as stream:
            stream.write("\n".join(["lat,lon", *lines]) + "\n")
    return folder
