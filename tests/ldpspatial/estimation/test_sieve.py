"""The choice among widths: against the dense twin, and by made-up examples."""

from collections.abc import Sequence
from math import log

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import ResponseTable, response_table
from ldpspatial import StampChannel, estimate
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.channels.smooth import ALL, WIDTHS, SmoothedChannel
from ldpspatial.estimation import folds, sieve
from ldpspatial.estimation.em import Iteration
from ldpspatial.estimation.sieve import CROSS_VALIDATED, Sieve
from tests.support import naive_channel, naive_sieve
from tests.support.naive_sieve import counts_of, slope, spots

Array = NDArray[np.float64]
CHANNEL = StampChannel(response_table("dam", 3.5, 5, radius=2))


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
    counts = counts_of(StampChannel(table), truth((cells, cells)), n, seed=n)
    check_choice(table, counts, 60)


def test_the_choice_of_all_widths_is_that_of_the_dense_twin() -> None:
    table = response_table("disk", 5.0, 12)
    counts = counts_of(StampChannel(table), spots(12), 20_000, seed=20_000)
    assert check_choice(table, counts, 100).width == ALL


@pytest.mark.parametrize(("epsilon", "cells", "n"), [(7.0, 9, 20_000), (4.0, 6, 5_000)])
def test_the_choice_of_more_sparsity_is_that_of_the_dense_twin(
    epsilon: float, cells: int, n: int
) -> None:
    table = response_table("disk", epsilon, cells, squared_radius=0)
    truth = np.zeros((cells, cells))
    truth[cells // 3, cells // 2], truth[-2, 1] = 0.7, 0.3
    counts = counts_of(StampChannel(table), truth, n, seed=1)
    assert check_choice(table, counts, 60).sparsity > sieve.SPARSITY


def check_choice(table: ResponseTable, counts: Array, most: int) -> sieve.Choice:
    channel = StampChannel(table)
    found = sieve.cross_validate(channel, counts, most)
    parts = [naive_channel.gathered(table, part) for part in folds.split(counts, sieve.FOLDS)]
    matrix, shape = naive_channel.matrix(table), channel.input_shape
    *chosen, behind, error = naive_sieve.choose(matrix, shape, parts, list(WIDTHS), most)
    assert [found.width, found.steps, found.sparsity] == chosen
    assert found.behind == pytest.approx(behind, abs=1e-7)
    assert found.standard_error == pytest.approx(error, abs=1e-7)
    assert found.behind <= found.standard_error * (1 if found.steps else 2)
    return found


def made_up(
    monkeypatch: pytest.MonkeyPatch,
    *tilts: float,
    every: float = 0.4,
    flat: float = 0.4,
    sparser: Sequence[float] = (0.4,),
) -> tuple[sieve.Choice, list[float]]:
    """Choose among paths of which path k gives two kinds of report 1/2 -+ tilts[k].

    There are 200 reports of each kind, so a tilt of 0 predicts best. It is ahead of tilt t by
    -200 ln(1 - 4 t^2) nats, with a standard error of 10 ln((1 + 2 t) / (1 - 2 t)); for small t
    these are equal at t = 1/20, and the first is four times the second at t = 1/5. ``every`` is
    the tilt of kernels of all widths, ``flat`` that of the uniform map, ``sparser`` are those of
    growing sparsity at the chosen width.
    """
    tried: list[float] = []

    def tilted(tilt: float, steps: int, parts: list[Array]) -> folds.Prediction:
        predicted = np.array([0.5 - tilt, 0.5 + tilt])
        score = sum(float(part @ np.log(predicted)) for part in parts)
        return folds.Prediction(steps, score, [predicted] * len(parts))

    def path(
        channel: SmoothedChannel,
        parts: list[Array],
        most: int,
        rival: folds.Prediction,
        sparsity: float,
    ) -> folds.Prediction:
        if channel.width == ALL:
            assert sparsity == 0
            return tilted(every, 99, parts)
        if sparsity > sieve.SPARSITY:
            order = sieve.SPARSER.index(sparsity)
            return tilted(sparser[order], 50 + order, parts)
        tried.append(channel.width)
        return tilted(tilts[len(tried) - 1], len(tried), parts)

    monkeypatch.setattr(sieve, "best_steps", path)
    monkeypatch.setattr(sieve, "predict_uniform", lambda channel, parts: tilted(flat, 0, parts))
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
@pytest.mark.parametrize("every", [0.4, 0.06])
def test_the_widest_within_one_standard_error_of_the_best_is_taken(
    tilts: tuple[float, ...],
    best: int,
    chosen: int,
    every: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choice, tried = made_up(monkeypatch, *tilts, every=every)
    assert tried == [0, 0.5, 1, 1.5]
    assert (choice.width, choice.steps) == (tried[chosen], chosen + 1)
    at, low = tilts[chosen], tilts[best]
    behind = 200 * (log(1 - 4 * low**2) - log(1 - 4 * at**2))
    leads = [log((0.5 + s * low) / (0.5 + s * at)) for s in (-1, 1)]
    assert choice.behind == pytest.approx(behind, abs=1e-9)
    assert choice.standard_error == pytest.approx(max(10 * abs(leads[1] - leads[0]), 0.5))


@pytest.mark.parametrize("behind", [0.06, 0.1, 0.3])
def test_all_widths_at_once_are_taken_where_every_single_one_is_clearly_worse(
    behind: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice, _ = made_up(monkeypatch, 0.4, behind, behind, 0.4, every=0)
    assert (choice.width, choice.steps, choice.behind) == (ALL, 99, 0)


@pytest.mark.parametrize("tilts", [(0.4, 0, 0.4, 0.4), (0.4, 0.04, 0.4, 0.4)])
def test_all_widths_at_once_are_not_taken_within_one_standard_error(
    tilts: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made_up(monkeypatch, *tilts, every=0)[0].width == 0.5


@pytest.mark.parametrize(("sparser", "width"), [(0, 0), (0.03, 0), (0.0599, ALL), (0.1, ALL)])
def test_all_widths_at_once_are_not_taken_where_more_sparsity_is_clearly_better(
    sparser: float, width: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tilts 0 and .03 are ahead of .06 by more than a standard error, .0599 by less than half a nat.
    choice, _ = made_up(monkeypatch, 0.2, 0.4, 0.4, 0.4, every=0.06, sparser=[sparser, 0.4])
    assert choice.width == width


def test_the_uniform_map_is_kept_where_nothing_is_clearly_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for flat in (0, 0.04, 0.09):  # .1 is where it is two standard errors behind, or nearly so
        choice, _ = made_up(monkeypatch, 0, 0.06, 0.06, 0.06, flat=flat)
        assert (choice.width, choice.steps) == (1.5, 0)
    assert made_up(monkeypatch, 0, 0.06, 0.06, 0.06, flat=0.11)[0].steps == 1
    # It is compared with single widths: kernels of all widths fit more slowly, and are tried last.
    assert made_up(monkeypatch, *[0.06] * 4, every=0, flat=0.062)[0].steps == 0
    assert made_up(monkeypatch, *[0.06] * 4, every=0, flat=0.2)[0].width == ALL


@pytest.mark.parametrize(
    ("least", "sparser", "sparsity", "steps"),
    [
        (0.06, (0.07,), 0.25, 1),  # none where the first one predicts worse
        (0.04, (0, 0.01), 0.25, 1),  # or is ahead by no more than one standard error
        (0.06, (0, 0.01), 0.5, 50),
        (0.06, (0.0599, 0, 0.01), 1, 51),  # which may add up
        (0.06, (0, 0.01, 0), 0.5, 50),  # beyond one that is worse nothing is tried
        (0.06, (0.055, 0.03, 0.02, 0), 1, 51),  # the least within one standard error of the best
        (0.3, (0.25, 0.2, 0.15, 0), 4, 53),
        (0.06, (0, 0, 0, 0), 0.5, 50),
    ],
)
def test_a_larger_sparsity_is_taken_where_it_predicts_clearly_better(
    least: float,
    sparser: tuple[float, ...],
    sparsity: float,
    steps: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choice, _ = made_up(monkeypatch, least, 0.45, 0.45, 0.45, sparser=sparser)
    assert (choice.width, choice.sparsity, choice.steps) == (0, sparsity, steps)
    assert choice.behind == 0  # of the width alone


def test_widths_beyond_a_hopeless_one_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made_up(monkeypatch, 0, 0.19, 0.15, 0)[1] == [0, 0.5, 1, 1.5]
    choice, tried = made_up(monkeypatch, 0, 0.04, 0.21, 0)
    assert (choice.width, tried) == (0.5, [0, 0.5, 1])
    assert made_up(monkeypatch, 0.3, 0.25, 0, 0)[0].width == 1.5  # the first may be bad


def test_without_reports_that_tell_anything_the_map_stays_uniform() -> None:
    # At epsilon .01 a thousand reports cannot tell any map from the uniform one, though some width
    # predicts a little better in most draws. Paths of some then climb for thousands of steps, by
    # less than half a nat; 300 of these are enough to see that they are not followed.
    channel = StampChannel(response_table("disk", 0.01, 12, squared_radius=20))
    for seed in range(10):
        counts = counts_of(channel, slope((12, 12)), 1_000, seed)
        found = estimate(channel, counts, Sieve() if seed in {1, 3, 4, 5, 9} else Sieve(300))
        assert found.iterations == 1  # the last one, on cells
        assert found.density.max() / found.density.min() < 1.01


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (2, 7), (3, 50), (5, 5), (16, 17)])
def test_kernels_are_no_wider_than_a_quarter_of_the_map(shape: tuple[int, int]) -> None:
    size = shape[0] * shape[1]
    channel = MatrixChannel(np.full((3, size), 1 / 3), shape, 1.0)
    # The reports tell nothing: all widths predict the same, and the widest is taken.
    found = estimate(channel, [20, 30, 10], CROSS_VALIDATED)
    assert found.facts["width"] == max(width for width in WIDTHS if 4 * width <= min(shape))
    np.testing.assert_allclose(found.density, 1 / size, rtol=1e-12)


def test_equal_counts_give_equal_maps_and_nothing_else_decides() -> None:
    counts = counts_of(CHANNEL, slope((5, 5)), 3_000, seed=1)
    state = str(np.random.get_state())  # noqa: NPY002
    first = estimate(CHANNEL, counts, CROSS_VALIDATED)
    assert str(np.random.get_state()) == state  # noqa: NPY002
    in_order = counts[CHANNEL.support].astype(int).tolist()
    for same in (counts.astype(np.uint16), np.asfortranarray(counts), in_order):
        again = estimate(CHANNEL, same, CROSS_VALIDATED)
        assert (again.facts, again.trace) == (first.facts, first.trace)
        np.testing.assert_array_equal(again.density, first.density)
    other = counts.copy()
    other[CHANNEL.support] = counts[CHANNEL.support][::-1]
    assert not np.array_equal(folds.split(counts, 5)[0], folds.split(other, 5)[0][::-1, ::-1])


def test_the_last_step_gives_the_expected_histogram_of_the_users() -> None:
    # E[1{user in x} | report y] = f(x) M(y, x) / sum over x' of f(x') M(y, x'), report by report.
    counts = counts_of(CHANNEL, slope((5, 5)), 300, seed=8)
    before = sieve.fit_sieve(CHANNEL, counts, 1.0, 3, 0.5)
    kernels = SmoothedChannel(CHANNEL, 1.0)
    run = Iteration(kernels, counts, sparsity=0.5)
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
    assert (sieve.fit_sieve(channel, counts, 0.0, 60, 0.25).density == 0).sum() > 60
    run = Iteration(channel, counts)
    for _ in range(60):
        run.step()
    assert (run.density > 0).all()


@pytest.mark.parametrize("shape", [(8, 8), (1, 20)])
def test_nobody_is_dropped_whose_report_would_then_be_impossible(shape: tuple[int, int]) -> None:
    # Reports that tell the cell: the one user in the first cell is worth less than the sparsity.
    size = shape[0] * shape[1]
    counts = np.zeros(size)
    counts[0], counts[-1] = 1, 1000
    channel = MatrixChannel(np.eye(size), shape, 5.0)
    for sparsity in (sieve.SPARSITY, *sieve.SPARSER):
        found = sieve.fit_sieve(channel, counts, 0.0, 5, sparsity).density.ravel()
        np.testing.assert_allclose(found, counts / 1001, atol=1e-12)
    assert estimate(channel, counts, CROSS_VALIDATED).density.sum() == pytest.approx(1)
