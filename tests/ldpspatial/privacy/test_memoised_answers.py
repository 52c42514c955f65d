"""Answers that are drawn once a cell and repeated tell that a device moved: exact enumeration.

The figures are those of docs/privacy.md, section 4.2.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from client_sdk import response_table

TEXT = (Path(__file__).parents[3] / "docs" / "privacy.md").read_text(encoding="utf-8")
TABLE = response_table("dam", 1.4, 2)
OUTPUTS = TABLE.output_cells()
HOME = (0, 0)
NEXT, OPPOSITE = (0, 1), (1, 1)  # where work may be, up to symmetry

Cell = tuple[int, int]
Path_ = tuple[Cell, ...]
Law = dict[Hashable, Fraction]


def chance(output: Cell, cell: Cell) -> Fraction:
    return TABLE.probability(output[0] - cell[0], output[1] - cell[1])


def memoised(path: Path_, seen: Callable[[Path_], Hashable] = tuple) -> Law:
    """Return the law of what is seen where each distinct cell has one answer for good."""
    law: Law = defaultdict(Fraction)
    places = sorted(set(path))
    for answers in product(OUTPUTS, repeat=len(places)):
        answer = dict(zip(places, answers, strict=True))
        weight = Fraction(1)
        for place in places:
            weight *= chance(answer[place], place)
        law[seen(tuple(answer[cell] for cell in path))] += weight
    return law


def fresh(path: Path_, seen: Callable[[Path_], Hashable] = tuple) -> Law:
    """Return the law of what is seen where every visit has a draw of its own."""
    law: Law = defaultdict(Fraction)
    for answers in product(OUTPUTS, repeat=len(path)):
        weight = Fraction(1)
        for answer, cell in zip(answers, path, strict=True):
            weight *= chance(answer, cell)
        law[seen(answers)] += weight
    return law


def bag(transcript: Path_) -> Hashable:
    """Return what is left of a transcript without its order."""
    return frozenset(Counter(transcript).items())


def certain(of: Law, against: Law) -> Fraction:
    """Return how often the first law gives what the second one cannot give."""
    return sum((weight for key, weight in of.items() if key not in against), Fraction(0))


def largest_ratio(first: Law, second: Law) -> Fraction:
    assert first.keys() == second.keys()
    return max(max(first[key] / second[key], second[key] / first[key]) for key in first)


@pytest.mark.parametrize("seen", [tuple, bag], ids=["in order", "as a bag"])
@pytest.mark.parametrize("work", [NEXT, OPPOSITE], ids=["neighbours", "opposite corners"])
def test_memoised_answers_tell_a_journey_with_certainty(
    work: Cell, seen: Callable[[Path_], Hashable]
) -> None:
    found = certain(memoised((HOME, work, HOME), seen), memoised((HOME,) * 3, seen))
    # Two answers of their own are alike by chance only, and everything else shows the journey.
    alike = sum((chance(y, HOME) * chance(y, work) for y in OUTPUTS), Fraction(0))
    assert found == 1 - alike
    printed = re.search(
        r"probability (0\.\d+) where home and work are neighbours, (0\.\d+) in opposite corners",
        " ".join(TEXT.split()),
    )
    assert printed is not None
    assert f"{float(found):.3f}" == printed[1 if work == NEXT else 2]


@pytest.mark.parametrize("seen", [tuple, bag], ids=["in order", "as a bag"])
@pytest.mark.parametrize("work", [NEXT, OPPOSITE], ids=["neighbours", "opposite corners"])
def test_fresh_answers_lose_at_most_epsilon_for_each_visit_that_differs(
    work: Cell, seen: Callable[[Path_], Hashable]
) -> None:
    staying = fresh((HOME,) * 3, seen)
    bound = TABLE.max_ratio()  # at most e^1.4
    one = largest_ratio(fresh((HOME, work, HOME), seen), staying)
    two = largest_ratio(fresh((HOME, work, work), seen), staying)
    assert one <= bound
    assert two <= bound**2
    assert two > one
    if seen is tuple:
        assert (one, two) == (bound, bound**2)
