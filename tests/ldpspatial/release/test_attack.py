"""The attack finds releases with too little noise, and passes those that keep their claim.

A release that keeps its claim fails with probability 1e-6.
"""

import warnings
from dataclasses import dataclass, replace
from math import inf, isinf
from typing import Literal

import numpy as np
import pytest
from scipy.special import expit

from ldpspatial import PrivacyClaim, Release, Released, UserCells
from ldpspatial.estimation.levels import NoisyLevel, combined
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.release.attack import attack
from ldpspatial.release.registry import releases


@dataclass(frozen=True)
class Noisy(Release):
    """Users by cell with Laplace noise, of which ``share`` of what the claim needs is drawn.

    What the attack looks at, the first cell less the last, rises with the difference of their
    noisy numbers: no more and no less can be told from it.
    """

    share: float = 1.0
    neighbours: Literal["replace", "zero", "add or remove"] = "add or remove"
    name = "noisy"
    model = "central"

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Claim as much as the full noise would give."""
        return PrivacyClaim("central", epsilon, neighbours=self.neighbours)

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Publish the first and the last noisy number, as a density."""
        moved = 2 if self.neighbours == "replace" else 1
        noise = rng.laplace(scale=self.share * moved / epsilon, size=users.shape)
        # Nobody is an input as well: a density would be an error there, which the attack would see.
        people = users.density * len(users) if len(users) else np.zeros(users.shape)
        noisy = people + noise
        density = np.zeros(users.shape)
        density[0, 0] = expit(noisy[0, 0] - noisy[-1, -1])
        density[-1, -1] = 1 - density[0, 0]
        return Released(density, self.claim(epsilon))


@pytest.mark.parametrize("neighbours", ["replace", "zero", "add or remove"])
def test_full_noise_passes_and_half_of_it_is_found(
    neighbours: Literal["replace", "zero", "add or remove"],
) -> None:
    rng = np.random.default_rng(1)
    full = attack(Noisy(1.0, neighbours), 1.0, 2, 20_000, rng)
    assert full.passed
    assert full.claim.neighbours != "zero"
    assert full.allowed == (2 if neighbours == "zero" else 1)
    half = attack(Noisy(0.5, neighbours), 1.0, 2, 20_000, rng)
    assert not half.passed, half
    assert full.allowed < half.seen <= 2 * full.allowed


def test_what_publishes_the_truth_is_found_and_what_promises_nothing_is_not_judged() -> None:
    rng = np.random.default_rng(2)
    assert not attack(Noisy(0.0), 1.0, 2, 200, rng).passed
    found = attack(releases()["non-private"], 1.0, 2, 2000, rng)
    assert found.passed
    assert isinf(found.allowed)
    assert 2 < found.seen < inf


@pytest.mark.parametrize(("name", "least"), [("oue", 0.2), ("laplace", 0.15), ("flat", 0.5)])
def test_a_good_attack_comes_near_the_claim(name: str, least: float) -> None:
    found = attack(releases()[name], 1.0, 2, 2500, np.random.default_rng(3))
    assert least * found.allowed / (2 if name == "flat" else 1) < found.seen <= found.allowed


@pytest.mark.parametrize("name", [n for n, r in releases().items() if r.model != "none"])
def test_every_release_takes_part(name: str) -> None:
    steps: list[tuple[int, int]] = []
    found = attack(
        releases()[name], 1.0, 3, 4, np.random.default_rng(4), lambda *at: steps.append(at)
    )
    assert found.passed
    assert steps == [(k, 8) for k in range(1, 9)]
    # Under geo-indistinguishability the two inputs are one unit of distance apart.
    assert found.allowed == found.claim.epsilon


@dataclass(frozen=True)
class Telling(Noisy):
    """Full noise, but what comes has another form where there is nobody in the first cell."""

    how: Literal["error", "warning", "parts"] = "error"

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Tell."""
        found = super().release(users, epsilon, rng)
        if users.visits[:, [0]].nnz:
            return found
        if self.how == "error":
            raise ZeroDivisionError("nobody")
        if self.how == "warning":
            warnings.warn("nobody", stacklevel=1)
            return found
        tree = Quadtree(users.shape)
        whole = NoisyLevel(0, tree.numbers(0), np.array([1.0]), 1.0)
        return replace(found, levels=combined(tree, [whole]))


@pytest.mark.parametrize("how", ["error", "warning", "parts"])
def test_an_output_of_another_form_is_found(how: Literal["error", "warning", "parts"]) -> None:
    found = attack(
        Telling(neighbours="add or remove", how=how), 1.0, 2, 400, np.random.default_rng(5)
    )
    assert not found.passed
    assert found.seen > 2
    told = {
        "error": "the error 'ZeroDivisionError: nobody' with nobody",
        "warning": "a map, the warning 'nobody' with nobody",
        "parts": "a map and levels with nobody",
    }
    assert found.by == f"what came: a map with the user, {told[how]}"


def test_an_error_is_named_where_the_numbers_it_left_out_tell_as_much() -> None:
    @dataclass(frozen=True)
    class Aborts(Noisy):
        def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
            if not users.visits.nnz:
                raise ValueError("nobody is here")
            return super().release(users, epsilon, rng)

    found = attack(Aborts(neighbours="add or remove"), 1.0, 2, 400, np.random.default_rng(5))
    assert found.by.endswith("the error 'ValueError: nobody is here' with nobody")


def test_what_fails_on_both_inputs_is_an_error_and_no_attack() -> None:
    class Broken(Noisy):
        """Gives no map at all."""

        def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
            raise ZeroDivisionError("always")

    with pytest.raises(ZeroDivisionError, match="always"):
        attack(Broken(), 1.0, 2, 4, np.random.default_rng(6))
