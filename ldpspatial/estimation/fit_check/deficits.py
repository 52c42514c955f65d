"""Whether fewer reports came than people can be too few for. Arrays only, nothing is checked.

Least squares gives a density of any sign. Where it is below 0 by more than noise, no density gives
the counts. Nobody knows which cells are empty, so both laws below are bounds: people in a cell make
either statistic smaller.
"""

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.fit_check.tails import gamma_tail, least_of_many, upper_tail

Array = NDArray[np.float64]

# Cells below so many standard deviations are asked, and their deviations are taken to this power. A
# high limit asks nearly all empty cells, and some with a few people, who hide what is missing
# elsewhere; a low one asks fewer of either. Squares see a deficit in few cells.
LOOKS = ((3.0, 1), (1.0, 1), (0.0, 1), (0.0, 2))
CAP = 2.0  # standard deviations of a cell that count


def deficit(here: Array, noise: Array) -> float:
    """Return a p-value for cells below 0 that hardly depend on one another.

    Given that it is below a limit, a cell with people has a stochastically larger value than an
    empty one. So the sum over the cells below it is larger than if all of these were empty, and the
    law of that sum is the bound. The p-value is that of the clearest of several sums.

    Parameters
    ----------
    here : (cells,) array
        The density in standard deviations of each cell.
    noise : (cells, runs) array
        The same of simulated collections, less their means.
    """
    values = np.column_stack([here, noise])
    looks = [(limit, power) for limit, power in LOOKS if here.min() < limit]
    found = [_lacking(values, noise, limit, power) for limit, power in looks]
    if not found:
        return 1.0
    deviations = np.array([deviation for deviation, _ in found])
    skewness = np.array([skew for _, skew in found])
    played = deviations[:, 1:]
    # More than 1 where cells depend on one another after all.
    spread = np.maximum(played.std(axis=1), 1.0)
    p_values = upper_tail(deviations[:, 0] / spread, skewness)
    return least_of_many(p_values, np.atleast_2d(np.cov(played)))


def _lacking(values: Array, noise: Array, limit: float, power: int) -> tuple[Array, float]:
    """Return by how many standard deviations each column lacks people, and the law's skewness."""
    empty = _told(noise[noise < limit], power)
    spread = float(empty.std())
    is_asked = values < limit
    number = is_asked.sum(axis=0)
    excess = (_told(values, power) * is_asked).sum(axis=0) - number * empty.mean()
    deviations = excess / (spread * np.sqrt(np.maximum(number, 1)))
    skewness = ((empty - empty.mean()) ** 3).mean() / spread**3
    return deviations, float(skewness / np.sqrt(number[0]))


def _told(values: Array, power: int) -> Array:
    """Return what a cell tells of a deficit: more where it is farther below 0."""
    below = -np.minimum(values, CAP)
    return below if power == 1 else below**power


def holes(here: Array, noise: Array) -> float:
    """Return a p-value for cells far below 0, be they few: of the sum of their squares.

    Parameters
    ----------
    here, noise : arrays
        As in `deficit`, of cells that may depend on one another.
    """
    squares = (np.minimum(noise, 0) ** 2).sum(axis=0)
    statistic = float((np.minimum(here, 0) ** 2).sum())
    variance = squares.var(ddof=1) * (1 + 1 / len(squares))
    return gamma_tail(statistic, float(squares.mean()), float(variance))
