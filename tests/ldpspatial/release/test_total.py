"""Central and distributed releases are total: nothing but the map depends on what users hold.

An error, a warning (which is an error in these tests), or an output of another form on one of two
neighbouring inputs would tell them apart with certainty, whatever the noise is. So every release is
run on inputs at the edge of what there is, and what is not noise must be the same for all of them.
A claim says nothing but what is public; the number of users is, unless users are added or removed.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from client_sdk import Grid
from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.release.central.central_levels import CentralLevels
from ldpspatial.release.central.sparse_emd import SparseEmd
from ldpspatial.release.distributed import (
    AdaptiveHierarchical,
    Cohort,
    DistributedLevels,
    ManyLocations,
    SideData,
)
from ldpspatial.release.registry import releases
from ldpspatial.release.release import Release

NUMBERS = (0, 1, 12)
SHAPES = ((1, 1), (5, 3))
EPSILONS = (1e-6, 1.0, 20.0)
FULL = (1 << 63) - 1  # visits, more than which no count of 64 bits holds
VARIANTS = {
    "adaptive-hierarchical, many locations": AdaptiveHierarchical(locations=ManyLocations(50)),
    "adaptive-hierarchical, stochastic": AdaptiveHierarchical(
        locations=ManyLocations(50, "stochastic", 3)
    ),
    "adaptive-hierarchical, most visited": AdaptiveHierarchical(
        cohort=Cohort(shard_size=5), schedule="even"
    ),
    "sparse-emd, one node": SparseEmd(keep=1),
    "central-levels, cells": CentralLevels(aim="cells"),
    "distributed-levels, cells": DistributedLevels(aim="cells"),
}
PRIVATE = {
    **{name: each for name, each in releases().items() if each.model in ("central", "distributed")},
    **VARIANTS,
}


def inputs(shape: tuple[int, int], n: int) -> Iterator[UserCells]:
    """So many users: in one cell, in all cells, one of them far away, everywhere, without end."""
    size = shape[0] * shape[1]
    who = np.arange(n)
    yield cells_by_user(who, np.zeros(n, int), shape)
    yield cells_by_user(who, np.full(n, size - 1), shape)
    yield cells_by_user(who, who * 7 % size, shape)
    if n:
        far = np.zeros(n, int)
        far[0] = size - 1
        yield cells_by_user(who, far, shape)
        first = np.concatenate([np.zeros(size, int), who])
        everywhere = cells_by_user(first, np.concatenate([np.arange(size), far]), shape)
        yield everywhere
        visits = everywhere.visits.copy()
        visits.data[: visits.indptr[1]] = FULL
        yield replace(everywhere, visits=visits)


def form(release: Release, users: UserCells, epsilon: float) -> object:
    """Everything about a run that must not depend on the users: its error, or its form."""
    try:
        found = release.release(users, epsilon, np.random.default_rng(1))
    except InputError as error:
        return str(error)
    assert found.density.sum() == pytest.approx(1, abs=1e-9)
    assert found.density.min() >= 0
    facts = {name: type(fact) for name, fact in found.facts.items()}
    # What is spent in all may follow from noisy sums, as rounds do.
    claim = replace(found.claim, epsilon=epsilon)
    return found.density.shape, facts, found.levels is None, found.estimate is None, str(claim)


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nothing_but_the_map_depends_on_what_users_hold(name: str, shape: tuple[int, int]) -> None:
    release = PRIVATE[name]
    for epsilon in EPSILONS:
        forms = {n: {str(form(release, u, epsilon)) for u in inputs(shape, n)} for n in NUMBERS}
        assert [len(each) for each in forms.values()] == [1] * len(NUMBERS), forms
        if release.claim(epsilon).neighbours == "add or remove":
            # Nobody at all is a neighbour of one user, and has a map like any other.
            assert len(set.union(*forms.values())) == 1, forms
        elif epsilon == 1.0:
            assert forms[0] == {"users must hold at least one user, got none"}


def test_a_form_that_depends_on_the_data_is_noticed() -> None:
    class Told(SparseEmd):
        """Refuses the map where somebody is in the last cell."""

        def _run(self, users: UserCells, micro_epsilon: int, source: object) -> object:  # type: ignore[override]
            if users.visits[:, [-1]].nnz:
                raise InputError("nobody may be in the last cell")
            return super()._run(users, micro_epsilon, source)  # type: ignore[arg-type]

    forms = {str(form(Told(), users, 1.0)) for users in inputs((5, 3), 12)}
    assert len(forms) == 2


@pytest.mark.parametrize("name", [n for n, each in PRIVATE.items() if each.model == "central"])
def test_the_only_user_inside_may_be_removed(name: str) -> None:
    # By positions, as a run takes them: the one who stays lies outside of the square.
    grid = Grid.plane(0, 0, 4, 4)
    shapes = []
    for points in ([[1.0, 1.0], [9.0, 9.0]], [[9.0, 9.0]], np.zeros((0, 2))):
        found = PRIVATE[name].run(points, grid, 1.0, np.random.default_rng(1))
        shapes.append((found.density.shape, found.claim))
    assert shapes[0] == shapes[1] == shapes[2]


@pytest.mark.parametrize("name", [n for n, each in releases().items() if each.model == "local"])
def test_a_local_release_of_nobody_names_the_users(name: str) -> None:
    nobody = cells_by_user([], [], (5, 5))
    with pytest.raises(InputError, match=r"^users must hold at least one user, got none$"):
        releases()[name].release(nobody, 1.0, np.random.default_rng(1))


def test_side_data_are_total_as_well() -> None:
    # Everybody has the property, nobody has it, one differs: two counts a leaf.
    shapes = set()
    for users in inputs((5, 3), 12):
        for positive in (np.ones(12, bool), np.zeros(12, bool), np.arange(12) == 0):
            found = SideData().run(users, positive, 1.0, np.random.default_rng(1))
            assert np.isfinite(found.density).all()
            shapes.add((found.proportion.shape, str(replace(found.claim, epsilon=1.0))))
    assert len(shapes) == 1
    with pytest.raises(InputError, match="users must hold at least one user, got none"):
        SideData().run(cells_by_user([], [], (5, 3)), [], 1.0, np.random.default_rng(1))
