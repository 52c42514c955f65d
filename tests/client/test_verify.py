"""What a device checks before it trusts weights: the claim, the shape, the size."""

import itertools
import json
from fractions import Fraction
from typing import Any

import pytest

from client_sdk import Collection, CollectionError, Grid
from client_sdk.exact import BITS, exp_below
from client_sdk.response import half_widths
from client_sdk.verify import check_shape
from tests.support import naive_collection as naive

COLLECTION = Collection.create("x", Grid.from_bounds(0, 0, 1, 3), 2)
DOCUMENT: dict[str, Any] = json.loads(COLLECTION.to_json())


def changed(**fields: Any) -> dict[str, Any]:
    return {**DOCUMENT, **fields}


def with_weights(rows: list[list[int]], **fields: Any) -> dict[str, Any]:
    """A document whose totals fit its weights."""
    document = changed(weights=rows, **fields)
    cells, base = document["grid"]["cells"], document["base_weight"]
    return {**document, **naive.totals(rows, cells, base)}


def read(document: object) -> Collection:
    return Collection.from_json(json.dumps(document))


def refused(document: object, rule: str) -> None:
    with pytest.raises(CollectionError, match=rule) as caught:
        read(document)
    assert len(str(caught.value)) < 400


def test_one_weight_changed_by_one_is_refused() -> None:
    for x, row in enumerate(DOCUMENT["weights"]):
        for y in range(len(row)):
            for step in (-1, 1):
                rows = [list(r) for r in DOCUMENT["weights"]]
                rows[x][y] += step
                refused(changed(weights=rows), "total_weight must be .* the document was altered")


def test_every_weight_may_reach_the_bound_and_the_base_and_no_further() -> None:
    base = 1 << 40  # leaves room below 2^53 for a disk of large weights
    most = base * exp_below(Fraction(2)) >> BITS
    shape = [(x, y) for x, row in enumerate(DOCUMENT["weights"]) for y in range(len(row))]
    for x, y in shape:
        for weight, good in ((most, True), (base, True), (most + 1, False), (base - 1, False)):
            rows = [[base + 1] * len(row) for row in DOCUMENT["weights"]]
            rows[x][y] = weight
            document = with_weights(rows, base_weight=base)
            if good:
                assert naive.is_private(document)
                assert read(document).table.octant[x][y] == weight
            else:
                refused(document, rf"weights\[{x}\]\[{y}\] must lie between base_weight and")


def test_a_smaller_epsilon_than_the_weights_need_is_refused() -> None:
    refused(changed(micro_epsilon=1_999_999), "not epsilon-LDP")
    assert read(changed(micro_epsilon=2_000_001)).micro_epsilon == 2_000_001


def test_a_name_that_lies_about_the_mechanism_is_harmless() -> None:
    collection = read(changed(mechanism="uniform"))
    assert collection.table.octant == COLLECTION.table.octant


@pytest.mark.parametrize("base", [3, 5, 6, (1 << 40) + 1])
def test_a_base_that_is_no_power_of_two_is_refused(base: int) -> None:
    refused(with_weights([[base], [base]], base_weight=base), "base_weight must be a power of two")


def test_a_total_of_more_than_53_bits_is_refused() -> None:
    fits = with_weights([[1 << 49]], base_weight=1 << 49)
    assert read(fits).table.total_weight == 9 << 49
    large = with_weights([[1 << 50]], base_weight=1 << 50)
    refused(large, "total_weight must be")
    exact = with_weights([[1 << 49]], base_weight=1 << 49, grid={**DOCUMENT["grid"], "cells": 4})
    assert exact["total_weight"] == 1 << 53
    refused(exact, "total_weight must be")


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [[]],
        [[4], []],
        [[4, 4]],
        [[4], [4, 4, 4]],
        [[4], [4, 4], [4, 4, 4, 4]],
        [[4], [4], [4, 4]],  # (2, 1) without (1, 1): not one interval a row
        [[4], [4, 4], [4], [4, 4]],
        [[4], [4], [4], [4, 4, 4, 4]],
        [[4], [4, 4], [4, 4], [4, 4, 4]],
    ],
)
def test_an_octant_that_is_not_of_a_narrowing_disk_is_refused(rows: list[list[int]]) -> None:
    refused(changed(base_weight=4, weights=rows), "weights")


def test_the_shapes_that_are_accepted_are_the_narrowing_disks() -> None:
    """All octants of up to six rows, 873 of them, against their disks cell by cell."""
    for count in range(1, 7):
        for lengths in itertools.product(*(range(1, x + 2) for x in range(count))):
            octant = tuple((4,) * length for length in lengths)
            disk = naive.disk_of([list(row) for row in octant])
            widths = [max((c for r, c in disk if r == x), default=-1) for x in range(count)]
            cells = {(r, c) for r, c in disk if r >= 0 and c >= 0}
            full = cells == {(x, c) for x, width in enumerate(widths) for c in range(width + 1)}
            if full and widths == sorted(widths, reverse=True):
                check_shape(octant)
                assert half_widths(octant) == widths
            else:
                with pytest.raises(CollectionError, match="narrows from row 0 on"):
                    check_shape(octant)


@pytest.mark.parametrize("rows", [[[4]], [[4], [4]], [[4], [4, 4]], [[4], [4, 4], [4]],
                                  [[4], [4, 4], [4, 4]], [[4], [4], [4]],
                                  [[4], [4, 4], [4, 4, 4], [4, 4]]])  # fmt: skip
def test_other_disks_than_those_of_the_mechanisms_are_accepted(rows: list[list[int]]) -> None:
    document = with_weights(rows, base_weight=4)
    table = read(document).table
    assert list(table.output_cells()) == sorted(naive.domain_of(rows, 3))
    assert dict(table.weights) == naive.disk_of(rows)
