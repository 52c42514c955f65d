"""The error to expect of a collection that is fixed."""

import numpy as np
import pytest

from client_sdk import Collection, Grid
from ldpspatial import estimate, wasserstein
from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.playing import play
from ldpspatial.planning.foretold import foretell, synthetic_densities
from ldpspatial.planning.plan import plan

CELLS = 8
COLLECTION = Collection.create("x", Grid.plane(0, 0, 800, CELLS), 3.5)


def test_as_the_plan_of_this_grid() -> None:
    # Standard errors of some 2 % each: six of both together are 17 %; the radius alone moves more.
    rng = np.random.default_rng(1)
    densities = synthetic_densities(CELLS, rng)
    found = foretell(COLLECTION, 5000, densities, rng, repeats=10, rule="em")
    row = plan(800, 3.5, 5000, rng, [CELLS], "dam", repeats=10).rows[0]
    assert list(found.w2) == ["city"]
    assert np.mean(list(found.w2.values())) == pytest.approx(row.w2_m, rel=0.17)
    assert all(found.highest[name] >= found.w2[name] for name in found.w2)


def test_reports_of_people_drawn_from_the_map_are_as_far_off() -> None:
    rng = np.random.default_rng(2)
    density = rng.dirichlet(np.full(CELLS * CELLS, 0.3)).reshape(CELLS, CELLS)
    channel = StampChannel(COLLECTION.table)
    played = []
    for _ in range(30):
        people = rng.multinomial(3000, density.ravel())
        cells = np.repeat(np.arange(CELLS * CELLS), people)
        counts = play(COLLECTION.table, cells // CELLS, cells % CELLS, rng)
        guess = estimate(channel, counts, "em").density
        played.append(wasserstein(density, guess, cell=100.0))
    found = foretell(COLLECTION, 3000, {"this": density}, rng, repeats=30, rule="em")
    spread = np.std(played) / np.sqrt(15)  # of the difference of two means of 30
    assert abs(found.w2["this"] - np.mean(played)) < 5 * spread  # false alarm below 1e-5


def test_more_reports_are_nearer_and_each_is_told() -> None:
    told: list[None] = []
    rng = np.random.default_rng(3)
    densities = synthetic_densities(CELLS, rng)
    few = foretell(COLLECTION, 300, densities, rng, tell=lambda: told.append(None))
    many = foretell(COLLECTION, 300_000_000, densities, rng)
    assert len(told) == 3
    assert all(many.w2[name] < few.w2[name] / 3 for name in densities)
