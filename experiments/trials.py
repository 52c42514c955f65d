"""One trial: people on a map, their reports, and the truth."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client_sdk import Collection, Grid, kernels
from ldpspatial import StampChannel
from ldpspatial.channels.playing import play
from ldpspatial.datasets import CITY_CENTER, CITY_SIDE_M, city, synthetic_maps
from ldpspatial.places.cell_maps import people_map


@dataclass(frozen=True)
class Trial:
    """Truth and counts of one simulated collection."""

    channel: StampChannel
    truth: NDArray[np.float64]
    counts: NDArray[np.int64]


def draw_trial(
    name: str, cells: int, epsilon: float, people: int, rng: np.random.Generator
) -> Trial:
    """Draw people from a synthetic map, or "city", and collect their reports through the client."""
    if name == "city":
        grid = Grid.from_center(*CITY_CENTER, CITY_SIDE_M, cells)
        points = city(people, rng)
    else:
        chosen = synthetic_maps()[name]
        grid = Grid.plane(chosen.y0, chosen.x0, chosen.side, cells)
        points = chosen.draw(people, rng)
    collection = Collection.create(name, grid, epsilon)
    rows, cols, _ = kernels.cells_of(grid, points[:, 0], points[:, 1])
    truth = people_map(rows, cols, cells) / people
    return Trial(StampChannel(collection.table), truth, play(collection.table, rows, cols))


def mean_and_error(values: list[float]) -> str:
    """Return "mean ± standard error"."""
    spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.3f} ± {spread:.3f}"
