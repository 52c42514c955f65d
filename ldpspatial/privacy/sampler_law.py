"""Whether the client's samplers draw what a response table says.

Pearson's chi-square of reports, drawn with the operating system's entropy, against the exact
probabilities: over the output cells, which sees every kind of fault, and over disk and rest alone,
which best detects a wrong epsilon. Measured on 5 to 32 cells: a million reports show an
epsilon that is wrong by 5 % from epsilon 0.5 on, the output cells alone from 2 on; at 0.1 neither
shows it.

A bin expects at least 100 reports. There the true tail beyond 1e-8 is at most seven times that
of the chi-square law (two bins, one of them Poisson: the worst case); the margin of 10 in the
threshold covers it.
"""

from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from client_sdk import ResponseTable, entropy, kernels
from client_sdk.shared import Sampler

Ints = NDArray[np.int64]
Cell = tuple[int, int]

FALSE_ALARM = 1e-6  # of all tests of one call together, where the samplers are right
LEAST_EXPECTED = 100.0  # reports a bin
TAIL_MARGIN = 10.0
SCALAR_DRAWS = 1000
BINNINGS = ("cells", "disk")


@dataclass(frozen=True)
class SamplerTest:
    """Pearson's chi-square of the reports of one sampler at one input cell.

    Attributes
    ----------
    sampler : {"compiled", "scalar"}
        :mod:`client_sdk.kernels` or :class:`client_sdk.sampling.Sampler`.
    cell : (int, int)
        Row and column of the input cell.
    bins : {"cells", "disk"}
        Output cells, those with few expected reports pooled; or disk and rest.
    draws : int
    statistic : float
        Infinite where a report lies outside the output domain.
    degrees : int
        Bins minus one; at 0 the reports were too few to tell anything.
    p_value : float
    ok : bool
        Whether the p-value reaches this test's share of the false alarm.
    """

    sampler: str
    cell: Cell
    bins: str
    draws: int
    statistic: float
    degrees: int
    p_value: float
    ok: bool


def check_samplers(table: ResponseTable, draws: int) -> tuple[tuple[SamplerTest, ...], bool]:
    """Test both samplers; also tell whether the same entropy gave both the same reports."""
    middle = table.cells // 2
    cells = sorted({(0, 0), (0, middle), (middle, middle)})
    # Bonferroni over binnings and samplers: the compiled one at each cell, the scalar one at one.
    share = FALSE_ALARM / TAIL_MARGIN / (len(BINNINGS) * (len(cells) + 1))
    tests = []
    for row, col in cells:
        n = draws // len(cells)
        out = kernels.randomize_many(table, np.full(n, row), np.full(n, col))
        tests += _chi_square(table, "compiled", (row, col), out, share)

    # More than half of all draws are accepted: four times the bytes cannot run out in practice.
    data = entropy.system(4 * SCALAR_DRAWS * entropy.DRAW_BYTES)
    sampler = Sampler(table)
    scalar = BytesIO(data)
    drawn = [sampler.draw(middle, middle, scalar.read) for _ in range(SCALAR_DRAWS)]
    out = tuple(np.array(drawn, np.int64).T)
    tests += _chi_square(table, "scalar", (middle, middle), out, share)
    inputs = np.full(SCALAR_DRAWS, middle)
    compiled = kernels.draw_many(table, inputs, inputs, BytesIO(data).read)
    return tuple(tests), all(map(np.array_equal, out, compiled))


def _chi_square(
    table: ResponseTable, sampler: str, cell: Cell, out: tuple[Ints, ...], share: float
) -> list[SamplerTest]:
    """Compare reports of one input cell with the exact probabilities, in both binnings."""
    weights = weights_of_input(table, *cell)
    side = len(weights)
    n = len(out[0])
    rows = out[0] + table.radius
    cols = out[1] + table.radius
    inside = (rows >= 0) & (rows < side) & (cols >= 0) & (cols < side)
    counts = np.bincount(rows[inside] * side + cols[inside], minlength=side * side)
    domain = weights.ravel() > 0
    if counts[domain].sum() < n:
        return [SamplerTest(sampler, cell, b, n, np.inf, 0, 0.0, ok=False) for b in BINNINGS]
    weights = weights.ravel()[domain]
    counts = counts[domain]
    expected = weights * (n / table.total_weight)
    tests = []
    for name in BINNINGS:
        disk = (weights > table.base_weight).astype(np.int64)
        bins = _bins(expected) if name == "cells" else _both_or_neither(disk, expected)
        seen = np.bincount(bins, counts)
        due = np.bincount(bins, expected)
        statistic = float(((seen - due) ** 2 / due).sum())
        # Nothing is fitted to the counts; what costs a degree is their known total.
        degrees = len(due) - 1
        p_value = float(chdtrc(degrees, statistic)) if degrees else 1.0
        ok = p_value >= share
        tests.append(SamplerTest(sampler, cell, name, n, statistic, degrees, p_value, ok))
    return tests


def _both_or_neither(disk: Ints, expected: NDArray[np.floating]) -> Ints:
    """Return two bins, or a single one where either would hold too few reports."""
    reports = np.bincount(disk, expected, minlength=2)
    return disk if reports.min() >= LEAST_EXPECTED else np.zeros_like(disk)


def _bins(expected: NDArray[np.floating]) -> Ints:
    """Return a bin for every output cell, each with at least LEAST_EXPECTED reports or alone.

    Cells with enough reports are bins; the others are pooled in row order into bins of nearly
    equal size, at least twice the least less one cell. A remainder joins the last large cell.
    """
    large = expected >= LEAST_EXPECTED
    bins = np.zeros(expected.size, np.int64)
    bins[large] = np.arange(int(large.sum()))
    small = np.cumsum(expected[~large])
    if small.size == 0:
        return bins
    first = int(large.sum())
    # Twice the least: a pool can fall short by one cell, which expects less than the least itself.
    pools = max(int(small[-1] / (2 * LEAST_EXPECTED)), 1)
    if small[-1] < LEAST_EXPECTED and first:
        bins[~large] = first - 1
        return bins
    before = small - expected[~large]
    bins[~large] = first + np.minimum((before / small[-1] * pools).astype(np.int64), pools - 1)
    return bins


def weights_of_input(table: ResponseTable, row: int, col: int) -> Ints:
    """Return the (d + 2b, d + 2b) weights of the output cells, 0 outside the output domain.

    Entry [r + b, c + b] is output cell (r, c). Cells of the disk count wherever they fall, so a
    disk that left the domain would show in the sum.
    """
    b = table.radius
    side = table.cells + 2 * table.radius
    weights = np.zeros((side, side), np.int64)
    for k, out_row in enumerate(table.output_rows):
        margin = table.margin(out_row)
        weights[k, b - margin : b + table.cells + margin] = table.base_weight
    disk = stamp(table)
    near = weights[row : row + 2 * b + 1, col : col + 2 * b + 1]  # a view
    near[disk > 0] = disk[disk > 0]
    return weights


def stamp(table: ResponseTable) -> Ints:
    """Return the (2b + 1, 2b + 1) weights at [b + drow, b + dcol], 0 outside the disk."""
    b = table.radius
    disk = np.zeros((2 * b + 1, 2 * b + 1), np.int64)
    for (drow, dcol), weight in table.weights.items():
        disk[b + drow, b + dcol] = weight
    return disk
