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

from client_sdk.entropy import Entropy
from ldpspatial import PrivacyClaim, Release, Released, UserCells
from ldpspatial.errors import InputError
from ldpspatial.estimation.levels import NoisyLevel, combined
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.release.attack import attack, best_inputs
from ldpspatial.release.attack_inputs import Inputs, likely_inputs
from ldpspatial.release.central import central_levels
from ldpspatial.release.central.grids import uniform_grid
from ldpspatial.release.central.level_plan import Plan
from ldpspatial.release.central.quantise import MASS
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


@dataclass(frozen=True)
class Louder(Release):
    """A release that runs at three times the epsilon that it claims."""

    inner: Release
    name = "louder"

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Claim what the release would promise."""
        return self.inner.claim(epsilon)

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Run at more."""
        return self.inner.release(users, 3 * epsilon, rng)


@pytest.mark.parametrize("neighbours", ["replace", "zero", "add or remove"])
def test_full_noise_passes_and_half_of_it_is_found(
    neighbours: Literal["replace", "zero", "add or remove"],
) -> None:
    rng = np.random.default_rng(1)
    full = attack(Noisy(1.0, neighbours), 1.0, 2, 4000, rng)
    assert full.passed
    assert full.claim.neighbours != "zero"
    assert full.allowed == (2 if neighbours == "zero" else 1)
    half = attack(Noisy(0.5, neighbours), 1.0, 2, 14_000, rng)
    assert not half.passed, half
    assert full.allowed < half.seen <= 2 * full.allowed


def test_an_epsilon_a_third_too_large_is_found() -> None:
    class Alone(Noisy):
        """The first noisy number, without another's noise to hide it."""

        def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
            here = float(users.visits.sum()) + rng.laplace(scale=self.share / epsilon)
            return Released(np.array([[expit(here), expit(-here)]]), self.claim(epsilon))

    rng = np.random.default_rng(8)
    assert 0.8 < attack(Alone(), 1.0, Inputs((1, 2)), 16_000, rng).seen <= 1
    assert 1 < attack(Alone(0.75), 1.0, Inputs((1, 2)), 16_000, rng).seen <= 4 / 3


def test_what_publishes_the_truth_is_found_and_what_promises_nothing_is_not_judged() -> None:
    rng = np.random.default_rng(2)
    assert not attack(Noisy(0.0), 1.0, 2, 200, rng).passed
    found = attack(releases()["non-private"], 1.0, 2, 2000, rng)
    assert found.passed
    assert isinf(found.allowed)
    assert 2 < found.seen < inf


# Where a release shows much: the inputs, how many runs, and the share of the claim that is seen.
SHOWING: dict[str, tuple[Inputs, int, float]] = {
    "laplace": (Inputs((1, 2), 0, 40), 3000, 0.5),
    "sparse-emd": (Inputs((1, 2), 0, 40), 2500, 0.4),
    "central-levels": (Inputs((1, 2), 0, 3), 900, 0.1),
    "adaptive-hierarchical": (Inputs((1, 2), 0, 1), 1200, 0.2),
}


@pytest.mark.parametrize("name", SHOWING)
def test_much_of_the_claim_is_seen_and_a_third_of_the_noise_found(name: str) -> None:
    release = releases()[name]
    inputs, runs, least = SHOWING[name]
    found = attack(release, 1.0, inputs, runs, np.random.default_rng(3))
    assert least < found.power <= 1
    assert found.inputs == inputs
    loud = attack(Louder(release), 0.5, inputs, runs, np.random.default_rng(4))
    assert loud.allowed < loud.seen <= 3 * loud.allowed


def test_a_number_of_people_without_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = central_levels.with_noise

    def bare(units: np.ndarray, micro: int, source: Entropy) -> np.ndarray:
        return units if len(units) == 1 else honest(units, micro, source)

    monkeypatch.setattr(central_levels, "with_noise", bare)
    found = attack(releases()["central-levels"], 1.0, 2, 600, np.random.default_rng(9))
    assert not found.passed
    assert found.by == "all numbers that came"  # not the map, but the sum of all beside it


def test_a_shape_that_one_user_more_decides_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # Ten people are one block, eleven are four, where they are counted without noise.
    monkeypatch.setattr(
        uniform_grid, "people_and_rest", lambda people, units, micro, source: (
            float(units.sum() / MASS), micro
        ),
    )  # fmt: skip
    release = releases()["uniform-grid"]
    found = attack(release, 1.0, Inputs((2, 2), 0, 10), 400, np.random.default_rng(10))
    assert found.seen > 2
    # Elsewhere the same slip shows nothing beyond the claim.
    assert attack(release, 1.0, Inputs((2, 2), 0, 40), 400, np.random.default_rng(10)).passed


def test_a_plan_that_one_user_more_decides_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # 148 people are asked for sixteen sums, 149 for a shape, where their true number decides.
    chosen = {True: (2, []), False: (2, [968_750])}
    inside: list[bool] = []
    honest_sums = central_levels.unit_sums

    def counted(users: UserCells) -> object:
        inside.append(len(users) >= 149)
        return honest_sums(users)

    monkeypatch.setattr(central_levels, "unit_sums", counted)
    monkeypatch.setattr(central_levels, "plan", lambda *_: Plan(*chosen[inside[-1]]))
    inputs = Inputs((16, 16), 0, 148)
    found = attack(releases()["central-levels"], 1.0, inputs, 200, np.random.default_rng(13))
    assert not found.passed
    monkeypatch.undo()
    found = attack(releases()["central-levels"], 1.0, inputs, 200, np.random.default_rng(13))
    assert found.passed


def test_facts_are_seen_where_they_are_published() -> None:
    class Counted(Noisy):
        """The number of users among its facts."""

        def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
            return replace(super().release(users, epsilon, rng), facts={"people": len(users)})

    assert attack(Counted(), 1.0, 2, 600, np.random.default_rng(11)).passed
    assert not attack(Counted(), 1.0, 2, 600, np.random.default_rng(11), facts=True).passed


def test_the_inputs_that_show_most_are_found() -> None:
    hidden, shown = Inputs((4, 4), 0, 40), Inputs((1, 2), 0, 40)
    candidates = [hidden, shown, hidden]
    rng = np.random.default_rng(12)
    assert best_inputs(releases()["laplace"], 1.0, rng, 300, candidates) == shown
    with pytest.raises(InputError, match="candidates must be a list of Inputs"):
        best_inputs(releases()["laplace"], 1.0, rng, 300, [])


def test_without_candidates_inputs_are_such_as_the_release_takes() -> None:
    wide, square = Inputs((1, 2), 0, 1), Inputs((2, 2), 40, 40, 40)
    assert {wide, square} <= set(likely_inputs())
    chosen = best_inputs(releases()["k-rr"], 1.0, np.random.default_rng(14), 10)
    assert chosen in likely_inputs(square=True)
    assert chosen.shape[0] == chosen.shape[1]


def test_inputs_differ_in_one_user_among_the_same_others() -> None:
    inputs = Inputs((1, 3), 1, 2, 3)
    claims = [
        PrivacyClaim("central", 1.0, neighbours=each) for each in ("add or remove", "replace")
    ]
    maps = [[each.visits.sum(axis=0).tolist() for each in inputs.pair(claim)] for claim in claims]
    assert maps == [[[2, 3, 2], [1, 3, 2]], [[2, 3, 2], [1, 3, 3]]]


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


def test_where_nothing_is_seen_that_is_said() -> None:
    found = attack(Noisy(neighbours="add or remove"), 0.1, 2, 8, np.random.default_rng(7))
    assert found.seen == 0
    assert found.by == "nothing: no difference was seen"


def test_of_a_rare_form_it_is_told_how_often_it_came() -> None:
    @dataclass(frozen=True)
    class Warns(Noisy):
        def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
            if not users.visits.nnz and rng.random() < 0.25:
                warnings.warn("nobody", stacklevel=1)
            return super().release(users, epsilon, rng)

    found = attack(Warns(neighbours="add or remove"), 0.1, 2, 400, np.random.default_rng(8))
    assert not found.passed
    told = "how often a map, the warning 'nobody' came: 0.0% of runs with the user, "
    assert found.by.startswith(told)
    assert 15 < float(found.by.removeprefix(told).removesuffix("% with nobody")) < 35


def test_what_fails_on_both_inputs_is_an_error_and_no_attack() -> None:
    class Broken(Noisy):
        """Gives no map at all."""

        def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
            raise ZeroDivisionError("always")

    with pytest.raises(ZeroDivisionError, match="always"):
        attack(Broken(), 1.0, 2, 4, np.random.default_rng(6))


def test_a_map_without_end_is_refused() -> None:
    with pytest.raises(InputError, match=r"^columns of shape must be .*1,?024"):
        Inputs((2, 1025))
