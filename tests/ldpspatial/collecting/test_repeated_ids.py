"""Repeated hashes found in memory and on disk; which suspects are among them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpspatial.collecting import repeated_ids
from ldpspatial.collecting.repeated_ids import Parts, member, repeated

some = st.integers(0, 2**64 - 1) | st.integers(0, 9).map(lambda k: k * 2**56 + 3)


@pytest.mark.parametrize("held", [10**6, 40, 0])
def test_what_is_repeated_is_found_wherever_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr(repeated_ids, "HELD", held)
    rng = np.random.default_rng(3)
    once = rng.integers(2**64, size=500, dtype=np.uint64)
    twice = rng.integers(2**64, size=40, dtype=np.uint64)
    hashed = rng.permutation(np.concatenate([once, twice, twice, twice[:7]]))
    parts = Parts(tmp_path, hashed.dtype)
    for piece in np.array_split(hashed, 20):
        parts.add(piece, piece)
    assert repeated(parts).tolist() == np.sort(twice).tolist()
    assert bool(list(tmp_path.iterdir())) == (held < len(hashed))
    together = np.concatenate([*parts])
    assert np.sort(together).tolist() == np.sort(hashed).tolist()


def test_nothing_is_repeated_among_nothing(tmp_path: Path) -> None:
    assert len(repeated(Parts(tmp_path, np.dtype(np.uint64)))) == 0


@given(st.lists(some, min_size=1), st.lists(some))
def test_membership_is_that_of_a_set(held: list[int], asked: list[int]) -> None:
    of = np.unique(np.array(held, np.uint64))
    found = member(of)(np.array(asked + held[:1], np.uint64))
    assert found.tolist() == [value in set(held) for value in asked + held[:1]]
