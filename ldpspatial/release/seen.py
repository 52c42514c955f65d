"""What is seen of one run of a release: the form of what came, and its numbers."""

import warnings
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from ldpspatial.estimation.levels import LevelMap
from ldpspatial.places.users import UserCells
from ldpspatial.release.release import Release, Released, run_release

Array = NDArray[np.float64]

MOST_CELLS = 16  # of a map that is seen cell by cell
MOST_LEVELS = 12


@dataclass(frozen=True)
class Form:
    """What came of a run beside its numbers: an error, or the parts of what was released."""

    shape: tuple[int, ...] = ()
    parts: tuple[str, ...] = ()
    said: tuple[str, ...] = ()  # warnings
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return f"the error {self.error!r}"
        parts = " and ".join(("a map", *self.parts))
        return parts + "".join(f", the warning {said!r}" for said in self.said)


def form_of(
    release: Release, users: UserCells, epsilon: float, rng: np.random.Generator
) -> tuple[Form, Released | None]:
    """Run a release; return everything about the run but its numbers, and what came, if any."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found = run_release(release, users, epsilon, rng)
        except Exception as error:  # whatever it is, it is seen
            return Form(error=f"{type(error).__name__}: {error}"), None
    said = tuple(str(warning.message) for warning in warned)
    held = {"an estimate": found.estimate, "levels": found.levels}
    parts = tuple(name for name, part in held.items() if part is not None)
    return Form(found.density.shape, parts, said), found


def numbers_of(found: Released, there: int, facts: bool) -> list[float]:
    """Return the numbers of a map that may tell of a user in the first cell or another.

    The first is the mass of the one cell less that of the other. Then the share that the one has of
    both, the masses of all cells where these are few, of the two where they are many; the largest
    mass, and how many are none or equal to the largest; and of the squares of 1, 2, 4, ... cells a
    side in the corner of the first cell, the mass and how it differs from those beside it. Where
    there are levels, the noisy sums above the two cells and how many there are on each level. Where
    facts are said to be published, those that are numbers.

    Returns
    -------
    list of float
        As many for every run on maps of one shape; NaN for what is missing.
    """
    cells = found.density.ravel()
    one, other = float(cells[0]), float(cells[there])
    both = one + other
    numbers = [one - other, one / both if both > 0 else nan]
    numbers += cells.tolist() if len(cells) <= MOST_CELLS else [one, other]
    most = cells.max()
    numbers += [float(most), float((cells == 0).sum()), float((cells == most).sum())]
    numbers += _of_squares(found.density)
    if found.levels is not None:
        numbers += _of_levels(found.levels, there)
    if facts:
        known = (found.facts[name] for name in sorted(found.facts))
        numbers += [float(fact) if isinstance(fact, (int, float)) else nan for fact in known]
    return numbers


def _of_squares(density: Array) -> list[float]:
    """Return sums and differences of four squares in a corner, as wavelets have them."""
    numbers = []
    side = 1
    while side < max(density.shape):
        low, high = density[:side, : 2 * side], density[side : 2 * side, : 2 * side]
        sw, se = float(low[:, :side].sum()), float(low[:, side:].sum())
        nw, ne = float(high[:, :side].sum()), float(high[:, side:].sum())
        numbers += [sw, sw + se - nw - ne, sw - se + nw - ne, sw - se - nw + ne]
        side *= 2
    return numbers


def _of_levels(levels: LevelMap, there: int) -> list[float]:
    """Return, for each level that there may be, two sums and how many there are."""
    tree = levels.tree
    numbers = np.full((MOST_LEVELS, 3), nan)
    leaves = tree.leaf_numbers(np.array([0, there]))
    for level in levels.levels[:MOST_LEVELS]:
        taken = np.isfinite(level.by_node(level.variance))
        numbers[level.level, 2] = taken.sum()
        for k, node in enumerate(leaves >> 2 * (tree.depth - level.level)):
            at = int(np.searchsorted(level.nodes, node))
            if at < len(level.nodes) and level.nodes[at] == node and taken[at]:
                numbers[level.level, k] = level.sums[at]
    every: list[float] = numbers.ravel().tolist()
    return every
