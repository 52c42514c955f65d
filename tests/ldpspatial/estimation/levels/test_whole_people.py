"""Whether sums say that nodes hold whole people, and what they then say of how many."""

from math import exp

import numpy as np
import pytest

from ldpspatial.estimation.levels.law_of_counts import EM_ROUNDS, FINEST, posterior
from ldpspatial.estimation.levels.whole_people import are_whole, nearest_whole
from tests.support import naive_counts


def test_sums_tell_whole_people_from_parts_of_them() -> None:
    rng = np.random.default_rng(1)
    for scale in (0.05, 0.15, 0.2, 0.3):
        people = rng.poisson(30, 2000).astype(float)
        noise = rng.laplace(0, scale, 2000)
        assert are_whole(people + noise, 2 * scale**2)
        some = np.where(rng.random(2000) < 0.3, 3.0, 1.0)
        for parts in (rng.integers(2, 6, 2000), 2.0, *([some] if scale < 0.25 else [])):
            assert not are_whole(people / parts + noise, 2 * scale**2)
    assert not are_whole(people + rng.laplace(0, 0.6, 2000), 2 * 0.6**2)  # hardly told
    assert not are_whole(people, 0.0)
    assert not are_whole(np.zeros(2000), 0.02)  # nobody is anywhere
    assert not are_whole(np.array([1000.4]), 0.02)


def test_whole_people_are_seldom_taken_for_what_they_are_not() -> None:
    """Of levels with people anywhere, e^-5 of all at most are taken for whole."""
    rng = np.random.default_rng(2)
    sums = rng.uniform(2, 90, (4000, 64))
    assert sum(are_whole(each, 0.08) for each in sums) <= 60  # 27 expected at most


def test_few_crowds_do_not_hide_parts_of_people() -> None:
    """Half of each person in one of a few crowds, whole by chance, half at a place of their own."""
    rng = np.random.default_rng(6)
    for crowds, scale in ((3, 0.04), (4, 0.06), (2, 0.02)):
        taken = 0
        for _ in range(200):
            people = np.zeros(256)
            people[rng.choice(252, 60, replace=False)] = 0.5
            np.add.at(people, rng.integers(252, 252 + crowds, 60), 0.5)
            taken += are_whole(people + rng.laplace(0, scale, 256), 2 * scale**2)
        assert taken == 0  # if crowds alone were asked more than five


@pytest.mark.parametrize("scale", [0.09, 0.125, 0.25])
def test_crowds_of_whole_people_do_not_hide_thirds_elsewhere(scale: float) -> None:
    """10,000 whole people in 500 cells, and 700 in thirds each in three others."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        people = np.zeros(4096)
        np.add.at(people, rng.integers(0, 500, 10_000), 1.0)
        np.add.at(people, rng.integers(600, 4096, 2100), 1 / 3)
        assert not are_whole(people + rng.laplace(0, scale, 4096), 2 * scale**2)


@pytest.mark.parametrize("scale", [0.05, 0.1, 0.2, 0.3])
def test_whole_people_are_found(scale: float) -> None:
    """In at least 92 of 100 levels, at any noise: 97 and more in other draws."""
    rng = np.random.default_rng(8)
    found = 0
    for _ in range(100):
        people = rng.poisson(rng.gamma(0.3, 10, 4096))
        found += are_whole(people + rng.laplace(0, scale, 4096), 2 * scale**2)
    assert found >= 92


def test_next_to_no_noise_is_no_error() -> None:
    with np.errstate(all="raise", under="ignore"):
        assert are_whole(np.arange(4.0, 40.0), 1e-12)
        assert not are_whole(np.arange(4.0, 40.0) / 2, 1e-12)
        mean, _, doubt = nearest_whole(np.array([7.0, 7.5]), 1e-12)
    assert mean.tolist() == [7.0, 7.5]
    assert doubt.tolist() == [0.0, 0.25]


@pytest.mark.parametrize("scale", [0.05, 0.2, 0.4])
def test_the_nearest_are_those_of_the_sum_over_all(scale: float) -> None:
    sums = np.random.default_rng(3).uniform(20, 60, 50)
    for k, (mean, median, doubt) in enumerate(zip(*nearest_whole(sums, 2 * scale**2), strict=True)):
        likely = {n: exp(-abs(sums[k] - n) / scale) for n in range(81)}
        total = sum(likely.values())
        first = sum(n * each for n, each in likely.items()) / total
        second = sum((n - first) ** 2 * each for n, each in likely.items()) / total
        assert mean == pytest.approx(first)
        assert median == round(sums[k])
        assert doubt == pytest.approx(second, abs=1e-9)


def test_laws_of_whole_people_are_those_of_the_slow_twin() -> None:
    rng = np.random.default_rng(4)
    variance = 0.1
    step = np.sqrt(variance) / FINEST
    seen = rng.poisson(rng.gamma(0.5, 8, 60)) + rng.laplace(0, np.sqrt(variance / 2), 60)
    sums = np.round(seen / step) * step
    counts = [float(k) for k in range(int(sums.max()) + 2)]
    twin = naive_counts.posterior(sums.tolist(), counts, variance, 0.0, EM_ROUNDS)
    mean, median, doubt = posterior(sums, variance, whole=True)
    assert mean == pytest.approx([each[0] for each in twin], abs=1e-6)
    assert median == pytest.approx([each[1] for each in twin])
    assert doubt == pytest.approx([min(each[2], variance) for each in twin], abs=1e-5)


def test_counts_beyond_the_law_are_the_nearest() -> None:
    rng = np.random.default_rng(5)
    people = rng.integers(0, 3000, 500)
    sums = people + rng.laplace(0, 0.15, 500)
    found = posterior(sums, 2 * 0.15**2, whole=True)
    assert np.abs(found.median - people).mean() < 0.4 * np.abs(sums - people).mean()
    assert ((found.mean - people) ** 2).mean() < 0.8 * ((sums - people) ** 2).mean()
