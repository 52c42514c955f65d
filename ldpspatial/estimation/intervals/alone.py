"""Whether a share is told by the field or by the reports alone.

A field adds to the reports what its prior says. Where reports are few, intervals come out a third
as wide. Where they are many, it adds next to nothing but errors of its own: patches that reports
tell apart by now still count as open, and a map unlike those that its prior expects comes out
narrow and wrong. The reports alone (:mod:`.fisher`) need no prior and hold on every map. So "auto"

- leaves all shares to the field where its intervals of 4 and of 16 blocks of the map are less than
  .6 times as wide, or .3 times where the reports contradict it (:mod:`.doubt`);
- asks the reports alone for all shares, where the field's intervals of cells are more than .6 times
  as wide, or where those of the reports still tell how many people a cell has and are at most
  five times as wide as the field's, ten times where they contradict it, or any where the field's
  chains do not agree;
- else leaves cells to the field, and of each region asks the reports alone if the field's interval
  is more than .6 or .3 times as wide.

Widths of the field's are held against theirs without :mod:`.crowds`, which are nothing that it is
sure of. The first is told by conjugate gradients, and of some cells how wide the reports leave
them, so that the inverse of the information is found only where it is needed. The numbers were
chosen on four squares of two cities, with a look at maps unlike any city, and hold on others
(docs/experiments/region-intervals.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.estimation.field.posterior import UNTRUSTED, Posterior
from ldpspatial.estimation.intervals.doubt import contradicts, divisions, telling
from ldpspatial.estimation.intervals.fisher import (
    FISHER_CELLS,
    ReportsAlone,
    is_of_others,
    possible_cells,
    reports_alone,
)
from ldpspatial.estimation.intervals.interval import (
    Uncertainty,
    scaled_bounds,
    standard_errors,
    unit_of,
)
from ldpspatial.estimation.intervals.posterior import posterior, samples_of
from ldpspatial.estimation.result import Estimate
from ldpspatial.places.regions import CUT

Array = NDArray[np.float64]

PART = 0.6  # of the width by the reports alone, above which the field is not taken
PART_CONTRADICTED = 0.3  # the same, where the reports contradict the field
MOST_WIDENED = 5.0  # cells' widths by the reports alone, over the field's
MOST_WIDENED_CONTRADICTED = 10.0  # the same, where the reports contradict the field
LEVEL = 0.95  # at which widths are held against each other, so that all levels have one method
PARTS = (2, 4)  # of a side
SOME = 16  # cells that are asked for how wide all are
HARDLY = 2.0  # widths of cells, summed over all: twice as wide as a cell's share in the mean
BOTH = "posterior or fisher"


def narrowest(estimate: Estimate, level: float) -> Uncertainty:
    """Return intervals of a field, or of the reports alone where these are to be asked.

    Shares are the means of the samples in either case, moved into intervals of the reports alone
    where they lie outside: there the reports know better. Where a field does not take the channel
    they alone are asked, about the estimate's own shares. Errors are those of :func:`posterior`.
    """
    try:
        samples = samples_of(estimate)
    except InputError as no_field:
        try:
            return reports_alone(estimate).at(level)
        except InputError:
            raise no_field from None
    sampled = replace(estimate, samples=samples)
    field = posterior(sampled, level)
    if max(field.density.shape) > FISHER_CELLS or is_of_others(estimate):
        return field
    centred = replace(sampled, density=field.density)  # whichever rule made the map
    inside = possible_cells(sampled)
    look = _look(centred, inside)
    doubted = look.contradicted or is_untrusted(sampled)
    part = PART_CONTRADICTED if doubted else PART
    sure = posterior(sampled, LEVEL, crowded=False)
    if not sum(map(sure.width_of, _blocks(field.density.shape))) >= part * look.blocks:
        return field
    both = _Both(field, sure, partial(reports_alone, centred, inside), part)
    widths = float(sure.width.sum())
    if not _cells_out_of_question(look.cells, widths):
        if both.reports is None:
            return field
        cells = float(both.reports.at(LEVEL).width.sum())
        most = MOST_WIDENED_CONTRADICTED if doubted else MOST_WIDENED
        if is_untrusted(sampled):  # whatever the reports say of cells is better
            most = np.inf
        if _cells_alone(cells, widths, both.reports.open_at(LEVEL), most):
            return replace(both.reports.at(level), moved=True)
    bounds = partial(scaled_bounds, of_unit=both.bounds)
    return replace(field, _bounds=bounds, _method_of=both.method_of, moved=True, of_regions=BOTH)


@dataclass(frozen=True, eq=False)
class _Both:
    """Intervals of regions by a field or by the reports alone.

    Attributes
    ----------
    field, sure : Uncertainty
        The field's, and those at LEVEL without the crowds that no report shows: what it is sure of
        by itself is held against the reports.
    ask : callable
        Returns what the reports tell; seconds on 64 cells a side.
    part : float
        Of the width by the reports alone, above which the field is not taken.
    """

    field: Uncertainty
    sure: Uncertainty
    ask: Callable[[], ReportsAlone]
    part: float

    @cached_property
    def reports(self) -> ReportsAlone | None:
        """What the reports tell, found when it is first asked for."""
        try:
            return self.ask()
        except InputError:  # the counts do not determine every cell
            return None

    def bounds(self, unit: Array) -> tuple[float, float]:
        """Return the bounds of a region with weights that reach from 0 to 1."""
        return self._teller(unit).bounds(unit)

    def method_of(self, weights: Array) -> str:
        """Return which method tells a region."""
        if weights.min() == weights.max():  # nowhere, or everywhere: nobody needs to be asked
            return self.field.method
        return self._teller(unit_of(weights)).method

    def _teller(self, unit: Array) -> Uncertainty:
        # Of one cell, or all but one, as among the intervals of cells; files round their edges.
        one = min((unit > CUT).sum(), (unit < 1 - CUT).sum()) == 1
        if one or self.reports is None:
            return self.field
        if self.sure.width_of(unit) < self.part * self.reports.at(LEVEL).width_of(unit):
            return self.field
        return self.reports.at(self.field.level)


def is_untrusted(estimate: Estimate) -> bool:
    """Return whether the chains of a field did not agree."""
    return isinstance(estimate.details, Posterior) and estimate.details.verdict == UNTRUSTED


def _cells_alone(reports: float, field: float, open_: float, most: float) -> bool:
    """Return whether the reports alone are asked for all shares, from widths summed over cells.

    ``open_``: of the reports' intervals, not cut at 0 and without what nobody's report adds.
    ``most``: how many times as wide as the field's they may be.
    """
    return field >= PART * reports or (open_ <= HARDLY and reports <= most * field)


def _cells_out_of_question(open_: float, field: float) -> bool:
    """Return whether the reports alone are not asked for cells, from what some cells say of all.

    Cut at 0 an interval keeps at least half of its width. Beyond that, a factor of two is left for
    cells unlike those that were asked.
    """
    return open_ > 2 * max(HARDLY, 2 * field / PART)


@dataclass(frozen=True)
class _Look:
    """What conjugate gradients tell of the reports alone.

    Attributes
    ----------
    contradicted : bool
        Whether they contradict the field.
    blocks : float
        Widths of their intervals of blocks, summed; at least.
    cells : float
        About those of the cells, not cut at 0.
    """

    contradicted: bool
    blocks: float
    cells: float


def _look(estimate: Estimate, inside: NDArray[np.bool_] | None) -> _Look:
    shape = estimate.density.shape
    blocks = _blocks(shape)
    both = divisions(estimate.density, inside)
    cells = np.arange(estimate.density.size) if inside is None else np.flatnonzero(inside)
    some = np.unique(cells[np.linspace(0, len(cells) - 1, SOME).astype(int)])
    singles = np.zeros((len(some), estimate.density.size))
    singles[np.arange(len(some)), some] = 1.0
    sets = np.concatenate([*both, blocks, singles.reshape(-1, *shape)])
    told = telling(estimate, sets, inside)
    widths = 2 * standard_errors(LEVEL) * told.errors
    first = len(sets) - len(some)
    return _Look(
        contradicts(told, both, estimate),
        float(widths[first - len(blocks) : first].sum()),
        float(widths[first:].mean()) * len(cells),
    )


def _blocks(shape: tuple[int, ...]) -> Array:
    """Return (B, d, d) masks of blocks of the map."""
    rows, cols = np.indices(shape)
    found = []
    for parts in PARTS:
        block_of = rows * parts // shape[0] * parts + cols * parts // shape[1]
        found += [block_of == block for block in np.unique(block_of)]
    return np.array(found, np.float64)
