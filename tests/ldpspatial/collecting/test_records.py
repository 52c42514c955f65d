"""Which records count, against a dictionary; hashes and cells for many reports at once."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk import Collection, Grid
from ldpspatial.collecting.records import (
    RECORD_BYTES,
    OutputDomain,
    Records,
    distinct,
    from_bytes,
    hashes,
    in_order_of_id,
    new_key,
    parts,
    records_of,
    tally,
)
from ldpspatial.errors import InputError

KEY = bytes(range(1, 33))


def made(pairs: list[tuple[bytes, int]]) -> Records:
    places = np.array([place for _, place in pairs], np.uint32)
    return records_of(b"".join(name for name, _ in pairs), places)


def pairs_of(records: Records) -> list[tuple[bytes, int]]:
    return [(row["id"].tobytes(), int(row["place"])) for row in records]


# Few ids, so that they repeat; some differ in one bit of one word.
names = st.sampled_from([bytes(16), b"a" * 16, b"a" * 15 + b"b", b"b" + b"a" * 15, b"\xff" * 16])
reports = st.lists(st.tuples(names, st.integers(0, 3)), max_size=30)


@given(reports)
def test_each_different_record_is_kept_once(pairs: list[tuple[bytes, int]]) -> None:
    kept = distinct(made(pairs), KEY)
    assert sorted(pairs_of(kept)) == sorted(set(pairs))
    hashed = hashes(kept["id"], KEY)
    assert (hashed[1:] >= hashed[:-1]).all()


@given(reports)
def test_an_id_with_two_places_counts_for_none(pairs: list[tuple[bytes, int]]) -> None:
    found = tally(distinct(made(pairs), KEY), KEY)
    places = defaultdict(set)
    for name, place in pairs:
        places[name].add(place)
    good = sorted(place for held in places.values() if len(held) == 1 for place in held)
    assert sorted(found.places.tolist()) == good
    assert found.conflicting == sum(len(held) for held in places.values() if len(held) > 1)


@given(reports)
def test_ids_whose_hashes_are_equal_are_told_apart(pairs: list[tuple[bytes, int]]) -> None:
    # Under this key the hash is that of the sum of the four words: many ids share it.
    key = b"\1".ljust(8, b"\0") * 4
    swapped = [(name[4:8] + name[:4] + name[8:], place) for name, place in pairs]
    kept = distinct(made(pairs + swapped), key)
    assert sorted(pairs_of(kept)) == sorted(set(pairs + swapped))
    places = defaultdict(set)
    for name, place in pairs + swapped:
        places[name].add(place)
    assert tally(kept, key).conflicting == sum(len(p) for p in places.values() if len(p) > 1)


def test_merging_twice_is_merging_once() -> None:
    rng = np.random.default_rng(1)
    names = [rng.bytes(16) for _ in range(500)]
    pairs = [(names[k % 500], int(rng.integers(3))) for k in range(2000)]
    once = distinct(made(pairs), KEY)
    halves = [distinct(made(part), KEY) for part in (pairs[:900], pairs[900:])]
    np.testing.assert_array_equal(distinct(np.concatenate(halves), KEY), once)


def test_records_in_order_of_id_hold_the_bytes_in_order() -> None:
    rng = np.random.default_rng(2)
    pairs = [(rng.bytes(16), k) for k in range(300)]
    assert pairs_of(in_order_of_id(made(pairs))) == sorted(pairs)


def test_the_hash_is_the_one_that_is_stated() -> None:
    name = bytes(range(16))
    words = [int.from_bytes(name[k : k + 4], "little") for k in range(0, 16, 4)]
    odd = [int.from_bytes(KEY[k : k + 8], "little") | 1 for k in range(0, 32, 8)]
    expected = sum(word * factor for word, factor in zip(words, odd, strict=True)) % 2**64
    found = hashes(made([(name, 0)])["id"], KEY)
    assert found.tolist() == [expected]
    assert parts(found).tolist() == [expected >> 56]


def test_chosen_ids_do_not_fall_into_one_part() -> None:
    """Counters, multiples of powers of two, one word: under random keys all parts get some.

    10,000 ids in 256 parts: 39 in each on average. That an evenly filled part gets more than
    6 times that, or none, has a probability below 1e-15 for each.
    """
    chosen = [
        [k.to_bytes(16, "little") for k in range(10_000)],
        [k.to_bytes(16, "big") for k in range(10_000)],
        [(k << 64).to_bytes(16, "little") for k in range(10_000)],
        [k.to_bytes(4, "little") * 4 for k in range(10_000)],
    ]
    for names in chosen:
        records = made([(name, 0) for name in names])
        worst = [
            np.bincount(parts(hashes(records["id"], new_key())), minlength=256).max()
            for _ in range(20)
        ]
        assert np.median(worst) < 6 * 39


@pytest.mark.parametrize("mechanism", ["dam", "huem", "disk"])
@pytest.mark.parametrize(("cells", "radius"), [(1, 0), (4, 3), (5, 0), (3, 6)])
def test_the_output_domain_is_that_of_the_table(mechanism: str, cells: int, radius: int) -> None:
    grid = Grid.plane(0, 0, 1, cells)
    squared = radius**2 if mechanism == "disk" else None
    collection = Collection.create(
        "x", grid, 2, mechanism, None if squared is not None else radius, squared_radius=squared
    ) if radius else Collection.create("x", grid, 2, "disk", squared_radius=0)  # fmt: skip
    table = collection.table
    domain = OutputDomain(collection)
    far = range(-table.radius - 3, cells + table.radius + 3)
    rows, cols = np.array([(r, c) for r in far for c in far]).T
    holds = domain.holds(rows, cols)
    assert holds.tolist() == [table.is_output(r, c) for r, c in zip(rows, cols, strict=True)]
    places = domain.places(rows[holds], cols[holds])
    assert len(np.unique(places)) == table.output_size
    again = domain.cells(places)
    np.testing.assert_array_equal(again[0], rows[holds])
    np.testing.assert_array_equal(again[1], cols[holds])
    huge = np.array([2**40, -(2**40), 0])
    assert not domain.holds(huge, huge)[:2].any()


def test_bytes_that_are_not_whole_records_are_refused() -> None:
    records = made([(b"a" * 16, 1)])
    np.testing.assert_array_equal(from_bytes(records.tobytes()), records)
    with pytest.raises(InputError, match=f"a length that {RECORD_BYTES} divides, got 19 bytes"):
        from_bytes(bytes(19))
