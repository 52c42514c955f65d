from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from typing import Literal, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from client_sdk import DesignWarning
from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.privacy.distinguish import lower_bound_epsilon
from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.adaptive.many_locations import (
    ManyLocations,
    most_visited_cells,
    stochastic,
    systematic,
    visits_by_element,
)
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.sums.cohort import Cohort
from tests.support.cohorts import Recording, log_likelihood_ratio, replays

QUIET = 1e8  # at scale 100,000 and ten rounds, noise other than 0 has a chance below e^-99


class Offsets:
    """In place of a generator: 0, 1, .. as offsets, for what is true of all of them."""

    def __init__(self, values: NDArray[np.int64]) -> None:
        self.values = values

    def integers(self, high: NDArray[np.int64]) -> NDArray[np.int64]:
        assert (self.values < high).all()
        return self.values


def fixed(values: NDArray[np.int64]) -> np.random.Generator:
    return cast(np.random.Generator, Offsets(values))


def walkers(users: int, side: int, seed: int) -> UserCells:
    """People with a home where they often are, and a few other places."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(users), rng.integers(1, 30, users))
    home = rng.integers(0, side * side, users)[ids]
    cells = np.where(rng.random(len(ids)) < 0.5, home, rng.integers(0, side * side, len(ids)))
    return cells_by_user(ids, cells, (side, side))


visit_lists = st.lists(st.integers(0, 40), min_size=1, max_size=7).filter(any)


@settings(max_examples=80)
@given(visit_lists, st.integers(1, 60))
def test_systematic_rounding_over_every_offset(visits: list[int], scale: int) -> None:
    n = sum(visits)
    rows = sparse.csr_array(np.tile(visits, (n, 1)))
    rounded = systematic(rows, scale, fixed(np.arange(n))).toarray()
    assert (rounded.sum(axis=1) == scale).all()  # the sensitivity, whatever the offset
    for column, count in enumerate(visits):
        exact = Fraction(scale * count, n)
        assert Fraction(int(rounded[:, column].sum()), n) == exact  # no bias
        assert set(rounded[:, column]) <= {floor(exact), ceil(exact)}


@settings(max_examples=80)
@given(visit_lists, st.integers(1, 60))
def test_stochastic_rounding_over_every_offset(visits: list[int], scale: int) -> None:
    n = sum(visits)
    rows = sparse.csr_array(np.tile(visits, (n, 1)))
    offsets = np.repeat(np.arange(n), np.count_nonzero(visits))
    rounded = stochastic(rows, scale, fixed(offsets)).toarray()
    for column, count in enumerate(visits):
        exact = Fraction(scale * count, n)
        assert Fraction(int(rounded[:, column].sum()), n) == exact
        assert set(rounded[:, column]) <= {floor(exact), ceil(exact)}


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 50),
    st.sampled_from(["systematic", "stochastic", "bounded"]),
)
def test_no_answer_exceeds_the_sensitivity(seed: int, scale: int, how: str) -> None:
    people, rng = walkers(12, 8, seed), np.random.default_rng(seed)
    locations = {
        "systematic": ManyLocations(scale),
        "stochastic": ManyLocations(scale, "stochastic"),
        "bounded": ManyLocations(scale, "stochastic", 3),
    }[how]
    answers = locations.of(people, rng)
    for tree in (PrefixTree.quadrants((8, 8)), PrefixTree.from_density(people.density, 0.05)):
        vectors = answers(tree, rng)
        assert vectors.shape == (12, len(tree))
        assert vectors.data.min(initial=1) > 0
        assert vectors.sum(axis=1).max() <= locations.sensitivity(len(tree))


def test_the_bound_of_stochastic_rounding_is_needed() -> None:
    # Shares just above whole numbers, all rounded up: scale and the places less one.
    rows = sparse.csr_array(np.array([[34, 33, 33]]))
    rounded = stochastic(rows, 7, fixed(np.zeros(3, dtype=np.int64)))
    assert rounded.sum() == 7 + 3 - 1


def test_sensitivities() -> None:
    assert ManyLocations(500).sensitivity(9) == 500
    assert ManyLocations(500, "stochastic").sensitivity(9) == 509  # gamma + T of the paper
    assert ManyLocations(500, "stochastic", 4).sensitivity(9) == 504
    assert ManyLocations(500, "stochastic", 40).sensitivity(9) == 509


def test_visits_by_element_are_sums_over_its_pixels() -> None:
    people = walkers(20, 7, 1)
    tree = PrefixTree.from_density(people.density, 0.1)
    summed = visits_by_element(people.visits, tree).toarray()
    dense = people.visits.toarray().reshape(20, 7, 7)
    for element in range(len(tree)):
        inside = dense[:, tree.labels == element].sum(axis=1)
        assert summed[:, element].tolist() == inside.tolist()


def test_rounding_leaves_the_visits_alone() -> None:
    people, rng = walkers(30, 8, 2), np.random.default_rng(2)
    visits = visits_by_element(people.visits, PrefixTree.quadrants((8, 8)))
    before = visits.toarray()
    systematic(visits, 1, rng)
    stochastic(visits, 1, rng)
    np.testing.assert_array_equal(visits.toarray(), before)


def test_the_most_visited_cells_of_each_user() -> None:
    rows = sparse.csr_array(np.array([[1, 5, 5, 2], [0, 0, 3, 0], [4, 3, 2, 1]]))
    assert most_visited_cells(rows, 2).toarray().tolist() == [
        [0, 5, 5, 0],
        [0, 0, 3, 0],
        [4, 3, 0, 0],
    ]
    assert most_visited_cells(rows, 1).toarray()[0].tolist() == [0, 5, 0, 0]


def test_without_noise_the_map_is_the_mean_of_the_users_distributions() -> None:
    people = walkers(300, 8, 3)
    release = AdaptiveHierarchical(
        Cohort(),
        schedule="even",
        threshold=0.5,
        locations=ManyLocations(100_000),
        asked="every round",
    )
    trace = release.rounds_of(people, QUIET, np.random.default_rng(3))
    for step in trace:
        assert step.counts.sum() == pytest.approx(300, abs=1e-9)
        exact = np.bincount(step.tree.labels.ravel(), people.density.ravel()) * 300
        np.testing.assert_allclose(step.counts, exact, atol=1e-3)
    found = release.release(people, QUIET, np.random.default_rng(3))
    assert np.abs(found.density - people.density).max() < 1e-3


def test_noise_in_people_does_not_depend_on_scale_or_length() -> None:
    people = walkers(400, 16, 4)
    for scale in (100, 10_000):
        many = AdaptiveHierarchical(
            Cohort(), calibration=1.0, locations=ManyLocations(scale), asked="every round"
        )
        for step in many.rounds_of(people, 1.0, np.random.default_rng(5)):
            expected = noise_deviation(step.spent, scale) / scale
            assert step.deviation == pytest.approx(expected)
            assert step.deviation == pytest.approx(np.sqrt(2) / step.spent, rel=1e-3)
            best = noise_deviation(max(step.micro, step.remaining) / 1e6, scale) / scale
            assert step.threshold == pytest.approx(2 * best)
    paper = AdaptiveHierarchical(Cohort(), locations=ManyLocations(100, "stochastic"))
    for step in paper.rounds_of(people, 1.0, np.random.default_rng(6)):
        expected = noise_deviation(step.spent, 100 + len(step.tree)) / 100
        assert step.deviation == pytest.approx(expected)


def test_the_calibration_decides_how_deep_a_concentrated_map_goes() -> None:
    # Everybody around one corner, as in the check-ins that the paper measures: at c = 0.1 the
    # epsilon is spent before the corner is found.
    rng = np.random.default_rng(7)
    ids = np.repeat(np.arange(2000), 10)
    at = np.minimum(rng.exponential(3.0, (len(ids), 2)).astype(int), 63)
    people = cells_by_user(ids, at[:, 0] * 64 + at[:, 1], (64, 64))
    errors, leaves = [], []
    for calibration in (0.1, 2.0):
        release = AdaptiveHierarchical(calibration=calibration, locations=ManyLocations())
        found = release.release(people, 1.0, np.random.default_rng(8))
        errors.append(np.mean((found.density - people.density) ** 2))
        leaves.append(float(found.facts["leaves"]))
    assert errors[1] < errors[0] / 4
    assert leaves[1] > leaves[0]


def test_a_scale_that_the_modulus_cannot_hold_is_reported() -> None:
    people = walkers(400, 8, 9)
    small = AdaptiveHierarchical(Cohort(bits=16), locations=ManyLocations(100), asked="every round")
    with pytest.warns(DesignWarning, match="16 bits"):
        found = small.release(people, 1.0, np.random.default_rng(9))
    assert found.facts["rounds_that_may_wrap"] == found.facts["rounds"]
    wide = AdaptiveHierarchical(cohort=Cohort(bits=32), locations=ManyLocations(100))
    assert wide.release(people, 1.0, np.random.default_rng(9)).facts["rounds_that_may_wrap"] == 0


def test_answers_beyond_the_claimed_sensitivity_are_never_summed() -> None:
    class Wrong(ManyLocations):
        def sensitivity(self, length: int) -> int:
            return self.scale // 2

    release = AdaptiveHierarchical(locations=Wrong(100))
    with pytest.raises(InputError, match="contributions must"):
        release.release(walkers(20, 4, 10), 1.0, np.random.default_rng(10))


def test_bad_fields_are_refused() -> None:
    with pytest.raises(InputError, match="systematic rounding needs no bound"):
        ManyLocations(most_places=5)


@pytest.mark.parametrize("rounding", ["systematic", "stochastic"])
def test_any_number_of_visits_fits(rounding: Literal["systematic", "stochastic"]) -> None:
    # A sum of 2^65 in 64 bits is 0. Shares stay a quarter each; the user beside is not changed.
    visits = sparse.csr_array(np.array([[2**63 - 1] * 4, [1, 3, 0, 0]]))
    rng = np.random.default_rng(11)
    answers = ManyLocations(2**31, rounding).of(UserCells((2, 2), visits), rng)
    found = answers(PrefixTree.quadrants((2, 2)), rng).toarray()
    assert np.abs(found[0] - 2**29).max() <= 1
    assert found[1].tolist() == [2**29, 3 * 2**29, 0, 0]


@pytest.mark.parametrize("rounding", ["systematic", "stochastic"])
def test_a_user_with_many_positions_cannot_be_told_from_zeros_beyond_epsilon(
    rounding: Literal["systematic", "stochastic"],
) -> None:
    """False alarm 1e-6; half of the noise is noticed."""
    recording = Recording()
    people = cells_by_user([0, 0, 0, 1, 2], [0, 5, 15, 3, 9], (4, 4))
    locations = ManyLocations(scale=60, rounding=rounding)
    release = AdaptiveHierarchical(recording, rounds=2, locations=locations, asked="every round")
    release.release(people, 2.0, np.random.default_rng(4))
    rng = np.random.default_rng(5)
    bounds = []
    for factor in (1, 2):
        ratios = np.zeros((2, 40_000))
        for call in recording.calls:
            noisier = replace(call, epsilon=factor * call.epsilon)
            drawn = replays(noisier, 0, 40_000, rng)
            ratios += [log_likelihood_ratio(noisier, 0, sums) for sums in drawn]
        bounds.append(lower_bound_epsilon(*ratios))
    assert bounds[0] <= 2.0 < bounds[1]
