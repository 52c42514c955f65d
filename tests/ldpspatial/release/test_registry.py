"""Every release keeps the rules that comparison relies on."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client_sdk import Grid
from experiments.studies.claims import claims_table
from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.release.local import (
    Dam,
    DamTrajectory,
    DiskAndSets,
    LdpTrace,
    LocalRelease,
    Matched,
    Recommended,
    SemGeoI,
    SquareWave,
)
from ldpspatial.release.registry import find_releases, releases
from ldpspatial.release.release import Release

DOCS = Path(__file__).parents[3] / "docs"
PROMISED = {
    "local": {
        *(
            "recommended",
            "dam",
            "dam-ns",
            "huem",
            "disk",
            "rhombus",
            "k-rr",
            "oue",
            "olh",
            "subset-selection",
            "difference-sets",
        ),
        *("mdsw", "mdsw-joint", "hio", "hdg", "ahead", "sem-geo-i", "planar-laplace"),
        *("ldptrace", "pivottrace", "dam-trajectory", "dam-points"),
    },
    "distributed": {
        *(
            "distributed-levels",
            "two-servers",
            "flat",
            "hierarchical",
            "count-min",
            "count-min-minimum",
            "adaptive-grid",
            "sparse-emd-sums",
        ),
        *("spatial-decomposition", "spatial-decomposition-leaves", "adaptive-hierarchical"),
    },
    "central": {
        *("central-levels", "laplace", "laplace-top", "sparse-emd", "uniform-grid"),
        *("central-adaptive-grid", "quadtree", "privtree", "least-cost-partition", "wavelets"),
    },
    "none": {
        *("non-private", "non-private-best-level", "non-private-tree"),
        *("hierarchical-oracle", "count-min-oracle", "spatial-decomposition-oracle"),
    },
}
UNITS = {"ldptrace": "trajectory", "pivottrace": "trajectory", "dam-trajectory": "trajectory"}
UNITS["dam-points"] = "report"
GEO = {"sem-geo-i", "planar-laplace"}
RELATIONS = {"local": "replace", "distributed": "zero", "central": "add or remove"}

LOCAL: dict[str, LocalRelease] = {
    **{name: each for name, each in releases().items() if isinstance(each, LocalRelease)},
    "recommended, cells": Recommended(aim="cells"),
    "disk-and-sets": DiskAndSets(share=0.5, squared_radius=2),
    "sw-ems": SquareWave(),
    "matched": Matched(SemGeoI(), Dam(), cells=3),
    "dam-trajectory, 4 slots": DamTrajectory(slots=4),
    "ldptrace, all slots": LdpTrace("all"),
}
SETS = {"oue", "olh", "subset-selection", "difference-sets"}
ANY_SIDE = SETS | {"k-rr", "mdsw", "mdsw-joint", "sw-ems", "ldptrace"}

every_release = pytest.mark.parametrize("name", list(releases()))
every_local_release = pytest.mark.parametrize("release", LOCAL.values(), ids=LOCAL)


def people(shape: tuple[int, int], seed: int = 1) -> UserCells:
    """Two hundred users with five visits each, most of them in the middle of a map."""
    rng = np.random.default_rng(seed)
    centre = np.array(shape) / 2
    at = np.clip(rng.normal(centre, centre / 4, (1000, 2)), 0, np.array(shape) - 1e-9)
    row, col = np.floor(at).astype(int).T
    return cells_by_user(np.arange(1000) % 200, row * shape[1] + col, shape)


def test_the_names_are_pinned_and_grouped_by_trust() -> None:
    found: dict[str, set[str]] = {}
    for name, release in releases().items():
        assert name == release.name
        found.setdefault(release.model, set()).add(name)
    for model, names in PROMISED.items():  # others may join them
        assert names <= found[model]


@every_release
def test_a_release_gives_a_density_under_no_more_than_was_asked_for(name: str) -> None:
    release = releases()[name]
    found = release.release(people((16, 16)), 1.0, np.random.default_rng(2))
    assert found.density.shape == (16, 16)
    assert found.density.min() >= 0
    assert found.density.sum() == pytest.approx(1, abs=1e-9)
    assert found.claim.model == release.model == release.claim(1.0).model
    if release.model != "none":
        assert 0 < found.claim.epsilon <= 1.0


@pytest.mark.parametrize(
    ("model", "name"),
    [(model, name) for model in RELATIONS for name in sorted(PROMISED[model])],
)
def test_what_the_claim_of_a_release_is_about_is_pinned(model: str, name: str) -> None:
    claim = releases()[name].claim(1.0)
    assert claim.neighbours == RELATIONS[model]
    assert claim.unit == UNITS.get(name, "user")
    assert (claim.notion == "geo-indistinguishability") == (name in GEO)
    assert (claim.distance == "cell") == (name in GEO)
    assert claim.conditions


@every_release
def test_equal_seeds_give_equal_maps_and_the_input_is_left_alone(name: str) -> None:
    users = people((8, 8))
    before = users.visits.copy()
    first, again, other = (
        releases()[name].release(users, 15.0, np.random.default_rng(seed)).density
        for seed in (3, 3, 4)
    )
    assert (first == again).all()
    keeps_one_cell = name == "laplace-top"
    assert releases()[name].model == "none" or keeps_one_cell or (first != other).any()
    assert (users.visits != before).nnz == 0


@every_release
def test_positions_go_in_as_an_array_or_with_user_ids(name: str) -> None:
    at = np.random.default_rng(1).uniform(0, 8, (60, 2))
    grid = Grid.plane(0, 0, 8, 8)
    for points in (at, (np.arange(60) % 20, at)):
        found = releases()[name].run(points, grid, 2.0, np.random.default_rng(2))
        assert found.density.shape == (8, 8)


@every_release
def test_maps_of_any_side(name: str) -> None:
    for side in (1, 3, 10):
        found = releases()[name].release(people((side, side)), 1.0, np.random.default_rng(5))
        assert found.density.shape == (side, side)
        assert found.density.sum() == pytest.approx(1, abs=1e-9)


@every_release
def test_maps_that_are_no_square_unless_the_mechanism_needs_one(name: str) -> None:
    release, users = releases()[name], people((6, 11))
    if release.model == "local":
        with pytest.raises(InputError, match="needs a square map"):
            release.release(users, 1.0, np.random.default_rng(5))
    else:
        assert release.release(users, 1.0, np.random.default_rng(5)).density.shape == (6, 11)


@every_release
def test_parameters_are_frozen(name: str) -> None:
    release = releases()[name]
    for field in fields(release):  # type: ignore[arg-type]
        with pytest.raises(FrozenInstanceError):
            setattr(release, field.name, None)


@every_local_release
def test_an_observer_is_refused_the_epsilons_that_this_very_claim_refuses(
    release: LocalRelease,
) -> None:
    def refusal(call: Callable[[], object]) -> str:
        try:
            call()
        except InputError as error:
            return str(error)
        return ""

    for epsilon in (25, 1e-9, 1e-6, 2e-6, 1e-4):  # which some of them take
        refused = refusal(partial(release.claim, epsilon))
        assert not refused or "must" in refused
        assert refusal(partial(release.local_privacy, 3, epsilon)) == refused


@every_local_release
def test_an_observer_of_a_large_map_has_an_answer_or_a_rule(release: LocalRelease) -> None:
    # Maps of 108 x 108 cells are the smallest whose pairs of cells are too many for a matrix.
    if release.name in ANY_SIDE:
        assert 0 < release.local_privacy(108, 1.0) < 108
        return
    for cells in (108, 4096):
        with pytest.raises(InputError, match=r"cells must (be smaller|lie in)|matched on 3 x 3"):
            release.local_privacy(cells, 1.0)


@every_local_release
def test_numbers_of_any_kind_are_numbers(release: LocalRelease) -> None:
    expected = release.local_privacy(3, 0.5)
    for epsilon in (Fraction(1, 2), Decimal("0.5"), np.float32(0.5), np.float64(0.5)):
        assert release.local_privacy(np.int64(3), epsilon) == expected  # type: ignore[arg-type]


@every_local_release
@pytest.mark.parametrize(
    "epsilon", [np.float32(3.3), np.float16(1.1), Fraction(10, 3), Decimal("3.3")], ids=repr
)
def test_a_run_takes_numbers_of_any_kind_as_the_nearest_float(
    release: LocalRelease, epsilon: Any
) -> None:
    users = people((1, 9) if release.name == "sw-ems" else (3, 3))
    found, expected = (
        release.release(users, each, np.random.default_rng(7)) for each in (epsilon, float(epsilon))
    )
    assert (found.density == expected.density).all()
    assert (found.facts, found.claim) == (expected.facts, expected.claim)
    assert type(release.claim(epsilon).epsilon) is float
    assert release.claim(epsilon) == expected.claim


def test_the_page_of_claims_is_what_the_code_says() -> None:
    assert claims_table() in (DOCS / "releases.md").read_text()


def test_releases_are_found_by_name_by_object_or_under_a_label_of_ones_own() -> None:
    dam = releases()["dam"]
    assert find_releases("dam") == {"dam": dam}
    assert find_releases(["dam", "laplace"]) == {"dam": dam, "laplace": releases()["laplace"]}
    assert find_releases([dam]) == {"dam": dam}
    assert find_releases({"mine": dam}) == {"mine": dam}


@pytest.mark.parametrize("wanted", [[], ["dim"], ["dam", "dam"], [3], {"a": "dim"}])
def test_bad_releases(wanted: list[str | Release]) -> None:
    with pytest.raises(InputError, match="releases must"):
        find_releases(wanted)


@pytest.mark.parametrize(
    "name", [name for name, each in releases().items() if each.model in ("central", "distributed")]
)
@pytest.mark.parametrize("epsilon", [1e-300, 1e-7, 9e-7])
def test_a_claim_refuses_an_epsilon_that_no_run_takes(name: str, epsilon: float) -> None:
    """Budgets are in millionths; a comparison asks for claims before any run."""
    release = releases()[name]
    users = cells_by_user(np.arange(30), np.arange(30) % 16, (4, 4))
    with pytest.raises(InputError, match="epsilon"):
        release.claim(epsilon)
    with pytest.raises(InputError, match="epsilon"):
        release.release(users, epsilon, np.random.default_rng(1))
