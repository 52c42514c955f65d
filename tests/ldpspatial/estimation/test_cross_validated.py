"""rule="cross-validated": what every such estimate must keep, and what it is worth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from client_sdk import response_table
from ldpspatial import Estimate, StampChannel, estimate, wasserstein
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.channels.protocol import Channel
from ldpspatial.channels.smooth import ALL, WIDTHS
from ldpspatial.collecting.results import finite_width
from ldpspatial.errors import InputError
from ldpspatial.estimation import region_share
from ldpspatial.estimation.estimate import RULES
from ldpspatial.estimation.sieve import CROSS_VALIDATED
from ldpspatial.release.local.sets.set_reports import SetChannel
from ldpspatial.release.local.sets.subset_selection import SubsetSelection
from tests.support import naive_channel
from tests.support.naive_sieve import counts_of, slope, spots

Array = NDArray[np.float64]
CHANNEL = StampChannel(response_table("dam", 3.5, 5, radius=2))


def subset_reports(n: int) -> Channel:
    rng = np.random.default_rng(3)
    values = rng.choice(36, n, p=slope((6, 6)).ravel())
    return SetChannel(SubsetSelection().reports(values, 36, 2.0, rng), (6, 6))


def matrix_channel(shape: tuple[int, int], impossible: int = 0) -> MatrixChannel:
    """Return randomised response on a map, with reports that nobody can send."""
    size = shape[0] * shape[1]
    matrix = np.vstack([np.full((size, size), 0.5 / size) + np.eye(size) / 2])
    return MatrixChannel(np.vstack([matrix, np.zeros((impossible, size))]), shape, 3.0)


def one_place(channel: Channel, n: float) -> Array:
    counts = np.zeros(channel.support.shape)
    counts.flat[np.flatnonzero(channel.support)[1]] = n
    return counts


def drawn(channel: Channel, n: int) -> tuple[Channel, Array]:
    return channel, counts_of(channel, slope(channel.input_shape), n, seed=n)


ONE_CELL = StampChannel(response_table("dam", 1.0, 1, 2))
TWO = StampChannel(response_table("dam", 3.5, 2, 1))
NINE = StampChannel(response_table("dam", 0.1, 9, 4))
NO_PRIVACY = MatrixChannel(np.eye(64), (8, 8), 9.0)  # most reports are impossible to most folds
PEAKS = StampChannel(response_table("disk", 5.0, 12))
PEAK_COUNTS = counts_of(PEAKS, spots(12), 20_000, seed=20_000)
EDGES = {
    "peaks on flat background": (PEAKS, PEAK_COUNTS),
    **{f"one cell, {n}": drawn(ONE_CELL, n) for n in (1, 2, 1_000)},
    **{f"2 x 2, {n}": drawn(TWO, n) for n in (1, 2, 3, 10**9)},
    **{f"5 x 5, {n}": drawn(CHANNEL, n) for n in (1, 2, 3, 4, 10, 10**9, 10**15)},
    **{f"epsilon 0.1, {n}": drawn(NINE, n) for n in (1, 2, 3, 100, 10**9)},
    **{f"2 x 7, {n}": drawn(matrix_channel((2, 7)), n) for n in (1, 50, 10**6)},
    **{f"12 x 5, {n}": drawn(matrix_channel((12, 5), impossible=4), n) for n in (1, 50, 10**5)},
    **{f"no privacy, {n}": drawn(NO_PRIVACY, n) for n in (1, 2, 20, 1_000)},
    **{f"one place, {n:g}": (CHANNEL, one_place(CHANNEL, n)) for n in (1, 2, 1e9, 2.0**53)},
    **{f"subsets, {n}": (subset_reports(n), np.ones(n)) for n in (1, 2, 5, 2_000)},
}


def check_density(found: Estimate) -> None:
    assert (found.density >= 0).all()
    assert found.density.sum() == pytest.approx(1, abs=1e-12)
    assert len(found.trace) == found.iterations + 1
    assert found.trace[-1] == found.log_likelihood


@pytest.mark.parametrize("name", EDGES)
def test_the_estimate_is_a_density_with_its_likelihood(name: str) -> None:
    channel, counts = EDGES[name]
    found = estimate(channel, counts, CROSS_VALIDATED, max_iterations=300)
    check_density(found)
    assert found.rule == CROSS_VALIDATED
    assert found.facts["width"] in (*WIDTHS, ALL)
    assert 1 <= found.iterations <= 300
    # The trace is that of the counts under the density that is returned.
    predicted, seen = channel.forward(found.density), counts > 0
    likelihood = counts[seen] @ np.log(predicted[seen])
    assert found.log_likelihood == pytest.approx(likelihood, rel=1e-12, abs=1e-9)


@given(
    st.integers(1, 7), st.floats(0.1, 10), st.integers(0, 10**6), st.sampled_from([1, 3, 40, 9999])
)
@settings(max_examples=40, deadline=None)
def test_counts_of_any_shape_give_a_density(cells: int, epsilon: float, seed: int, n: int) -> None:
    table = response_table("disk", epsilon, cells, squared_radius=min(5, cells**2))
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, rng.dirichlet(np.full(table.output_size, 0.2)))
    check_density(estimate(StampChannel(table), counts, CROSS_VALIDATED, max_iterations=50))


def test_one_report_leaves_the_map_as_smooth_as_it_can_be() -> None:
    found = estimate(CHANNEL, one_place(CHANNEL, 1), CROSS_VALIDATED)
    assert (found.facts["width"], found.iterations) == (1.0, 1)


@pytest.mark.parametrize("limit", [1, 7, 10_000])
def test_the_limit_holds_for_the_folds_too(limit: int) -> None:
    counts = counts_of(CHANNEL, spots(5), 20_000, seed=2)
    steps: list[tuple[int, float]] = []
    found = estimate(
        CHANNEL,
        counts,
        CROSS_VALIDATED,
        max_iterations=limit,
        progress=lambda step, likelihood: steps.append((step, likelihood)),
    )
    assert found.iterations <= limit
    assert found.converged == (limit == 10_000)
    assert steps == [(k + 1, value) for k, value in enumerate(found.trace[1:])]


@pytest.mark.parametrize(("limit", "converged"), [(60, False), (80, False), (150, True)])
def test_any_fit_that_the_limit_cut_may_have_won(limit: int, converged: bool) -> None:
    # 65 steps predict best, and it takes some more to see that: 80 are too few to know.
    found = estimate(PEAKS, PEAK_COUNTS, CROSS_VALIDATED, max_iterations=limit)
    assert found.iterations == min(limit, 65)
    assert found.converged == converged


def test_smoothing_is_refused_and_every_rule_is_named() -> None:
    counts = counts_of(CHANNEL, slope((5, 5)), 10, seed=1)
    for smoothing in ("binomial", "five-point", lambda density: density):
        with pytest.raises(InputError, match="smoothing must be left out"):
            estimate(CHANNEL, counts, CROSS_VALIDATED, smoothing)
    with pytest.raises(InputError) as error:
        estimate(CHANNEL, counts, "best")
    assert all(rule in str(error.value) for rule in RULES)
    assert estimate(CHANNEL, counts).facts == {"smoothing": "none"}


def test_kernels_of_all_widths_are_named() -> None:
    found = estimate(PEAKS, PEAK_COUNTS, CROSS_VALIDATED)
    assert (found.facts["width"], finite_width(found.facts["width"])) == (ALL, "all")
    region = np.zeros((12, 12))
    region[:6] = 1
    share = region_share(found, region, 0.95, "fisher")
    assert share.lower <= spots(12)[:6].sum() <= share.upper


# What it is worth.


def distances(mechanism: str, truth: Array, runs: int) -> tuple[Array, Array]:
    """Return W2 in cells of maps of 10,000 reports at eps = 3.5: by "scaled", cross-validated."""
    channel = StampChannel(response_table(mechanism, 3.5, len(truth)))
    errors = []
    for seed in range(runs):
        counts = counts_of(channel, truth, 10_000, seed)
        found = [estimate(channel, counts, rule) for rule in ("scaled", CROSS_VALIDATED)]
        errors.append([wasserstein(truth, each.density) for each in found])
    plain, sieved = np.array(errors).T
    return plain, sieved


@pytest.mark.parametrize("mechanism", ["disk", "dam"])
def test_the_normal_map_is_nearer_to_the_truth(mechanism: str) -> None:
    # Measured on 24 other seeds: .57 and .60 of the distance of "scaled". By their spread, 8 runs
    # with new random numbers fail in one of 10^3 cases. Without sparsity it is .77: that fails.
    x = (np.arange(15) + 0.5) * 9.45 / 15
    y, x = x[:, None] - 4.44, x - 4.87
    truth = np.exp(-(x * x - x * y + y * y) / 1.5)  # unit variances, covariance 0.5
    plain, sieved = distances(mechanism, truth / truth.sum(), 8)
    assert sieved.mean() <= 0.7 * plain.mean()


@pytest.mark.parametrize("mechanism", ["disk", "dam"])
def test_three_spots_on_even_ground_are_nearer_by_kernels_of_all_widths(mechanism: str) -> None:
    # Peaks and a flat background have no common width. With all widths at once .90 and .87 of the
    # distance of "scaled" on 24 other seeds, and the ratio of four runs has a standard deviation of
    # .03; with single widths only it is 1.19 and 1.14: that fails.
    plain, sieved = distances(mechanism, spots(15), 4)
    assert sieved.mean() <= 1.02 * plain.mean()


def test_no_noise_is_left_around_people_who_all_are_in_two_cells() -> None:
    # Measured on 48 other seeds: .37 with a standard deviation of .15 for one map, so that the mean
    # of eight is beyond .56 in less than one of 10^3 cases. With a quarter of a user of sparsity
    # and no more it is .72, with a standard deviation of .11: that fails.
    table = response_table("disk", 7.0, 15, squared_radius=0)
    matrix, errors = naive_channel.matrix(table), []
    for seed in range(8):
        rng, users, counts = np.random.default_rng(seed), np.zeros((15, 15)), np.zeros(225)
        users[5, 7], users[12, 2] = rng.multinomial(10_000, [0.7, 0.3])
        for cell in (5 * 15 + 7, 12 * 15 + 2):
            counts += rng.multinomial(users.flat[cell], matrix[:, cell])
        found = estimate(StampChannel(table), counts.reshape(15, 15), CROSS_VALIDATED)
        errors.append(wasserstein(users / 10_000, found.density))
    assert np.mean(errors) < 0.56
