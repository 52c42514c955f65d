"""Drawing: the exact output distribution for every input cell, counted integer by integer.

An integer u decides a report, and the map from u to the report is constant on intervals. Where
they should lie is written down by the twin; the sampler is asked at both ends and in the middle
of each and an interval on which it changes is halved until it is constant. Within an interval the
sampler only divides and searches, which is monotone, so equal ends mean a constant interval.
"""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, ncx2

from client_sdk import ParameterError, ResponseTable, response_table, sampling
from client_sdk.entropy import DRAW_BYTES
from client_sdk.mechanisms import MECHANISMS
from client_sdk.response import orbit
from client_sdk.sampling import Excess, Sampler
from client_sdk.testing import FixedEntropy, StreamEntropy
from tests.support import naive_sampling as naive

Cell = tuple[int, int]
FALSE_ALARM = 1e-6
TABLES = [
    *(
        response_table(mechanism, epsilon, cells, radius)
        for mechanism in MECHANISMS
        for epsilon, cells, radius in [
            (1.4, 1, None), (1.4, 2, None), (2, 3, None), (3.5, 4, None), (0.7, 3, 2), (1, 2, 4),
        ]
    ),
    response_table("disk", 1.4, 3, squared_radius=5),
    response_table("disk", 2, 2, squared_radius=8),
    # What another designer may send: a ring, a flat table, a total that is a power of two, one
    # report only, a base of 1.
    ResponseTable("ring", 3.0, 3, 4, ((5,), (9, 4), (7, 9))),
    ResponseTable("flat", 1.0, 2, 8, ((8,), (8, 8))),
    ResponseTable("power of two", 1.0, 2, 2, ((2,),)),
    ResponseTable("certain", 1.0, 1, 1, ((1,),)),
    ResponseTable("one lifted", 1.0, 1, 1, ((2,),)),
]  # fmt: skip


def ids(table: ResponseTable) -> str:
    return f"{table.mechanism}-d{table.cells}-b{table.radius}"


def draw_bytes(u: int) -> bytes:
    return u.to_bytes(DRAW_BYTES, "big")


def mask_bits(table: ResponseTable) -> int:
    return (table.total_weight - 1).bit_length()


def reporter(sampler: Sampler, cell: Cell) -> Callable[[int], Cell | None]:
    """Return u -> report, or None where u is thrown away."""

    def report(u: int) -> Cell | None:
        try:
            return sampler.draw(*cell, FixedEntropy(draw_bytes(u)))
        except EOFError:  # asked for more bytes
            return None

    return report


def tally(
    report: Callable[[int], Cell | None], start: int, stop: int, counts: Counter[Cell | None]
) -> None:
    first = report(start)
    if first == report((start + stop) // 2) == report(stop - 1):
        counts[first] += stop - start
        return
    middle = (start + stop) // 2
    tally(report, start, middle, counts)
    tally(report, middle, stop, counts)


def exact_counts(sampler: Sampler, cell: Cell) -> Counter[Cell | None]:
    """Return how many of the 2**k integers behind the mask lead to each report."""
    table, report = sampler.table, reporter(sampler, cell)
    counts: Counter[Cell | None] = Counter()
    start = 0
    for length, _ in naive.intervals(dict(table.weights), table.cells, table.base_weight, *cell):
        tally(report, start, start + length, counts)
        start += length
    end = 1 << mask_bits(table)
    if start < end:
        tally(report, start, end, counts)
    return counts


def expected_counts(table: ResponseTable, cell: Cell) -> dict[Cell | None, int]:
    weights = dict(table.weights)
    counts: dict[Cell | None, int] = {
        (r, c): weights.get((r - cell[0], c - cell[1]), table.base_weight)
        for r, c in table.output_cells()
    }
    rejected = (1 << mask_bits(table)) - table.total_weight
    return {**counts, None: rejected} if rejected else counts


def input_cells(table: ResponseTable) -> list[Cell]:
    return [(row, col) for row in range(table.cells) for col in range(table.cells)]


# Exact


@pytest.mark.parametrize("table", TABLES, ids=ids)
def test_output_distribution_is_exactly_the_table_for_every_input(table: ResponseTable) -> None:
    sampler = Sampler(table)
    for cell in input_cells(table):
        counts = exact_counts(sampler, cell)
        assert counts == expected_counts(table, cell)
        kept = sum(counts.values()) - counts[None]
        for report in table.output_cells():
            offset = report[0] - cell[0], report[1] - cell[1]
            assert Fraction(counts[report], kept) == table.probability(*offset)


@pytest.mark.parametrize("table", TABLES, ids=ids)
def test_each_integer_gives_the_report_that_the_protocol_names(table: ResponseTable) -> None:
    rng = np.random.default_rng(7)
    for cell in input_cells(table):
        report, start = reporter(Sampler(table), cell), 0
        for length, out in naive.intervals(
            dict(table.weights), table.cells, table.base_weight, *cell
        ):
            inside = start + int(rng.integers(length))
            assert {report(u) for u in (start, inside, start + length - 1)} == {out}
            start += length
        assert start == table.total_weight


def test_larger_table_is_exact_at_a_corner_and_in_the_middle() -> None:
    table = response_table("huem", 2.8, 9, 4)
    for cell in ((0, 8), (4, 4)):
        assert exact_counts(Sampler(table), cell) == expected_counts(table, cell)


# Entropy


def test_bits_above_the_mask_do_not_matter() -> None:
    table = response_table("dam", 2, 3)
    report, bits = reporter(Sampler(table), (1, 2)), mask_bits(table)
    for u in (0, 1, table.total_weight - 1):
        for high in (1, 5, (1 << (56 - bits)) - 1):
            assert report(u | high << bits) == report(u)


@pytest.mark.parametrize("table", TABLES, ids=ids)
def test_integers_from_the_total_on_are_thrown_away(table: ResponseTable) -> None:
    sampler, total, end = Sampler(table), table.total_weight, 1 << mask_bits(table)
    for u in {u for u in (total, (total + end) // 2, end - 1) if total <= u < end}:
        entropy = FixedEntropy(draw_bytes(u) * 3 + draw_bytes(0) + b"rest")
        assert sampler.draw(0, 0, entropy) == table.output_cell(0)
        assert entropy.used == 4 * DRAW_BYTES


@pytest.mark.parametrize("data", [b"", b"123456", b"\xff" * 14, b"\xff" * 20])
def test_exhausted_entropy_gives_no_report(data: bytes) -> None:
    table = response_table("dam", 2, 3)  # its total is not a power of two: all ones are thrown away
    with pytest.raises(EOFError):
        Sampler(table).draw(0, 0, FixedEntropy(data))


# Input


@pytest.mark.parametrize(
    "cell",
    [(-1, 0), (0, 3), (3, 0), (0.0, 1), (1.5, 1), (0, 2.999), ("0", 0), (None, 0), (True, 0)],
)
def test_bad_input_cell_is_refused_and_not_repeated(cell: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        Sampler(response_table("dam", 2, 3)).draw(cell[0], cell[1], StreamEntropy(""))
    assert "not repeated" in str(caught.value)
    assert "2.999" not in str(caught.value)


# Power: these tests catch the bugs that they are for


def modulo(bound: int, entropy: Callable[[int], bytes]) -> int:
    """Draw with the bias of modulo: the small values come twice."""
    bits = (bound - 1).bit_length()
    return (int.from_bytes(entropy(DRAW_BYTES), "big") & ((1 << bits) - 1)) % bound


def clamp(bound: int, entropy: Callable[[int], bytes]) -> int:
    return min(int.from_bytes(entropy(DRAW_BYTES), "big") >> 3, bound - 1)


def without_last_image(part: Excess, ends: list[int], v: int) -> Cell:
    offset = PICK(part, ends, v)
    images = orbit(max(map(abs, offset)), min(map(abs, offset)))
    return images[-2] if len(images) > 1 and offset == images[-1] else offset


def always_the_center(part: Excess, ends: list[int], v: int) -> Cell:
    return (0, 0)


PICK = sampling._pick
BUGS = [
    ("below", modulo),
    ("below", clamp),
    ("_pick", without_last_image),
    ("_pick", always_the_center),
]
BIASED = response_table("dam", 1.4, 3)
CELL = (0, 2)


@pytest.mark.parametrize(("name", "bug"), BUGS)
def test_exact_counts_catch_a_biased_sampler(
    name: str, bug: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert exact_counts(Sampler(BIASED), CELL) == expected_counts(BIASED, CELL)
    monkeypatch.setattr(sampling, name, bug)
    assert exact_counts(Sampler(BIASED), CELL) != expected_counts(BIASED, CELL)


def statistic(table: ResponseTable, cell: Cell, n: int, label: str) -> float:
    sampler, entropy = Sampler(table), StreamEntropy(label)
    counts = Counter(sampler.draw(*cell, entropy) for _ in range(n))
    assert set(counts) <= set(table.output_cells())
    total = 0.0
    for row, col in table.output_cells():
        expected = n * float(table.probability(row - cell[0], col - cell[1]))
        total += (counts[row, col] - expected) ** 2 / expected
    return total


def noncentrality(table: ResponseTable, n: int) -> float:
    """Chi-square's shift when each orbit's last image goes to its neighbour."""
    lifts = [
        table.weights[images[-1]] - table.base_weight
        for images in naive.by_orbit(dict(table.weights))
        if len(images) > 1
    ]
    # Two cells of probability (base + lift) / total each gain or lose lift / total.
    shift = sum(Fraction(2 * lift**2, lift + table.base_weight) for lift in lifts)
    return float(n * shift / table.total_weight)


def test_chi_square_passes_and_has_the_power_to_see_a_lost_image(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One-sided chi-square; false alarm 1e-6, power above 1 - 1e-6 for the lost image."""
    n, degrees = 20_000, BIASED.output_size - 1
    threshold = chi2.isf(FALSE_ALARM, degrees)
    assert ncx2.sf(threshold, degrees, noncentrality(BIASED, n)) > 1 - 1e-6
    assert statistic(BIASED, CELL, n, "chi-square") < threshold
    monkeypatch.setattr(sampling, "_pick", without_last_image)
    assert statistic(BIASED, CELL, n, "chi-square") > threshold


def test_chi_square_sees_modulo_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 2**k mod total values doubled, most cells come up to twice too often or too rarely."""
    n, threshold = 5_000, chi2.isf(FALSE_ALARM, BIASED.output_size - 1)
    assert statistic(BIASED, CELL, n, "modulo") < threshold
    monkeypatch.setattr(sampling, "below", modulo)
    assert statistic(BIASED, CELL, n, "modulo") > threshold
