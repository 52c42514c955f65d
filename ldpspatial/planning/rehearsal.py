"""One collection simulated before it starts, and how far its map is from the people.

Let P be the people (n points of the square), c(x) the centre of the cell of point x, T the image
of P under c (the true cell map) and E the estimated cell map, both on cell centres. The error that
matters is W2(P, E): what it takes to carry the map to the people. W2(T, E) alone would favour
coarse grids: on a 1 x 1 grid it is 0. Three lengths, all measured on the people drawn, bound it:

- ``w2``, W2(T, E), exact;
- ``resolution``, the root mean square of |x - c(x)| over the people. It equals W2(P, T), and no map
  on cell centres is nearer to P, because c(x) is the centre nearest to x. People spread evenly in
  cells of side a give a / sqrt(6);
- ``drift``, the root mean square over the people of |d(c)|, d(c) the mean of x - c(x) over their
  cell. Jensen: drift <= resolution. It vanishes where people spread evenly within their cells.

Bound. Let G be an optimal coupling of T and E. Send x to a y drawn from G given that its first
member is c(x): this couples P and E. Expand |x - y|^2 = |x - c|^2 + |c - y|^2 + 2 <x - c, c - y>.
The first two terms have means resolution^2 and w2^2. Within a cell x and y are independent, so the
third has mean 2 E<d(c), c - E[y | c]>, at most 2 drift w2 (Cauchy-Schwarz and Jensen). Therefore

    W2(P, E)^2 <= resolution^2 + w2^2 + 2 drift w2 = ``total``^2,

and as drift <= resolution, ``total`` is at most the w2 + resolution of the triangle inequality.
From below, W2(P, E) >= max(resolution, w2 - resolution). So ``total`` ranks grids of all sizes by
a guaranteed error and never undercuts what the grid itself loses.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid, ResponseTable
from client_sdk.kernels import cells_of
from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.playing import play
from ldpspatial.datasets import SyntheticMap
from ldpspatial.estimation import estimate
from ldpspatial.estimation.em import QUICK
from ldpspatial.metrics import total_variation, wasserstein

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Misfit:
    """How far a map is from the people; lengths in sides of the square.

    Attributes
    ----------
    w2 : float
        Exact W2 between the true cell map and the map.
    resolution : float
        Root mean square distance from the people to the centres of their cells.
    total : float
        Upper bound of W2 between the people and the map, its cells taken at their centres.
    misplaced : float in [0, 1]
        Total variation between the true cell map and the map.
    """

    w2: float
    resolution: float
    total: float
    misplaced: float


@dataclass(frozen=True)
class People:
    """People on a grid; make one with :meth:`on_grid`.

    Attributes
    ----------
    rows, cols : (n,) int64 arrays in [0, d)
        The cell of each.
    truth : (d, d) array
        Share of the people in each cell.
    resolution, drift : float
        As defined above, in sides of the square.
    """

    rows: Ints
    cols: Ints
    truth: Array
    resolution: float
    drift: float

    @classmethod
    def on_grid(cls, law: SyntheticMap, points: Array, d: int) -> "People":
        """Put (n, 2) points y, x into the d x d cells of a map's square, as a device does."""
        grid = Grid.plane(law.y0, law.x0, law.side, d)
        rows, cols, _ = cells_of(grid, points[:, 0], points[:, 1])
        index = rows * d + cols
        people = np.bincount(index, minlength=d * d)
        corners = np.column_stack([rows, cols])
        from_center = (points - (law.y0, law.x0)) * (d / law.side) - corners - 0.5
        # (2, d^2), in cells: people * d(c) of each cell.
        sums = np.array([np.bincount(index, offset, d * d) for offset in from_center.T])
        spread = float((from_center**2).sum()) / len(points)
        # people * |d|^2 = |people * d|^2 / people; an empty cell has 0 in the numerator.
        common = float(((sums**2).sum(axis=0) / np.maximum(people, 1)).sum()) / len(points)
        truth = people.reshape(d, d) / len(points)
        return cls(rows, cols, truth, sqrt(spread) / d, sqrt(common) / d)

    def misfit(self, density: Array) -> Misfit:
        """Measure a (d, d) map against these people."""
        w2 = wasserstein(self.truth, density, cell=1 / len(density))
        total = sqrt(self.resolution**2 + w2**2 + 2 * self.drift * w2)
        return Misfit(w2, self.resolution, total, total_variation(self.truth, density))


def rehearse(
    people: People, table: ResponseTable, rng: np.random.Generator, rule: str = QUICK
) -> Misfit:
    """Play one collection with these people: reports, counts, estimate, misfit."""
    counts = play(table, people.rows, people.cols, rng)
    return people.misfit(estimate(StampChannel(table), counts, rule).density)
