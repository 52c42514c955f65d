"""Randomizer: reports without an account, and nothing that could spoil the randomness."""

import inspect
import os
import traceback
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from client_sdk import (
    Collection,
    CollectionError,
    Grid,
    ParameterError,
    PositionError,
    Randomizer,
    Report,
    ResponseTable,
)
from client_sdk.testing import StreamEntropy

GRID = Grid.from_center(52.52, 13.405, 20_000, 5)
COLLECTION = Collection.create("noon in Berlin", GRID, 2, max_reports=2)
FALSE_ALARM = 1e-6


def stream(monkeypatch: pytest.MonkeyPatch, label: str) -> None:
    monkeypatch.setattr("client_sdk.entropy.system", StreamEntropy(label))


def test_it_says_first_that_it_keeps_no_account() -> None:
    first, _, _ = (Randomizer.__doc__ or "").partition("\n")
    assert "keeps no account" in first
    assert "for simulation and research" in first


def test_a_report_names_its_collection_a_fresh_id_and_an_output_cell() -> None:
    randomizer = Randomizer(COLLECTION)
    reports = [randomizer.report(52.5163, 13.3777) for _ in range(200)]
    for report in reports:
        report.check(COLLECTION)
        assert Report.from_json(report.to_json()) == report
    assert len({report.id for report in reports}) == 200
    assert len({(report.row, report.col) for report in reports}) > 10


def test_randomize_draws_from_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chi-square at false alarm 1e-6; test_sampling shows what it can see."""
    stream(monkeypatch, "randomize")
    randomizer, table, n = Randomizer(COLLECTION), COLLECTION.table, 20_000
    counts = Counter(randomizer.randomize((4, 1)) for _ in range(n))
    expected = {(r, c): n * table.probability(r - 4, c - 1) for r, c in table.output_cells()}
    assert set(counts) <= set(expected)
    statistic = sum(float((counts[cell] - e) ** 2 / e) for cell, e in expected.items())
    assert statistic < chi2.isf(FALSE_ALARM, table.output_size - 1)


def test_report_randomizes_the_cell_of_the_position(monkeypatch: pytest.MonkeyPatch) -> None:
    randomizer = Randomizer(COLLECTION)
    for position in ((52.5163, 13.3777), (48.1, 11.6), GRID.center(0, 4)):
        stream(monkeypatch, "position")
        report = randomizer.report(*position)
        stream(monkeypatch, "position")
        assert (report.row, report.col) == randomizer.randomize(GRID.cell(*position))


def test_reports_hold_plain_ints_whatever_the_cell_is_made_of() -> None:
    randomizer = Randomizer(COLLECTION)
    for cell in ((np.int64(1), np.uint8(2)), np.array([1, 2]), [1, 2]):
        for _ in range(20):
            assert [type(number) for number in randomizer.randomize(cell)] == [int, int]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "cell",
    [(4.875, 1), (1, 4.875), (4.0, 1.0), (float("nan"), 1), ("4", 1), (None, 1), (4,), (4, 4, 4),
     (), None, 4, "44", np.array([4.875, 1]), (875, 1), (1, 875), (-875, 1), (4, 5)],
    ids=range(17),
)  # fmt: skip
def test_a_bad_cell_is_refused_and_not_repeated(cell: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        Randomizer(COLLECTION).randomize(cell)
    assert "875" not in str(caught.value)
    assert "whole numbers" in str(caught.value)


@pytest.mark.parametrize(
    "position", [(875.25, 0.0), (0.0, -875.25), ("875.25", 0), (None, 0), (0, float("nan"))]
)
def test_a_bad_position_is_refused_and_not_repeated(position: Any) -> None:
    with pytest.raises(PositionError) as caught:
        Randomizer(COLLECTION).report(*position)
    told = "".join(traceback.format_exception_only(caught.value))
    assert "875" not in told + repr(caught.value.__context__)


def test_a_collection_that_is_not_private_never_reaches_the_sampler() -> None:
    table = COLLECTION.table
    lifted = ((table.octant[0][0] + 1,), *table.octant[1:])
    claims_less = Collection("x", GRID, table, 1_999_999)
    more = ResponseTable("dam", 2.0, 5, table.base_weight, lifted)
    for collection in (claims_less, Collection("x", GRID, more, 2_000_000)):
        with pytest.raises(CollectionError, match="not epsilon-LDP"):
            Randomizer(collection)


# No knob for randomness


def test_nothing_but_a_position_can_be_passed() -> None:
    assert list(inspect.signature(Randomizer).parameters) == ["collection"]
    assert list(inspect.signature(Randomizer.report).parameters) == ["self", "lat", "lon"]
    assert list(inspect.signature(Randomizer.randomize).parameters) == ["self", "cell"]
    public = {name for name in vars(Randomizer(COLLECTION)) if not name.startswith("_")}
    assert public | {"report", "randomize"} == {
        name for name in dir(Randomizer(COLLECTION)) if not name.startswith("_")
    }
    assert public == {"collection"}


def test_randomness_and_ids_come_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def urandom(n: int) -> bytes:
        asked.append(n)
        return bytes(n)

    monkeypatch.setattr(os, "urandom", urandom)
    report = Randomizer(COLLECTION).report(52.52, 13.405)
    assert asked == [7, 16]
    assert report.id == "0" * 32
    assert (report.row, report.col) == COLLECTION.table.output_cell(0)
