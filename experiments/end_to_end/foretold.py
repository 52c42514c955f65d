"""Between which bounds the error of a map must lie, before anything is collected.

As ``plan`` does for its table, R collections of as many reports are played on the law of the city:
the mean of W2 between true and estimated map, and its standard error e. If the W2 of a collection
is normal, that of one more lies within mean ± t e sqrt(R + 1), with t of Student's law of R - 1
degrees of freedom: the prediction interval. Over 1,000 collections of 50,200 reports W2 had a
skewness of 0.005, an excess kurtosis of 0.01 and no value farther than 3.1 standard deviations from
the mean.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.stats import t

from client_sdk import response_table
from experiments.end_to_end.people import CITY
from ldpspatial.planning.plan import Progress
from ldpspatial.planning.rehearsal import People, rehearse

FALSE_ALARM = 1e-6
REPEATS = 24


@dataclass(frozen=True)
class Foretold:
    """What is foretold of W2 between the true and the estimated map, in metres.

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
    """Play collections in the city by the mechanism that a document has by itself."""
    table = response_table("dam", epsilon, cells)
    errors = []
    for played in range(1, REPEATS + 1):
        people = People.on_grid(CITY, CITY.draw(reports, rng), cells)
        errors.append(CITY.side * rehearse(people, table, rng).w2)
        if progress is not None:
            progress(played, REPEATS)
    mean = float(np.mean(errors))
    quantile = float(t.ppf(1 - FALSE_ALARM / 2, REPEATS - 1))
    reach = quantile * float(np.std(errors, ddof=1)) * sqrt(1 + 1 / REPEATS)
    return Foretold(mean, mean - reach, mean + reach)
