"""The audit: exact against brute force, and samplers that are wrong on purpose.

Tests that draw accept right samplers except with probability 1e-6 each.
"""

import dataclasses
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import log, mpf, workdps  # type: ignore[import-untyped]

from client_sdk import Collection, Grid, ResponseTable, response_table
from client_sdk import kernels as client_kernels
from client_sdk.exact import BITS, exp_below
from client_sdk.mechanisms import MECHANISMS
from client_sdk.response import orbit
from client_sdk.sampling import Sampler
from client_sdk.shrunken import disk_rows
from ldpspatial.errors import InputError
from ldpspatial.privacy.audit import _realised_ratio, _same_total, audit
from ldpspatial.privacy.sampler_law import LEAST_EXPECTED, _bins, weights_of_input
from tests.support import naive_audit

Out = tuple[np.ndarray, np.ndarray]
Draw = Callable[[ResponseTable, np.ndarray, np.ndarray], Out]
TABLE = response_table("dam", 3.5, 15)


@st.composite
def any_tables(draw: st.DrawFn) -> ResponseTable:
    """Tables of a disk's shape whose weights need not decrease outwards."""
    cells, radius = draw(st.integers(1, 5)), draw(st.integers(0, 6))
    octant = tuple(
        tuple(draw(st.integers(4, 50)) for _ in range(min(x, width) + 1))
        for x, width in enumerate(disk_rows(radius))
    )
    return ResponseTable("handmade", 2.0, cells, 4, octant)


@given(any_tables())
@settings(max_examples=60)
def test_realised_ratio_and_totals_equal_brute_force(table: ResponseTable) -> None:
    assert _realised_ratio(table) == naive_audit.realised_ratio(table)
    assert naive_audit.totals(table) == {table.total_weight}
    assert _same_total(table)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("epsilon", "cells", "radius"), [(0.7, 4, None), (3.5, 6, None), (9, 3, 5)]
)
def test_realised_ratio_of_the_mechanisms_equals_brute_force(
    mechanism: str, epsilon: float, cells: int, radius: int | None
) -> None:
    table = response_table(mechanism, epsilon, cells, radius)
    assert _realised_ratio(table) == naive_audit.realised_ratio(table)


def test_weights_near_two_to_the_53_are_compared_exactly() -> None:
    base = 1 << 51
    table = ResponseTable("handmade", 1.0, 2, base, ((base + 1,), (base, base + 1)))
    assert _realised_ratio(table) == Fraction(base + 1, base)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon", [1e-6, 0.7, 3.5, 20])
def test_every_mechanism_passes(mechanism: str, epsilon: float) -> None:
    found = audit(response_table(mechanism, epsilon, 7), draws=30_000)
    assert found.passed
    assert found.as_promised is True
    assert found.holds
    assert found.same_total
    assert found.realised_ratio <= found.max_ratio <= found.bound


def test_a_million_reports_of_the_default_table_pass() -> None:
    found = audit(TABLE)
    assert found.passed
    by_cells = found.tests[::2]
    assert [(test.sampler, test.cell) for test in by_cells] == [
        *(("compiled", cell) for cell in [(0, 0), (0, 7), (7, 7)]),
        ("scalar", (7, 7)),
    ]
    assert [test.bins for test in found.tests] == ["cells", "disk"] * 4
    assert sum(test.draws for test in by_cells) == 999_999 + 1000
    # Base cells expect 238 reports each: no pooling.
    assert all(test.degrees == TABLE.output_size - 1 for test in by_cells[:3])
    assert all(test.degrees == 1 for test in found.tests[1::2])
    assert (found.mechanism, found.epsilon, found.cells) == ("dam", 3.5, 15)
    assert (found.radius, found.output_size, found.squared_radius) == (3, 437, None)
    assert not found.is_randomised_response


@pytest.mark.parametrize("epsilon", [0.001, 0.7, 3.5, 12])
def test_epsilons_are_those_of_high_precision(epsilon: float) -> None:
    table = response_table("dam", epsilon, 6)
    found = audit(table, draws=1000)
    with workdps(60):
        loss = log(mpf(table.max_weight) / table.base_weight)
        assert float(loss) == pytest.approx(found.realised_epsilon, rel=1e-14)
        unused = float(mpf(str(epsilon)) - loss)
    # The float 0.7 holds less than 7/10, and the table is made for the smaller reading.
    assert found.unused_epsilon == pytest.approx(unused, rel=1e-6, abs=1e-25)
    assert found.unused_epsilon >= 0


def test_huem_with_a_wide_disk_realises_less_than_its_weights_allow() -> None:
    found = audit(response_table("huem", 2, 2, radius=3), draws=1000)
    assert found.realised_ratio < found.max_ratio
    assert found.realised_epsilon < 1.9
    assert found.passed


def test_a_single_cell_gives_nothing_away() -> None:
    found = audit(response_table("dam", 3.5, 1), draws=1000)
    assert found.realised_ratio == 1
    assert found.realised_epsilon == 0
    assert found.is_randomised_response
    assert found.passed


def test_one_unit_of_weight_too_much_is_seen() -> None:
    base = 1 << 40
    top = base * exp_below(Fraction(2)) >> BITS  # floor(base e^2): e^2 is irrational
    right = ResponseTable("handmade", 2.0, 3, base, ((top,),))
    wrong = ResponseTable("handmade", 2.0, 3, base, ((top + 1,),))
    assert audit(right, draws=1000).holds
    found = audit(wrong, draws=1000)
    assert not found.holds
    assert not found.passed
    assert found.unused_epsilon < 0
    assert found.same_total


def test_the_promise_is_that_of_the_name() -> None:
    assert audit(response_table("dam", Fraction(7, 10), 5), draws=1000).as_promised is True
    assert audit(response_table("dam", 0.7, 5, radius=2), draws=1000).as_promised is True
    dam = response_table("dam", 2, 5)
    for squared in (1, 3, 5, 100):  # a real radius is none of the table's fields
        disk = response_table("disk", 2, 5, squared_radius=squared)
        found = audit(disk, draws=1000)
        assert found.as_promised is True
        assert found.squared_radius == disk.squared_radius
    unknown = audit(dataclasses.replace(dam, mechanism="round"), draws=1000)
    assert unknown.as_promised is None
    assert unknown.passed
    for name in ("dam-ns", "huem", "disk"):
        found = audit(dataclasses.replace(dam, mechanism=name), draws=1000)
        assert found.as_promised is False
        assert found.holds
        assert not found.passed
    wide = dataclasses.replace(response_table("dam", 2, 5, radius=10), cells=4)
    assert audit(wide, draws=1000).as_promised is False


def test_a_collection_is_audited_at_its_epsilon() -> None:
    collection = Collection.create("square", Grid.plane(0, 0, 1, 6), epsilon=0.7)
    found = audit(collection, draws=1000)
    assert found.epsilon == 0.7
    assert found.passed
    # A collection that claims less than its table gives.
    understated = dataclasses.replace(collection, micro_epsilon=699_999)
    found = audit(understated, draws=1000)
    assert not found.holds
    assert found.as_promised is False


def test_a_disk_that_leaves_the_output_domain_is_seen() -> None:
    table = response_table("dam", 2, 5)
    table.__dict__["half_widths"] = tuple(max(h - 1, 0) for h in table.half_widths)
    assert not _same_total(table)


def test_a_wrong_total_is_seen() -> None:
    table = response_table("dam", 2, 5)
    table.__dict__["total_weight"] = table.total_weight + 1
    assert not _same_total(table)


def test_weights_of_an_input_are_those_of_the_table() -> None:
    table = response_table("huem", 1, 4)
    b = table.radius
    for source in naive_audit.input_cells(table):
        weights = weights_of_input(table, *source)
        expected = np.zeros_like(weights)
        for target in table.output_cells():
            place = (target[0] + b, target[1] + b)
            expected[place] = naive_audit.weight(table, source, target)
        assert np.array_equal(weights, expected)


def never_the_last_image(table: ResponseTable, rows: np.ndarray, cols: np.ndarray) -> Out:
    """Draw, but the excess of the lightest mixed orbit never lands on its last mirror image."""
    out = client_kernels.draw_many(table, rows, cols, np.random.default_rng(5).bytes)
    mixed = [
        (weight, x, y)
        for x, row in enumerate(table.octant)
        for y, weight in enumerate(row)
        if table.base_weight < weight < table.max_weight
    ]
    weight, x, y = min(mixed)
    first, last = orbit(x, y)[0], orbit(x, y)[-1]
    hit = (out[0] - rows == last[0]) & (out[1] - cols == last[1])
    hit &= np.random.default_rng(6).random(len(rows)) > table.base_weight / weight
    return np.where(hit, rows + first[0], out[0]), np.where(hit, cols + first[1], out[1])


def at_epsilon(factor: float) -> Draw:
    def draw(table: ResponseTable, rows: np.ndarray, cols: np.ndarray) -> Out:
        other = response_table("dam", factor * table.epsilon, table.cells, table.radius)
        return client_kernels.draw_many(other, rows, cols, np.random.default_rng(7).bytes)

    return draw


def one_report_too_far(table: ResponseTable, rows: np.ndarray, cols: np.ndarray) -> Out:
    out = client_kernels.draw_many(table, rows, cols, np.random.default_rng(8).bytes)
    out[0][0], out[1][0] = -table.radius, -table.radius  # a corner that the disk leaves free
    return out


@pytest.mark.parametrize(
    "wrong", [at_epsilon(1.05), at_epsilon(0.95), never_the_last_image, one_report_too_far]
)
def test_a_wrong_sampler_is_caught_at_a_million_draws(
    wrong: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_kernels, "randomize_many", wrong)
    found = audit(TABLE)
    assert found.holds
    failed = [test.bins == "cells" for test in found.tests if not test.ok]
    assert sum(failed) == 3  # at every input cell
    assert not found.passed


def test_disk_and_rest_show_a_wrong_epsilon_that_the_cells_alone_cannot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_kernels, "randomize_many", at_epsilon(1.05))
    tests = audit(response_table("dam", 0.7, 15)).tests
    assert [test.bins for test in tests if not test.ok] == ["disk"] * 3


def test_a_scalar_sampler_that_differs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Sampler.draw
    monkeypatch.setattr(Sampler, "draw", lambda self, r, c, e: drawn(self, r, c, e)[::-1])
    mirrored = audit(TABLE, draws=1000)  # the same law, so only the comparison can tell
    assert not mirrored.samplers_agree
    assert not mirrored.passed
    monkeypatch.setattr(Sampler, "draw", lambda self, r, c, e: (r, c))
    assert not audit(TABLE, draws=1000).tests[-1].ok


@given(st.lists(st.floats(0.01, 500), min_size=1, max_size=60))
@settings(max_examples=100)
def test_bins_hold_enough_reports(expected: list[float]) -> None:
    due = np.bincount(_bins(np.array(expected)), expected)
    assert due.sum() == pytest.approx(sum(expected))
    assert due.min() >= min(LEAST_EXPECTED, sum(expected)) * (1 - 1e-12)


@pytest.mark.parametrize(
    "octant", [((3,),), ((8,), (8,), (8, 8, 8)), ((1 << 52,),), ((8,), (8, 8, 8))]
)
def test_a_table_that_no_device_draws_from_is_refused(octant: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(InputError, match=r"octant|weight"):
        audit(ResponseTable("handmade", 1.0, 3, 4, octant), draws=1000)


def test_a_ratio_above_the_claim_does_not_hold_though_no_report_shows_it() -> None:
    table = ResponseTable("handmade", 1.0, 1, 1, ((8,),))  # one cell, and a ratio of 8 > e
    assert not audit(table, draws=1000).holds
