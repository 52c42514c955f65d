"""Audit of a response table: is it as private as it claims, and do the samplers obey it.

Exact part: the definition of epsilon-LDP is evaluated on the whole numbers that devices draw from.
For every output cell y the largest and the smallest weight over *all* input cells are compared;
as all inputs share one total, their ratio is that of the probabilities. e^epsilon is replaced by
a rational bound from below, so no rounding can turn a No into a Yes.

Statistical part: reports drawn by the client's own samplers, with the operating system's entropy,
against the exact probabilities. It finds samplers that do not do what the table says. Its power is
that of chi-square at these draws: a million show an epsilon that is off by 5 % at epsilon 1 and
above, not at 0.1. What a table promises is never judged by it.
"""

from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from math import log1p

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter, minimum_filter
from scipy.stats import chi2

from client_sdk import Collection, ParameterError, ResponseTable, entropy, kernels, response_table
from client_sdk.exact import ONE, exp_below
from client_sdk.mechanisms import MECHANISMS
from client_sdk.sampling import Sampler
from client_sdk.validate import MAX_EPSILON, MICRO, exact_epsilon, whole_number, written_epsilon
from client_sdk.verify import verify_table
from ldpspatial.errors import InputError

Ints = NDArray[np.int64]
Cell = tuple[int, int]

FALSE_ALARM = 1e-6  # of all samplers together, where they are right
LEAST_EXPECTED = 100.0  # reports a bin; keeps the chi-square law good as far out as 1e-7
SCALAR_DRAWS = 1000
FEWEST_DRAWS, MOST_DRAWS = 1000, 1_000_000_000


@dataclass(frozen=True)
class SamplerTest:
    """Pearson's chi-square of one sampler at one input cell.

    Attributes
    ----------
    sampler : {"compiled", "scalar"}
        :mod:`client_sdk.kernels` or :class:`client_sdk.sampling.Sampler`.
    cell : (int, int)
        Row and column of the input cell.
    draws : int
    statistic : float
        Infinite where a report lies outside the output domain.
    degrees : int
        Bins minus one; output cells with few expected reports share a bin.
    p_value : float
    ok : bool
        Whether the p-value reaches this test's share of the false alarm.
    """

    sampler: str
    cell: Cell
    draws: int
    statistic: float
    degrees: int
    p_value: float
    ok: bool


@dataclass(frozen=True)
class Audit:
    """What was found; ``passed`` is the verdict.

    Attributes
    ----------
    mechanism : str
    epsilon : float
        The privacy loss of one report that is claimed.
    cells, radius, output_size : int
    max_ratio : Fraction
        Largest weight over base weight.
    realised_ratio : Fraction
        Largest ratio of the probabilities of any report under any two input cells.
    bound : Fraction
        At most e^epsilon, and short of it by less than 2^-128 relatively.
    holds : bool
        Whether both ratios are within the bound: the table is epsilon-LDP.
    realised_epsilon : float
        Logarithm of ``realised_ratio``, for display.
    unused_epsilon : float
        epsilon - ln(max_ratio), what rounding to whole weights leaves unspent; negative where
        the claim fails.
    same_total : bool
        Whether the weights of every input cell add up to the table's total.
    as_promised : bool or None
        Whether the weights are those of the mechanism of this name at this epsilon, number of
        cells and radius; None where the name is unknown. Privacy does not depend on it.
    samplers_agree : bool
        Whether both samplers turned the same entropy into the same reports.
    tests : tuple of SamplerTest
    """

    mechanism: str
    epsilon: float
    cells: int
    radius: int
    output_size: int
    max_ratio: Fraction
    realised_ratio: Fraction
    bound: Fraction
    holds: bool
    realised_epsilon: float
    unused_epsilon: float
    same_total: bool
    as_promised: bool | None
    samplers_agree: bool
    tests: tuple[SamplerTest, ...]

    @property
    def is_randomised_response(self) -> bool:
        """Whether the disk is a single cell, so that reports ignore distance."""
        return self.radius == 0

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong; an unknown name of the mechanism is not."""
        exact = self.holds and self.same_total and self.as_promised is not False
        return exact and self.samplers_agree and all(test.ok for test in self.tests)


def audit(source: ResponseTable | Collection, draws: int = 1_000_000) -> Audit:
    """Check the claim of a table exactly and the client's samplers statistically.

    Parameters
    ----------
    source : client_sdk.ResponseTable or client_sdk.Collection
    draws : int in [1,000, 1,000,000,000]
        Reports drawn by the compiled sampler, shared evenly by three input cells: corner, edge
        and centre. A further thousand go through the scalar one.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        An argument breaks its rule.
    client_sdk.CollectionError
        The table is none that any device would draw from: its weights are not one octant of a
        disk, lie below the base weight or above e^20 times it, or exceed 53 bits in all.

    Notes
    -----
    The samplers take entropy from the operating system, so statistics differ from run to run;
    a right sampler fails with probability 1e-6. Memory grows as (cells + 2 radius)^2: some
    300 MB at 1024 cells and epsilon 1.

    Examples
    --------
    >>> from client_sdk import response_table
    >>> found = audit(response_table("dam", epsilon=3.5, cells=15), draws=10_000)
    >>> found.holds, round(found.realised_epsilon, 12), found.unused_epsilon < 1e-9
    (True, 3.5, True)
    """
    table, claim = _claim(source)
    try:
        n = whole_number("draws", draws, FEWEST_DRAWS, MOST_DRAWS)
    except ParameterError as error:
        raise InputError(str(error)) from None
    verify_table(table, Fraction(MAX_EPSILON))
    bound = Fraction(exp_below(claim), ONE)
    largest, realised = table.max_ratio(), _realised_ratio(table)
    tests, agree = _test_samplers(table, n)
    return Audit(
        mechanism=table.mechanism,
        epsilon=float(claim),
        cells=table.cells,
        radius=table.radius,
        output_size=table.output_size,
        max_ratio=largest,
        realised_ratio=realised,
        bound=bound,
        holds=max(largest, realised) <= bound,
        realised_epsilon=log1p(float(realised - 1)),
        unused_epsilon=log1p(float(bound / largest - 1)),
        same_total=_same_total(table),
        as_promised=_as_promised(table, claim),
        samplers_agree=agree,
        tests=tests,
    )


def _claim(source: ResponseTable | Collection) -> tuple[ResponseTable, Fraction]:
    """Return the table and the epsilon that is claimed for it."""
    if isinstance(source, Collection):
        return source.table, Fraction(source.micro_epsilon, MICRO)
    if isinstance(source, ResponseTable):
        return source, written_epsilon("epsilon", source.epsilon)
    raise InputError(f"source must be a ResponseTable or a Collection, got {type(source).__name__}")


def _weights_of_input(table: ResponseTable, row: int, col: int) -> Ints:
    """Return the (d + 2b, d + 2b) weights of the output cells, 0 outside the output domain.

    Entry [r + b, c + b] is output cell (r, c). Cells of the disk count wherever they fall, so a
    disk that left the domain would show in the sum.
    """
    b, side = table.radius, table.cells + 2 * table.radius
    weights = np.zeros((side, side), np.int64)
    for k, out_row in enumerate(table.output_rows):
        margin = table.margin(out_row)
        weights[k, b - margin : b + table.cells + margin] = table.base_weight
    disk = _stamp(table)
    near = weights[row : row + 2 * b + 1, col : col + 2 * b + 1]
    near[disk > 0] = disk[disk > 0]
    return weights


def _stamp(table: ResponseTable) -> Ints:
    """Return the (2b + 1, 2b + 1) weights at [b + drow, b + dcol], 0 outside the disk."""
    b = table.radius
    stamp = np.zeros((2 * b + 1, 2 * b + 1), np.int64)
    for (drow, dcol), weight in table.weights.items():
        stamp[b + drow, b + dcol] = weight
    return stamp


def _realised_ratio(table: ResponseTable) -> Fraction:
    """Return the maximum over outputs y of max_x w(y - x) / min_x w(y - x), exactly.

    The offsets y - x of output y fill a window of d x d offsets, so both are sliding-window
    filters over the weights by offset: offset o stands at index o + b, base weight outside the
    disk. The filters compute in float64, which holds whole numbers below 2^53.
    """
    b, d = table.radius, table.cells
    weights = np.full((d + 2 * b, d + 2 * b), table.base_weight, np.int64)
    disk = _stamp(table)
    near = weights[: 2 * b + 1, : 2 * b + 1]
    near[disk > 0] = disk[disk > 0]
    # origin: the window of index k is [k - d + 1, k]. Beyond the array all is base weight.
    window = {"size": d, "origin": (d - 1) // 2, "mode": "constant", "cval": table.base_weight}
    highest, lowest = maximum_filter(weights, **window), minimum_filter(weights, **window)
    domain = _weights_of_input(table, 0, 0) > 0
    pairs = np.unique(np.column_stack([highest[domain], lowest[domain]]), axis=0)
    return max(Fraction(int(high), int(low)) for high, low in pairs)


def _same_total(table: ResponseTable) -> bool:
    """Tell whether every input cell's weights add up to the table's total.

    Output row r reaches margin(r) cells beyond the square on both sides. If that is at least the
    half width of every disk row that falls on it, no disk leaves the domain, for any column; then
    the sum of an input is the base weight times N plus the disk's excess, the same for all.
    """
    disk = _stamp(table)
    width = (disk > 0).sum(axis=1) // 2
    inside = all(
        table.margin(row + drow) >= width[table.radius + drow]
        for row in range(table.cells)
        for drow in range(-table.radius, table.radius + 1)
    )
    excess = sum(int(w) - table.base_weight for w in disk[disk > 0])
    size = sum(table.cells + 2 * table.margin(row) for row in table.output_rows)
    return inside and size * table.base_weight + excess == table.total_weight


def _as_promised(table: ResponseTable, claim: Fraction) -> bool | None:
    if table.mechanism not in MECHANISMS:
        return None
    # A float epsilon can be read in two ways (client_sdk.validate); a table keeps the float.
    for reading in {claim, exact_epsilon(table.epsilon)}:
        try:
            made = response_table(table.mechanism, reading, table.cells, table.radius)
        except ParameterError:  # no table of this name has such a radius
            continue
        if (made.base_weight, made.octant) == (table.base_weight, table.octant):
            return True
    return False


def _test_samplers(table: ResponseTable, draws: int) -> tuple[tuple[SamplerTest, ...], bool]:
    """Test both samplers; also tell whether the same entropy gave both the same reports."""
    middle = table.cells // 2
    cells = sorted({(0, 0), (0, middle), (middle, middle)})
    share = FALSE_ALARM / (len(cells) + 1)
    tests = []
    for row, col in cells:
        n = draws // len(cells)
        out = kernels.randomize_many(table, np.full(n, row), np.full(n, col))
        tests.append(_chi_square(table, "compiled", (row, col), out, share))

    # More than half of all draws are accepted: four times the bytes cannot run out in practice.
    data = entropy.system(4 * SCALAR_DRAWS * entropy.DRAW_BYTES)
    sampler, scalar = Sampler(table), BytesIO(data)
    drawn = [sampler.draw(middle, middle, scalar.read) for _ in range(SCALAR_DRAWS)]
    out = tuple(np.array(drawn, np.int64).T)
    tests.append(_chi_square(table, "scalar", (middle, middle), out, share))
    inputs = np.full(SCALAR_DRAWS, middle)
    compiled = kernels.draw_many(table, inputs, inputs, BytesIO(data).read)
    return tuple(tests), all(map(np.array_equal, out, compiled))


def _chi_square(
    table: ResponseTable, sampler: str, cell: Cell, out: tuple[Ints, ...], share: float
) -> SamplerTest:
    """Compare reports of one input cell with the exact probabilities."""
    weights = _weights_of_input(table, *cell)
    side, n = len(weights), len(out[0])
    rows, cols = out[0] + table.radius, out[1] + table.radius
    inside = (rows >= 0) & (rows < side) & (cols >= 0) & (cols < side)
    counts = np.bincount(rows[inside] * side + cols[inside], minlength=side * side)
    domain = weights.ravel() > 0
    if counts[domain].sum() < n:
        return SamplerTest(sampler, cell, n, np.inf, 0, 0.0, ok=False)
    expected = weights.ravel()[domain] * (n / table.total_weight)
    bins = _bins(expected)
    seen, due = np.bincount(bins, counts[domain]), np.bincount(bins, expected)
    statistic = float(((seen - due) ** 2 / due).sum())
    degrees = len(due) - 1
    p_value = float(chi2.sf(statistic, degrees)) if degrees else 1.0
    return SamplerTest(sampler, cell, n, statistic, degrees, p_value, ok=p_value >= share)


def _bins(expected: NDArray[np.float64]) -> Ints:
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
    pools = max(int(small[-1] / (2 * LEAST_EXPECTED)), 1)
    if small[-1] < LEAST_EXPECTED and first:
        bins[~large] = first - 1
        return bins
    before = small - expected[~large]
    bins[~large] = first + np.minimum((before / small[-1] * pools).astype(np.int64), pools - 1)
    return bins
