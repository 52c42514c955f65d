"""Whether reports alone tell shares about as well as a field does: then they alone are asked.

A field adds to the reports what its prior says. Where reports are few, intervals come out a third
as wide. Where they are very many, it adds next to nothing but errors of its own: its maps leave a
few people in each of a thousand empty cells, who are missing elsewhere, and its chains hardly ever
lose them; and patches that reports tell apart by now still count as open. So from 1,000,000 reports
on "auto" takes the field only as long as its intervals are at most .6 times as wide as those of the
reports alone (:mod:`.fisher`), which need no prior and no chains, and these from there on. It stays
with the field where those of single cells would be five times as wide, and say nothing of a cell.

Widths are summed over 4 and over 16 blocks of the map. Of a block w the reports alone leave open
w I^-1 w, I = M^T diag(1/g) M, and each step of conjugate gradients has a lower bound of it. So
where the field is the narrower one, I is not inverted. The .6 was found on four squares of two
cities, and holds on five others (docs/experiments/region-intervals.md).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.protocol import operators
from ldpspatial.errors import InputError
from ldpspatial.estimation.field import Field
from ldpspatial.estimation.field.optimise import conjugate_gradients
from ldpspatial.estimation.field.posterior import Posterior
from ldpspatial.estimation.intervals.fisher import FISHER_CELLS, fisher
from ldpspatial.estimation.intervals.interval import Uncertainty, standard_errors
from ldpspatial.estimation.intervals.posterior import posterior, samples_of
from ldpspatial.estimation.result import Estimate
from ldpspatial.estimation.robust import Cleaned

Array = NDArray[np.float64]

FEWEST = 1_000_000  # reports; with fewer the field was hardly seen to miss more than it may
MOST_WIDTH = 0.6  # of the field's intervals, over that of the reports alone
MOST_WIDENED = 5.0  # mean width of cells by the reports alone, over that by the field
LEVEL = 0.95  # at which widths are held against each other, so that all levels have one method
PARTS = (2, 4)  # of a side
STEPS = 100  # of conjugate gradients
SOLVED = 0.01  # their residual
LEAST = 1e-300


def narrowest(estimate: Estimate, level: float) -> Uncertainty:
    """Return intervals of a field, or of the reports alone where these tell about as much.

    Shares are the means of the samples in either case, moved into intervals of the reports alone
    where they lie outside: there the reports know better. Errors are those of :func:`posterior`.
    """
    sampled = replace(estimate, samples=samples_of(estimate))
    field = posterior(sampled, level)
    if estimate.n < FEWEST or max(field.density.shape) > FISHER_CELLS:
        return field
    if estimate.of_all < 1 or _is_of_others(sampled.details):
        return field
    known = sampled.estimator
    inside = None
    if isinstance(known, Field) and known.support is not None:
        inside = np.asarray(known.support) > 0
    blocks = _blocks(field.density.shape)
    sure = field if level == LEVEL else posterior(sampled, LEVEL)
    width = sum(upper - lower for lower, upper in map(sure.bounds, blocks))
    centred = replace(sampled, density=field.density)  # whichever rule made the map
    if not width >= MOST_WIDTH * _least_width(centred, blocks, inside):
        return field
    try:
        alone = fisher(centred, level, inside)
    except InputError:  # the counts do not determine every cell
        return field
    if alone.width.sum() > MOST_WIDENED * field.width.sum():
        return field
    return replace(alone, moved=True)


def _is_of_others(told: object) -> bool:
    """Return whether a field is not of all people whose reports were counted.

    Some were taken out as forged, or are outside of where people can be, as it was told.
    """
    if isinstance(told, Cleaned) and told.taken_out > 0:
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


def _least_width(estimate: Estimate, blocks: Array, inside: NDArray[np.bool_] | None) -> float:
    """Return the sum of widths that intervals of the blocks from reports alone have at least."""
    channel = estimate.channel
    forward, adjoint = operators(channel)
    where = np.ones(blocks.shape[1:]) if inside is None else inside.astype(np.float64)
    law = np.maximum(forward(estimate.density), LEAST)
    precision = np.where(channel.support, 1 / law, 0.0)
    held = (blocks * where).reshape(len(blocks), -1)

    def information(steps: Array) -> Array:
        maps = steps.reshape(blocks.shape)
        return np.array([(where * adjoint(precision * forward(each))).ravel() for each in maps])

    scales = np.maximum(adjoint(precision), LEAST).reshape(1, -1)
    with np.errstate(over="ignore", invalid="ignore"):  # where the counts tell nothing of a block
        solved = conjugate_gradients(information, held, scales, SOLVED, STEPS)
        shares = held @ estimate.density.ravel()
        variances = np.maximum((held * solved).sum(1) - shares**2, 0.0) / estimate.n
    return 2 * standard_errors(LEVEL) * float(np.sqrt(variances).sum())
