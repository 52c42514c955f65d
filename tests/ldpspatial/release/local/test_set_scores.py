"""Intervals of shares from set reports: exact variances, coverage, edges."""

from dataclasses import replace
from fractions import Fraction
from itertools import chain
from math import exp, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

from ldpspatial import Estimate, estimate
from ldpspatial.estimation import region_share
from ldpspatial.estimation.intervals.regions import share_intervals
from ldpspatial.estimation.intervals.scores import score_bounds
from ldpspatial.privacy.whole_draws import two_weights
from ldpspatial.release.local.sets.local_hashing import Olh
from ldpspatial.release.local.sets.set_reports import SetChannel, SetRelease, SetReports
from ldpspatial.release.local.sets.subset_selection import SubsetSelection, inclusion_probability
from ldpspatial.release.local.sets.unary import Oue
from tests.support import naive_local_sets as naive

Array = NDArray[np.float64]
FALSE_ALARM = 1e-6
RELEASES = [SubsetSelection(), Oue(), Olh()]
every_release = pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)


def bounds(reports: SetReports, weights: Array, level: float = 0.95) -> tuple[float, float]:
    return score_bounds(SetChannel(reports, weights.shape), np.ones(len(reports)), level)(weights)


def found_map(release: SetRelease, people: int, side: int = 4) -> Estimate:
    """People spread over all cells, by EM on their reports at epsilon 1."""
    reports = release.reports(
        np.arange(people) % side**2, side**2, 1.0, np.random.default_rng(people)
    )
    return estimate(SetChannel(reports, (side, side)), np.ones(people), "em")


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.2, 5.0, 20.0])
@pytest.mark.parametrize("size", [2, 4])
def test_the_lift_is_that_of_the_law(epsilon: float, size: int) -> None:
    e, rng = Fraction(exp(epsilon)), np.random.default_rng(1)
    k = int(SubsetSelection().design(size, epsilon)["subset_size"])
    laws = [naive.subset_law(size, k, e), naive.oue_law(size, e)]
    for release, law in zip(RELEASES, laws, strict=False):
        own = sum(row[0] for report, row in law.items() if 0 in report)
        other = sum(row[1] for report, row in law.items() if 0 in report)
        reports = release.reports(np.zeros(1, int), size, epsilon, rng)
        assert reports.lift == pytest.approx(float(own - other), rel=1e-9)
    # OLH: the own hash is kept with p = e / (e + g - 1); another value has it with 1 / g.
    g = int(Olh().design(size, epsilon)["hash_values"])
    lift = e / (e + g - 1) - Fraction(1, g)
    reports = Olh().reports(np.zeros(1, int), size, epsilon, rng)
    assert reports.lift == pytest.approx(float(lift), rel=1e-9)


def test_an_interval_has_the_variance_of_the_law() -> None:
    # All sets of 4 cells with their exact frequencies in place of a draw. Bits of OUE are
    # independent given the cell: scores have the variance of the weights and of the bits.
    epsilon, n, level = 1.3, 5_000.0, 0.9
    density, weights = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.9, 0.0, 0.4, 0.1])
    law = naive.oue_law(4, Fraction(exp(epsilon)))
    sets = [sorted(report) for report in law]
    starts, cells = np.cumsum([0, *map(len, sets)]), np.fromiter(chain(*sets), np.uint8)
    q = 1 / (exp(epsilon) + 1)
    share, lift = float(weights @ density), 0.5 - q
    scaled = weights / weights.max()
    bits = density / 4 + (1 - density) * q * (1 - q)
    variance = float(density @ scaled**2) - float(density @ scaled) ** 2
    variance += float(bits @ (scaled - scaled.mean()) ** 2) / lift**2
    z = float(norm.isf((1 - level) / 2))
    reach = weights.max() * z * sqrt(variance / (n - 1) + (z / lift / n) ** 2)
    channel = SetChannel(SetReports(starts, cells, 4, two_weights(epsilon), lift), (2, 2))
    counts = n * naive.matrix(law) @ density
    found = score_bounds(channel, counts, level)(weights.reshape(2, 2))
    assert found == pytest.approx((share - reach, share + reach), rel=1e-12)


def test_a_cell_in_subsets_has_the_interval_of_a_binomial() -> None:
    size, epsilon, n = 9, 0.8, 4_000
    values = np.random.default_rng(1).choice(size, n, p=np.arange(1, 10) / 45)
    reports = SubsetSelection().reports(values, size, epsilon, np.random.default_rng(2))
    k, p = len(reports.cells) // n, float(inclusion_probability(size, epsilon))
    q = (k - p) / (size - 1)
    held = float((reports.cells == 5).sum()) / n
    z = float(norm.isf(0.025))
    reach = z / (p - q) * sqrt(held * (1 - held) / (n - 1) + (z / n) ** 2)
    share = (held - q) / (p - q)
    weights = np.zeros((3, 3))
    weights.flat[5] = 1
    assert share - reach > 0
    assert bounds(reports, weights) == pytest.approx((share - reach, share + reach), rel=1e-9)


@every_release
@pytest.mark.parametrize("density", ["even", "crowded"])
def test_intervals_cover_at_their_level(release: SetRelease, density: str) -> None:
    # Coverage .95 up to .01 for the limit law and the term beside the variance. Half of the error
    # covers .67, and twice of it always.
    runs, n, side = 1000, 2_000, 4
    truth = np.full(16, 1 / 16)
    if density == "crowded":
        truth = np.full(16, 0.02)
        truth[[3, 9]] = 0.5, 0.22
    rng = np.random.default_rng(3)
    reports = release.reports(rng.choice(16, runs * n, p=truth), 16, 1.0, rng)
    regions = [np.zeros((side, side)), np.zeros((side, side)), np.ones((side, side))]
    regions[0].flat[[3, 2]] = 1
    regions[1][:2], regions[1][2] = 1, 0.5
    regions[2].flat[3] = 0
    inside = np.zeros(len(regions), int)
    for run in range(runs):
        sets = replace(reports, starts=reports.starts[run * n : (run + 1) * n + 1])
        for i, weights in enumerate(regions):
            lower, upper = bounds(sets, weights)
            inside[i] += lower <= weights.ravel() @ truth <= upper
    assert (binom.cdf(inside, runs, 0.94) > FALSE_ALARM).all()
    assert (binom.sf(inside - 1, runs, 0.97) > FALSE_ALARM).all()
    assert binom.cdf(0.67 * runs, runs, 0.94) < FALSE_ALARM
    assert binom.sf(runs - 1, runs, 0.97) < FALSE_ALARM


@every_release
def test_auto_takes_scores_and_needs_no_generator(release: SetRelease) -> None:
    found = found_map(release, 5_000)
    west = np.zeros((4, 4), bool)
    west[:, :2] = True
    share = region_share(found, west)
    assert share == region_share(found, west, 0.95, "scores")
    assert share_intervals(found, 0.95, "auto").method == "scores"
    assert share.estimate == pytest.approx(found.density[:, :2].sum(), rel=1e-15)
    assert (share.lower, share.upper) == bounds(found.channel.reports, west * 1.0)  # type: ignore[attr-defined]
    assert 0 < share.lower < 0.5 < share.upper < 1


@every_release
def test_the_rest_of_the_map_has_the_rest_of_the_people(release: SetRelease) -> None:
    # Also where the size of a set is random: a large region is known as well as a small one.
    found = found_map(release, 5_000)
    weights = np.random.default_rng(2).random((4, 4)) < 0.4
    share, rest = region_share(found, weights), region_share(found, ~weights)
    assert (rest.lower, rest.upper) == pytest.approx((1 - share.upper, 1 - share.lower))


@every_release
def test_nowhere_everywhere_and_one_report(release: SetRelease) -> None:
    for people in (1, 2, 60):
        found = found_map(release, people)
        for level in (0.1, 0.95, 1 - 1e-16):
            for weight in (0.0, 1.0):
                share = region_share(found, np.full((4, 4), weight), level)
                assert (share.lower, share.upper) == (weight, weight)
            share = region_share(found, np.eye(4), level)
            assert 0 <= share.lower <= share.upper <= 1
            if people == 1:
                assert (share.lower, share.upper) == (0, 1)
    one = region_share(found_map(release, 30, side=1), [[1.0]])
    assert (one.estimate, one.lower, one.upper) == pytest.approx((1.0,) * 3)


def test_a_region_that_no_report_names_may_hold_somebody() -> None:
    reports = SetReports(np.arange(101), np.zeros(100, np.uint8), 4, two_weights(3.0), 0.8)
    weights = np.zeros((2, 2))
    weights[1, 1] = 1
    lower, upper = bounds(reports, weights)
    assert lower == 0
    # A share of .03 leaves the cell out of 100 sets with probability (1 - .8 x .03)^100 = .09.
    assert upper > 0.03


def test_a_report_that_came_twice_counts_twice() -> None:
    one, two = np.array([0, 1, 2], np.uint8), np.array([0, 1, 2, 1, 2], np.uint8)
    once = SetReports(np.array([0, 1, 3]), one, 4, two_weights(3.0), 0.8)
    twice = SetReports(np.array([0, 1, 3, 5]), two, 4, two_weights(3.0), 0.8)
    weights = np.array([[0.1, 0.2], [0.9, 0.3]])
    for level in (0.01, 0.1):
        counted = score_bounds(SetChannel(once, (2, 2)), np.array([1.0, 2.0]), level)(weights)
        assert counted == pytest.approx(bounds(twice, weights, level))
        assert 0.1 < counted[0] < counted[1] < 0.9
