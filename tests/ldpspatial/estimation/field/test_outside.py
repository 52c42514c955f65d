"""Whether counts speak against a support."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage, stats

from client_sdk import response_table
from ldpspatial import StampChannel
from ldpspatial.channels.reach import disk_radius
from ldpspatial.estimation.field.outside import gain_of_outside
from tests.support.fields import reports

Array = NDArray[np.float64]
SIDE = 10
WEST = (np.indices((SIDE, SIDE))[1] < SIDE // 2).astype(float)


def city(rng: np.random.Generator, where: Array) -> Array:
    """Return a map with crowds, of these cells alone."""
    crowds = np.exp(6 * ndimage.gaussian_filter(rng.standard_normal((SIDE, SIDE)), 1)) * where
    return np.asarray(crowds / crowds.sum())


@pytest.mark.parametrize("mechanism", ["dam", "huem"])
@pytest.mark.parametrize("epsilon", [0.7, 1.4, 3.5, 6.0])
def test_a_support_that_holds_everybody_is_not_spoken_against(
    mechanism: str, epsilon: float
) -> None:
    """Each alarm is false once in a million times: of these 128 none is heard.

    EM is far from its limit where a million report at epsilon 0.7: after as many steps from within
    the support as with all cells, four of these maps gained 3 to 46 nats more than chance.
    """
    rng = np.random.default_rng(1)
    channel = StampChannel(response_table(mechanism, epsilon, SIDE))
    for n in (2_000, 1_000_000):
        for _ in range(8):
            counts = reports(city(rng, WEST), n, rng, channel)
            assert gain_of_outside(channel, counts, WEST) == 0


@pytest.mark.parametrize(("epsilon", "n"), [(0.7, 10_000_000), (2.5, 1_000_000), (3.5, 100_000)])
@pytest.mark.parametrize("kind", ["stripes", "scattered"])
def test_scattered_cells_with_even_people_are_not_spoken_against(
    kind: str, epsilon: float, n: int
) -> None:
    """Chance gains most there: 18 nats more than in cities, in nine of ten collections."""
    rng = np.random.default_rng(4)
    side = 20
    channel = StampChannel(response_table("dam", epsilon, side))
    for _ in range(3):
        support = (np.indices((side, side))[1] % 2 == 0).astype(float)
        if kind == "scattered":
            support = (rng.random((side, side)) < 0.15).astype(float)
        even = support / support.sum()
        counts = reports(even, n, rng, channel)
        assert gain_of_outside(channel, counts, support) == 0
        # Half of the people in one corner are far from all that chance makes.
        corner = np.zeros((side, side))
        corner[:5, :5] = 1 - support[:5, :5]
        counts = reports(0.5 * even + 0.5 * corner / corner.sum(), n, rng, channel)
        assert gain_of_outside(channel, counts, support) > 0


@pytest.mark.parametrize(("epsilon", "n"), [(0.7, 1_000_000), (1.4, 200_000), (3.5, 20_000)])
def test_people_outside_are_noticed(epsilon: float, n: int) -> None:
    rng = np.random.default_rng(2)
    channel = StampChannel(response_table("dam", epsilon, SIDE))
    for _ in range(4):
        density = 0.85 * city(rng, WEST) + 0.15 * city(rng, 1 - WEST)
        counts = reports(density, n, rng, channel)
        assert gain_of_outside(channel, counts, WEST) > 5


def test_the_gain_is_that_of_the_limits_of_plain_em() -> None:
    rng = np.random.default_rng(3)
    channel = StampChannel(response_table("dam", 2.0, SIDE, radius=2))
    counts = reports(0.9 * city(rng, WEST) + 0.1 * city(rng, 1 - WEST), 50_000, rng, channel)
    matrix, sent = channel.matrix(), counts[channel.support]
    found = []
    for where in (WEST.ravel(), np.ones(SIDE**2)):
        density = where / where.sum()
        for _ in range(20_000):
            density = density * (matrix.T @ (sent / (matrix @ density))) / sent.sum()
        found.append(float(sent @ np.log(matrix @ density)))
    gain = gain_of_outside(channel, counts, WEST)
    # Chance gains half of a chi-squared number, by 50 cells and a border of ten next to disks of
    # radius 2.45, which have as many cells as these. The fits may be off by a nat.
    radius = disk_radius(channel)
    freedom = 0.65 * 50 / (radius**2 + 1) + 0.3 * 10 / (radius + 1) + 5
    chance = stats.chi2.isf(1e-6, freedom) / 2
    assert -1.5 < gain - (found[1] - found[0] - chance) <= 1e-3


def test_nothing_is_said_without_reports_or_without_a_cell_outside() -> None:
    channel = StampChannel(response_table("dam", 2.0, SIDE))
    nothing = np.zeros(channel.support.shape)
    assert gain_of_outside(channel, nothing, WEST) == 0
    assert gain_of_outside(channel, nothing, None) == 0
    assert gain_of_outside(channel, nothing, np.ones((SIDE, SIDE))) == 0
