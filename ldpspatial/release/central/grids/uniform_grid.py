"""One grid of equal rectangles: the simplest rival, strong where its size is right."""

from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np

from client_sdk.shared import Entropy
from ldpspatial.places.users import UserCells
from ldpspatial.release.central.central_release import CentralRelease, claim_of, with_noise
from ldpspatial.release.central.grids.grid_counts import (
    people_and_rest,
    rectangle_sums,
    sides_for,
    spread_in,
)
from ldpspatial.release.central.masses import Negatives, density_of_masses
from ldpspatial.release.central.quantise import unit_sums
from ldpspatial.release.rectangles import MOST_BLOCKS, cut
from ldpspatial.release.release import Released
from ldpspatial.validate import MICRO, one_of, positive, whole_number


@dataclass(frozen=True)
class UniformGrid(CentralRelease):
    """Noise on parts x parts rectangles, each spread evenly over its cells.

    Qardaji et al. ("Differentially Private Grids for Geospatial Data", ICDE 2013, section IV-A):
    sqrt(N epsilon / c) parts along a side, rounded up, for N people. All borders lie between cells
    of the map.

    Attributes
    ----------
    parts : int in [1, 4096] or None
        Along a side of the map, its number of cells where that is less; None is the rule.
    c : float > 0
        Of the rule: the larger, the fewer parts.
    people : int >= 0 or None
        For the rule: a public number of people; None measures it with a 32nd of epsilon.
    negatives : {"zero", "nearest"}
        They are zero, or the map is the nearest one without any that has the same sum
        (:func:`ldpspatial.release.central.masses.density_of_masses`).

    Raises
    ------
    InputError
        A field breaks its rule.

    Examples
    --------
    >>> from ldpspatial.places.users import cells_by_user
    >>> users = cells_by_user(range(1000), [7] * 1000, (16, 16))
    >>> run = UniformGrid(people=1000).release(users, 1.0, np.random.default_rng(1))
    >>> run.facts["parts"], run.claim.epsilon, bool(run.density[:2, 6:8].sum() > 0.8)
    (10, 1.0, True)
    """

    name: ClassVar[str] = "uniform-grid"

    parts: int | None = None
    c: float = 10.0
    people: int | None = None
    negatives: Negatives = "zero"

    def __post_init__(self) -> None:
        if self.parts is not None:
            whole_number("parts", self.parts, 1, MOST_BLOCKS)
        positive("c", self.c)
        if self.people is not None:
            whole_number("people", self.people, 0)
        one_of("negatives", self.negatives, get_args(Negatives))

    def _run(self, users: UserCells, micro_epsilon: int, source: Entropy) -> Released:
        cells, units = unit_sums(users)
        parts = self.parts
        left = micro_epsilon
        if parts is None:
            people, left = people_and_rest(self.people, units, micro_epsilon, source)
            (parts,) = sides_for(np.array([people]), left / MICRO, self.c)
        # From public numbers and a noisy one: the grid costs nothing more.
        labels = cut(users.shape, parts)
        noisy = with_noise(rectangle_sums(labels, cells, units), left, source)
        density = density_of_masses(spread_in(labels, noisy), self.negatives)
        return Released(density, claim_of(micro_epsilon), {"parts": parts})
