"""Square wave on two coordinates: users split over them, or both from each user."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from mpmath import mp, mpf, workdps  # type: ignore[import-untyped]
from numpy.typing import NDArray
from scipy import stats

from client_sdk import Grid
from ldpspatial import estimate, wasserstein
from ldpspatial.channels.dense import MatrixChannel, ProductChannel
from ldpspatial.datasets import synthetic_maps
from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user, user_cells
from ldpspatial.privacy.local_privacy import local_privacy
from ldpspatial.release.local.coordinates.mdsw import Mdsw, MdswJoint
from ldpspatial.release.local.coordinates.square_wave import (
    SquareWaveTable,
    WaveRelease,
    square_wave_table,
)
from ldpspatial.release.local.disks.dam import Dam
from ldpspatial.release.local.local_release import LocalRelease
from tests.support import naive_local_wave as naive

Ints = NDArray[np.int64]
Law = Callable[[SquareWaveTable, int, int], list[Fraction]]  # of a report from a row and a column
FALSE_ALARM = 1e-6
PLAIN = Mdsw(smoothing=False)
CELLS = Mdsw(fine=False)  # as Du et al. smooth
RELEASES: list[WaveRelease] = [Mdsw(), CELLS, PLAIN, MdswJoint(), MdswJoint(smoothing=True)]

every_release = pytest.mark.parametrize(
    "release",
    RELEASES,
    ids=["mdsw", "mdsw-cells", "mdsw-plain", "mdsw-joint", "mdsw-joint-smoothed"],
)


def people(name: str, side: int, n: int, seed: int) -> UserCells:
    law = synthetic_maps()[name]
    grid = Grid.plane(law.y0, law.x0, law.side, side)
    return user_cells(law.draw(n, np.random.default_rng(seed)), grid)


def everybody_in(cell: int, side: int, n: int) -> UserCells:
    return cells_by_user(np.arange(n), np.full(n, cell), (side, side))


def errors(release: LocalRelease, name: str, side: int, runs: int = 3) -> list[float]:
    """Exact W2 in cells at epsilon 3.5 and 100,000 people."""
    crowds = (people(name, side, 100_000, seed) for seed in range(runs))
    return [
        wasserstein(users.density, release.release(users, 3.5, np.random.default_rng(k)).density)
        for k, users in enumerate(crowds)
    ]


def recorded(
    release: LocalRelease, users: UserCells, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> tuple[NDArray[np.float64], list[tuple[SquareWaveTable, Ints]]]:
    """Run a release and keep what users sent: one array of reports a coordinate."""
    sent: list[tuple[SquareWaveTable, Ints]] = []
    draw = SquareWaveTable.draw

    def keeping(table: SquareWaveTable, at: Ints, rng: np.random.Generator) -> Ints:
        reports = draw(table, at, rng)
        sent.append((table, reports))
        return reports

    with monkeypatch.context() as patch:
        patch.setattr(SquareWaveTable, "draw", keeping)
        found = release.release(users, epsilon, np.random.default_rng(21))
    return found.density, sent


def wave_law(table: SquareWaveTable, cell: int) -> list[Fraction]:
    weights = (
        table.band_weight if abs(report - cell) <= table.radius else table.base_weight
        for report in range(-table.radius, table.cells + table.radius)
    )
    return [Fraction(weight, table.total_weight) for weight in weights]


def split_law(table: SquareWaveTable, row: int, col: int) -> list[Fraction]:
    return [p / 2 for cell in (row, col) for p in wave_law(table, cell)]


def joint_law(table: SquareWaveTable, row: int, col: int) -> list[Fraction]:
    return [p * q for p, q in product(wave_law(table, row), wave_law(table, col))]


@pytest.mark.parametrize(("law", "parts"), [(split_law, 1), (joint_law, 2)])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 3.5, 20.0])
@pytest.mark.parametrize("side", [1, 2, 4])
def test_no_report_is_likelier_by_more_than_e_to_epsilon(
    law: Law, parts: int, epsilon: float, side: int
) -> None:
    table = square_wave_table(side, epsilon, parts=parts)
    laws = [law(table, row, col) for row, col in product(range(side), repeat=2)]
    assert all(sum(one) == 1 for one in laws)
    ratio = max(max(column) / min(column) for column in zip(*laws, strict=True))
    with workdps(naive.DIGITS):
        bound = mp.exp(naive.real(Fraction(epsilon)))
        assert naive.real(ratio) <= bound
        if side > 1:  # and the bound is met, but for rounding to whole weights
            assert mp.log(naive.real(ratio)) > mpf(epsilon) * (1 - mpf(10) ** -4)


def test_each_user_reports_one_coordinate_drawn_uniformly(monkeypatch: pytest.MonkeyPatch) -> None:
    # Chi-square at 1e-6 of 60,000 users in row 0, column 3 of 5 cells, radius 1.
    n, side = 60_000, 5
    _, sent = recorded(Mdsw(), everybody_in(3, side, n), 1.2, monkeypatch)
    assert len(sent) == 2
    assert stats.binomtest(len(sent[0][1]), n).pvalue > FALSE_ALARM
    counts = np.concatenate([table.counts(reports) for table, reports in sent])
    assert counts.sum() == n
    table = sent[0][0]
    law = np.array(split_law(table, 0, 3), float) * n
    assert stats.chisquare(counts, law).pvalue > FALSE_ALARM
    swapped = np.array(split_law(table, 3, 0), float) * n
    assert stats.chisquare(counts, swapped).pvalue < FALSE_ALARM


def test_each_user_reports_both_coordinates_at_half_of_epsilon() -> None:
    n, side = 60_000, 5
    found = MdswJoint().release(everybody_in(3, side, n), 2.4, np.random.default_rng(22)).estimate
    assert found is not None
    table = square_wave_table(side, 2.4, parts=2)
    assert table == square_wave_table(side, 1.2)
    law = np.array(joint_law(table, 0, 3), float) * n
    assert found.counts.sum() == n
    assert stats.chisquare(found.counts.ravel(), law).pvalue > FALSE_ALARM
    # The same test tells the coordinates apart, and a user who spends epsilon on each.
    assert stats.chisquare(found.counts.T.ravel(), law).pvalue < FALSE_ALARM
    twice = np.array(joint_law(square_wave_table(side, 2.4, table.radius), 0, 3), float) * n
    assert stats.chisquare(found.counts.ravel(), twice).pvalue < FALSE_ALARM


@pytest.mark.parametrize("smoothing", [True, False])
def test_the_map_is_the_product_of_two_estimates(
    smoothing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = people("normal", 6, 4000, 1)
    density, sent = recorded(Mdsw(smoothing=smoothing, fine=False), users, 2.0, monkeypatch)
    marginals = [
        estimate(
            MatrixChannel(table.matrix(), (1, 6), 2.0),
            table.counts(reports),
            smoothing="binomial" if smoothing else None,
        )
        for table, reports in sent
    ]
    (down,), (across,) = (found.density for found in marginals)
    np.testing.assert_allclose(density, np.outer(down, across), rtol=1e-12)
    for (table, _), found in zip(sent, marginals, strict=True):
        slow = naive.ems(table.matrix(), found.counts, found.iterations, smoothing)
        np.testing.assert_allclose(found.density[0], slow, rtol=1e-9)


# Exact W2 in cells at epsilon 3.5 and 100,000 people. One run has a standard deviation of .009
# on 15 cells (60 runs); the tolerance is more than four of the mean of three.
@pytest.mark.parametrize(
    ("release", "name", "side", "expected", "tolerance"),
    [
        (PLAIN, "normal", 15, 0.767, 0.025),
        (CELLS, "normal", 15, 1.131, 0.025),
        (Mdsw(), "normal", 15, 0.770, 0.025),  # the code of square wave's authors: 0.769
        (PLAIN, "normal", 5, 0.396, 0.015),
        (CELLS, "normal", 5, 0.882, 0.015),
        (PLAIN, "mnormal", 15, 0.563, 0.030),
        (CELLS, "mnormal", 15, 0.907, 0.030),
        (PLAIN, "szipf", 15, 0.222, 0.080),  # one run: .026
        (CELLS, "szipf", 15, 0.253, 0.100),  # one run: .039
    ],
)
def test_errors_are_those_known(
    release: Mdsw, name: str, side: int, expected: float, tolerance: float
) -> None:
    assert np.mean(errors(release, name, side)) == pytest.approx(expected, abs=tolerance)


def test_reporting_both_coordinates_keeps_how_they_go_together() -> None:
    both, split, dam = (
        np.mean(errors(release, "normal", 15)) for release in (MdswJoint(), PLAIN, Dam())
    )
    assert both < 0.6 * split
    assert dam < both
    # Where coordinates are independent the product is right, and beats DAM.
    split, dam = (np.mean(errors(release, "szipf", 15)) for release in (PLAIN, Dam()))
    assert split < 0.8 * dam


@every_release
def test_it_finds_the_map(release: WaveRelease) -> None:
    users = people("normal", 8, 50_000, 2)
    found = release.release(users, 4.0, np.random.default_rng(3))
    limit = {CELLS: 1.0, Mdsw(): 0.6, MdswJoint(smoothing=True): 1.4, PLAIN: 0.6}.get(release, 0.3)
    assert wasserstein(users.density, found.density) < limit
    assert wasserstein(users.density, np.full((8, 8), 1 / 64)) > 2.2


@pytest.mark.parametrize("epsilon", [1e-6, 0.7, 3.5, 20.0])
@pytest.mark.parametrize("side", [1, 2, 5])
def test_local_privacy_is_that_of_the_dense_channels(side: int, epsilon: float) -> None:
    split = naive.one_of_two_coordinates(square_wave_table(side, epsilon).matrix())
    expected = local_privacy(MatrixChannel(split, (side, side)))
    assert Mdsw().local_privacy(side, epsilon) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    half = square_wave_table(side, epsilon, parts=2).matrix()
    expected = local_privacy(ProductChannel(half, half, epsilon))
    assert MdswJoint().local_privacy(side, epsilon) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_local_privacy_on_fine_maps() -> None:
    offsets = np.subtract.outer(np.arange(32), np.arange(32))
    blind = np.hypot(offsets[:, :, None, None], offsets).mean()
    for release in (Mdsw(), MdswJoint()):
        assert release.local_privacy(32, 1e-6) == pytest.approx(blind, rel=1e-5)
        assert 0 < release.local_privacy(32, 3.5) < 0.9 * blind
    assert MdswJoint().local_privacy(32, 20.0) < 0.1  # the report says nearly all
    assert Mdsw().local_privacy(32, 20.0) == pytest.approx((32**2 - 1) / 96, rel=1e-3)  # a row


@every_release
@pytest.mark.parametrize("side", [1, 2, 3, 10, 17])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 20.0])
@pytest.mark.parametrize("n", [1, 30])
def test_maps_of_any_side_and_one_user(
    release: WaveRelease, side: int, epsilon: float, n: int
) -> None:
    users = cells_by_user(np.arange(n), 7 * np.arange(n) % side**2, (side, side))
    before = users.visits.copy()
    first, again = (release.release(users, epsilon, np.random.default_rng(7)) for _ in range(2))
    assert first.density.shape == (side, side)
    assert first.density.min() >= 0
    assert first.density.sum() == pytest.approx(1, abs=1e-12)
    assert (first.density == again.density).all()
    assert (users.visits != before).nnz == 0
    assert 0 < float(first.facts["realised_epsilon"]) <= epsilon * (1 + 1e-15)


def test_the_coordinate_that_nobody_reports_is_uniform() -> None:
    seen = set()
    for seed in range(12):
        density = PLAIN.release(everybody_in(0, 3, 1), 20.0, np.random.default_rng(seed)).density
        by_row, by_col = density.sum(axis=1), density.sum(axis=0)
        flat = [np.allclose(marginal, 1 / 3) for marginal in (by_row, by_col)]
        assert sum(flat) == 1
        seen.add(tuple(flat))
    assert len(seen) == 2


@every_release
def test_the_claim(release: WaveRelease) -> None:
    found = release.release(everybody_in(1, 3, 20), 1.4, np.random.default_rng(1))
    assert found.claim == release.claim(1.4)
    assert (found.claim.model, found.claim.epsilon, found.claim.delta) == ("local", 1.4, 0)
    assert (found.claim.neighbours, found.claim.unit) == ("replace", "user")
    assert any("coordinate" in condition for condition in found.claim.conditions)
    assert found.facts["estimator"] == ("ems" if release.smoothing else "em")


@every_release
@pytest.mark.parametrize("epsilon", [1e-7, 20.5])
def test_epsilons_that_are_none_are_refused(release: WaveRelease, epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon must be a"):
        release.claim(epsilon)
    with pytest.raises(InputError, match="epsilon must be a"):
        release.local_privacy(3, epsilon)


@every_release
def test_maps_that_are_no_square_and_empty_ones_are_refused(release: WaveRelease) -> None:
    users = cells_by_user([0], [0], (2, 3))
    with pytest.raises(InputError, match=f"{release.name} needs a square map, got 2 x 3 cells"):
        release.release(users, 1.0, np.random.default_rng(1))
    with pytest.raises(InputError, match=r"got (none|0)$"):
        release.release(cells_by_user([], [], (3, 3)), 1.0, np.random.default_rng(1))


@every_release
def test_two_ways_of_smoothing_are_refused(release: WaveRelease) -> None:
    with pytest.raises(InputError, match="smoothing must be False with rule field"):
        replace(release, smoothing=True, rule="field")
    assert replace(release, smoothing=False, rule="field").rule == "field"


def test_the_realised_epsilon_is_that_of_both_reports() -> None:
    users = cells_by_user(np.arange(20), np.zeros(20, int), (3, 3))
    found = MdswJoint().release(users, 1.4, np.random.default_rng(1))
    assert 1.399 < float(found.facts["realised_epsilon"]) <= 1.4
