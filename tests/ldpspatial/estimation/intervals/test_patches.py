"""What patches leave open: a slow sum, single cells, the rest of a region, a cell alone."""

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import response_table
from ldpspatial import StampChannel
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.channels.reach import disk_radius
from ldpspatial.estimation.intervals.interval import WITHIN
from ldpspatial.estimation.intervals.patches import Patches

Array = NDArray[np.float64]


def slow_variance(people: Array, weights: Array, radius: float) -> float:
    """The sum of the module's text, cell by cell."""
    d = len(people)
    cells = [(row, col) for row in range(d) for col in range(d)]
    total = 0.0
    for row, col in cells:
        held = around = 0.0
        for r, c in cells:
            distance = np.hypot(r - row, c - col)
            part = 1.0 if distance == 0 else float(np.clip(radius + 0.5 - distance, 0, 1))
            held += part * weights[r, c] * people[r, c]
            around += part * people[r, c]
        own = weights[row, col] * (1 - weights[row, col]) * people[row, col]
        total += people[row, col] * (held * (1 - held / around) - own)
    return WITHIN * total


@pytest.mark.parametrize("radius", [0.1, 0.7, 1.0, 2.4, 6.0, 30.0])
def test_the_variance_equals_its_slow_sum(radius: float) -> None:
    rng = np.random.default_rng(1)
    people = rng.dirichlet(np.full(49, 0.5)).reshape(7, 7)
    weights = rng.random((7, 7)) * (rng.random((7, 7)) < 0.6)
    patches = Patches(people, radius)
    expected = slow_variance(people, weights, radius)
    assert patches.variance(weights) == pytest.approx(expected, rel=1e-9)
    assert patches.variance(1 - weights) == pytest.approx(expected, rel=1e-9)
    single = np.zeros((7, 7))
    single[2, 4] = 1
    assert patches.of_cells()[2, 4] == pytest.approx(
        slow_variance(people, single, radius), abs=1e-15
    )


def test_a_patch_of_one_cell_leaves_nothing_open_between_cells() -> None:
    people = np.random.default_rng(2).dirichlet(np.ones(25)).reshape(5, 5)
    alone = Patches(people, 0.0)
    assert alone.variance(np.linspace(0, 1, 25).reshape(5, 5)) == pytest.approx(0, abs=1e-15)
    assert alone.of_cells() == pytest.approx(0, abs=1e-15)


def test_even_people_of_a_wide_patch_are_halved_as_a_cell_is() -> None:
    half = np.zeros((8, 8))
    half[:4] = 1
    everywhere = Patches(np.full((8, 8), 1 / 64), 100.0)
    assert everywhere.variance(half) == pytest.approx(WITHIN / 4)


def test_nowhere_everywhere_and_where_nobody_is_nothing_is_open() -> None:
    people = np.zeros((6, 6))
    people[0, 0], people[5, 5] = 0.4, 0.6
    patches = Patches(people, 1.5)
    assert patches.variance(np.zeros((6, 6))) == 0
    assert patches.variance(np.ones((6, 6))) == pytest.approx(0, abs=1e-15)
    corner = np.zeros((6, 6))
    corner[:3, :3] = 1
    assert patches.variance(corner) == pytest.approx(0, abs=1e-15)  # all of that patch


@pytest.mark.parametrize("squared", [0, 5, 20, 64])
def test_a_disk_has_its_own_radius(squared: int) -> None:
    channel = StampChannel(response_table("disk", 3.5, 20, squared_radius=squared))
    cells = sum(x * x + y * y <= squared for x in range(-9, 10) for y in range(-9, 10))
    assert disk_radius(channel) == pytest.approx(np.sqrt(cells / np.pi))
    dense = MatrixChannel(channel.matrix(), (20, 20), 3.5)
    assert disk_radius(dense) == pytest.approx(disk_radius(channel))


def test_a_channel_that_tells_nothing_is_one_patch() -> None:
    flat = MatrixChannel(np.full((16, 16), 1 / 16), (4, 4), 1.0)
    assert disk_radius(flat) == pytest.approx(np.sqrt(16 / np.pi))
