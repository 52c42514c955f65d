"""How surely averaging locates a device that stays: closed forms, enumeration, its bounds.

Statistical tests are seeded. A mean of n numbers in [0, 1] is off by more than t with probability
at most 2 exp(-2 n t^2) (Hoeffding), whatever their law; t is set for 1e-6, the false-alarm rate.
"""

import doctest
import re
from fractions import Fraction
from itertools import pairwise
from math import exp, hypot, log, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from client_sdk import ResponseTable, response_table
from client_sdk.kernels import draw_many
from client_sdk.mechanisms import MECHANISMS
from ldpspatial.privacy import still_device
from ldpspatial.privacy.still_device import Probability, one_report_risk, still_device_risk
from tests.support import naive_still_device

TEXT = (Path(__file__).parents[3] / "docs" / "privacy.md").read_text(encoding="utf-8")
FALSE_ALARM = 1e-6
STATED = 0.0003  # largest standard error of the simulated entries of the docs


def seeded(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def enumerated(table: ResponseTable, reports: int) -> tuple[Fraction, Fraction]:
    return naive_still_device.success(
        dict(table.weights), table.base_weight, table.output_cells(), table.cells, reports
    )


def most(table: ResponseTable, reports: int) -> float:
    """Return what a loss of eps a report allows any attacker."""
    return 1 / (1 + (table.cells**2 - 1) * exp(-reports * table.epsilon))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("epsilon", "cells"), [(0.5, 2), (1.4, 2), (3.5, 3), (2.0, 4), (5.0, 1)])
def test_one_report_is_exact(mechanism: str, epsilon: float, cells: int) -> None:
    table = response_table(mechanism, epsilon, cells)
    assert one_report_risk(table) == enumerated(table, 1)[0]


def test_randomised_response_attains_what_its_claim_allows_at_one_report() -> None:
    table = response_table("dam", 3.5, 4)
    assert table.radius == 0
    assert one_report_risk(table) == table.probability(0, 0)
    assert float(one_report_risk(table)) == pytest.approx(most(table, 1), rel=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("epsilon", "cells", "reports"), [(1.4, 2, 1), (1.4, 2, 2), (3.5, 2, 2), (3.5, 3, 1)]
)
def test_simulation_meets_full_enumeration(
    mechanism: str, epsilon: float, cells: int, reports: int
) -> None:
    # 1,000,000 devices: the band is 0.0027 to each side. One report fewer or one more is off by
    # more than that in every setting, as the next test shows for the exact numbers.
    table, n = response_table(mechanism, epsilon, cells), 1_000_000
    exact, near = enumerated(table, reports)
    found = still_device_risk(table, reports, n, seeded())
    band = sqrt(log(2 / FALSE_ALARM) / (2 * n))
    assert found.exact_cell.estimate == pytest.approx(float(exact), abs=band)
    assert found.within_one_cell.estimate == pytest.approx(float(near), abs=band)
    assert (found.reports, found.trials) == (reports, n)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_more_reports_tell_more(mechanism: str) -> None:
    table = response_table(mechanism, 1.4, 2)
    exact = [enumerated(table, k)[0] for k in (1, 2)]
    assert exact[0] - Fraction(1, 4) > Fraction(1, 20)  # nothing known: one cell of four
    assert exact[1] - exact[0] > Fraction(1, 50)
    # Simulated, in a larger square: each step is above the false-alarm band of a difference.
    table, n = response_table(mechanism, 2.0, 5), 100_000
    found = [still_device_risk(table, k, n, seeded(k)) for k in (1, 2, 4, 8, 16, 32)]
    band = 2 * sqrt(log(2 / FALSE_ALARM) / (2 * n))
    for fewer, more in pairwise(found):
        assert more.exact_cell.estimate > fewer.exact_cell.estimate + band
        assert more.within_one_cell.estimate > fewer.within_one_cell.estimate
    assert found[0].exact_cell.estimate == pytest.approx(float(one_report_risk(table)), abs=band)


@given(
    st.sampled_from(MECHANISMS),
    st.floats(0.1, 8).map(lambda x: round(x, 3)),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(0, 10**6),
)
@example("huem", 1.523, 4, 5, 510_510)  # two cells that differ in the 16th digit
@settings(max_examples=60)
def test_every_posterior_equals_its_twin_and_keeps_to_the_claim(
    mechanism: str, epsilon: float, cells: int, reports: int, seed: int
) -> None:
    table, rng, devices = response_table(mechanism, epsilon, cells), seeded(seed), 3
    at = rng.integers(cells, size=(2, devices * reports))
    rows, cols = (out.reshape(devices, reports) for out in draw_many(table, *at, rng.bytes))
    found = np.empty((2, devices))
    stamp = still_device._log_stamp(table)
    still_device._attack(cells, stamp, np.array(table.half_widths), rows, cols, found)
    for device in range(devices):
        seen = tuple(zip(rows[device].tolist(), cols[device].tolist(), strict=True))
        likelihood = naive_still_device.likelihoods(
            dict(table.weights), table.base_weight, table.total_weight, cells, seen
        )
        exact, near = naive_still_device.attack(likelihood)
        assert found[0, device] == pytest.approx(float(exact), rel=1e-9)
        assert found[1, device] == pytest.approx(float(near), rel=1e-9)
        assert found[0, device] <= most(table, reports) * (1 + 1e-9)


def test_the_mean_posterior_is_the_share_of_right_guesses() -> None:
    """Over all cells and pairs of reports: a guess, tied ones at random, is as right as it says."""
    table = response_table("dam-ns", 2.0, 2)
    weights, outputs = dict(table.weights), table.output_cells()
    right = Fraction(0)
    for first in outputs:
        for second in outputs:
            likelihood = naive_still_device.likelihoods(
                weights, table.base_weight, table.total_weight, 2, (first, second)
            )
            top = max(likelihood.values())
            tied = [cell for cell, chance in likelihood.items() if chance == top]
            for cell in tied:  # named with probability 1 / ties, where the device is here
                right += likelihood[cell] / len(tied) / 4
    assert right == enumerated(table, 2)[0]


def test_one_cell_is_always_known_and_reports_that_cannot_lie_tell_all() -> None:
    alone = still_device_risk(response_table("dam", 1.0, 1), 3, 10, seeded())
    assert (alone.exact_cell.estimate, alone.exact_cell.standard_error) == (1.0, 0.0)
    assert alone.exact_cell.upper == alone.within_one_cell.upper == 1.0
    assert still_device_risk(response_table("dam", 20, 5), 2, 100, seeded()).exact_cell.lower > 0.95


def test_the_seed_decides_and_chunks_do_not_change_what_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = response_table("dam", 2.0, 4)
    whole = still_device_risk(table, 3, 2000, seeded())
    assert whole == still_device_risk(table, 3, 2000, seeded())
    monkeypatch.setattr(still_device, "CHUNK_REPORTS", 100)
    parts = still_device_risk(table, 3, 2000, seeded())
    assert parts.trials == 2000
    difference = abs(parts.exact_cell.estimate - whole.exact_cell.estimate)
    assert difference < 6 * sqrt(2) * whole.exact_cell.standard_error  # one in 5e8


def test_a_probability_has_the_error_of_its_trials_and_wilsons_interval() -> None:
    # Ten numbers, 8 of them 1 and 2 of them 0. Wilson (1927): 0.490 to 0.943.
    found = Probability.of_trials(8.0, 8.0, 10)
    assert found.estimate == 0.8
    assert found.standard_error == pytest.approx(sqrt(0.16 / 9))
    assert (found.lower, found.upper) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    none = Probability.of_trials(0.0, 0.0, 10)
    assert (none.estimate, none.standard_error, none.lower) == (0.0, 0.0, 0.0)
    assert none.upper == pytest.approx(0.2775, abs=1e-4)


def test_the_examples_run() -> None:
    assert doctest.testmod(still_device).failed == 0


def test_the_table_of_the_docs_is_what_is_measured() -> None:
    """Every entry of docs/privacy.md, section 4.1, within six standard errors and its rounding.

    Means of 20,000 numbers: a fresh seed raises an alarm once in 1e7. The band is below 0.012,
    and one report more or fewer changes the entries at 7 reports and epsilon 3.5 by 0.06.
    """
    block = TEXT[TEXT.index("<!-- still-device -->") : TEXT.index("<!-- /still-device -->")]
    header, _, *lines = (line.strip("| ").split(" | ") for line in block.splitlines()[1:])
    columns = [int(reports) for reports in header[2:]]
    assert columns == [1, 2, 4, 7, 30, 90, 365]
    assert [line[0] for line in lines] == ["1"] * 3 + ["3.5"] * 3
    for epsilon, (cell, near, bound) in ((1.0, lines[:3]), (3.5, lines[3:])):
        table = response_table("dam", epsilon, 15)
        assert cell[2] == f"{float(one_report_risk(table)):.3f}"
        for place, reports in enumerate(columns, start=2):
            found = still_device_risk(table, reports, 20_000, seeded(reports))
            for shown, share in ((cell, found.exact_cell), (near, found.within_one_cell)):
                band = 0.0005 + 6 * hypot(share.standard_error, STATED)
                assert band < 0.012
                least = float(shown[place].removeprefix("> "))
                if shown[place].startswith(">"):
                    assert share.estimate > least - band
                else:
                    assert share.estimate == pytest.approx(least, abs=band)
            allowed = most(table, reports)
            assert bound[place] == (f"{allowed:.3f}" if allowed < 0.9995 else "> 0.999")


def test_the_price_of_a_full_answer_is_what_the_docs_say() -> None:
    printed = re.search(
        r"names the cell of a device that stays with probability (0\.\d+), seven at eps 0\.5 with "
        r"(0\.\d+)\. Both claims allow (0\.\d+)",
        " ".join(TEXT.split()),
    )
    assert printed is not None
    full, split = response_table("dam", 3.5, 15), response_table("dam", 0.5, 15)
    assert printed[1] == f"{float(one_report_risk(full)):.3f}"
    found = still_device_risk(split, 7, 100_000, seeded()).exact_cell
    assert found.standard_error < 1e-4
    assert found.estimate == pytest.approx(float(printed[2]), abs=0.0005 + 6 * 1e-4)
    assert printed[3] == f"{most(full, 1):.3f}" == f"{most(split, 7):.3f}"
