import doctest
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from client_sdk import response_table
from ldpspatial.privacy import shuffling
from ldpspatial.privacy.shuffling import amplified_delta, amplified_epsilon, local_epsilon_for
from tests.support import naive_shuffling as naive

DOCS = Path(__file__).parents[3] / "docs" / "shuffling.md"
SHARES = (0.0, 0.1, 0.4, 0.7, 0.95)  # of epsilon0, to look at


def table_channel(mechanism: str, epsilon0: float, cells: int) -> tuple[list[list[float]], float]:
    """Rows of a response table, and its blanket."""
    table = response_table(mechanism, epsilon0, cells)
    rows = []
    for row in range(cells):
        for col in range(cells):
            offsets = [(r - row, c - col) for r, c in table.output_cells()]
            weights = [table.weights.get(offset, table.base_weight) for offset in offsets]
            rows.append([weight / table.total_weight for weight in weights])
    return rows, table.output_size * table.base_weight / table.total_weight


def blanket_of(channel: naive.Channel) -> float:
    return math.fsum(map(min, zip(*channel, strict=True)))


def random_channel(seed: int) -> tuple[list[list[float]], float]:
    """Three inputs, whose rows have odds of r or 1 or something between, and their epsilon0."""
    rng = np.random.default_rng(seed)
    odds = np.exp(rng.choice([0, 0.3, 1], size=(3, 4)) * rng.uniform(0.5, 3))
    channel = odds * rng.dirichlet(np.ones(4))
    channel /= channel.sum(axis=1, keepdims=True)
    return channel.tolist(), float(np.log((channel.max(axis=0) / channel.min(axis=0)).max()))


# The theorem against shuffled reports themselves


@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(("k", "n"), [(2, 1), (2, 2), (2, 9), (3, 2), (3, 5), (4, 3), (6, 2)])
def test_shuffled_randomised_response_keeps_both_bounds(k: int, n: int, epsilon0: float) -> None:
    channel = naive.randomised_response(epsilon0, k)
    epsilons = [share * epsilon0 for share in SHARES]
    for epsilon, true in zip(epsilons, naive.true_deltas(channel, n, epsilons), strict=True):
        tight = amplified_delta(epsilon0, n, epsilon, blanket=blanket_of(channel))
        assert true <= tight + 1e-14
        assert tight <= amplified_delta(epsilon0, n, epsilon) * (1 + 1e-6)


@pytest.mark.parametrize(
    ("mechanism", "epsilon0", "cells", "n"),
    [("dam", 0.7, 2, 3), ("dam-ns", 0.7, 2, 2), ("huem", 0.7, 2, 3), ("dam", 2.0, 3, 2)],
)
def test_shuffled_reports_of_response_tables_keep_both_bounds(
    mechanism: str, epsilon0: float, cells: int, n: int
) -> None:
    channel, blanket = table_channel(mechanism, epsilon0, cells)
    epsilons = [share * epsilon0 for share in SHARES]
    for epsilon, true in zip(epsilons, naive.true_deltas(channel, n, epsilons), strict=True):
        assert true <= amplified_delta(epsilon0, n, epsilon, blanket=blanket) + 1e-14
        assert true <= amplified_delta(epsilon0, n, epsilon)


@pytest.mark.parametrize("seed", range(15))
def test_shuffled_reports_of_any_mechanism_keep_both_bounds(seed: int) -> None:
    channel, epsilon0 = random_channel(seed)
    n = 2 + seed % 3
    epsilons = [share * epsilon0 for share in SHARES]
    for epsilon, true in zip(epsilons, naive.true_deltas(channel, n, epsilons), strict=True):
        assert true <= naive.clone_delta(epsilon0, n, epsilon) + 1e-14
        assert true <= amplified_delta(epsilon0, n, epsilon, blanket=blanket_of(channel)) + 1e-14


@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_binary_randomised_response_attains_the_bound(epsilon0: float, n: int) -> None:
    channel, epsilon = naive.randomised_response(epsilon0, 2), 0.9 * epsilon0
    (true,) = naive.true_deltas(channel, n, [epsilon])
    assert naive.clone_delta(epsilon0, n, epsilon) == pytest.approx(true, rel=1e-12)
    assert true <= amplified_delta(epsilon0, n, epsilon) <= true * 1.01


@pytest.mark.parametrize("share", SHARES)
def test_people_no_more_private_than_the_proof_asks_attain_it_everywhere(share: float) -> None:
    # The others' reports are e^epsilon0-close to the one person's from one side only.
    epsilon0, n = 1.5, 6
    r = math.exp(epsilon0)
    other = [1 / (r + 1), 1 / (r + 1), (r - 1) / (r + 1)]
    laws = [
        naive.law_of_histogram([[*own, 0.0], *([other] * (n - 1))])
        for own in naive.randomised_response(epsilon0, 2)
    ]
    true = naive.divergence(laws[0], laws[1], share * epsilon0)
    assert naive.clone_delta(epsilon0, n, share * epsilon0) == pytest.approx(true, rel=1e-12)


@pytest.mark.parametrize("n", [2, 5, 9])
def test_one_clone_in_twenty_too_many_would_be_noticed(n: int) -> None:
    epsilon0, epsilon = 1.0, 0.9
    wrong = naive.clone_delta(epsilon0, n, epsilon, share=1.05 * 2 / (math.e + 1))
    (true,) = naive.true_deltas(naive.randomised_response(epsilon0, 2), n, [epsilon])
    assert wrong < true * 0.99


def test_a_blanket_that_is_too_wide_would_be_noticed() -> None:
    epsilon0, n = 2.5, 5
    channel = naive.randomised_response(epsilon0, 3)
    wide = 1.05 * blanket_of(channel)
    epsilons = [share * epsilon0 for share in SHARES]
    true = naive.true_deltas(channel, n, epsilons)
    wrong = [amplified_delta(epsilon0, n, epsilon, blanket=wide) for epsilon in epsilons]
    assert any(a > b for a, b in zip(true, wrong, strict=True))


# The numbers against sums term by term


@pytest.mark.parametrize("n", [1, 2, 30, 200])
@pytest.mark.parametrize("epsilon0", [1e-6, 0.1, 1.0, 4.0, 12.0])
def test_delta_is_that_of_the_dominating_pair_and_never_below(epsilon0: float, n: int) -> None:
    for share in SHARES:
        exact = naive.clone_delta(epsilon0, n, share * epsilon0)
        assert exact <= amplified_delta(epsilon0, n, share * epsilon0) <= exact * 1.02 + 2e-15


@pytest.mark.parametrize(
    ("epsilon0", "n"), [(0.1, 10**7), (1.0, 10**5), (4.0, 10**6), (8.0, 10**7), (12.0, 10**7)]
)
@pytest.mark.parametrize("delta", [1e-6, 1e-11])
def test_epsilon_of_many_people_is_that_of_the_dominating_pair_and_never_below(
    epsilon0: float, n: int, delta: float
) -> None:
    epsilon = amplified_epsilon(epsilon0, n, delta)
    assert naive.clone_delta_by_tails(epsilon0, n, epsilon) <= delta
    assert naive.clone_delta_by_tails(epsilon0, n, epsilon * (1 - 2e-3)) > delta
    summed = amplified_delta(epsilon0, n, epsilon, blanket=1e-9)  # the same without accountant
    assert summed == pytest.approx(delta, rel=0.03)


@pytest.mark.parametrize("n", [1, 2, 12])
@pytest.mark.parametrize("k", [2, 3, 20])
@pytest.mark.parametrize("epsilon0", [0.5, 3.0])
def test_the_bound_with_a_blanket_is_its_sum(epsilon0: float, k: int, n: int) -> None:
    blanket = k / (math.exp(epsilon0) + k - 1)
    for share in SHARES:
        exact = naive.blanket_delta(epsilon0, n, share * epsilon0, blanket)
        found = amplified_delta(epsilon0, n, share * epsilon0, blanket=blanket)
        assert exact <= found + 1e-16
        assert found <= exact * (1 + 1e-7) + 1e-12


@pytest.mark.parametrize(
    ("epsilon0", "k", "n", "epsilon"),
    [(3.5, 225, 10**4, 0.1), (5.0, 50, 10**5, 0.18), (1.0, 3, 10**7, 8e-4), (1.0, 2, 10**4, 0.04)],
)
def test_the_bound_with_a_blanket_for_many_people(
    epsilon0: float, k: int, n: int, epsilon: float
) -> None:
    blanket = k / (math.exp(epsilon0) + k - 1)
    exact = naive.blanket_delta_by_fft(epsilon0, n, epsilon, blanket)
    found = amplified_delta(epsilon0, n, epsilon, blanket=blanket)
    assert exact * (1 - 1e-4) <= found <= exact * 1.02


def test_the_slow_sums_agree_about_binary_randomised_response() -> None:
    for n, epsilon in ((1, 0.3), (7, 0.0), (25, 0.5)):
        expected = pytest.approx(naive.clone_delta(1.0, n, epsilon), rel=1e-11)
        assert naive.blanket_delta(1.0, n, epsilon, 2 / (math.e + 1)) == expected
        assert naive.clone_delta_by_tails(1.0, n, epsilon) == expected


@pytest.mark.parametrize(
    ("epsilon0", "n"), [(0.5, 10**4), (1.0, 10**5), (4.0, 10**5), (5.0, 10**6)]
)
def test_epsilon_is_below_the_closed_form(epsilon0: float, n: int) -> None:
    closed = naive.closed_form_epsilon(epsilon0, n, 1e-6)
    assert amplified_epsilon(epsilon0, n, 1e-6) < 0.6 * closed


def test_the_table_in_the_docs_is_what_is_computed_rounded_up() -> None:
    rows = re.findall(r"^\| ([\d.]+) \|(.+)\|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == 6
    for epsilon0, cells in rows:
        for power, cell in enumerate(map(float, cells.split("|")), start=3):
            computed = amplified_epsilon(float(epsilon0), 10**power, 1e-6)
            assert computed <= cell <= computed * 1.01
    for blanket, told in (
        (225 / (math.exp(3.5) + 224), 0.103),
        (table_channel("dam", 3.5, 15)[1], 0.263),
    ):
        assert amplified_epsilon(3.5, 10_000, 1e-6, blanket) == pytest.approx(told, rel=5e-3)


def test_bounds_are_monotone() -> None:
    deltas = [amplified_delta(2.0, 500, epsilon) for epsilon in np.linspace(0, 2, 9)]
    assert deltas == sorted(deltas, reverse=True)
    by_people = [amplified_epsilon(2.0, n, 1e-6) for n in (1, 2, 30, 1000, 1030, 10**5, 10**7)]
    assert by_people == sorted(by_people, reverse=True)
    by_loss = [amplified_epsilon(epsilon0, 5000, 1e-6) for epsilon0 in (0.1, 0.5, 0.51, 3, 9)]
    assert by_loss == sorted(by_loss)
    by_delta = [amplified_epsilon(2.0, 5000, 10.0**-k) for k in range(0, 15, 2)]
    assert by_delta == sorted(by_delta)
    by_blanket = [amplified_delta(2.0, 5000, 0.1, share) for share in (1e-9, 0.3, 0.31, 0.9)]
    assert by_blanket == sorted(by_blanket, reverse=True)


def test_the_local_claim_holds_on() -> None:
    for blanket in (None, 0.5):
        assert amplified_delta(1.0, 100, 1.0, blanket) == 0.0
        assert amplified_delta(1.0, 100, 5.0, blanket) == 0.0
        assert amplified_epsilon(1.0, 100, 0.0, blanket) == 1.0
        assert amplified_epsilon(1.0, 100, 1.0, blanket) == 0.0
        assert amplified_epsilon(20.0, 10, 1e-6, blanket) == pytest.approx(20.0, rel=1e-4)
        assert amplified_epsilon(20.0, 10, 1e-6, blanket) <= 20.0


def test_a_lone_report_is_as_private_as_it_was() -> None:
    for epsilon in (0.0, 0.5, 0.9):
        alone = (math.e - math.exp(epsilon)) / (math.e + 1)
        assert alone <= amplified_delta(1.0, 1, epsilon) <= alone * 1.01


@pytest.mark.parametrize(("epsilon", "n"), [(0.05, 10_000), (1.0, 2000)])
def test_the_local_epsilon_is_the_largest_that_amplifies_to_the_central_one(
    epsilon: float, n: int
) -> None:
    epsilon0 = local_epsilon_for(epsilon, 1e-6, n)
    assert epsilon < epsilon0 < 20
    assert amplified_delta(epsilon0, n, epsilon) <= 1e-6
    assert naive.clone_delta_by_tails(epsilon0 * 1.005, n, epsilon) > 1e-6


def test_the_local_epsilon_lies_between_the_central_one_and_20() -> None:
    assert local_epsilon_for(0.3, 0.0, 1000) == pytest.approx(0.3, rel=1e-4)
    assert local_epsilon_for(0.3, 1e-6, 1) == pytest.approx(0.3, rel=1e-4)
    assert local_epsilon_for(20, 0.0, 10) == 20.0
    assert local_epsilon_for(0.1, 1.0, 10) == 20.0


def test_without_the_accountant_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(ImportError, match=r"install ldpspatial\[shuffle\]"):
        amplified_epsilon(np.float64(1), np.int64(100), 1e-6)
    assert amplified_epsilon(np.float64(1), np.int64(100), 1e-6, blanket=0.6) < 1.0


def test_the_accountant_is_not_loaded_before_it_is_needed() -> None:
    code = "import sys, ldpspatial.privacy.shuffling; sys.exit('dp_accounting' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_examples_run() -> None:
    assert doctest.testmod(shuffling).failed == 0
