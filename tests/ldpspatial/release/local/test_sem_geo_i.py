"""SEM-Geo-I: the paper's k, the inverse of the hit matrix, and what an observer learns."""

from fractions import Fraction
from itertools import combinations
from math import sqrt

import numpy as np
import pytest

from client_sdk import Grid
from ldpspatial import wasserstein
from ldpspatial.datasets import synthetic_maps
from ldpspatial.errors import InputError
from ldpspatial.places.users import cells_by_user, user_cells
from ldpspatial.privacy.local_privacy import cell_distances
from ldpspatial.release.local.disks.dam import Dam
from ldpspatial.release.local.geo.sem_geo_i import SemGeoI, decode, least_epsilon
from ldpspatial.release.local.geo.subset_exponential import subset_exponential
from tests.support.naive_local_geo import guess_distance, subset_channel, subset_size


@pytest.mark.parametrize(
    "release", [SemGeoI(), SemGeoI(5), SemGeoI(estimator="em")], ids=["inverse", "of 5 cells", "em"]
)
def test_it_finds_the_map(release: SemGeoI) -> None:
    law = synthetic_maps()["normal"]
    grid = Grid.plane(law.y0, law.x0, law.side, 8)
    points = law.draw(50_000, np.random.default_rng(1))
    truth = user_cells(points, grid).density
    found = release.run(points, grid, 2.0, np.random.default_rng(2))
    assert found.density.min() >= 0
    assert found.density.sum() == pytest.approx(1)
    assert wasserstein(truth, found.density) < 0.5
    assert wasserstein(truth, np.full((8, 8), 1 / 64)) > 1.5
    assert found.facts["estimator"] == release.estimator


def test_em_beats_the_inverse_whose_negatives_are_cut_where_noise_is_strong() -> None:
    law = synthetic_maps()["normal"]
    grid = Grid.plane(law.y0, law.x0, law.side, 10)
    points = law.draw(10_000, np.random.default_rng(1))
    truth = user_cells(points, grid).density
    inverse, em = (
        SemGeoI(1, estimator).run(points, grid, 0.8, np.random.default_rng(2))
        for estimator in ("inverse", "em")
    )
    assert wasserstein(truth, em.density) < wasserstein(truth, inverse.density) / 2
    assert em.estimate is not None
    assert em.estimate.n == 10_000  # empty reports too
    with pytest.raises(InputError, match="estimator must be inverse for sets of 3 cells, got em"):
        SemGeoI(3, "em").run(points, grid, 0.8, np.random.default_rng(2))


def test_the_claim_is_per_cell_and_says_that_it_is_no_ldp() -> None:
    users = cells_by_user(np.arange(100), np.arange(100) % 9, (3, 3))
    found = SemGeoI().release(users, 1.4, np.random.default_rng(1))
    assert found.claim == SemGeoI().claim(1.4)
    claim = found.claim
    assert (claim.model, claim.epsilon, claim.delta) == ("local", 1.4, 0)
    assert (claim.notion, claim.distance) == ("geo-indistinguishability", "cell")
    assert claim.conditions[0].startswith("not epsilon-LDP")
    assert "geo-indistinguishability, epsilon 1.4 per cell" in str(claim)
    assert "not epsilon-LDP" in str(found.facts["notion"])
    assert found.facts["estimator"] == "inverse"
    assert found.facts["subset_size"] == SemGeoI().subset_size(3, 1.4)
    assert 0 <= float(found.facts["empty_reports"]) < 1


@pytest.mark.parametrize("side", [1, 2, 5, 10])
@pytest.mark.parametrize("epsilon", [1e-6, 0.05, 0.4, 1.0, 5.0])
def test_k_is_the_papers(side: int, epsilon: float) -> None:
    assert SemGeoI().subset_size(side, epsilon) == subset_size(side, epsilon)


def test_k_on_15_x_15_cells_and_where_it_changes() -> None:
    found = [SemGeoI().subset_size(15, e) for e in (1e-6, 0.2, 0.4, 0.5, 0.6, 0.7, 20)]
    assert found == [113, 39, 10, 5, 3, 1, 1]
    for k in (1, 2, 5, 40, 112):
        edge = least_epsilon(15, k)
        assert SemGeoI().subset_size(15, edge * (1 + 1e-9)) == k
        assert SemGeoI().subset_size(15, edge * (1 - 1e-9)) == k + 1
    assert least_epsilon(15, 113) == 0


@pytest.mark.parametrize(
    ("side", "size", "epsilon"), [(2, 1, 2), (3, 1, 0.8), (3, 2, 1.3), (3, 4, 0.2)]
)
def test_local_privacy_is_the_sum_over_all_reports(side: int, size: int, epsilon: float) -> None:
    matrix, _ = subset_channel(side, size, epsilon)
    uniform = [1 / side**2] * side**2
    found = SemGeoI(size).sampled_local_privacy(side, epsilon)
    assert found.value == pytest.approx(guess_distance(matrix, side, uniform), rel=1e-10)
    assert found.standard_error == 0


def test_local_privacy_from_a_sample_of_sets_is_near_that_from_all() -> None:
    # 177,100 sets of 6 of 25 cells: more than are gone through. Five standard errors: 6e-7.
    law = subset_exponential(5, 6, Fraction(1, 2))
    sets = np.array(list(combinations(range(25), 6)))
    by_step = np.array([w / law.weights[0] for w in law.weights])
    weights = by_step[law.steps[:, sets].min(axis=2).T]
    sums = weights.sum(axis=1)
    distances = cell_distances((5, 5))
    guess = np.einsum("zx,zx->z", weights @ distances, weights) / sums**2
    empty = law.empty
    exact = (1 - empty.mean()) * (sums @ guess / sums.sum())
    exact += empty @ distances @ empty / empty.sum() / 25
    found = SemGeoI(6).sampled_local_privacy(5, 0.5)
    assert 0 < found.standard_error < 1e-3
    assert abs(found.value - exact) < 5 * found.standard_error
    assert SemGeoI(6).local_privacy(5, 0.5) == found.value
    assert abs(sums @ guess / sums.sum() - exact) > 5 * found.standard_error  # without empty ones
    assert abs(SemGeoI(6).local_privacy(5, 0.55) - exact) > 5 * found.standard_error


@pytest.mark.parametrize("size", [1, 2, 6, 20])
def test_at_one_k_local_privacy_falls_in_epsilon(size: int) -> None:
    found = [SemGeoI(size).local_privacy(5, e) for e in (1e-6, 0.1, 0.3, 0.6, 1, 2, 5, 20)]
    assert (np.diff(found) < 0).all()


@pytest.mark.parametrize(
    ("dam", "geo"), [(5, 0.8416), (6, 1.3987), (7, 1.466), (8, 2.4456), (9, 3.4128)]
)
def test_the_local_privacy_of_dam_is_met_where_the_paper_compares_them(
    dam: float, geo: float
) -> None:
    target = Dam().local_privacy(15, dam)
    below, above = (SemGeoI().local_privacy(15, geo + half) for half in (-5e-5, 5e-5))
    assert above < target < below
    assert SemGeoI().subset_size(15, geo) == 1


def test_decoding_exact_rates_gives_the_density_back() -> None:
    density = np.random.default_rng(1).dirichlet(np.ones(25))
    for size, epsilon in ((1, 0.5), (4, 0.3), (12, 0.01)):
        law = subset_exponential(5, size, Fraction(epsilon))
        assert decode(law, law.hits @ density) == pytest.approx(density, abs=1e-8)


def test_estimates_below_zero_are_cut_and_where_none_is_left_the_map_is_uniform() -> None:
    law = subset_exponential(3, 1, Fraction(1))
    cut = decode(law, law.hits @ np.array([-0.5, 0.5, 1, 0, 0, 0, 0, 0, 0]))
    assert cut == pytest.approx(np.array([0, 1, 2, 0, 0, 0, 0, 0, 0]) / 3, abs=1e-12)
    assert decode(law, np.zeros(9)) == pytest.approx(np.full(9, 1 / 9))
    assert decode(law, -np.ones(9)) == pytest.approx(np.full(9, 1 / 9))


@pytest.mark.parametrize("side", [1, 2, 3, 10])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 20.0])
def test_any_side_and_epsilon_and_a_single_user(side: int, epsilon: float) -> None:
    users = cells_by_user([0], [side**2 - 1], (side, side))
    found = SemGeoI().release(users, epsilon, np.random.default_rng(1))
    assert found.density.shape == (side, side)
    assert found.density.sum() == pytest.approx(1)
    privacy = SemGeoI().local_privacy(side, epsilon)
    assert 0 <= privacy <= sqrt(2) * side


def test_equal_seeds_give_equal_maps_and_the_input_stays() -> None:
    users = cells_by_user(np.arange(300) % 50, np.arange(300) % 16, (4, 4))
    before = users.visits.copy()
    first, again, other = (
        SemGeoI().release(users, 0.4, np.random.default_rng(seed)).density for seed in (9, 9, 8)
    )
    assert (first == again).all()
    assert (first != other).any()
    assert (users.visits != before).nnz == 0


def test_sizes_and_maps_that_do_not_go_together() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(InputError, match="size must be at most 3 on 2 x 2 cells, got 4"):
        SemGeoI(4).release(cells_by_user([0], [0], (2, 2)), 1.0, rng)
    with pytest.raises(InputError, match="size must be at most 1 on 1 x 1 cells, got 2"):
        SemGeoI(2).local_privacy(1, 1.0)
    with pytest.raises(InputError, match="sem-geo-i needs a square map, got 2 x 3 cells"):
        SemGeoI().release(cells_by_user([0], [0], (2, 3)), 1.0, rng)
    with pytest.raises(InputError, match=r"cells must lie in \[1, 32\] for sem-geo-i, got 33"):
        SemGeoI().local_privacy(33, 1.0)


@pytest.mark.parametrize("epsilon", [5e-7, 20.1])
def test_bad_epsilons(epsilon: float) -> None:
    users = cells_by_user([0], [0], (2, 2))
    for call in (
        lambda: SemGeoI().claim(epsilon),
        lambda: SemGeoI().local_privacy(2, epsilon),
        lambda: SemGeoI().release(users, epsilon, np.random.default_rng(1)),
    ):
        with pytest.raises(InputError, match="epsilon must"):
            call()
