"""Estimates to write and to draw."""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from client_sdk import Collection, Grid
from ldpspatial.channels.disk import StampChannel
from ldpspatial.estimation import Estimate, cell_intervals, estimate

GRIDS = {
    "city": Grid.from_center(48.0, 11.0, 12_000.0, 7),
    "southern hemisphere": Grid.from_center(-33.45, -70.66, 12_000.0, 7),
    "antimeridian": Grid.from_bounds(-18.0, 179.5, 1.0, 7),
    "tall in metres": Grid.from_bounds(74.0, 20.0, 1.0, 7),
    "corner of 0, 0": Grid("geographic", -3, -5, 100, 90, 7),
    "one cell": Grid.from_bounds(-0.5, -0.5, 1.0, 1),
    "plane": Grid.plane(-4.44, -4.87, 9.45, 7),
}


def collection_on(grid: Grid, epsilon: float = 3.5) -> Collection:
    """Return a collection on a grid; a radius of 1 avoids the warning about small grids."""
    return Collection.create("test", grid, epsilon, radius=1)


def population(cells: int, n: int = 20_000) -> NDArray[np.int64]:
    """Return people by cell: a dense corner in the south-west, nobody in the north-east."""
    rows, cols = np.indices((cells, cells))
    share = np.exp(-(rows + 2.0 * cols) / 3)
    share[rows + cols > 1.5 * cells] = 0
    people: NDArray[np.int64] = np.floor(n * share / share.sum()).astype(np.int64)
    return people


def estimate_for(collection: Collection, seed: int = 1) -> Estimate:
    """Return the estimate of ``population`` from counts of reports drawn under the collection."""
    rng = np.random.default_rng(seed)
    channel = StampChannel(collection.table)
    people = population(collection.grid.cells)
    counts = rng.poisson(people.sum() * channel.forward(people / people.sum()))
    return estimate(channel, counts, "em")


CITY = collection_on(GRIDS["city"])
RESULT = estimate_for(CITY)
INTERVALS = cell_intervals(RESULT, level=0.9)


def result_on(grid: Grid) -> Estimate:
    """Return an estimate with a random density on the grid; its counts are beside the point."""
    density = np.random.default_rng(1).random((grid.cells, grid.cells))
    return result_with(density / density.sum(), grid)


def result_with(density: NDArray[np.float64], grid: Grid) -> Estimate:
    """Return an estimate with this density; its reports all lie in the middle."""
    channel = StampChannel(collection_on(grid).table)
    counts = np.zeros(channel.support.shape)
    counts[counts.shape[0] // 2, counts.shape[1] // 2] = RESULT.n
    return dataclasses.replace(RESULT, density=density, channel=channel, counts=counts)
