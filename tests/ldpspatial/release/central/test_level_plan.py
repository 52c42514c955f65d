"""What the recommended central release asks for: all of epsilon, and where which rule holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpspatial.release.central import CentralLevels
from ldpspatial.release.central.level_plan import FOUND, MANY_IN_A_CELL, WHOLE_PEOPLE, plan
from ldpspatial.release.level_sums import LEAST, Aim
from tests.ldpspatial.release.central.test_shaped_levels import crowd
from tests.support.central_noise import recorded_spending

CELLS, DEPTH = 64 * 64, 6


@given(
    st.floats(-1e9, 1e12),
    st.integers(1, 20_000_000),
    st.integers(1, 10),
    st.floats(0.25, 1),
    st.sampled_from(["distance", "cells"]),
)
def test_a_plan_spends_all_of_epsilon(
    people: float, micro: int, depth: int, share: float, aim: Aim
) -> None:
    """Maps that are no square, or of an odd side, hold a part of the cells of their tree."""
    found = plan(people, micro, max(round(4**depth * share), 2), depth, aim)
    assert 1 <= found.first <= depth
    if found.by_shape:
        assert depth > LEAST
        assert found.wide == 0
    else:
        assert sum(found.parts) + found.wide == micro
        assert min(found.parts) >= 1
        assert found.first + len(found.parts) - 1 <= depth
    if aim == "cells":
        assert found == (depth, [micro], 0)


@given(st.integers(1, FOUND - 1), st.floats(0, 1e12))
def test_more_people_never_begin_coarser_by_whole_levels(micro: int, people: float) -> None:
    """A shape begins where it finds people: its first level is another thing."""
    fewer, more = (plan(each, micro, CELLS, DEPTH, "distance") for each in (people / 2, people))
    assert fewer.by_shape or more.by_shape or fewer.first <= more.first


@pytest.mark.parametrize(
    ("people", "shaped", "first"),
    [
        (143.0, False, LEAST),
        (145.0, True, None),
        (18_431.0, True, None),
        (18_433.0, False, 5),  # nodes of level 5 hold 18
        (MANY_IN_A_CELL * CELLS - 1.0, False, 5),
        (MANY_IN_A_CELL * CELLS, False, 6),
    ],
)
def test_a_shape_is_asked_for_between_few_and_many(
    people: float, shaped: bool, first: int | None
) -> None:
    found = plan(people, 1_000_000, CELLS, DEPTH, "distance")
    assert found.by_shape == shaped
    assert first is None or found.first == first
    assert found.wide == (100_000 if first == DEPTH else 0)


@pytest.mark.parametrize(("cells", "depth"), [(4, 1), (16, 2), (256, 4), (33 * 50, 6)])
def test_a_small_map_is_asked_for_cells_where_a_large_one_has_a_shape(
    cells: int, depth: int
) -> None:
    many = float(MANY_IN_A_CELL * cells)
    for people in (145.0, many - 0.5, many, 18_000.0):
        found = plan(people, 1_000_000, cells, depth, "distance")
        assert found.by_shape == (depth > LEAST and 144 <= people < many)
        if people >= many:
            assert found.first == depth


def test_where_people_are_found_one_by_one_levels_are_whole_and_as_fine_as_noise_allows() -> None:
    """1,400 people over the scale of noise: level 4 by the noise alone, level 3 else."""
    below, from_there = (
        plan(1_400.0, micro, CELLS, DEPTH, "distance") for micro in (WHOLE_PEOPLE - 1, WHOLE_PEOPLE)
    )
    assert below.by_shape
    assert (from_there.by_shape, from_there.first) == (False, 4)


def test_next_to_no_noise_needs_no_wide_areas() -> None:
    below, from_there = (plan(1e6, micro, CELLS, DEPTH, "distance") for micro in (FOUND - 1, FOUND))
    assert below == (DEPTH, [FOUND - 1 - (FOUND - 1) // 10], (FOUND - 1) // 10)
    assert from_there == (DEPTH, [FOUND], 0)
    assert plan(50.0, FOUND, CELLS, DEPTH, "distance") == (DEPTH, [FOUND], 0)  # however few


@pytest.mark.parametrize(
    ("people", "epsilon", "asked"),
    [
        (100, 1.0, [2]),
        (300, 1.0, []),
        (2_000, 3.0, []),
        (8_000, 3.0, [5, 6]),
        (20_000, 3.0, [2, 6]),
        (20_000, 8.0, [6]),
    ],
)
def test_the_release_asks_what_is_planned_and_spends_what_it_claims(
    people: int, epsilon: float, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = recorded_spending(monkeypatch)
    users = crowd((64, 64), people)
    run = CentralLevels().release(users, epsilon, np.random.default_rng(1))
    assert sum(spent) == round(epsilon * 1e6)
    assert run.levels is not None
    levels = run.levels.levels[1:]
    by_shape = any(level.measured is not None for level in levels)
    assert by_shape == (not asked)
    assert by_shape or [level.level for level in levels if level.number] == asked
    assert run.claim.epsilon == epsilon
    cells = CentralLevels("cells").release(users, epsilon, np.random.default_rng(1))
    assert cells.levels is not None
    assert [level.level for level in cells.levels.levels[1:] if level.number] == [6]
