"""Whether a share is told by the field or by the reports alone.

A field adds to the reports what its prior says. Where reports are few, intervals come out a third
as wide. Where they are many, it adds next to nothing but errors of its own: patches that reports
tell apart by now still count as open, and a map unlike those that its prior expects comes out
narrow and wrong. The reports alone (:mod:`.fisher`) need no prior and hold on every map. So "auto"

- leaves all shares to the field where its intervals of 4 and of 16 blocks of the map are less than
  .6 times as wide, or .3 times where the reports contradict it (:mod:`.doubt`);
- asks the reports alone for all shares, where the field's intervals of cells are more than .6 times
  as wide, or where those of the reports still tell how many people a cell has and are at most
  five times as wide as the field's, or ten times where they contradict it;
- else leaves cells to the field, and of each region asks the reports alone if the field's interval
  is more than .6 or .3 times as wide.

The first is told by conjugate gradients, so that the inverse of the information is found only where
it is needed. The numbers were chosen on four squares of two cities, with a look at maps unlike any
city, and hold on others (docs/experiments/region-intervals.md).
"""

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.estimation.field import Field
from ldpspatial.estimation.field.posterior import Posterior
from ldpspatial.estimation.intervals.doubt import contradicts, divisions, telling
from ldpspatial.estimation.intervals.fisher import FISHER_CELLS, reports_alone
from ldpspatial.estimation.intervals.interval import Uncertainty, scaled_bounds, standard_errors
from ldpspatial.estimation.intervals.posterior import posterior, samples_of
from ldpspatial.estimation.result import Estimate
from ldpspatial.estimation.robust import Cleaned

Array = NDArray[np.float64]

PART = 0.6  # of the width by the reports alone, above which the field is not taken
PART_CONTRADICTED = 0.3  # the same, where the reports contradict the field
MOST_WIDENED = 5.0  # cells' widths by the reports alone, over the field's
MOST_WIDENED_CONTRADICTED = 10.0  # the same, where the reports contradict the field
LEVEL = 0.95  # at which widths are held against each other, so that all levels have one method
PARTS = (2, 4)  # of a side
BOTH = "posterior or fisher"  # the field for cells, and for each region what is said above


def narrowest(estimate: Estimate, level: float) -> Uncertainty:
    """Return intervals of a field, or of the reports alone where these are to be asked.

    Shares are the means of the samples in either case, moved into intervals of the reports alone
    where they lie outside: there the reports know better. Errors are those of :func:`posterior`.
    """
    sampled = replace(estimate, samples=samples_of(estimate))
    field = posterior(sampled, level)
    if max(field.density.shape) > FISHER_CELLS or _is_of_others(estimate, sampled.details):
        return field
    known = sampled.estimator
    inside = None
    if isinstance(known, Field) and known.support is not None:
        inside = np.asarray(known.support) > 0
    centred = replace(sampled, density=field.density)  # whichever rule made the map
    sure = field if level == LEVEL else posterior(sampled, LEVEL)
    contradicted, least = _told(centred, inside)
    part = PART_CONTRADICTED if contradicted else PART
    if not sum(map(sure.width_of, _blocks(field.density.shape))) >= part * least:
        return field
    try:
        alone = reports_alone(centred, inside)
    except InputError:  # the counts do not determine every cell
        return field
    reports, surely = alone.at(level), alone.at(LEVEL)
    open_ = 2 * standard_errors(LEVEL) * np.sqrt(alone.variance).sum()
    if _cells_alone(surely.width.sum(), sure.width.sum(), open_, contradicted):
        return replace(reports, moved=True)

    def of_unit(unit: Array) -> tuple[float, float]:
        one = min((unit > 0).sum(), (unit < 1).sum()) == 1  # as among the intervals of cells
        alone = not one and sure.width_of(unit) >= part * surely.width_of(unit)
        return (reports if alone else field).bounds(unit)

    return replace(field, method=BOTH, _bounds=partial(scaled_bounds, of_unit=of_unit), moved=True)


def _cells_alone(reports: float, field: float, open_: float, contradicted: bool) -> bool:
    """Return whether the reports alone are asked for all shares, from widths summed over cells.

    ``open_``: of the reports' intervals, not cut at 0 and without what nobody's report adds. With
    2 an interval is twice as wide as a cell's share in the mean, and hardly tells it.
    """
    most = MOST_WIDENED_CONTRADICTED if contradicted else MOST_WIDENED
    return field >= PART * reports or (open_ <= 2 and reports <= most * field)


def _told(estimate: Estimate, inside: NDArray[np.bool_] | None) -> tuple[bool, float]:
    """Return whether the reports contradict the field, and the least width that they give blocks.

    The width is summed over the blocks.
    """
    blocks = _blocks(estimate.density.shape)
    both = divisions(estimate.density, inside)
    told = telling(estimate, np.concatenate([*both, blocks]), inside)
    width = 2 * standard_errors(LEVEL) * float(told.errors[-len(blocks) :].sum())
    return contradicts(told, both, estimate), width


def _is_of_others(estimate: Estimate, told: object) -> bool:
    """Return whether a field is not of all people whose reports were counted.

    They are those in an area, or some were taken out as forged, or are outside of where people can
    be, as it was told.
    """
    if estimate.of_all < 1 or (isinstance(told, Cleaned) and told.taken_out > 0):
        return True
    return isinstance(told, Posterior) and told.outside > 0


def _blocks(shape: tuple[int, ...]) -> Array:
    """Return (B, d, d) masks of blocks of the map."""
    rows, cols = np.indices(shape)
    found = []
    for parts in PARTS:
        block_of = rows * parts // shape[0] * parts + cols * parts // shape[1]
        found += [block_of == block for block in np.unique(block_of)]
    return np.array(found, np.float64)
