"""How the people of nodes are shared: a learned law of shares against numerical integration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ldpspatial.estimation.levels import shares
from ldpspatial.estimation.levels.shares import (
    CENTRES,
    WIDTHS,
    learned_weights,
    posterior_mean,
    shared,
)

EVEN = np.full((1, 4), 0.25)


@settings(max_examples=40)
@given(st.floats(-0.5, 1.5), st.floats(0.01, 1.0), st.integers(0, 2**32 - 1))
def test_a_posterior_mean_is_that_of_numerical_integration(
    seen: float, deviation: float, seed: int
) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(CENTRES)))
    share = np.linspace(-2.0, 3.0, 200_001)
    law = np.zeros_like(share)
    for centre, width, weight in zip(CENTRES, WIDTHS, weights, strict=True):
        law += weight * np.exp(-(((share - centre) / width) ** 2) / 2) / width
    law *= np.exp(-(((seen - share) / deviation) ** 2) / 2)
    found = posterior_mean(np.array([seen]), np.array([deviation**2]), weights)
    assert found[0] == pytest.approx((share * law).sum() / law.sum(), abs=1e-6)


def test_the_law_of_shares_is_learned_from_noisy_ones() -> None:
    """A tenth of the people's children hold .55, the others nothing, under noise of .1."""
    rng = np.random.default_rng(1)
    truth = np.where(rng.random(4000) < 0.1, 0.55, 0.0)
    seen = truth + rng.normal(0, 0.1, 4000)
    weights = learned_weights(seen, np.full(4000, 0.01))
    assert weights.sum() == pytest.approx(1)
    assert weights[(CENTRES > 0.4) & (CENTRES < 0.7)].sum() == pytest.approx(0.1, abs=0.03)
    assert weights[CENTRES < 0.1].sum() > 0.85


def test_where_people_are_in_few_places_noise_is_told_from_people() -> None:
    """Each of 500 nodes has its 100 people in one child: half of the error of the sums, and less.

    Drawn to a uniform map, as three nodes alone are, large and small shares lose alike.
    """
    rng = np.random.default_rng(2)
    truth = np.zeros((500, 4))
    truth[np.arange(500), rng.integers(0, 4, 500)] = 100
    sums = truth + rng.laplace(0, 20, truth.shape)
    people, shares, noise = truth.sum(1), np.repeat(EVEN, 500, 0), np.full(truth.shape, 800.0)
    found = shared(people, shares, sums, noise)
    assert found.sum(1) == pytest.approx(people)
    few = np.concatenate(
        [
            shared(people[k : k + 3], shares[k : k + 3], sums[k : k + 3], noise[k : k + 3])
            for k in range(0, 500, 3)
        ]
    )
    error, of_few, of_sums = (np.abs(each - truth).mean() for each in (found, few, sums))
    assert error < 0.5 * of_sums
    assert error < 0.8 * of_few


@pytest.mark.parametrize("nodes", [3, 50])
def test_shares_without_noise_are_the_sums(nodes: int) -> None:
    rng = np.random.default_rng(3)
    sums = rng.gamma(0.3, 50, (nodes, 4)) + 1
    found = shared(sums.sum(1), np.repeat(EVEN, nodes, 0), sums, np.zeros((nodes, 4)))
    assert found == pytest.approx(sums, rel=1e-6)


def test_children_of_a_border_keep_to_their_area() -> None:
    """A node of two children of three cells and one: shares are drawn to these, not to halves."""
    shares = np.repeat([[0.75, 0.25, 0.0, 0.0]], 40, 0)
    noise = np.where(shares > 0, 40.0**2, 0.0)
    sums = 400 * shares + np.random.default_rng(4).normal(0, 1, (40, 4)) * np.sqrt(noise)
    found = shared(np.full(40, 400.0), shares, sums, noise)
    assert found.mean(0) == pytest.approx([300, 100, 0, 0], abs=25)  # five standard errors
    assert (found[:, :2] - [300, 100]).std() < 0.8 * 40 / np.sqrt(2)


@pytest.mark.parametrize("nodes", [4_000, 5_001, 15_001])
def test_it_is_learned_from_all_quarters_alike_however_many_nodes_there_are(nodes: int) -> None:
    """Nearly all people of each node are in one quarter, whichever that is."""
    noise = np.random.default_rng(6).normal(0, 30, (nodes, 4))
    found = []
    for quarter in range(4):
        people = np.full((nodes, 4), 2.5)
        people[:, quarter] = 92.5
        got = shared(
            np.full(nodes, 100.0), np.full((nodes, 4), 0.25),
            people + noise, np.full((nodes, 4), 900.0),
        )  # fmt: skip
        found.append(np.sqrt(np.mean((got - people) ** 2)))
    assert max(found) < 1.05 * min(found)
    assert max(found) < 15  # half of the noise


def test_a_single_node_of_two_children_by_hand() -> None:
    """Beyond even are +-30: squares of 1800 a degree of freedom, 200 of them noise."""
    given = [100.0], [[0.5, 0.5, 0, 0]], [[80.0, 20, 0, 0]], [[200.0, 200, 0, 0]]
    found = shares.shared(*map(np.array, given))
    assert found[0] == pytest.approx([50 + 30 * 16 / 18, 50 - 30 * 16 / 18, 0, 0])


@pytest.mark.parametrize(("nodes", "learned"), [(3, False), (4, True)])
def test_a_mixture_is_learned_from_four_nodes_on(
    nodes: int, learned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def law(people: NDArray, sums: NDArray, variances: NDArray) -> NDArray:
        asked.append(len(people))
        return sums

    monkeypatch.setattr(shares, "_learned", law)
    four = (nodes, 4)
    shares.shared(np.full(nodes, 9.0), np.full(four, 0.25), np.full(four, 2.0), np.ones(four))
    assert asked == ([nodes] if learned else [])
