"""The recommended central release: sums on the levels of a quadtree, combined by least squares."""

from dataclasses import dataclass
from math import prod
from typing import ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import Entropy
from ldpspatial.estimation.levels import NoisyLevel, combined
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.discrete_laplace import noise_deviation
from ldpspatial.release.central.central_release import CentralRelease, claim_of, with_noise
from ldpspatial.release.central.level_plan import plan
from ldpspatial.release.central.pyramid import Pyramid
from ldpspatial.release.central.quantise import MASS, unit_sums
from ldpspatial.release.central.shaped_levels import counted_leaves
from ldpspatial.release.level_sums import Aim, measure
from ldpspatial.release.release import Released
from ldpspatial.validate import MICRO, one_of

Ints = NDArray[np.int64]

FOR_ALL = 32  # one part of epsilon in so many is for the number of people, which chooses the level


@dataclass(frozen=True)
class CentralLevels(CentralRelease):
    """Noisy sums on the levels that epsilon and the people allow, for one of two aims.

    Nothing is to be tuned: the number of people is measured with a 32nd of epsilon, the rest goes
    to whole levels or to the leaves of a noisy shape
    (:mod:`ldpspatial.release.central.level_plan`), and the map is made of all sums by what is
    learned from them (:mod:`ldpspatial.estimation.levels`). ``Released.levels`` has what intervals
    need (:func:`ldpspatial.level_intervals`). Every number of users has a map, none as well:
    uniform but for noise.

    Attributes
    ----------
    aim : {"distance", "cells"}
        What the map is for: where people are (W2, regions), finer where they crowd; or how many
        there are in single cells (L1, MSE), by sums of these alone.

    Raises
    ------
    InputError
        ``aim`` is neither.

    Facts of a run, all from noisy sums: the first level of which any sum was taken, the last one,
    and how many sums.

    Examples
    --------
    >>> from ldpspatial.places.users import cells_by_user
    >>> people = cells_by_user(range(1000), [7] * 1000, (16, 16))
    >>> run = CentralLevels().release(people, 1.0, np.random.default_rng(1))
    >>> bool(run.density[0, 7] > 0.95), run.claim.epsilon, run.facts["first_level"]
    (True, 1.0, 2)
    """

    name: ClassVar[str] = "central-levels"

    aim: Aim = "distance"

    def __post_init__(self) -> None:
        one_of("aim", self.aim, get_args(Aim))

    def _run(self, users: UserCells, micro_epsilon: int, source: Entropy) -> Released:
        tree = Quadtree(users.shape, even=True)
        pyramid = Pyramid(tree, *unit_sums(users))

        def ask(level: int, nodes: Ints, micro: int) -> NoisyLevel:
            # Disjoint nodes, known from noisy sums alone: one query of sensitivity MASS.
            noisy = with_noise(pyramid.sums(level, nodes), micro, source)
            deviation = noise_deviation(micro / MICRO, MASS) / MASS
            return NoisyLevel(level, nodes, noisy / MASS, deviation**2)

        of_all = micro_epsilon // FOR_ALL if tree.depth else micro_epsilon
        whole = NoisyLevel.unmeasured(0, tree.numbers(0))
        people = 0.0
        if of_all:
            whole = ask(0, tree.numbers(0), of_all)
            people = float(whole.sums[0])
        rest = micro_epsilon - of_all
        levels = [whole]
        if rest:
            per_noise = people * rest / MICRO
            wanted = plan(per_noise, rest, prod(users.shape), tree.depth, self.aim)
            if wanted.by_shape:
                levels = counted_leaves(pyramid, whole, wanted.first, rest, source)
            else:
                levels = measure(tree, whole, wanted.first, wanted.parts, ask, wanted.wide)
        found = combined(tree, levels)
        asked = [level for level in found.levels[1:] if np.isfinite(level.variance)]
        facts = {
            "first_level": asked[0].level if asked else 0,
            "last_level": asked[-1].level if asked else 0,
            "noisy sums": sum(level.number for level in asked),
        }
        return Released(found.density, claim_of(micro_epsilon), facts, levels=found)
