"""The law of counts: against a slow twin, with and without what neighbours foretell."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ldpspatial.estimation.levels.law_of_counts import (
    APART,
    AT_FIRST,
    EM_ROUNDS,
    FINEST,
    MOSTLY_NONE,
    NEIGHBOURS_FIRST,
    OFF,
    _counts,
    _laws,
    posterior,
)
from tests.support import naive_counts

Array = NDArray[np.float64]


@pytest.mark.parametrize("excess", [3.0, 1.1, 1.0, 0.0])
@pytest.mark.parametrize(("variance", "per_person"), [(0.5, 0.0), (32.0, 0.0), (0.5, 0.3)])
def test_posteriors_are_those_of_the_slow_twin(
    variance: float, per_person: float, excess: float
) -> None:
    rng = np.random.default_rng(2)
    deviation = np.sqrt(variance + per_person)
    seen = rng.poisson(rng.gamma(0.3, 6, 40)) + rng.laplace(0, deviation / np.sqrt(2), 40)
    step = deviation / FINEST
    sums = np.round(seen / step) * step
    counts = _counts(deviation, float(sums.max()))
    twin = naive_counts.posterior(
        sums.tolist(), counts.tolist(), variance, per_person, EM_ROUNDS, normal=excess <= 1
    )
    mean, median, doubt = posterior(sums, variance, per_person, excess=excess)
    assert mean == pytest.approx([each[0] for each in twin], abs=1e-6)
    assert median == pytest.approx([each[1] for each in twin])
    assert doubt == pytest.approx([min(each[2], variance) for each in twin], abs=1e-5)


@pytest.mark.parametrize("counted", [1.0, 0.9])
def test_posteriors_of_whole_steps_are_those_of_the_slow_twin(counted: float) -> None:
    rng = np.random.default_rng(6)
    p = 0.04
    there = rng.binomial(np.minimum(rng.poisson(rng.gamma(0.4, 2, 60)), 2), counted)
    steps = there + rng.geometric(1 - p, 60) - rng.geometric(1 - p, 60)
    counts = range(int(steps.max() / counted) + 2)
    twin = naive_counts.in_steps(steps.tolist(), counts, p, counted, EM_ROUNDS)
    variance = 2 * p / (1 - p) ** 2 / counted**2
    mean, median, _ = posterior(steps / counted, variance, (1 - counted) / counted, 1 / counted)
    assert mean == pytest.approx([each[0] for each in twin], abs=1e-6)
    assert median == pytest.approx([each[1] for each in twin])


def test_noise_of_ten_sums_is_not_taken_for_laplaces() -> None:
    """Over 20 levels that are mostly empty, the normal law has .94 of the other's L1."""
    rng = np.random.default_rng(7)
    off = np.zeros(2)
    for _ in range(20):
        truth = rng.poisson(rng.gamma(0.1, 200, 512))
        sums = truth + rng.laplace(0, 5, (10, 512)).sum(0)
        for k, excess in enumerate((0.3, 3.0)):
            _, median, _ = posterior(sums, 10 * 2 * 5.0**2, excess=excess)
            off[k] += np.abs(median - truth).sum()
    assert off[0] < 0.97 * off[1]


def test_noise_in_whole_people_is_not_taken_for_laplaces() -> None:
    """Where few cells hold anybody, the exact law has half of the other's L1 at epsilon 2.5."""
    rng = np.random.default_rng(7)
    truth = rng.poisson(rng.gamma(0.03, 10, 4096))
    p = np.exp(-2.5)
    noise = rng.geometric(1 - p, 4096) - rng.geometric(1 - p, 4096)
    variance = 2 * p / (1 - p) ** 2
    _, exact, _ = posterior((truth + noise).astype(np.float64), variance, 0.0, 1.0)
    _, other, _ = posterior((truth + noise).astype(np.float64), variance)
    assert np.abs(exact - truth).sum() < 0.7 * np.abs(other - truth).sum()


def test_a_sum_far_below_nobody_is_nobody() -> None:
    """Noise of next to none is not expected to give one: no float may overflow where it does."""
    mean, median, _ = posterior(np.array([-25.0, 0.0, 1.0, 1.0, 2.0]), 1e-14, 0.0, 1.0)
    assert mean.round(6).tolist() == median.tolist() == [0.0, 0.0, 1.0, 1.0, 2.0]


def test_where_some_fail_many_are_taken_as_they_are_summed() -> None:
    """One and two are learned, also beside 30 sums of three and of twelve that are not."""
    seen = np.array([0.0] * 90 + [1 / 0.9] * 5 + [10 / 3] * 30 + [12 / 0.9] * 30)
    _, median, _ = posterior(seen, 0.05, 1 / 9, 1 / 0.9)
    assert median[95:].tolist() == seen[95:].tolist()
    assert set(median[:95].tolist()) == {0.0, 1.0}


@pytest.mark.parametrize(("variance", "per_person"), [(0.6, 0.0), (32.0, 0.0), (4.0, 0.3)])
def test_with_neighbours_posteriors_are_those_of_the_slow_twin(
    variance: float, per_person: float
) -> None:
    rng = np.random.default_rng(4)
    deviation = np.sqrt(variance + per_person)
    foretold = APART ** rng.integers(0, 20, (30, 2)).astype(np.float64)
    seen = rng.poisson(foretold[:, 0]) + rng.laplace(0, deviation / np.sqrt(2), 30)
    sums = np.round(seen * FINEST / deviation) * deviation / FINEST
    counts = _counts(deviation, float(sums.max()))
    assert foretold.max() < counts[-1]
    whole = max(round(1 / counts[1]), 1)
    laws = [
        [naive_counts.about(each, counts.tolist(), off, whole) for each in row for off in OFF]
        for row in foretold.tolist()
    ]
    twin = naive_counts.posterior(
        sums.tolist(), counts.tolist(), variance, per_person, EM_ROUNDS, False, laws, AT_FIRST
    )
    found = posterior(sums, variance, per_person, foretold=foretold)
    assert found.mean == pytest.approx([each[0] for each in twin], abs=1e-6)
    assert found.median == pytest.approx([each[1] for each in twin])
    assert found.doubt == pytest.approx([min(each[2], variance) for each in twin], abs=1e-5)


@pytest.mark.parametrize("scale", [2.0, 20.0])
def test_what_neighbours_tell_is_learned_from_the_sums(scale: float) -> None:
    """Where counts are what is foretold, but for chance, errors fall by a quarter and more.

    Where they have nothing to do with it, errors are no more than a fiftieth larger. Over 20 seeds
    ratios were .18 to .72 and .998 to 1.002.
    """
    rng = np.random.default_rng(12)
    foretold = np.repeat(rng.gamma(2, 4 * scale, 1024)[:, np.newaxis], 3, axis=1)
    near, elsewhere = rng.poisson(foretold[:, 0]), rng.permutation(foretold[:, 0])
    for truth, most in ((near, 0.75), (elsewhere, 1.02)):
        sums = truth + rng.laplace(0, scale, len(truth))
        off = [
            ((posterior(sums, 2 * scale**2, foretold=each).mean - truth) ** 2).mean()
            for each in (foretold, None)
        ]
        assert off[0] <= most * off[1]


@pytest.mark.parametrize("step", [0.25, 1.0, 7.0])
def test_laws_about_what_is_foretold_have_it_as_their_mean(step: float) -> None:
    """Whatever the grid, up to what is cut off at its end; and chances that add up to 1."""
    counts = step * np.arange(161)
    foretold = np.array([step / 8, step / 2, step, 3 * step, counts[-1] / 20])
    laws = _laws(foretold, counts)
    assert laws.min() >= 0
    assert laws.sum(axis=2) == pytest.approx(1)
    assert (laws @ counts)[:, :3] == pytest.approx(np.outer(foretold, np.ones(3)), rel=1e-6)
    assert not laws[:, :, np.mod(counts, 1) > 0].any()


@pytest.mark.parametrize(
    ("variance", "step", "asked"),
    [(0.1, 1.0, False), (0.4, 0.0, False), (0.55, 1 / 0.9, False), (0.6, 0.0, True)],
)
def test_where_noise_is_mostly_none_neighbours_are_not_asked(
    variance: float, step: float, asked: bool
) -> None:
    """With them, central maps of cities at eps 5 were farther off by 1.15 in W2."""
    rng = np.random.default_rng(3)
    foretold = np.linspace(0.2, 8.0, 300)
    people = rng.poisson(foretold) + rng.laplace(0, np.sqrt(variance / 2), 300)
    size = step or 0.01
    sums = np.round(people / size) * size
    alone = posterior(sums, variance, 0.0, step)
    beside = posterior(sums, variance, 0.0, step, foretold=foretold[:, np.newaxis])
    assert (np.abs(beside.mean - alone.mean).max() > 0.01) == asked


@pytest.mark.parametrize("value", [0.0, 1e-300, 1.0, 1e15])
@pytest.mark.parametrize("variance", [1e-9, 1.0, 1e12])
def test_whatever_is_foretold_there_are_people(value: float, variance: float) -> None:
    sums = np.array([-3.0, 0.0, 0.0, 2.0, 500.0])
    found = posterior(sums, variance, foretold=np.full((5, 3), value))
    assert np.isfinite(found).all()
    assert min(found.mean.min(), found.median.min(), found.doubt.min()) >= 0


@pytest.mark.parametrize("counted", [0.95, 0.9, 0.7])
def test_which_sums_are_told_by_the_law_does_not_hang_on_epsilon(counted: float) -> None:
    """Up to two people who were counted: before, it was one in bands of epsilon around 2.2.

    There maps were up to twice as far off as at the epsilons beside them.
    """
    steps = np.repeat([0, 1, 2, 3, 4, 40], [200, 40, 20, 10, 5, 1])
    for epsilon in np.arange(1.8, 8, 0.05):
        p = np.exp(-epsilon)
        variance = 2 * p / (1 - p) ** 2 / counted**2
        if variance >= MOSTLY_NONE / counted**2:
            continue
        mean, _, doubt = posterior(steps / counted, variance, 1 / counted - 1, 1 / counted)
        as_it_is = (mean == steps / counted) & (doubt == variance)
        assert as_it_is.tolist() == (steps > 2).tolist(), epsilon


def test_where_sums_say_little_a_law_stays_where_it_began() -> None:
    """Noise of eight times the deviation of people, whom neighbours foretell.

    With nine tenths for neighbours at first squares of errors are .22 to .7 times as large over 20
    seeds, .3 in the median.
    """
    rng = np.random.default_rng(8)
    people = rng.poisson(rng.choice([5.0, 12.0], 1000)).astype(np.float64)
    sums = people + 32 * rng.normal(size=1000)
    off = [
        np.square(
            posterior(
                sums, 32.0**2, excess=0.0, foretold=people[:, np.newaxis], at_first=at_first
            ).mean
            - people
        ).mean()
        for at_first in (AT_FIRST, NEIGHBOURS_FIRST)
    ]
    assert off[1] < 0.6 * off[0]
