"""A coarse grid, then each of its blocks cut up by the people it holds, in the central model."""

from dataclasses import dataclass
from math import ceil
from typing import ClassVar, get_args

import numpy as np

from client_sdk.shared import Entropy
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.central.budget_parts import in_two
from ldpspatial.release.central.central_release import CentralRelease, claim_of, with_noise
from ldpspatial.release.central.grids.grid_counts import (
    in_people,
    people_and_rest,
    rectangle_sums,
    sides_for,
    spread_in,
)
from ldpspatial.release.central.masses import Negatives, density_of_masses
from ldpspatial.release.central.quantise import MASS, unit_sums
from ldpspatial.release.rectangles import MOST_BLOCKS, cut, reconciled, refined
from ldpspatial.release.release import Released
from ldpspatial.validate import MICRO, number_in, one_of, positive, true_or_false, whole_number

LEAST_PARTS = 10  # along a side of the map in the first round


@dataclass(frozen=True)
class CentralAdaptiveGrid(CentralRelease):
    """Noise on blocks, then on n x n parts of each, drawn to the counts of their blocks.

    Qardaji et al. ("Differentially Private Grids for Geospatial Data", ICDE 2013, section IV-B):
    a quarter of sqrt(N epsilon / c) blocks along a side, at least 10, for N people; and n =
    sqrt(N' (1 - alpha) epsilon / c2), rounded up, for a block of noisy count N'. The distributed
    form is ``adaptive-grid``.

    Attributes
    ----------
    alpha : float in (0, 1)
        Share of the budget for the blocks.
    c : float > 0
        Of the rule for the number of blocks.
    c2 : float > 0
        The larger, the fewer parts.
    parts : int in [1, 4096] or None
        Blocks along a side of the map, its number of cells where that is less; None is the rule.
    people : int >= 0 or None
        For the rule: a public number of people; None measures it with a 32nd of epsilon.
    consistent : bool
        Let each block's parts add up to the mean of both rounds, weighted by inverse variances.
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
    >>> users = cells_by_user(range(1000), [7] * 1000, (64, 64))
    >>> run = CentralAdaptiveGrid().release(users, 2.0, np.random.default_rng(1))
    >>> run.facts["blocks"], run.claim.epsilon, bool(run.density[0, 7] > 0.9)
    (100, 2.0, True)
    """

    name: ClassVar[str] = "central-adaptive-grid"

    alpha: float = 0.5
    c: float = 10.0
    c2: float = 5.0
    parts: int | None = None
    people: int | None = None
    consistent: bool = True
    negatives: Negatives = "zero"

    def __post_init__(self) -> None:
        number_in("alpha", self.alpha, "(0, 1)")
        positive("c", self.c)
        positive("c2", self.c2)
        if self.parts is not None:
            whole_number("parts", self.parts, 1, MOST_BLOCKS)
        if self.people is not None:
            whole_number("people", self.people, 0)
        true_or_false("consistent", self.consistent)
        one_of("negatives", self.negatives, get_args(Negatives))

    def _run(self, users: UserCells, micro_epsilon: int, source: Entropy) -> Released:
        cells, units = unit_sums(users)
        parts = self.parts
        left = micro_epsilon
        if parts is None:
            people, left = people_and_rest(self.people, units, micro_epsilon, source)
            (wanted,) = sides_for(np.array([people]), left / MICRO, self.c)
            parts = max(LEAST_PARTS, ceil(wanted / 4))
        first, second = in_two(left, self.alpha)
        blocks = cut(users.shape, parts)
        number = int(blocks.max()) + 1
        coarse = np.zeros(number)
        if first:
            noisy = with_noise(rectangle_sums(blocks, cells, units), first, source)
            coarse = in_people(noisy)
        # The parts follow from noisy counts and public numbers: choosing them costs nothing.
        labels, block_of = refined(blocks, sides_for(coarse, second / MICRO, self.c2))
        fine = in_people(with_noise(rectangle_sums(labels, cells, units), second, source))
        if self.consistent and first:
            variances = [
                (noise_deviation(micro / MICRO, MASS) / MASS) ** 2 for micro in (first, second)
            ]
            fine = reconciled(coarse, variances[0], fine, variances[1], block_of)
        facts = {"blocks": number, "parts": len(fine)}
        density = density_of_masses(spread_in(labels, fine), self.negatives)
        return Released(density, claim_of(micro_epsilon), facts)
