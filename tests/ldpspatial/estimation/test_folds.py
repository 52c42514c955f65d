"""Folds: every report in one, at random."""

from collections import Counter
from itertools import product
from math import factorial, prod, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from client_sdk import response_table
from ldpspatial import StampChannel
from ldpspatial.channels.smooth import SmoothedChannel
from ldpspatial.estimation import folds
from tests.support.naive_sieve import counts_of, slope

FALSE_ALARM = 1e-6


@given(st.integers(2, 7), st.lists(st.integers(0, 10**15), min_size=1, max_size=9))
@settings(max_examples=100, deadline=None)
def test_every_report_is_in_one_fold(number: int, reports: list[int]) -> None:
    counts = np.array(reports, float)
    parts = folds.split(counts, number)
    assert len(parts) == number
    np.testing.assert_array_equal(np.sum(parts, axis=0), counts)
    for part in parts:
        assert part.dtype == np.float64
        assert (part >= 0).all()
        assert (part == np.round(part)).all()


def test_folds_are_a_split_of_the_reports_at_random() -> None:
    # 20,000 cells of three reports: folds share each cell's out as five urns share three balls.
    cells, balls, urns = 20_000, 3, 5
    parts = np.array(folds.split(np.full(cells, float(balls)), urns), int)
    seen = Counter(map(tuple, parts.T.tolist()))
    ways = [way for way in product(range(balls + 1), repeat=urns) if sum(way) == balls]
    law = [factorial(balls) / prod(map(factorial, way)) / urns**balls for way in ways]
    statistic = sum(
        (seen[w] - cells * p) ** 2 / (cells * p) for w, p in zip(ways, law, strict=True)
    )
    assert sum(law) == pytest.approx(1)
    assert statistic < chi2.isf(FALSE_ALARM, len(ways) - 1)
    # Cell by cell: the first fold's shares of neighbours have nothing to do with each other.
    first = parts[0] - balls / urns
    correlation = first[1:] @ first[:-1] / (first @ first)
    assert abs(correlation) < 4.9 / sqrt(cells)  # 1e-6


def test_a_path_that_the_limit_ends_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    # Here any third mark looks worse. A last stretch may be shorter than one between marks.
    for name, value in {"PATIENCE": 1, "GAIN": 1e9, "SLOW": 1e9}.items():
        monkeypatch.setattr(folds, name, value)
    channel = StampChannel(response_table("dam", 3.5, 5, radius=2))
    parts = folds.split(counts_of(channel, slope((5, 5)), 1_000, seed=1), 5)
    kernels = SmoothedChannel(channel, 0.6)
    paths = [folds.best_steps(kernels, parts, most, folds.NOTHING, 0.25) for most in (2, 3, 4)]
    assert [path.is_cut for path in paths] == [True, True, False]


def test_huge_counts_are_split_evenly() -> None:
    n = 10**15
    parts = folds.split(np.array([n, 0, 1.0]), 5)
    for part in parts:  # 4.9 standard deviations: 1e-6 each
        assert abs(part[0] - n / 5) < 4.9 * sqrt(n * 0.2 * 0.8)
