"""Coverage of the intervals, by simulation with a seed.

A simulated coverage is a mean of R independent numbers in [0, 1]. Chernoff's bound on such a mean
holds whatever their law, so a band of false-alarm probability 1e-6 follows from R alone.
"""

from math import log

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import rel_entr
from scipy.stats import norm

from client_sdk import response_table
from ldpspatial import Estimate, StampChannel, estimate
from ldpspatial.estimation import cell_intervals

Array = NDArray[np.float64]
CELLS = 6
BLOCK = np.zeros((CELLS, CELLS), bool)
BLOCK[:2, :3] = True
FALSE_ALARM = 1e-6


def smooth_map() -> Array:
    x = (np.arange(CELLS) + 0.5) / CELLS
    density = np.exp(-3 * ((x[:, None] - 0.4) ** 2 + (x - 0.55) ** 2))
    return np.asarray(density / density.sum())


def spotted_map() -> Array:
    density = np.full((CELLS, CELLS), 0.4 / CELLS**2)
    density[1, 1] += 0.35
    density[-2, -1] += 0.25
    return density


def drawn(channel: StampChannel, density: Array, n: int, rng: np.random.Generator) -> Estimate:
    law = channel.forward(density)[channel.support]
    return estimate(channel, rng.multinomial(n, law / law.sum()), "em")


def in_band(coverage: float, level: float, slack: float, runs: int) -> bool:
    """Tell whether a mean of ``runs`` numbers fits a true coverage within ``slack`` of the level.

    The slack allows for the normal approximation, the rest for chance.
    """

    def far(x: float, p: float) -> float:
        distance = float(rel_entr(x, p) + rel_entr(1 - x, 1 - p))
        return runs * distance + log(FALSE_ALARM / 2)

    low, high = level - slack, min(level + slack, 1 - 1e-9)
    most = brentq(far, high, 1, args=(high,)) if far(1.0, high) > 0 else 1.0
    return bool(brentq(far, 0, low, args=(low,)) <= coverage <= most)


def coverage(
    channel: StampChannel, truth: Array, n: int, levels: list[float], runs: int
) -> dict[float, tuple[float, float]]:
    """Return by level the share of "fisher" intervals of cells, and of BLOCK, with the truth."""
    rng = np.random.default_rng(7)
    hits = {level: np.zeros(2) for level in levels}
    for _ in range(runs):
        found = drawn(channel, truth, n, rng)
        for level in levels:
            intervals = cell_intervals(found, level)
            share = intervals.region(BLOCK)
            cells = (intervals.lower <= truth) & (truth <= intervals.upper)
            hits[level] += cells.mean(), share.lower <= truth[BLOCK].sum() <= share.upper
    return {level: (total[0] / runs, total[1] / runs) for level, total in hits.items()}


@pytest.mark.parametrize("truth", [smooth_map(), spotted_map()], ids=["smooth", "spotted"])
def test_fisher_covers_at_its_level_on_any_map(truth: Array) -> None:
    runs = 300
    half = 2 * norm.cdf(norm.isf(0.025) / 2) - 1  # the level of half as wide a 95 % interval
    double = 2 * norm.cdf(norm.isf(0.1) * 2) - 1  # of twice as wide an 80 % interval
    channel = StampChannel(response_table("dam", 3.5, CELLS))
    found = coverage(channel, truth, 20_000, [0.95, 0.8, half, double], runs)
    for level in (0.95, 0.8):
        cells, block = found[level]
        assert in_band(cells, level, 0.02, runs)
        assert in_band(block, level, 0.01, runs)
    # These are what intervals of the wrong width would cover: the test would notice.
    assert not any(in_band(share, 0.95, 0.02, runs) for share in found[half])
    assert not any(in_band(share, 0.8, 0.02, runs) for share in found[double])


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "n"),
    [("dam", 3.5, 100), ("dam-ns", 1.5, 3_000), ("huem", 5.0, 300), ("dam", 10.0, 30)],
)
def test_fisher_covers_at_least_at_its_level_where_reports_are_few(
    mechanism: str, epsilon: float, n: int
) -> None:
    # Unbiased estimates are often negative, or no report at all names a cell.
    runs = 200
    channel = StampChannel(response_table(mechanism, epsilon, CELLS))
    for truth in (smooth_map(), spotted_map()):
        for share in coverage(channel, truth, n, [0.95], runs)[0.95]:
            assert share > 0.95 or in_band(share, 0.95, 0.01, runs)
