"""Crowds that few reports do not show: known answers, and districts around people."""

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from client_sdk import response_table
from ldpspatial import Estimate, Field, StampChannel, recommended, region_share
from ldpspatial.estimation import cell_intervals
from ldpspatial.estimation.intervals.crowds import Crowds
from ldpspatial.estimation.intervals.posterior import posterior
from tests.support.fields import reports

Array = NDArray[np.float64]
CELLS = 12
FEW, MANY = 1_000, 1_000_000


def disc(y: float, x: float, radius: float) -> Array:
    """Return the cells whose middles are in a disc; all in cells."""
    rows, cols = np.indices((CELLS, CELLS)) + 0.5
    return (np.hypot(rows - y, cols - x) <= radius).astype(np.float64)


TOWN = disc(3.5, 8.5, 1.1)


def one_town() -> Array:
    """Return a map with .3 of the people in a town as wide as a tenth of the side."""
    rows, cols = np.indices((CELLS, CELLS)) + 0.5
    town = np.exp(-((rows - 3.5) ** 2) - (cols - 8.5) ** 2)
    return np.asarray(0.3 * town / town.sum() + 0.7 / CELLS**2)


@cache
def fitted(n: int, epsilon: float, seed: int) -> Estimate:
    square = recommended(CELLS, epsilon, n).squared_radius
    channel = StampChannel(response_table("disk", epsilon, CELLS, squared_radius=square))
    return Field().fit(channel, reports(one_town(), n, np.random.default_rng(seed), channel))


def test_lumpiness_is_that_of_a_dirichlet_law() -> None:
    """Of 20,000 draws a variance is off by a hundredth or so; .05 is more than three times that."""
    rng = np.random.default_rng(1)
    means = rng.dirichlet(np.ones(64))
    for concentration in (3.0, 40.0):
        maps = rng.dirichlet(concentration * means, 20_000).reshape(-1, 8, 8)
        assert Crowds(maps).lumpiness == pytest.approx(1 / (concentration + 1), rel=0.05)


def test_known_lumpiness() -> None:
    everybody_somewhere = np.eye(16).reshape(16, 4, 4)
    assert Crowds(everybody_somewhere).lumpiness == pytest.approx(1.0)
    known = np.full((3, 8, 8), 1 / 64)
    assert Crowds(known).lumpiness == 0.0
    halves = np.array([[[0.25, 0.75]], [[0.75, 0.25]]])  # fewer cells than parts, and no square
    assert Crowds(halves).lumpiness == pytest.approx(2 * 0.0625 / 0.5)
    within = np.zeros((2, 8, 8))  # sixteenths are known, and not what is in them
    within[0, ::2, ::2] = within[1, 1::2, 1::2] = 1 / 16
    assert Crowds(within).lumpiness == 0.0


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_reach_is_that_of_a_beta_law_with_a_person_more(level: float) -> None:
    flat = Crowds(np.full((2, 8, 8), 1 / 64))
    shares = np.array([0.1, 0.3])  # variance .01, of .16: a concentration of 15
    end = (1 + level) / 2
    reach = stats.beta.ppf(end, 0.2 * 15 + 1, 0.8 * 15) - stats.beta.ppf(end, 0.2 * 15, 0.8 * 15)
    assert flat.reach(shares, level) == pytest.approx(reach)
    lumpy = Crowds(np.array([[[0.25, 0.75]], [[0.75, 0.25]]]))  # 1/4 more: 1 / (s + 1) = 5/16
    reach = stats.beta.ppf(end, 0.2 * 2.2 + 1, 0.8 * 2.2) - stats.beta.ppf(end, 0.44, 1.76)
    assert lumpy.reach(shares, level) == pytest.approx(reach)


def test_where_nothing_is_open_nothing_is_reached() -> None:
    flat = Crowds(np.full((2, 8, 8), 1 / 64))
    for share in (0.0, 0.25, 1.0):
        assert flat.reach(np.full(5, share), 0.95) == 0.0
    anywhere = Crowds(np.eye(16).reshape(16, 4, 4))
    assert anywhere.reach(np.zeros(16), 0.95) == 0.0
    assert 0 <= anywhere.reach(np.eye(16)[0], 0.95) <= 1
    assert 0 <= anywhere.reach(np.full(16, 1e-300), 0.95) <= 1


@pytest.mark.parametrize("lumpiness", [1e-20, 1e-17, 1e-15, 2e-12, 1e-9])
@pytest.mark.parametrize("mean", [1e-6, 0.0625, 0.5, 0.99])
def test_what_only_rounding_leaves_open_is_known(lumpiness: float, mean: float) -> None:
    """A quantile of a law that is a point but for rounding was not a number."""
    off = np.sqrt(lumpiness * mean * (1 - mean)) * np.array([-1, 1])
    reach = Crowds(np.full((2, 8, 8), 1 / 64)).reach(mean + off, 0.95)
    assert reach == pytest.approx(0.0, abs=2 * lumpiness + 1e-10)  # SciPy is off by 1e-11


def test_it_holds_regions_around_people_of_a_dirichlet_law() -> None:
    """The law of which it makes the quantile: .975 of 20,000 regions, -+ .0011; alarm at four.

    The quantile of the law itself, which holds regions laid anywhere, holds fewer than .92.
    """
    rng = np.random.default_rng(2)
    concentration, mean = 8.0, 1 / 16
    maps = rng.dirichlet(np.full(16, concentration / 16), 200_000)
    crowds = Crowds(maps.reshape(-1, 4, 4))
    anywhere = stats.beta.ppf(0.975, mean * concentration, (1 - mean) * concentration)
    upper = anywhere + crowds.reach(np.full(2, mean), 0.95)
    truth = maps[rng.random(len(maps)) < maps[:, 0], 0][:20_000]  # around a person of the first
    truth = np.concatenate([truth, maps[rng.random(len(maps)) < maps[:, 5], 5]])[:20_000]
    assert len(truth) == 20_000
    assert np.mean(truth <= upper) == pytest.approx(0.975, abs=0.0044)
    assert np.mean(truth <= anywhere) < 0.92


def test_a_district_of_which_few_reports_tell_is_held() -> None:
    """A town of a quarter of the people, 20 collections of 1,000 reports at eps .5.

    Were .95 held, fewer than 15 of 20 would be once in 3,000. Without crowds 18 of 40 were held.
    """
    share = float((TOWN * one_town()).sum())
    held, without = 0, 0
    for seed in range(20):
        found = fitted(FEW, 0.5, seed)
        told = region_share(found, TOWN)
        held += told.lower <= share <= told.upper
        without += posterior(found, 0.95, crowded=False).bounds(TOWN)[1] >= share
    assert held >= 15
    assert without < 15


def test_where_reports_are_many_hardly_anything_changes() -> None:
    found = fitted(MANY, 3.5, 1)
    with_crowds, bare = posterior(found, 0.95), posterior(found, 0.95, crowded=False)
    rng = np.random.default_rng(3)
    for _ in range(50):
        region = disc(*(CELLS * rng.random(2)), radius=rng.uniform(1.5, 6))
        assert with_crowds.width_of(region) <= 1.05 * bare.width_of(region)


def test_cells_and_lower_ends_stay() -> None:
    found = fitted(FEW, 0.5, 1)
    with_crowds, bare = cell_intervals(found), posterior(found, 0.95, crowded=False)
    np.testing.assert_array_equal(with_crowds.lower, bare.lower)
    np.testing.assert_array_equal(with_crowds.upper, bare.upper)
    cell = disc(3.5, 8.5, 0.5)
    assert cell.sum() == 1
    for region in (cell, 1 - cell):
        assert with_crowds.bounds(region) == bare.bounds(region)
    # A file that rounds its edges takes next to nothing of a neighbour, and half of one counts.
    beside = np.roll(cell, 1, axis=1)
    for sliver, allowed in ((1e-15, 1e-9), (5e-4, 2e-3)):
        found_ends = with_crowds.bounds(cell + sliver * beside)
        assert found_ends == pytest.approx(bare.bounds(cell), abs=allowed)
    most = with_crowds.bounds(cell + beside / 2)[1]
    assert most > bare.bounds(cell + beside / 2)[1]
    lower, upper = with_crowds.bounds(TOWN)
    assert lower == bare.bounds(TOWN)[0]
    assert upper > bare.bounds(TOWN)[1]
    # All that is not in the town is known as the town is.
    assert with_crowds.bounds(1 - TOWN) == pytest.approx((1 - upper, 1 - lower))
    assert with_crowds.bounds(TOWN / 2) == pytest.approx((lower / 2, upper / 2))


def test_intervals_of_higher_levels_hold_those_of_lower_ones() -> None:
    found = fitted(FEW, 0.5, 1)
    ends = [posterior(found, level).bounds(TOWN) for level in (0.01, 0.5, 0.9, 0.95, 0.999)]
    lower, upper = np.array(ends).T
    assert (np.diff(lower) <= 0).all()
    assert (np.diff(upper) >= 0).all()
    assert lower[0] <= posterior(found, 0.5).region(TOWN > 0).estimate <= upper[0]
