"""Runs that are kept: what was played is not played again, and comes back as it was."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from experiments.finished import played
from experiments.setup import Setup
from ldpspatial.errors import InputError


@dataclass(frozen=True)
class Found:
    """A result with a tuple and what is not a number."""

    name: str
    numbers: tuple[float, ...]


def play(case: tuple[str, int]) -> list[Found]:
    name, number = case
    if number < 0:
        raise InputError(f"number must be 0 or more, got {number}")
    return [Found(name, (float(k), float("nan"))) for k in range(number)]


def never(case: tuple[str, int]) -> list[Found]:
    raise AssertionError(f"{case} is played again")


def test_results_come_in_the_order_of_cases_and_only_what_is_missing_is_played(
    tmp_path: Path,
) -> None:
    setup = Setup("test", tmp_path, tmp_path / "out", repeats=1, jobs=1, seed=1, write=False)
    first = [("b", 2), ("a", 1)]
    found = played(setup, play, first, Found)
    assert [(each.name, each.numbers[0]) for each in found] == [("b", 0), ("b", 1), ("a", 0)]
    assert type(found[0].numbers) is tuple
    assert repr(played(setup, never, first, Found)) == repr(found)
    # What a failure stopped keeps what was finished before.
    with pytest.raises(InputError, match="got -1"):
        played(setup, play, [*first, ("c", 3), ("d", -1)], Found)
    assert len(played(setup, never, [("c", 3), *first], Found)) == 6
    with pytest.raises(InputError, match="folder must hold runs of the same comparison"):
        played(replace(setup, name="other"), play, first, Found)


def test_no_case_is_refused(tmp_path: Path) -> None:
    setup = Setup("test", tmp_path, tmp_path, 1, 1, 1, False, ("--side 33", "--users 5"))
    with pytest.raises(InputError, match=r"^--side 33 --users 5 must leave a setting"):
        played(setup, play, [], Found)
