"""The study of the check's false alarms and power, on two small maps."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import response_table
from experiments.studies import fit_check as module
from ldpspatial import StampChannel

Array = NDArray[np.float64]


def two_maps(cells: int, data: Path) -> dict[str, Array]:
    diagonal = np.eye(cells) / cells
    return {"uniform": np.full((cells, cells), 1 / cells**2), "diagonal": diagonal}


def columns(table: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def test_forged_reports_are_distributions_over_output_cells() -> None:
    for mechanism, epsilon in (("dam", 1.0), ("recommended", 7.0)):
        channel = StampChannel(module.table_of(mechanism, epsilon, 12, 10_000))
        found = list(module.forgeries(channel, two_maps(12, Path())["diagonal"]))
        assert len({name for name, *_ in found}) == len(found) >= 6
        for _, share, shape in found:
            assert 0 < share < 0.1
            assert shape.shape == channel.support.shape
            assert shape.sum() == pytest.approx(1)
            assert not shape[~channel.support].any()


def test_tables_hold_rates_and_power(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "maps_of", two_maps)
    monkeypatch.setattr(module, "EPSILONS", (2.0, 7.0))
    monkeypatch.setattr(module, "SIZES", ((8, 20_000),))
    monkeypatch.setattr(module, "FINE", ((10, 20_000),))
    rng = np.random.default_rng(1)
    rates = columns(module.rates_of(Path(), 2, rng))
    assert [row[:4] for row in rates[:2]] == [
        ["8", "20,000", "2", "12"],
        ["8", "20,000", "7", "0"],  # no more outputs than cells
    ]
    assert 0 < float(rates[0][5]) < 1
    fine = columns(module.fine_rates(Path(), 2, rng))
    assert [row[:4] for row in fine] == [["10", "20,000", eps, "4"] for eps in ("2", "7")]
    asked = {8: (("dam",), ()), 9: (("recommended",), ("diagonal",))}
    powers = columns(module.powers_of(asked, Path(), 2, rng))
    margin = next(row for row in powers if row[:4] == ["8", "dam", "2", "margin"])
    assert margin[4] == "2 of 2"
    assert margin[5] == "1.00 (1.00)"
    named = next(row for row in powers if row[:4] == ["9", "recommended", "2", "one output"])
    assert named[4] == "1 of 1"


def test_power_is_parted_by_what_is_possible() -> None:
    maps = [(0.9, 0.5, 0.25), (1.0, 1.0, 0.75), (0.4, 0.25, 0.0)]
    assert module._powers(maps) == ["2 of 3", "0.75 (0.50)", "0.50", "0.25", "0.40"]
    assert module._powers(maps[2:]) == ["0 of 1", "-", "-", "0.25", "0.40"]


def test_the_recommended_table_is_the_planned_disk() -> None:
    assert module.table_of("recommended", 7.0, 15, 100_000).radius == 0
    assert module.table_of("dam", 3.5, 15, 1) == response_table("dam", 3.5, 15)
