"""Between which bounds the error of a map must lie, by ``plan``, before anything is collected.

``plan`` plays R collections of as many reports on the law of the city and tells the mean of W2
between true and estimated map, and its standard error e. If the W2 of a collection is normal, that
of one more lies within mean ± t e sqrt(R + 1), with t of Student's law of R - 1 degrees of freedom:
the prediction interval. Over 1,000 collections of 50,200 reports W2 had a skewness of 0.005, an
excess kurtosis of 0.01 and no value farther than 3.1 standard deviations from the mean.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.stats import t

from experiments.end_to_end.people import CITY
from ldpspatial.planning.plan import Progress, plan

FALSE_ALARM = 1e-6
REPEATS = 24


@dataclass(frozen=True)
class Foretold:
    """What ``plan`` says of W2 between the true and the estimated map, in metres.

    Attributes
    ----------
    mean : float
    lowest, highest : float
        Another collection lies outside with probability ``FALSE_ALARM``.
    """

    mean: float
    lowest: float
    highest: float

    def holds(self, w2: float) -> bool:
        """Tell whether an error is as foretold."""
        return self.lowest <= w2 <= self.highest


def foretold(
    cells: int,
    epsilon: float,
    reports: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> Foretold:
    """Ask ``plan`` about collections in the city."""
    maps = {CITY.name: CITY}
    # The mechanism that a document has by itself, as that of the command does.
    found = plan(CITY.side, epsilon, reports, rng, [cells], "dam", maps, REPEATS, progress)
    row = found.rows[0]
    quantile = float(t.ppf(1 - FALSE_ALARM / 2, REPEATS - 1))
    reach = quantile * row.standard_error_m * sqrt(REPEATS + 1)
    return Foretold(row.w2_m, row.w2_m - reach, row.w2_m + reach)
