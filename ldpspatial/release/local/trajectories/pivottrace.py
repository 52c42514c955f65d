"""PivotTrace: trajectories reported point by point, with directions between neighbouring points.

Zhang et al., Trajectory Data Collection with Local Differential Privacy (PVLDB 16(10), 2023), with
a public number of points: as published, the number of reports is the length of the trajectory.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar, cast

import numpy as np

from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.compiled import compiled
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.privacy.local_privacy import local_privacy
from ldpspatial.release.local.local_release import LocalRelease, check_side
from ldpspatial.release.local.trajectories.pivot_reports import (
    block_around,
    block_cells,
    cell_weights,
    copy_reports,
    nearest_whole,
    nearness,
    region,
    value_weights,
)
from ldpspatial.release.local.trajectories.trajectory_release import (
    Ints,
    evenly_spaced,
    share_of,
    trails_of,
    trajectory_claim,
)
from ldpspatial.release.release import Fact, Released

REGION_PART, COPY_PART = Fraction(1, 4), Fraction(3, 8)  # two copies
PIVOTS_PART = Fraction(1, 8)
DIRECTIONS_PART = Fraction(3, 4)
TARGETS_PART = Fraction(1, 8)
MOST_PIVOTS, MOST_SECTORS = 256, 64
RADII = (8, 4, 2, 1)  # of the activity region, as fractions 1 / r of the side


@dataclass(frozen=True)
class PivotTrace(LocalRelease):
    """PivotTrace with a public number of points a trajectory.

    A trajectory is resampled to K of its visits, evenly spaced by rank. A quarter of epsilon goes
    to its activity region, a block of cells; three eighths to each of two copies. In one copy the
    first, third, ... points are pivots and those between are targets, in the other they change
    places. A copy spends 1/8 on its pivots (exponential mechanism in the block), 3/4 on the
    directions of targets from the reported pivots next to them (k-RR over sectors), 1/8 on
    targets (exponential mechanism among the cells of the block in the reported sectors), split
    evenly over reports of a kind. A point's two reports are merged into the cell nearest to the
    middle between them. The map is the share of merged points in each cell: as points are visits
    of evenly spaced ranks their shares estimate the user's distribution, which cells on lines
    between them would not.

    Attributes
    ----------
    pivots : int in [2, 256]
        Number K of points a trajectory, public.
    sectors : int in [2, 64]
        Directions that are told apart, public.
    """

    name: ClassVar[str] = "pivottrace"
    pivots: int = 5
    sectors: int = 8

    def __post_init__(self) -> None:
        self._keep_whole("pivots", 2, MOST_PIVOTS)
        self._keep_whole("sectors", 2, MOST_SECTORS)

    @property
    def privacy_of_all_reports(self) -> bool:
        """False: local privacy is of the report on one pivot."""
        return False

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP of the trajectory: a quarter for the region, 3/8 for each copy."""
        return trajectory_claim(
            epsilon,
            f"points a trajectory ({self.pivots}), sectors ({self.sectors}), candidate cells and "
            "sizes of regions are public",
            "domains of later reports follow from public numbers and earlier reports alone",
        )

    def parts(self) -> tuple[tuple[Fraction, Fraction, Fraction], ...]:
        """Return for each copy the part of epsilon of one pivot, direction and target."""
        odd = self.pivots - self.pivots // 2
        even = self.pivots // 2
        return tuple(
            (
                COPY_PART * PIVOTS_PART / pivots,
                COPY_PART * DIRECTIONS_PART / (self.pivots - 1),
                COPY_PART * TARGETS_PART / targets,
            )
            for pivots, targets in ((odd, even), (even, odd))
        )

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return how far off a guess of one point is from one report of a pivot, in cells.

        In the first copy, in a region that is the whole map. It is a property of that one report,
        not of the trajectory.
        """
        check_side(cells)
        everywhere = block_cells(np.array([0, cells - 1, 0, cells - 1]))
        spent = share_of(epsilon, self.parts()[0][0])
        weights = cell_weights(cells**2, spent)
        found = [nearness(row, column, everywhere, weights) for row, column in everywhere]
        laws = np.stack([each / each.sum() for each in found], axis=1)
        return local_privacy(MatrixChannel(laws, (cells, cells), spent))

    def weights(self, side: int, epsilon: float) -> tuple[Ints, Ints]:
        """Return the whole weights that the reports of a trajectory are drawn from.

        Returns
        -------
        region : (2, 2) array
            Base and top weight of a centre, and of a size.
        copies : (2, 3, 2) array
            The same of a pivot, of a direction and of a target in either copy.
        """
        half = share_of(epsilon, REGION_PART / 2)
        region = [cell_weights(side**2, half), value_weights(len(radii(side)), half)]
        copies = []
        for parts in self.parts():
            pivot, direction, target = (share_of(epsilon, part) for part in parts)
            copies.append(
                [
                    cell_weights(side**2, pivot),
                    value_weights(self.sectors, direction),
                    cell_weights(side**2, target),
                ]
            )
        return np.array(region), np.array(copies)

    def reports(
        self, points: Ints, side: int, epsilon: float, rng: np.random.Generator
    ) -> tuple[Ints, Ints, Ints, Ints]:
        """Draw all that users send whose trajectories have these points, (n, K, 2) cells.

        Returns
        -------
        centres : (n, 2) array
            Of the regions.
        sizes : (n,) array
            Places of their radii among the public ones.
        noisy : (n, 2, K, 2) array
            Points of either copy, as pivot or as target.
        heard : (n, 2, K - 1) array
            Sectors of either copy.
        """
        weights = self.weights(side, epsilon)
        return cast(
            tuple[Ints, Ints, Ints, Ints],
            _drawn(points, side, radii(side), self.sectors, *weights, rng),
        )

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Collect every user's points and count the merged ones."""
        claim = self.claim(epsilon)
        points = evenly_spaced(trails_of(self.name, users), self.pivots)
        side = users.shape[0]
        at = np.stack(np.divmod(points, side), axis=-1)
        *_, noisy, _ = self.reports(at, side, epsilon, rng)
        merged = _merged(noisy, side)
        mass = np.bincount(merged.ravel(), minlength=side * side)
        pivot, direction, _ = self.parts()[0]
        facts: dict[str, Fact] = {
            "estimator": "share of merged points",
            # Two for the region; a copy takes K for pivots and targets, K - 1 for directions.
            "reports_per_user": 2 + 2 * (2 * self.pivots - 1),
            "epsilon_per_pivot": share_of(epsilon, pivot),
            "epsilon_per_direction": share_of(epsilon, direction),
        }
        return Released((mass / mass.sum()).reshape(side, side), claim, facts)


def radii(side: int) -> Ints:
    """Return the public radii of activity regions in cells; the last one covers the map."""
    return np.unique([*(ceil(side / r) for r in RADII[:-1]), max(side - 1, 1)]).astype(np.int64)


@compiled
def _drawn(points, side, sizes, sectors, around, copies, rng):  # type: ignore[no-untyped-def]
    """Draw what each user sends."""
    n, k = points.shape[:2]
    centres = np.empty((n, 2), np.int64)
    chosen = np.empty(n, np.int64)
    noisy = np.empty((n, 2, k, 2), np.int64)
    heard = np.empty((n, 2, k - 1), np.int64)
    for user in range(n):
        at = points[user]
        centres[user], chosen[user] = region(at, sizes, side, around, rng)
        block = block_around(centres[user], sizes[chosen[user]], side)
        for first in range(2):
            noisy[user, first], heard[user, first] = copy_reports(
                at, first, block, sectors, copies[first], rng
            )
    return centres, chosen, noisy, heard


@compiled
def _merged(noisy, side):  # type: ignore[no-untyped-def]
    """Return the cells of merged points, shape (n, K): what the server makes of the reports."""
    merged = np.empty((noisy.shape[0], noisy.shape[2]), np.int64)
    for user in range(merged.shape[0]):
        for j in range(merged.shape[1]):
            row = nearest_whole(noisy[user, 0, j, 0] + noisy[user, 1, j, 0], 2)
            column = nearest_whole(noisy[user, 0, j, 1] + noisy[user, 1, j, 1], 2)
            merged[user, j] = row * side + column
    return merged
