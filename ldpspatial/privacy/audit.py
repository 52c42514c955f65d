"""Audit of a response table: whether it is as private as it claims, and the samplers obey it.

Exact part: the definition of epsilon-LDP is evaluated on the whole numbers that devices draw from.
For every output cell y the largest and the smallest weight over *all* input cells are compared;
as all inputs share one total, their ratio is that of the probabilities. e^epsilon is replaced by
a rational bound from below, so no rounding can turn a No into a Yes.

Statistical part: reports drawn by the client's own samplers, with the operating system's entropy,
against the exact probabilities (:mod:`ldpspatial.privacy.sampler_law`). It finds samplers that do
not do what the table says, as far as the number of draws can show it.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import log1p

import numpy as np
from scipy.ndimage import maximum_filter, minimum_filter

from client_sdk import Collection, ParameterError, ResponseTable, response_table
from client_sdk.shared import MECHANISMS, ONE, exp_below, verify_table
from ldpspatial.errors import InputError
from ldpspatial.privacy.sampler_law import SamplerTest, check_samplers, stamp, weights_of_input
from ldpspatial.validate import (
    MAX_EPSILON,
    MICRO,
    exact_epsilon,
    input_errors,
    whole_number,
    written_epsilon,
)

FEWEST_DRAWS, MOST_DRAWS = 1000, 100_000_000


@dataclass(frozen=True)
class Audit:
    """What was found; ``passed`` is the verdict.

    Attributes
    ----------
    mechanism : str
    epsilon : float
        The privacy loss of one report that is claimed.
    cells, radius, output_size : int
    squared_radius : int or None
        Of a plain disk, whose radius need not be whole; None for other mechanisms.
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
    squared_radius: int | None
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
        """Whether nothing is wrong; an unknown mechanism name does not count."""
        exact = self.holds and self.same_total and self.as_promised is not False
        return exact and self.samplers_agree and all(test.ok for test in self.tests)


def audit(source: ResponseTable | Collection, draws: int = 1_000_000) -> Audit:
    """Check the claim of a table exactly and the client's samplers statistically.

    Parameters
    ----------
    source : client_sdk.ResponseTable or client_sdk.Collection
    draws : int in [1,000, 100,000,000]
        Reports drawn by the compiled sampler, shared evenly by three input cells: corner, edge
        and centre. A further thousand go through the scalar one.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        An argument breaks its rule, or the table is not one that a device would draw from: its
        weights are not one octant of a disk, lie below the base weight or above e^20 times it, or
        exceed 53 bits in all.

    Notes
    -----
    The samplers take entropy from the operating system, so statistics differ from run to run;
    a correct sampler fails with probability 1e-6. Time and memory grow as
    (cells + 2 radius)^2: half a minute and 1.3 GB at 1024 cells and epsilon 1.

    Examples
    --------
    >>> from client_sdk import response_table
    >>> found = audit(response_table("dam", epsilon=3.5, cells=15), draws=10_000)
    >>> found.holds, round(found.realised_epsilon, 12), found.unused_epsilon < 1e-9
    (True, 3.5, True)
    """
    table, claims = _table_and_claims(source)
    n = whole_number("draws", draws, FEWEST_DRAWS, MOST_DRAWS)
    with input_errors():
        verify_table(table, Fraction(MAX_EPSILON))
    bound = Fraction(exp_below(claims[0]), ONE)
    largest = table.max_ratio()
    realised = _realised_ratio(table)
    tests, agree = check_samplers(table, n)
    return Audit(
        mechanism=table.mechanism,
        epsilon=float(claims[0]),
        cells=table.cells,
        radius=table.radius,
        output_size=table.output_size,
        squared_radius=table.squared_radius if table.mechanism == "disk" else None,
        max_ratio=largest,
        realised_ratio=realised,
        bound=bound,
        holds=max(largest, realised) <= bound,
        # ratio - 1 is exact: log1p keeps the digits that float(ratio) would lose near epsilon 0.
        realised_epsilon=log1p(float(realised - 1)),
        unused_epsilon=log1p(float(bound / largest - 1)),
        same_total=_same_total(table),
        as_promised=_as_promised(table, claims),
        samplers_agree=agree,
        tests=tests,
    )


def _table_and_claims(
    source: ResponseTable | Collection,
) -> tuple[ResponseTable, tuple[Fraction, ...]]:
    """Return the table and the readings of the epsilon claimed for it, the largest first."""
    if isinstance(source, Collection):
        return source.table, (Fraction(source.micro_epsilon, MICRO),)
    if isinstance(source, ResponseTable):
        # A table keeps its epsilon as a float, which can be read in two ways (exact_epsilon).
        return source, (
            written_epsilon("epsilon", source.epsilon),
            exact_epsilon(source.epsilon),
        )
    raise InputError(f"source must be a ResponseTable or a Collection, got {type(source).__name__}")


def _realised_ratio(table: ResponseTable) -> Fraction:
    """Return the maximum over outputs y of max_x w(y - x) / min_x w(y - x), exactly.

    The offsets y - x of output y fill a window of d x d offsets, so both are sliding-window
    filters over the weights by offset: offset o stands at index o + b, base weight outside the
    disk. The filters compute in float64, which holds whole numbers below 2^53.
    """
    b = table.radius
    d = table.cells
    weights = np.full((d + 2 * b, d + 2 * b), table.base_weight, np.int64)
    disk = stamp(table)
    near = weights[: 2 * b + 1, : 2 * b + 1]  # a view: offsets -b..b of both axes
    near[disk > 0] = disk[disk > 0]
    # origin: the window of index k is [k - d + 1, k]. Beyond the array all is base weight.
    window = {"size": d, "origin": (d - 1) // 2, "mode": "constant", "cval": table.base_weight}
    highest = maximum_filter(weights, **window)
    lowest = minimum_filter(weights, **window)
    # Elsewhere in the square array the windows hold weights too, but nobody can report such a cell.
    domain = weights_of_input(table, 0, 0) > 0
    # Fractions are slow: one for each distinct pair of weights, not one for each output cell.
    pairs = np.unique(np.column_stack([highest[domain], lowest[domain]]), axis=0)
    return max(Fraction(int(high), int(low)) for high, low in pairs)


def _same_total(table: ResponseTable) -> bool:
    """Tell whether every input cell's weights add up to the table's total.

    Output row r reaches margin(r) cells beyond the square on both sides. If that is at least the
    half width of every disk row that falls on it, no disk leaves the domain, for any column; then
    the sum of an input is the base weight times N plus the disk's excess, the same for all.
    """
    disk = stamp(table)
    width = (disk > 0).sum(axis=1) // 2  # a row holds 2 h + 1 cells
    inside = all(
        table.margin(row + drow) >= width[table.radius + drow]
        for row in range(table.cells)
        for drow in range(-table.radius, table.radius + 1)
    )
    excess = int((disk[disk > 0] - table.base_weight).sum())
    size = sum(table.cells + 2 * table.margin(row) for row in table.output_rows)
    return inside and size * table.base_weight + excess == table.total_weight


def _as_promised(table: ResponseTable, claims: tuple[Fraction, ...]) -> bool | None:
    if table.mechanism not in MECHANISMS:
        return None
    size = {"radius": table.radius}
    if table.mechanism == "disk":  # a circle through the farthest cell holds the same cells
        size = {"squared_radius": table.squared_radius}
    for epsilon in claims:
        try:
            made = response_table(table.mechanism, epsilon, table.cells, **size)
        except ParameterError:  # no table of this name has such a radius
            continue
        if (made.base_weight, made.octant) == (table.base_weight, table.octant):
            return True
    return False
