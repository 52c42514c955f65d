"""Intervals of maps of noisy sums: variances against a dense twin, coverage, and what is open."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom

from ldpspatial.errors import InputError
from ldpspatial.estimation.intervals.levels import level_intervals, noise_deviations
from ldpspatial.estimation.levels import NoisyLevel, combined
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.central import CentralLevels
from ldpspatial.release.distributed import Batch, Cohort, DistributedLevels, TwoServers
from ldpspatial.release.release import Release
from tests.ldpspatial.estimation.levels.test_level_map import grown
from tests.support.dense_levels import parts_and_covariance


@pytest.mark.parametrize("shape", [(8, 8), (5, 7), (16, 4)])
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_ends_are_those_of_the_dense_covariance(
    shape: tuple[int, int], public: bool, seed: int
) -> None:
    """For regions of whole parts: nothing is open, so noise alone makes the width."""
    rng = np.random.default_rng(seed)
    truth = rng.poisson(rng.gamma(0.5, 20, shape)).astype(np.float64) + 5
    tree, levels = grown(truth, seed, public, leaves=seed == 2)
    found = combined(tree, levels)
    sure = level_intervals(found)
    parts, people, covariance = parts_and_covariance(tree, levels)
    inside = rng.random(len(parts)) < 0.5
    inside[0] = True
    inside[-1] = False
    mask = np.any([part for part, kept in zip(parts, inside, strict=True) if kept], axis=0)
    published = found.density[mask].sum()
    got = sure.region(mask)
    low, high = open_shares(inside, people, covariance)
    assert (got.lower, got.upper) == pytest.approx(
        (min(low, published), max(high, published)), abs=1e-7
    )
    for part, one in zip(parts, np.eye(len(parts)), strict=True):
        if part.sum() > 1:
            continue
        _, upper = open_shares(one, people, covariance)
        assert sure.upper[part][0] == pytest.approx(max(upper, found.density[part][0]), abs=1e-7)


def open_shares(
    inside: NDArray[np.float64], people: NDArray[np.float64], covariance: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the shares s at which inside - s all is as far from 0 as noise reaches."""
    center = float(inside @ people)

    def beyond(share: float, center: float) -> float:
        slope = inside - share
        off = abs(center - share * people.sum())
        return float(off - noise_deviations(0.95) * np.sqrt(slope @ covariance @ slope))

    lower, upper = min(center, people.sum()), max(center, 0)
    return (
        max(brentq(beyond, -9, lower / people.sum(), args=(lower,), xtol=1e-12), 0),
        min(brentq(beyond, upper / people.sum(), 9, args=(upper,), xtol=1e-12), 1),
    )


def test_a_node_that_was_not_divided_may_hold_its_people_anywhere() -> None:
    tree = Quadtree((4, 4))
    whole = NoisyLevel(0, np.array([0]), np.array([100.0]), 0.0)
    quarters = NoisyLevel(1, np.arange(4), np.array([40.0, 30.0, 20.0, 10.0]), 1e-6)
    sure = level_intervals(combined(tree, [whole, quarters]))
    mask = np.zeros((4, 4), bool)
    mask[0, 0] = True  # one of the four cells of the first quarter
    corner = sure.region(mask)
    assert corner.lower == 0
    assert corner.upper == pytest.approx(0.4, abs=1e-3)
    assert sure.lower[0, 0] == 0
    assert sure.upper[0, 0] == pytest.approx(0.4, abs=1e-3)
    cut = sure.bounds(np.where(np.arange(16).reshape(4, 4) % 4 < 2, 1.0, 0.3))
    assert cut[0] >= 0.3


def test_nobody_may_be_anywhere() -> None:
    tree = Quadtree((2, 2))
    whole = NoisyLevel(0, np.array([0]), np.array([3.0]), 100.0)
    cells = NoisyLevel(1, np.arange(4), np.array([3.0, -1.0, 2.0, 0.0]), 100.0)
    sure = level_intervals(combined(tree, [whole, cells]))
    assert (sure.lower.max(), sure.upper.min()) == (0, 1)
    south = sure.region(np.array([[True, True], [False, False]]))
    assert (south.lower, south.upper) == (0, 1)


def test_few_people_in_one_cell_are_held() -> None:
    """Where the total is as unsure as the cell. With the variance at the estimate .86 are.

    Of 250 runs 218 must hold: .95 fails once in 10^6.
    """
    rng = np.random.default_rng(8)
    tree = Quadtree((8, 8))
    held = 0
    for _ in range(250):
        sums = rng.laplace(scale=2, size=64)
        sums[9] += 12
        levels = [
            NoisyLevel(0, np.array([0]), np.array([12 + rng.laplace(scale=8)]), 128.0),
            NoisyLevel(1, np.arange(4), np.zeros(4), np.inf),
            NoisyLevel(2, np.arange(16), np.zeros(16), np.inf),
            NoisyLevel(3, np.arange(64), sums, 8.0),
        ]
        held += level_intervals(combined(tree, levels)).upper.ravel()[9] >= 1 - 1e-9
    assert held >= binom.ppf(1e-6, 250, 0.95)


CLIENTS_FAIL = Cohort(1500, drop_out=0.1, tolerated=0.2, colluding=0.1)
RUNS = {
    "central": (CentralLevels(), 0.3),
    "central, cells": (CentralLevels("cells"), 2.0),
    "distributed": (DistributedLevels(Cohort()), 2.0),
    "clients fail": (DistributedLevels(CLIENTS_FAIL), 0.3),
    "clients fail, cells": (DistributedLevels(CLIENTS_FAIL, "cells"), 2.0),
    "two servers": (TwoServers(Batch()), 0.3),
}


@pytest.mark.parametrize(("release", "epsilon"), RUNS.values(), ids=list(RUNS))
def test_intervals_cover(release: Release, epsilon: float) -> None:
    """Of 200 runs 170 must hold: .95 fails once in 10^6, coverage of .80 is seen in 96 %."""
    rng = np.random.default_rng(8)
    law = rng.gamma(0.2, 1, (16, 16))
    cells = rng.choice(256, size=3000, p=(law / law.sum()).ravel())
    users = cells_by_user(np.arange(3000), cells, (16, 16))
    masks = np.zeros((4, 16, 16), bool)
    masks[0, 3:9, 2:12] = True
    masks[1, 5, 5] = True
    masks[2, :, :8] = True
    masks[3, 10:11, 3:16] = True
    truth = [users.density[mask].sum() for mask in masks]
    runs = 200
    held = np.zeros(len(masks))
    for _ in range(runs):
        levels = release.release(users, epsilon, rng).levels
        assert levels is not None
        sure = level_intervals(levels)
        for k, mask in enumerate(masks):
            got = sure.region(mask)
            held[k] += got.lower <= truth[k] <= got.upper
    assert held.min() >= binom.ppf(1e-6 / 24, runs, 0.95)


def test_without_what_failing_clients_add_intervals_would_not_cover() -> None:
    """The power of the test above, at an epsilon where noise is less than who fails.

    Of 100 runs 80 must hold with it: .95 fails less than once in 10^6.
    """
    rng = np.random.default_rng(8)
    users = cells_by_user(
        np.arange(6000), rng.choice(64, 6000, p=np.r_[0.4, [0.6 / 63] * 63]), (8, 8)
    )
    cohort = Cohort(drop_out=0.1, tolerated=0.2)
    held = {"with": 0, "without": 0}
    for _ in range(100):
        levels = DistributedLevels(cohort).release(users, 4.0, rng).levels
        assert levels is not None
        blind = combined(levels.tree, [replace(each, per_person=0.0) for each in levels.levels])
        for name, found in (("with", levels), ("without", blind)):
            sure = level_intervals(found)
            held[name] += bool(sure.lower[0, 0] <= users.density[0, 0] <= sure.upper[0, 0])
    assert held["with"] >= 80
    assert held["without"] < 50


def test_intervals_hold_atoms_of_noise_in_whole_people() -> None:
    """At epsilon 2.45 noise is 0 with probability .84, and 2.1 of its deviations are below 1.

    Of 40 runs on 64 cells with one sum each, 2,350 must hold: .95 fails less than once in 10^6.
    Without the step of the noise fewer do, which shows the power.
    """
    rng = np.random.default_rng(8)
    users = cells_by_user(np.arange(4000), rng.integers(0, 64, 4000), (8, 8))
    held = {"with": 0, "without": 0}
    for _ in range(40):
        levels = DistributedLevels(Cohort()).release(users, 2.45, rng).levels
        assert levels is not None
        assert np.isinf([each.variance for each in levels.levels[1:-1]]).all()
        blind = combined(levels.tree, [replace(each, step=0.0) for each in levels.levels])
        for name, found in (("with", levels), ("without", blind)):
            sure = level_intervals(found)
            inside = (sure.lower <= users.density) & (users.density <= sure.upper)
            held[name] += np.count_nonzero(inside)
    assert held["with"] >= 2350
    assert held["without"] < 2350


@pytest.mark.parametrize("level", [0.0, 1.0, "x"])
def test_bad_levels_are_refused(level: float) -> None:
    tree = Quadtree((1, 1))
    found = combined(tree, [NoisyLevel(0, np.array([0]), np.array([3.0]), 1.0)])
    with pytest.raises(InputError, match="level must be"):
        level_intervals(found, level)
    with pytest.raises(InputError, match="found must be a LevelMap"):
        level_intervals(None)  # type: ignore[arg-type]
