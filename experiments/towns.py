"""Towns that are nowhere: random laws of where people are, one a seed, on the unit square.

For checks on maps that nobody can have tuned on: which seeds a study takes is written down in it,
and no rule was looked at on them before.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Town:
    """One of a family from a few addresses where everybody is to a plain without a centre.

    The seed chooses, on logarithmic scales where one is named:

    - quarters: 2 to 60 (log), their sizes by a power law of exponent 0 to 1.5, each round and
      normal with a deviation of .002 to .15 sides (log);
    - streets: 0 to 12 straight ones of any length, .003 sides wide;
    - addresses: 5 to 500 (log) points, sizes by a power law of exponent .5 to 1.5;
    - and which shares of the people are in quarters, streets, at addresses and anywhere: uniform
      on the simplex.

    Attributes
    ----------
    seed : int >= 0
    """

    seed: int

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"town {self.seed}"

    def people(self, n: int, rng: np.random.Generator) -> Array:
        """Return the places (y, x) of n people, in [0, 1)."""
        law = np.random.default_rng(self.seed)
        quarters = round(_between(law, 2, 60))
        addresses = round(_between(law, 5, 500))
        streets = law.integers(0, 13)
        parts = law.dirichlet(np.ones(4))
        if not streets:
            parts[3] += parts[1]
            parts[1] = 0.0
        spreads = np.array([_between(law, 0.002, 0.15) for _ in range(quarters)])
        sizes = _powers(quarters, law.uniform(0, 1.5)), _powers(addresses, law.uniform(0.5, 1.5))
        centres, doors = law.random((quarters, 2)), law.random((addresses, 2))
        ends = law.random((2, max(streets, 1), 2))
        kinds = rng.choice(4, n, p=parts)
        found = rng.random((n, 2))
        inside = np.flatnonzero(kinds == 0)
        which = rng.choice(quarters, len(inside), p=sizes[0])
        found[inside] = centres[which] + spreads[which, None] * rng.normal(size=(len(inside), 2))
        along = np.flatnonzero(kinds == 1)
        street = rng.integers(0, ends.shape[1], len(along))
        way = rng.random((len(along), 1))
        found[along] = (1 - way) * ends[0, street] + way * ends[1, street]
        found[along] += 0.003 * (rng.random((len(along), 2)) - 0.5)
        at = np.flatnonzero(kinds == 2)
        found[at] = doors[rng.choice(addresses, len(at), p=sizes[1])]
        # What lies beyond a border is mirrored at it.
        mirrored: Array = 1 - np.abs(1 - np.mod(found, 2))
        return np.minimum(mirrored, np.nextafter(1, 0))


def towns(seeds: Iterable[int]) -> list[Town]:
    """Return the towns of some seeds."""
    return [Town(seed) for seed in seeds]


def _between(law: np.random.Generator, least: float, most: float) -> float:
    return float(np.exp(law.uniform(np.log(least), np.log(most))))


def _powers(n: int, exponent: float) -> Array:
    sizes: Array = np.arange(1, n + 1) ** -exponent
    return sizes / sizes.sum()
