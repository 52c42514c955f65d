"""Kernels, folds and the choice among widths: against the dense twin, and by made-up examples."""

from collections import Counter
from itertools import product
from math import factorial, log, prod, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from client_sdk import response_table
from ldpspatial import StampChannel, estimate
from ldpspatial.dense_channels import MatrixChannel
from ldpspatial.estimation import sieve
from ldpspatial.estimation.em import Iteration
from ldpspatial.estimation.stopping import CROSS_VALIDATED
from tests.support import naive_channel, naive_sieve
from tests.support.naive_sieve import counts_of, slope, spots

Array = NDArray[np.float64]
FALSE_ALARM = 1e-6
CHANNEL = StampChannel(response_table("dam", 3.5, 5, radius=2))


# Kernels.


@given(st.integers(1, 40), st.sampled_from(sieve.WIDTHS))
@settings(max_examples=60, deadline=None)
def test_kernels_are_symmetric_and_doubly_stochastic(side: int, width: float) -> None:
    shape = (side, min(side, 3))
    smoothed = sieve.SmoothedChannel(MatrixChannel(np.eye(side * shape[1]), shape, 1.0), width)
    units = np.eye(side * shape[1]).reshape(-1, *shape)
    blur = np.array([smoothed.smooth(unit).ravel() for unit in units])
    np.testing.assert_allclose(blur, blur.T, atol=1e-15)
    np.testing.assert_allclose(blur.sum(axis=0), 1, rtol=1e-12)
    assert blur.min() >= 0
    np.testing.assert_allclose(blur, naive_sieve.blur(shape, width), atol=1e-13)
    if width == 0:
        np.testing.assert_array_equal(blur, np.eye(len(blur)))


@given(
    st.sampled_from([("dam", 2.0, 9, 3), ("huem", 5.0, 7, None), ("dam", 1.0, 24, 12)]),
    st.sampled_from(sieve.WIDTHS),
    st.integers(0, 10**6),
)
@settings(max_examples=40, deadline=None)
def test_the_adjoint_of_a_smoothed_channel_is_its_adjoint(
    how: tuple[str, float, int, int | None], width: float, seed: int
) -> None:
    channel = sieve.SmoothedChannel(StampChannel(response_table(*how)), width)
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(how[2] ** 2, 0.1)).reshape(channel.input_shape)
    ratio = rng.exponential(size=channel.support.shape) * channel.support
    forth = (channel.forward(weights) * ratio).sum()
    assert forth == pytest.approx((weights * channel.adjoint(ratio)).sum(), rel=1e-11)
    assert channel.forward(weights).sum() == pytest.approx(1, abs=1e-12)


# The choice.


@pytest.mark.parametrize("n", [1, 2, 7, 400, 5_000])
@pytest.mark.parametrize(
    ("mechanism", "epsilon", "cells"), [("dam", 3.5, 3), ("disk", 2.0, 5), ("huem", 5.0, 7)]
)
@pytest.mark.parametrize("truth", [slope, lambda shape: spots(shape[0])], ids=["slope", "spots"])
def test_the_choice_is_that_of_the_dense_twin(
    mechanism: str, epsilon: float, cells: int, n: int, truth: object
) -> None:
    assert callable(truth)
    table = response_table(mechanism, epsilon, cells)
    channel = StampChannel(table)
    counts = counts_of(channel, truth((cells, cells)), n, seed=n)
    found = sieve.cross_validate(channel, counts, 60)
    folds = [naive_channel.gathered(table, part) for part in sieve._split(counts, sieve.FOLDS)]
    matrix, shape = naive_channel.matrix(table), channel.input_shape
    width, steps, behind, error = naive_sieve.choose(matrix, shape, folds, list(sieve.WIDTHS), 60)
    assert (found.width, found.steps) == (width, steps)
    assert found.behind == pytest.approx(behind, abs=1e-7)
    assert found.standard_error == pytest.approx(error, abs=1e-7)
    assert found.behind <= found.standard_error


def made_up(monkeypatch: pytest.MonkeyPatch, *tilts: float) -> tuple[sieve.Choice, list[float]]:
    """Choose among paths of which path k gives two kinds of report 1/2 -+ tilts[k].

    There are 200 reports of each kind, so a tilt of 0 predicts best. It is ahead of tilt t by
    -200 ln(1 - 4 t^2) nats, with a standard error of 10 ln((1 + 2 t) / (1 - 2 t)); for small t
    these are equal at t = 1/20, and the first is four times the second at t = 1/5.
    """
    tried: list[float] = []

    def path(
        channel: sieve.SmoothedChannel, parts: list[Array], most: int, rival: sieve._Path
    ) -> sieve._Path:
        tilt = tilts[len(tried)]
        tried.append(channel.width)
        predicted = np.array([0.5 - tilt, 0.5 + tilt])
        score = sum(float(part @ np.log(predicted)) for part in parts)
        return sieve._Path(len(tried), score, [predicted] * len(parts))

    monkeypatch.setattr(sieve, "_best_steps", path)
    channel = MatrixChannel(np.full((2, 64), 0.5), (8, 8), 1.0)
    return sieve.cross_validate(channel, np.array([200.0, 200.0]), 100, (0, 0.5, 1, 1.5)), tried


@pytest.mark.parametrize(
    ("tilts", "best", "chosen"),
    [
        ((0, 0.06, 0.06, 0.06), 0, 0),  # the best one, where the others are clearly worse
        ((0, 0.04, 0.06, 0.06), 0, 1),  # a wider one within one standard error
        ((0, 0.06, 0.04, 0.06), 0, 2),  # though one between is not
        ((0.06, 0, 0.01, 0.04), 1, 3),
        ((0.06, 0.05, 0.04, 0), 3, 3),  # narrower ones never
        ((0, 0, 0, 0), 0, 3),  # the widest of equals
        ((0, 1e-12, 0, 1e-12), 0, 3),  # and rounding does not make a difference
    ],
)
def test_the_widest_within_one_standard_error_of_the_best_is_taken(
    tilts: tuple[float, ...], best: int, chosen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice, tried = made_up(monkeypatch, *tilts)
    assert tried == [0, 0.5, 1, 1.5]
    assert (choice.width, choice.steps) == (tried[chosen], chosen + 1)
    at, low = tilts[chosen], tilts[best]
    behind = 200 * (log(1 - 4 * low**2) - log(1 - 4 * at**2))
    leads = [log((0.5 + s * low) / (0.5 + s * at)) for s in (-1, 1)]
    assert choice.behind == pytest.approx(behind, abs=1e-9)
    assert choice.standard_error == pytest.approx(max(10 * abs(leads[1] - leads[0]), 0.5))


def test_widths_beyond_a_hopeless_one_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made_up(monkeypatch, 0, 0.19, 0.15, 0)[1] == [0, 0.5, 1, 1.5]
    choice, tried = made_up(monkeypatch, 0, 0.04, 0.21, 0)
    assert (choice.width, tried) == (0.5, [0, 0.5, 1])
    assert made_up(monkeypatch, 0.3, 0.25, 0, 0)[0].width == 1.5  # the first may be bad


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (2, 7), (3, 50), (5, 5), (16, 17)])
def test_kernels_are_no_wider_than_a_quarter_of_the_map(shape: tuple[int, int]) -> None:
    size = shape[0] * shape[1]
    channel = MatrixChannel(np.full((3, size), 1 / 3), shape, 1.0)
    # The reports tell nothing: all widths predict the same, and the widest is taken.
    found = estimate(channel, [20, 30, 10], CROSS_VALIDATED)
    assert found.width == max(width for width in sieve.WIDTHS if 4 * width <= min(shape))
    np.testing.assert_allclose(found.density, 1 / size, rtol=1e-12)


# Folds.


@given(st.integers(2, 7), st.lists(st.integers(0, 10**15), min_size=1, max_size=9))
@settings(max_examples=100, deadline=None)
def test_every_report_is_in_one_fold(folds: int, reports: list[int]) -> None:
    counts = np.array(reports, float)
    parts = sieve._split(counts, folds)
    assert len(parts) == folds
    np.testing.assert_array_equal(np.sum(parts, axis=0), counts)
    for part in parts:
        assert part.dtype == np.float64
        assert (part >= 0).all()
        assert (part == np.round(part)).all()


def test_folds_are_a_split_of_the_reports_at_random() -> None:
    # 20,000 cells of three reports: folds share each cell's out as five urns share three balls.
    cells, balls, urns = 20_000, 3, 5
    parts = np.array(sieve._split(np.full(cells, float(balls)), urns), int)
    seen = Counter(map(tuple, parts.T.tolist()))
    ways = [way for way in product(range(balls + 1), repeat=urns) if sum(way) == balls]
    law = [factorial(balls) / prod(map(factorial, way)) / urns**balls for way in ways]
    statistic = sum(
        (seen[w] - cells * p) ** 2 / (cells * p) for w, p in zip(ways, law, strict=True)
    )
    assert sum(law) == pytest.approx(1)
    assert statistic < chi2.isf(FALSE_ALARM, len(ways) - 1)
    # Cell by cell: the first fold's shares of neighbours have nothing to do with each other.
    first = parts[0] - balls / urns
    correlation = first[1:] @ first[:-1] / (first @ first)
    assert abs(correlation) < 4.9 / sqrt(cells)  # 1e-6


def test_huge_counts_are_split_evenly() -> None:
    n = 10**15
    parts = sieve._split(np.array([n, 0, 1.0]), 5)
    for part in parts:  # 4.9 standard deviations: 1e-6 each
        assert abs(part[0] - n / 5) < 4.9 * sqrt(n * 0.2 * 0.8)


def test_equal_counts_give_equal_maps_and_nothing_else_decides() -> None:
    counts = counts_of(CHANNEL, slope((5, 5)), 3_000, seed=1)
    state = str(np.random.get_state())  # noqa: NPY002
    first = estimate(CHANNEL, counts, CROSS_VALIDATED)
    assert str(np.random.get_state()) == state  # noqa: NPY002
    in_order = counts[CHANNEL.support].astype(int).tolist()
    for same in (counts.astype(np.uint16), np.asfortranarray(counts), in_order):
        again = estimate(CHANNEL, same, CROSS_VALIDATED)
        assert (again.width, again.trace) == (first.width, first.trace)
        np.testing.assert_array_equal(again.density, first.density)
    other = counts.copy()
    other[CHANNEL.support] = counts[CHANNEL.support][::-1]
    assert not np.array_equal(sieve._split(counts, 5)[0], sieve._split(other, 5)[0][::-1, ::-1])


def test_the_last_step_gives_the_expected_histogram_of_the_users() -> None:
    # E[1{user in x} | report y] = f(x) M(y, x) / sum over x' of f(x') M(y, x'), report by report.
    counts = counts_of(CHANNEL, slope((5, 5)), 300, seed=8)
    before = sieve.fit_sieve(CHANNEL, counts, 1.0, 3)
    kernels = sieve.SmoothedChannel(CHANNEL, 1.0)
    run = Iteration(kernels, counts, sparsity=sieve._sparsity(kernels, counts))
    for _ in range(3):
        run.step()
    prior = kernels.smooth(run.density).ravel()
    matrix, expected = naive_channel.matrix(CHANNEL.table), np.zeros(25)
    for y, count in enumerate(naive_channel.gathered(CHANNEL.table, counts)):
        expected += count * prior * matrix[y] / (prior @ matrix[y])
    np.testing.assert_allclose(before.density.ravel(), expected / 300, rtol=1e-9, atol=1e-15)


def test_sparsity_empties_cells_that_no_report_calls_for() -> None:
    table = response_table("disk", 7.0, 9, squared_radius=1)
    channel = StampChannel(table)
    truth = np.zeros((9, 9))
    truth[4, 4] = 1
    counts = counts_of(channel, truth, 20_000, seed=1)
    assert (sieve.fit_sieve(channel, counts, 0.0, 60).density == 0).sum() > 60
    run = Iteration(channel, counts)
    for _ in range(60):
        run.step()
    assert (run.density > 0).all()
