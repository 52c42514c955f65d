"""Difference sets: the design, the law of reports, counts by transform against loops."""

from fractions import Fraction
from itertools import permutations
from math import exp, log

import numpy as np
import pytest
from scipy import stats

from client_sdk.shared import BITS, exp_below
from ldpspatial.errors import InputError
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.local import DifferenceSets, SubsetSelection
from ldpspatial.release.local.sets import planes
from ldpspatial.release.local.sets.planes import Plane, best_plane
from ldpspatial.release.local.sets.set_reports import cells_privacy

FALSE_ALARM = 1e-6
PLANES = [
    Plane(*each) for each in ((2, 2), (2, 3), (2, 8), (3, 3), (3, 5), (5, 3), (7, 4), (13, 2))
]
every_plane = pytest.mark.parametrize("plane", PLANES, ids=str)


@every_plane
def test_any_two_places_are_together_in_as_many_sets(plane: Plane) -> None:
    v, k = plane.sets, plane.set_size
    assert len(plane.difference) == k
    steps = np.bincount((plane.difference[:, None] - plane.difference).ravel() % v, minlength=v)
    assert steps[0] == k
    assert (steps[1:] * (v - 1) == k * (k - 1)).all()


def test_the_smallest_is_the_plane_of_fano() -> None:
    assert (Plane(2, 3).sets, Plane(2, 3).set_size) == (7, 3)


@every_plane
@pytest.mark.parametrize("epsilon", [1e-12, 0.7, 3.0, 20.0])
def test_no_report_is_likelier_by_more_than_e_to_the_epsilon(plane: Plane, epsilon: float) -> None:
    v, k = plane.sets, plane.set_size
    p = plane.own(epsilon)
    inside, outside = p / k, (1 - p) / (v - k)  # of each set that holds the own place, and does not
    held = (np.arange(v)[:, None] - np.arange(v)) % v  # place less set
    laws = np.where(np.isin(held, plane.difference), inside, outside)
    assert all(sum(law) == 1 for law in laws)
    ratio = DifferenceSets().weights(5, epsilon).ratio
    assert inside / outside == ratio
    assert ratio <= Fraction(exp_below(Fraction(repr(epsilon))) + 1, 1 << BITS)
    others = np.isin(held, plane.difference).astype(object) @ laws[0]
    assert others[0] == p
    assert plane.other(epsilon) == pytest.approx(float(others[1]), rel=1e-12)
    assert plane.lift(epsilon) == pytest.approx(float(p - others[-1]), rel=1e-9)


def test_draws_follow_the_law() -> None:
    plane, epsilon, n = Plane(3, 3), 1.2, 200_000
    drawn = plane.draw(np.full(n, 5), epsilon, np.random.default_rng(1))
    v, p = plane.sets, float(plane.own(epsilon))
    holds = np.isin((5 - np.arange(v)) % v, plane.difference)
    law = np.where(holds, p / plane.set_size, (1 - p) / (v - plane.set_size))
    assert stats.chisquare(np.bincount(drawn, minlength=v), n * law).pvalue > FALSE_ALARM
    # The ratio of an epsilon a tenth larger is seen.
    louder = plane.draw(np.full(n, 5), 1.1 * epsilon, np.random.default_rng(1))
    assert stats.chisquare(np.bincount(louder, minlength=v), n * law).pvalue < 1e-12


@every_plane
@pytest.mark.parametrize("most", [3, 10**8])
def test_the_transform_counts_as_loops_do(plane: Plane, most: int) -> None:
    came = np.random.default_rng(plane.sets).integers(most, size=plane.sets)
    came[0] = most  # on one set as well
    hits = [
        sum(int(came[(place - step) % plane.sets]) for step in plane.difference)
        for place in range(plane.sets)
    ]
    assert plane.hits(came).tolist() == hits


@pytest.mark.parametrize(("size", "epsilon"), [(4, 0.9), (3, 0.2), (5, 1.0), (2, 3.0)])
def test_sizes_and_local_privacy_are_those_of_all_places(size: int, epsilon: float) -> None:
    plane = best_plane(size, epsilon)
    e = 1 + DifferenceSets().weights(size, epsilon).gain
    law, same = np.zeros(size + 1), 0.0
    places = list(permutations(range(plane.sets), size))
    for place in places:
        for step in range(plane.sets):
            held = np.isin((np.array(place) - step) % plane.sets, plane.difference)
            weights = np.where(held, e, 1.0)
            chance = weights.sum() / (size * (plane.set_size * (e - 1) + plane.sets)) / len(places)
            law[held.sum()] += chance
            same += chance * (weights**2).sum() / weights.sum() ** 2
    assert law.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(DifferenceSets().set_sizes(size, epsilon), law, atol=1e-12)
    if size == 4:
        apart = (2 + 2**0.5) / 3  # of two different cells of four, in the mean
        privacy = cells_privacy(2, log(e), DifferenceSets().set_sizes(4, epsilon))
        assert privacy == pytest.approx((1 - same) * apart, abs=1e-9)
        assert DifferenceSets().local_privacy(2, epsilon) == pytest.approx(privacy, abs=1e-6)


@pytest.mark.parametrize(("size", "epsilon"), [(6, 1.0), (9, 5.0), (30, 0.4)])
def test_shares_are_unbiased_and_vary_as_told(size: int, epsilon: float) -> None:
    # Of 4,000 runs a variance is off by 2.3 % in the mean, and here by less than six times that.
    values = np.zeros(50, np.int64)
    rng = np.random.default_rng(8)
    release = DifferenceSets()
    found = [release.frequencies(values, size, epsilon, rng)[:2] for _ in range(4000)]
    near_0, near_1 = release.variances(size, 50, epsilon)
    full, empty = np.var(found, axis=0)
    assert empty == pytest.approx(near_0, rel=0.14)
    assert full == pytest.approx(near_1, rel=0.14)
    means = np.mean(found, axis=0) - [1, 0]
    assert (np.abs(means) < 6 * np.sqrt(np.array([near_1, near_0]) / 4000)).all()
    assert release.variances(1, 50, epsilon) == (0, 0)


def test_on_many_cells_shares_vary_as_those_of_subset_selection() -> None:
    ours, others = DifferenceSets(), SubsetSelection()
    for epsilons, most in ((np.linspace(0.05, 5.9, 118), 1.045), (np.linspace(5.9, 8, 43), 1.13)):
        ratios = [
            ours.variances(1 << 20, 1000, each)[0] / others.variances(1 << 20, 1000, each)[0]
            for each in epsilons
        ]
        assert min(ratios) > 0.999
        assert max(ratios) < most
        assert np.mean(ratios) < 1.03


@pytest.mark.parametrize("epsilon", [0.4, 2.0, 6.0])
@pytest.mark.parametrize("size", [1, 4, 30])
def test_listed_reports_are_the_sets_that_were_drawn(size: int, epsilon: float) -> None:
    plane, n = best_plane(size, epsilon), 400
    values = np.arange(n) % size
    found = DifferenceSets().reports(values, size, epsilon, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    places = plane.place(size, rng)
    drawn = plane.draw(places[values], epsilon, rng)
    for user in range(n):
        held = np.isin((places - drawn[user]) % plane.sets, plane.difference)
        listed = found.cells[found.starts[user] : found.starts[user + 1]]
        assert sorted(listed) == np.flatnonzero(held).tolist()
    assert found.lift == plane.lift(epsilon)


def test_where_a_report_is_a_cell_it_is_k_rr() -> None:
    plane = best_plane(4, 20.0)
    assert (plane.sets, plane.set_size) == (4, 1)
    users = cells_by_user(np.arange(500), np.arange(500) ** 2 % 4, (2, 2))
    found = DifferenceSets().release(users, 20.0, np.random.default_rng(1))
    np.testing.assert_allclose(found.density, users.density, atol=1e-6)
    assert found.facts["sets"] == 4


def test_there_are_never_more_sets_than_can_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    free = best_plane(1000, 5.0)
    assert free.sets == 22_351
    monkeypatch.setattr(planes, "MOST_SETS", 5000)
    planes._best.cache_clear()
    cut = best_plane(1000, 5.0)
    planes._best.cache_clear()
    assert 1000 <= cut.sets <= 5000
    assert cut.variances(10, 5.0)[0] > free.variances(10, 5.0)[0]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 26, 40, 1093, 1094, 1 << 20])
@pytest.mark.parametrize("epsilon", [1e-12, 0.5, 3.5, 20.0])
def test_each_cell_has_a_place(size: int, epsilon: float) -> None:
    plane = best_plane(size, epsilon)
    assert plane.sets >= size
    assert all(plane.q % each for each in range(2, int(plane.q**0.5) + 1))
    shares = min(plane.set_size / plane.sets, 0.5) * (exp(epsilon) + 1)
    assert shares > 0.3  # of the best number of cells in a set


def test_bad_input() -> None:
    with pytest.raises(InputError, match=r"values must lie in \[0, 4\) \(not repeated here\)$"):
        DifferenceSets().frequencies(np.array([4]), 4, 1.0, np.random.default_rng(1))
    with pytest.raises(InputError, match="n must be a whole number from 1 on"):
        DifferenceSets().frequencies(np.zeros(0, int), 4, 1.0, np.random.default_rng(1))
    with pytest.raises(InputError, match="epsilon must"):
        best_plane(4, 21.0)
    with pytest.raises(InputError, match="size must be a whole number from 1 on"):
        DifferenceSets().variances(0, 5, 1.0)
    rng = np.random.default_rng(1)
    for size in (0, "3", None, True):
        for draw in (DifferenceSets().frequencies, DifferenceSets().reports):
            with pytest.raises(InputError, match="size must be a whole number from 1 on"):
                draw(np.zeros(1, int), size, 1.0, rng)  # type: ignore[arg-type]
    for epsilon in (-3.0, 0.0, 1e9):
        with pytest.raises(InputError, match="epsilon must"):
            DifferenceSets().frequencies(np.zeros(1, int), 1, epsilon, rng)
        with pytest.raises(InputError, match="epsilon must"):
            DifferenceSets().variances(1, 5, epsilon)


def test_places_are_different_and_any_are_as_likely() -> None:
    """Chi-square over 20,000 draws of three of seven places, in order; false alarm 1e-6."""
    plane, rng = Plane(2, 3), np.random.default_rng(4)
    drawn = np.array([plane.place(3, rng) for _ in range(20_000)])
    found = np.bincount(drawn @ [49, 7, 1], minlength=343)
    assert np.count_nonzero(found) == 7 * 6 * 5
    assert stats.chisquare(found[found > 0]).pvalue > FALSE_ALARM


def test_more_cells_than_the_most_sets_have_places_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As 4096 x 4096 cells do, the largest grid there is."""
    monkeypatch.setattr(planes, "MOST_SETS", 500)
    planes._best.cache_clear()
    plane = best_plane(1000, 5.0)
    planes._best.cache_clear()
    assert 1000 <= plane.sets <= 2001


def test_everybody_is_in_the_only_cell() -> None:
    shares = DifferenceSets().frequencies(np.zeros(3, int), 1, 1.0, np.random.default_rng(1))
    assert shares.tolist() == [1.0]


@pytest.mark.parametrize(("size", "epsilon"), [(9, 1.0), (225, 1.3), (225, 2.19), (225, 5.0)])
def test_of_all_planes_the_best_is_taken(size: int, epsilon: float) -> None:
    primes = [q for q in range(2, 500) if all(q % each for each in range(2, q))]
    every = [Plane(q, n) for q in primes for n in range(2, 13)]
    enough = [each for each in every if size <= each.sets <= planes.MOST_SETS]
    least = min(each.variances(1, epsilon)[0] for each in enough)
    assert best_plane(size, epsilon).variances(1, epsilon)[0] == pytest.approx(least, rel=1e-12)
