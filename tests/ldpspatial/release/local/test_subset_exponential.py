"""The subset exponential mechanism's law: exact, proved, and drawn from as it says."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import dist, exp, sqrt

import mpmath
import numpy as np
import pytest
from scipy import stats

from ldpspatial.errors import SolverError
from ldpspatial.release.local.geo.subset_exponential import (
    SubsetExponential,
    _pairs,
    check_claim,
    subset_exponential,
)
from tests.support.naive_local_geo import cells_in_order, hit_matrix, subset_channel

SMALL = [
    *[(2, k, e) for k in (1, 2, 3) for e in (1e-6, 1.0, 20.0)],
    *[(3, k, e) for k in (1, 2, 4, 8) for e in (1e-6, 0.3, 5.0)],
    *[(4, 1, 0.7), (4, 2, 1.3), (4, 3, 20.0)],
]


def whole_weights(law: SubsetExponential) -> tuple[list[tuple[int, ...]], list[list[int]]]:
    """All sets, and the whole weights of all reports by input cell, the empty report last."""
    cells = law.cells**2
    sets = list(combinations(range(cells), law.size))
    rows = [
        [law.weights[min(int(law.steps[x, z]) for z in zs)] for x in range(cells)] for zs in sets
    ]
    return sets, [*rows, [law.total - law.masses[kind] for kind in law.kinds]]


@pytest.mark.parametrize(("side", "size", "epsilon"), SMALL)
def test_every_report_of_every_two_cells_keeps_the_claim_and_some_attain_it(
    side: int, size: int, epsilon: float
) -> None:
    law = subset_exponential(side, size, Fraction(epsilon))
    _, rows = whole_weights(law)
    assert all(sum(column) == law.total for column in zip(*rows, strict=True))
    cells = cells_in_order(side)
    attained = mpmath.mpf(0)
    with mpmath.workdps(120):
        for x, here in enumerate(cells):
            for y, there in enumerate(cells):
                if x == y:
                    continue
                apart = mpmath.sqrt((here[0] - there[0]) ** 2 + (here[1] - there[1]) ** 2)
                bound = mpmath.exp(mpmath.mpf(epsilon) * apart)
                most = max(Fraction(row[x], row[y]) for row in rows if row[y])
                assert all(row[x] == 0 for row in rows if row[y] == 0)
                ratio = mpmath.mpf(most.numerator) / most.denominator
                assert ratio <= bound
                attained = max(attained, mpmath.log(ratio) / (epsilon * apart))
    assert attained > 1 - 1e-15 or size > 2  # nothing is given away but for the slack


@pytest.mark.parametrize(("side", "size", "epsilon"), SMALL)
def test_probabilities_and_hits_are_those_of_the_plain_formula(
    side: int, size: int, epsilon: float
) -> None:
    law = subset_exponential(side, size, Fraction(epsilon))
    sets, rows = whole_weights(law)
    expected, its_sets = subset_channel(side, size, epsilon)
    assert sets == its_sets
    found = np.array([[weight / law.total for weight in row] for row in rows])
    tolerance = 1e-9 if epsilon < 1e-3 else 1e-12  # of the twin, which divides by e^eps - 1
    assert found == pytest.approx(expected, abs=tolerance)
    assert law.empty == pytest.approx(expected[-1], abs=tolerance)
    assert law.hits == pytest.approx(hit_matrix(expected, sets), abs=tolerance)


def test_single_cells_of_a_2_x_2_map_by_hand() -> None:
    # All cells are alike, so nothing is left for the empty report.
    law = subset_exponential(2, 1, Fraction(1))
    total = 1 + 2 * exp(-1) + exp(-sqrt(2))
    assert law.empty.max() < 1e-18
    assert law.hits[0] == pytest.approx(np.array([1, exp(-1), exp(-1), exp(-sqrt(2))]) / total)


@pytest.mark.parametrize("epsilon", [1e-6, 0.8416, 3.4128, 20.0])
@pytest.mark.parametrize("size", [1, 2, 113])
def test_15_x_15_cells_are_proved_by_distance_groups(size: int, epsilon: float) -> None:
    law = subset_exponential(15, size, Fraction(epsilon))
    assert law.total.bit_length() > 200
    assert law.weights[-1].bit_length() >= 200
    assert len(law.rings) == 36  # kinds: one triangle of an eighth of the map
    assert all(sum(ring) == 225 for ring in law.rings)
    for (ends, _), mass in zip(law.outcomes, law.masses, strict=True):
        assert ends[-1] == mass
    assert law.hits.sum(axis=0) == pytest.approx(size * (1 - law.empty), rel=1e-12)
    check_claim(law, Fraction(epsilon), _pairs(law.kinds, law.steps[_examples(law)]))


def _examples(law: SubsetExponential) -> np.ndarray:
    return np.unique(law.kinds, return_index=True)[1]


@pytest.mark.parametrize(
    "broken",
    [
        lambda law: {"weights": tuple(w >> law.weights[-1].bit_length() - 2 for w in law.weights)},
        lambda law: {"weights": law.weights[::-1]},
        lambda law: {"total": law.total - (law.total >> 50)},
        lambda law: {"total": max(law.masses) - 1},
        lambda law: {"masses": tuple(mass + (law.total >> 50) for mass in law.masses)},
    ],
    ids=["floored", "reversed", "total too small", "total below mass", "masses too large"],
)
def test_weights_that_break_the_claim_are_found(broken) -> None:  # type: ignore[no-untyped-def]
    epsilon = Fraction(9, 10)
    law = subset_exponential(5, 2, epsilon)
    pairs = _pairs(law.kinds, law.steps[_examples(law)])
    check_claim(law, epsilon, pairs)
    with pytest.raises(
        SolverError, match=r"weights break the claim of epsilon 0\.9 per cell on 5 x"
    ):
        check_claim(replace(law, **broken(law)), epsilon, pairs)
    with pytest.raises(SolverError, match="weights break"):  # and a smaller epsilon is not kept
        check_claim(law, epsilon * (1 - Fraction(1, 10**15)), pairs)


def _counts(law: SubsetExponential, cell: int, reports: int, seed: int) -> np.ndarray:
    """How often each set was drawn, in the order of combinations; the empty report last."""
    drawn = law.draw(cell, reports, np.random.default_rng(seed))
    assert drawn.shape == (reports, law.size)
    seen = Counter(tuple(sorted(row)) for row in drawn.tolist())
    sets = combinations(range(law.cells**2), law.size)
    counts = [*(seen[zs] for zs in sets), seen[(-1,) * law.size]]
    assert sum(counts) == reports  # no cell twice in a set, none partly empty
    return np.array(counts)


@pytest.mark.parametrize(
    ("side", "size", "epsilon"), [(3, 1, 1.0), (3, 2, 0.6), (3, 4, 0.2), (2, 3, 1)]
)
def test_draws_follow_the_law_from_every_cell(side: int, size: int, epsilon: float) -> None:
    # Chi-square over all sets and the empty report, false alarm 1e-6 over all cells together.
    law = subset_exponential(side, size, Fraction(epsilon))
    rows = np.array([[w / law.total for w in row] for row in whole_weights(law)[1]])
    for cell in range(side**2):
        counts = _counts(law, cell, 20_000, cell)
        some = rows[:, cell] > 1e-12
        assert not counts[~some].any()
        expected = rows[some, cell] / rows[some, cell].sum() * 20_000
        assert stats.chisquare(counts[some], expected).pvalue > 1e-6 / side**2


def test_the_chi_square_tells_draws_from_another_cell_or_epsilon_or_with_one_cell_of_the_ring() -> (
    None
):
    law = subset_exponential(3, 2, Fraction(3, 5))
    rows = np.array([[w / law.total for w in row] for row in whole_weights(law)[1]])
    expected = rows[:, 0] * 20_000
    assert stats.chisquare(_counts(law, 1, 20_000, 1), expected).pvalue < 1e-6
    other = subset_exponential(3, 2, Fraction(7, 10))
    assert stats.chisquare(_counts(other, 0, 20_000, 1), expected).pvalue < 1e-6
    one_of_the_ring = replace(law)
    ends, places = law.outcomes[0]
    single = places.copy()
    single[:, 2] = 1  # always one cell of the nearest ring
    single_outcomes = [(ends, single), *law.outcomes[1:]]
    one_of_the_ring.__dict__["outcomes"] = single_outcomes
    keep = places[:, 0] + places[:, 1] < 9  # where another cell is left
    ends_kept = [end for end, kept in zip(ends, keep, strict=True) if kept]
    single_outcomes[0] = (ends_kept, single[keep])
    assert stats.chisquare(_counts(one_of_the_ring, 0, 20_000, 1), expected).pvalue < 1e-6


def test_no_report_is_drawn_for_nobody() -> None:
    law = subset_exponential(3, 2, Fraction(1))
    assert law.draw(0, 0, np.random.default_rng(3)).shape == (0, 2)


def test_one_cell_is_always_reported() -> None:
    law = subset_exponential(1, 1, Fraction(1))
    assert law.hits.tolist() == [[1.0]]
    assert law.draw(0, 5, np.random.default_rng(1)).tolist() == [[0]] * 5


def test_equal_seeds_give_equal_sets() -> None:
    law = subset_exponential(5, 3, Fraction(1))
    first, again = (law.draw(7, 100, np.random.default_rng(4)) for _ in range(2))
    assert (first == again).all()


def test_a_set_is_likelier_the_nearer_it_comes() -> None:
    law = subset_exponential(4, 1, Fraction(1))
    cells = cells_in_order(4)
    by_distance = sorted(range(16), key=lambda z: dist(cells[0], cells[z]))
    assert (np.diff(law.hits[by_distance, 0]) <= 0).all()
