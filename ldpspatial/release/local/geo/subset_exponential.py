"""The law of the subset exponential mechanism, in whole numbers (Wang et al., INFOCOM 2017).

From cell x of a d x d map a set Z of k cells is reported with probability w(dist(x, Z)) / total,
w(r) = e^(-epsilon r) and dist the distance in cells to the nearest cell of Z; the probability that
is left over is that of the empty report. Distances to Z from two cells differ by no more than the
distance of the two, so a set keeps epsilon-geo-indistinguishability whatever the total is, and the
total is the least that lets the empty report keep it too. This is NOT epsilon-LDP: the loss between
two cells is epsilon times their distance.

Weights and numbers of subsets are whole numbers of hundreds of digits: floats overflow, and floored
weights break the claim. So the weights are made for an epsilon that is smaller by 2^-64 of itself,
hundreds of bits long, and :func:`check_claim` proves the claim from the weights alone.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from math import comb, isqrt

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import BITS, exp_below
from ldpspatial.compiled import compiled
from ldpspatial.errors import SolverError
from ldpspatial.privacy.whole_draws import uniform_below

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Pair = tuple[int, int, int]  # kinds of two cells, step from one to the other

SLACK = Fraction(1, 1 << 64)  # of epsilon, given up to rounding
LEAST_BITS = 200  # of the smallest weight


@dataclass(frozen=True, eq=False)
class SubsetExponential:
    """All probabilities of one design; make it with :func:`subset_exponential`.

    Cells that are mirror images of each other share their numbers: they are of one kind.

    Attributes
    ----------
    cells, size : int
        Side of the map, and k.
    squares : tuple of int
        Squared distances between cells of the map, ascending from 0.
    kinds : (cells^2,) array of int
        Kind of each cell, cells in row order.
    rings : tuple of tuples of int
        How many cells lie at each distance, by kind.
    weights : tuple of int
        w by distance, times one common factor.
    masses : tuple of int
        Sum of the weights of all sets, for each kind.
    total : int
        What weights and masses are divided by.
    """

    cells: int
    size: int
    squares: tuple[int, ...]
    kinds: Ints
    rings: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]
    masses: tuple[int, ...]
    total: int

    @cached_property
    def steps(self) -> Ints:
        """(cells^2, cells^2) positions in ``squares`` of the distances of all pairs of cells."""
        return np.searchsorted(self.squares, squared_distances(self.cells))

    @cached_property
    def empty(self) -> Array:
        """(cells^2,) probability of the empty report."""
        shares = [(self.total - mass) / self.total for mass in self.masses]
        return np.array(shares)[self.kinds]

    @cached_property
    def hits(self) -> Array:
        """(cells^2, cells^2) matrix: probability that cell z is in the set reported from x."""
        by_kind = np.array([self._hits_by_distance(rings) for rings in self.rings])
        return np.asarray(by_kind[self.kinds[None, :], self.steps])

    def _hits_by_distance(self, rings: Sequence[int]) -> list[float]:
        others = self.size - 1
        nearer = 0
        found = []
        reach = sum(rings)  # cells at this distance or farther
        for weight, ring in zip(self.weights, rings, strict=True):
            if not ring:
                found.append(0.0)
                continue
            as_near = comb(reach - 1, others)  # sets with z, none of whose cells is nearer
            found.append((nearer + weight * as_near) / self.total)  # true of any size
            reach -= ring
            if reach:  # sets with a farther z and with a cell at this distance
                nearer += weight * (as_near - comb(reach - 1, others))
        return found

    @cached_property
    def outcomes(self) -> list[tuple[list[int], Ints]]:
        """For each kind, what is drawn first: how many cells of which ring are the nearest.

        The upper ends of the outcomes in [0, total), and an (outcomes, 3) array: where the ring
        starts in the order of distance, its cells, and how many of them are in the set. What lies
        beyond the last end is the empty report.
        """
        return [self._outcomes(rings) for rings in self.rings]

    def _outcomes(self, rings: Sequence[int]) -> tuple[list[int], Ints]:
        begin = 0
        rows = []
        chances = []
        for weight, ring in zip(self.weights, rings, strict=True):
            farther = sum(rings) - begin - ring
            for taken in range(max(1, self.size - farther), min(ring, self.size) + 1):
                rows.append((begin, ring, taken))
                chances.append(weight * comb(ring, taken) * comb(farther, self.size - taken))
            begin += ring
        return list(accumulate(chances)), np.array(rows, np.int64)

    def draw(self, cell: int, reports: int, rng: np.random.Generator) -> Ints:
        """Draw reports from one input cell; uniform whole numbers decide, nothing is rounded.

        Parameters
        ----------
        cell : int in [0, cells^2)
        reports : int >= 0
        rng : numpy.random.Generator

        Returns
        -------
        (reports, k) int64 array
            The cells of each set; -1 throughout for the empty report.
        """
        out = np.full((reports, self.size), -1)
        ends, rows = self.outcomes[self.kinds[cell]]
        drawn = uniform_below(self.total, reports, rng)
        chosen = np.array([bisect_right(ends, u) for u in drawn], int)
        sets = chosen < len(ends)
        begin, ring, taken = rows[chosen[sets]].T
        order = np.argsort(self.steps[cell], kind="stable")
        farther = len(order) - begin - ring
        place = np.arange(self.size)
        # (sets, k) choices left at place j: ring - j nearest cells, then farther - (j - taken).
        room = np.where(place < taken[:, None], ring[:, None], (farther + taken)[:, None]) - place
        out[sets] = _pick(order, begin, ring, taken, rng.integers(0, room))
        return out


@lru_cache(maxsize=8)
def subset_exponential(cells: int, size: int, epsilon: Fraction) -> SubsetExponential:
    """Return the law on a ``cells`` x ``cells`` map with sets of ``size`` cells, claim proved.

    Parameters
    ----------
    cells : int >= 1
    size : int in [1, cells^2]
    epsilon : Fraction > 0
        Per cell.

    Raises
    ------
    SolverError
        The claim does not hold of the weights: an error in this file.
    """
    squared = squared_distances(cells)
    squares: list[int] = np.unique(squared).tolist()
    kinds, examples = _kinds(cells)
    steps = np.searchsorted(squares, squared[examples])
    rings = [np.bincount(step, minlength=len(squares)).tolist() for step in steps]
    growth = [_exp_distance(epsilon * (1 - SLACK), square) for square in squares]
    # The smallest weight, top // growth[-1], keeps LEAST_BITS bits at least.
    top = 1 << (LEAST_BITS + growth[-1].bit_length())
    weights = [top // grown for grown in growth]
    masses = [_mass(weights, ring, size) for ring in rings]
    pairs = _pairs(kinds, steps)
    least = (_least_total(growth[s], masses[a], masses[b]) for a, b, s in pairs)
    law = SubsetExponential(
        cells=cells,
        size=size,
        squares=tuple(squares),
        kinds=kinds,
        rings=tuple(map(tuple, rings)),
        weights=tuple(weights),
        masses=tuple(masses),
        total=max(least, default=masses[0]),
    )
    check_claim(law, epsilon, pairs)
    return law


def check_claim(law: SubsetExponential, epsilon: Fraction, pairs: set[Pair]) -> None:
    """Prove in whole numbers that no report of two cells differs by more than e^(epsilon dist).

    Distances from two cells to one set differ by at most the distance of the cells, so it is
    enough that weights at distances so close keep the bound, for all distances of two cells; and
    the empty report is compared for all pairs of cells.

    Raises
    ------
    SolverError
        Some pair breaks the claim.
    """
    squares = law.squares
    weights = law.weights
    bounds = [_exp_distance(epsilon, square) for square in squares]  # from below
    # Weights fall with distance: then the farthest distance that is possible is the worst case.
    kept = all(near >= far > 0 for near, far in pairwise(weights))
    for apart, bound in zip(squares[1:], bounds[1:], strict=True):
        # squares[far] is the farthest that is no more than `apart` beyond `square`. It only grows.
        far = 0
        for square, weight in zip(squares, weights, strict=True):
            while far + 1 < len(squares) and _within(squares[far + 1], square, apart):
                far += 1
            kept = kept and weight << BITS <= bound * weights[far]
    left = [law.total - mass for mass in law.masses]
    kept = kept and min(left) >= 0
    kept = kept and all(left[b] << BITS <= bounds[s] * left[a] for a, b, s in pairs)
    if not kept:
        raise SolverError(
            f"weights break the claim of epsilon {float(epsilon)!r} per cell on {law.cells} x "
            f"{law.cells} cells with sets of {law.size}"
        )


def squared_distances(cells: int) -> Ints:
    """Return the squared distances of all pairs of cells of a square map, in row order."""
    row, column = np.indices((cells, cells)).reshape(2, -1)
    return np.asarray((row[:, None] - row) ** 2 + (column[:, None] - column) ** 2)


def _kinds(cells: int) -> tuple[Ints, Ints]:
    """Return the kind of each cell, and one cell of each kind."""
    at = np.indices((cells, cells)).reshape(2, -1)
    near, far = np.sort(np.minimum(at, cells - 1 - at), axis=0)
    _, examples, kinds = np.unique(near * cells + far, return_index=True, return_inverse=True)
    return kinds, examples


def _pairs(kinds: Ints, steps: Ints) -> set[Pair]:
    """Return all ordered pairs of different cells: their two kinds and the step between them."""
    return {
        (a, b, step)
        for a, row in enumerate(steps.tolist())
        for b, step in zip(kinds.tolist(), row, strict=True)
        if step
    }


def _exp_distance(epsilon: Fraction, square: int) -> int:
    """Return 2^BITS e^(epsilon sqrt(square)) from below."""
    return exp_below(epsilon * Fraction(isqrt(square << 2 * BITS), 1 << BITS))


def _mass(weights: Sequence[int], rings: Sequence[int], size: int) -> int:
    """Return the weights of all sets: of those whose nearest cell is in one ring after another."""
    mass = 0
    reach = sum(rings)
    for weight, ring in zip(weights, rings, strict=True):
        mass += weight * (comb(reach, size) - comb(reach - ring, size))
        reach -= ring
    return mass


def _least_total(growth: int, mass: int, other: int) -> int:
    """Return the least T with T - other <= growth / 2^BITS * (T - mass)."""
    # The divisor is negative, and -(a // -b) is a / b rounded up: a larger total is safe too.
    return -((growth * mass - (other << BITS)) // ((1 << BITS) - growth))


def _within(square: int, other: int, apart: int) -> bool:
    """Tell whether sqrt(square) <= sqrt(other) + sqrt(apart)."""
    # Squared once: excess <= 2 sqrt(other apart); and again, where excess is positive.
    excess = square - other - apart
    return excess <= 0 or excess**2 <= 4 * other * apart


@compiled
def _pick(order, begin, ring, taken, swaps):  # type: ignore[no-untyped-def]
    """Take cells of the ring and of what is beyond it, each by swaps with a later place."""
    reports, size = swaps.shape
    out = np.empty((reports, size), np.int64)
    left = np.empty_like(order)
    for i in range(reports):
        left[:] = order
        for j in range(size):
            place = begin[i] + j if j < taken[i] else begin[i] + ring[i] + j - taken[i]
            other = place + swaps[i, j]
            out[i, j] = left[other]
            left[other] = left[place]
    return out
