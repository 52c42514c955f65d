"""Square wave on two coordinates: MDSW, by users split over the coordinates or by both at once.

A user who reports one coordinate spends all of epsilon on it and says nothing of the other: the
map is the product of two marginals, which is right where the coordinates are independent and has
no other shape to offer (the comparison of Du et al. 2024, section VII; MSW of Yang et al., VLDB
2020). A user who reports both, at half of epsilon each, says how they go together.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ldpspatial.channels.dense import ProductChannel
from ldpspatial.estimation import estimate
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.release.local.coordinates.square_wave import (
    MarginalRelease,
    WaveRelease,
    offset_law,
    square_wave_table,
)
from ldpspatial.release.local.local_release import square_side
from ldpspatial.release.release import Released

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

ONE_COORDINATE = "which coordinate a user reports is drawn without looking at the position"
BOTH_COORDINATES = "both coordinates are reported, at half of epsilon each"


@dataclass(frozen=True)
class Mdsw(MarginalRelease):
    """Each user reports one coordinate at the full epsilon; the map is the product of marginals.

    Attributes
    ----------
    smoothing : bool
        Smooth with [1, 2, 1] / 4 after each step, reflecting at the edges.
    rule : str
        When EM stops, as in :func:`ldpspatial.estimate`.
    fine : bool
        Smooth bins of about 1/1024 of the interval, as the authors of square wave do, or whole
        cells: the MDSW of the figures of Du et al. 2024.
    """

    name: ClassVar[str] = "mdsw"

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP: given the coordinate, which is public, it is that of square wave."""
        claim = super().claim(epsilon)
        return replace(claim, conditions=(*claim.conditions, ONE_COORDINATE))

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the mean distance of an observer's guess, in cells.

        The observer knows which coordinate was reported and guesses the other from the prior.
        """
        reported = offset_law(square_wave_table(cells, epsilon).matrix())
        silent = offset_law(np.ones((1, cells)))  # one report for all: the posterior is the prior
        return _mean_distance(reported, silent)

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Draw one report a user, of a coordinate drawn uniformly, and multiply the marginals.

        Raises
        ------
        InputError
            The map is not square, or there is no user.
        """
        claim = self.claim(epsilon)
        side, position = _drawn_position(self.name, users, rng)
        table = square_wave_table(side, epsilon)
        asked = rng.integers(2, size=len(users))
        found = []
        marginals = []
        for axis in (0, 1):
            reports = table.draw(position[axis][asked == axis], rng)
            if len(reports):
                found.append(self.marginal(table, reports, epsilon))
                marginals.append(found[-1].density[0])
            else:  # nobody was asked: nothing is known
                marginals.append(np.full(side, 1 / side))
        return Released(np.outer(*marginals), claim, self.facts(table, 1, *found))


@dataclass(frozen=True)
class MdswJoint(WaveRelease):
    """Each user reports both coordinates at half of epsilon each; EM on pairs of reports.

    Attributes
    ----------
    smoothing : bool
        Smooth with [1, 2, 1] / 4 along every axis after each step, reflecting at the edges.
    rule : str
        When EM stops, as in :func:`ldpspatial.estimate`.
    """

    name: ClassVar[str] = "mdsw-joint"

    smoothing: bool = False

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP: two independent reports at epsilon / 2 compose to epsilon."""
        claim = super().claim(epsilon)
        return replace(claim, conditions=(*claim.conditions, BOTH_COORDINATES))

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the mean distance of an observer's guess from both reports, in cells."""
        reported = offset_law(square_wave_table(cells, epsilon, parts=2).matrix())
        return _mean_distance(reported, reported)

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Draw a pair of reports a user and estimate the density from the counts of pairs.

        Raises
        ------
        InputError
            The map is not square, or there is no user.
        """
        claim = self.claim(epsilon)
        side, position = _drawn_position(self.name, users, rng)
        table = square_wave_table(side, epsilon, parts=2)
        rows, columns = (table.draw(part, rng) + table.radius for part in position)
        wave = table.matrix()
        size = table.outputs
        counts = np.bincount(rows * size + columns, minlength=size * size).reshape(size, size)
        channel = ProductChannel(wave, wave, epsilon)
        found = estimate(channel, counts, self.rule, self.smoother)
        return Released(found.density, claim, self.facts(table, 2, found), found)


def _drawn_position(
    name: str, users: UserCells, rng: np.random.Generator
) -> tuple[int, tuple[Ints, Ints]]:
    """Return the side of the map, and row and column of one visit of each user, drawn uniformly."""
    side = square_side(name, users)
    users.check_not_empty()
    return side, np.divmod(users.one_cell_each(rng), side)


def _mean_distance(down: Array, across: Array) -> float:
    """Return the mean of hypot(i, j) of independent offsets with these laws.

    Under a uniform prior and independent reports the posterior is a product, so the offsets of
    the two coordinates are independent: no matrix over pairs of cells is needed.
    """
    offsets = np.arange(len(down))
    return float(down @ np.hypot.outer(offsets, offsets) @ across)
