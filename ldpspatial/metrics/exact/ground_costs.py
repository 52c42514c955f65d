"""Ground distances to a power, each with the whole-number costs that stand for it in the solver.

The solver's optimum is exact for its whole costs. How far those are from the real ones is known for
every pair of cells, so a plan and its least whole cost bound the least real cost from both sides.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from operator import mul
from typing import Protocol, TypeAlias

import numpy as np

from ldpspatial.errors import InputError
from ldpspatial.metrics._maps import FloatArray
from ldpspatial.metrics.exact.grid_costs import GridCost, SeparableCost, TableCost
from ldpspatial.metrics.exact.network_simplex import Ints

COST_LIMIT = 2**60
"""Most that the largest whole cost times the number of nodes may be: no sum then overflows."""

RELATIVE_ERROR = 1e-9
"""Largest relative error of the whole cost along one axis against the other."""

TABLE_ERROR = Fraction(1, 10**7)
"""Largest error of a cost in fixed point, relative to the least one."""

Bounds: TypeAlias = tuple[Fraction, Fraction, Fraction]
Sides: TypeAlias = tuple[Fraction | float, Fraction | float]


class GroundCost(Protocol):
    """A real cost of moving by rows and columns, and its whole-number counterpart."""

    @property
    def whole(self) -> GridCost:
        """The costs that the solver works on."""
        ...

    @property
    def steps(self) -> tuple[Fraction, Fraction]:
        """Most that the real cost changes with one row, or with one column, more or less."""
        ...

    def bounds(self, flow: Ints, down: Ints, right: Ints, least: int) -> Bounds:
        """Return the real cost of a plan, and bounds below and above the least real cost.

        `flow` (n,) units are carried by `down` and `right` (n,) cells; `least` is the least whole
        cost of all plans.
        """
        ...


@dataclass(frozen=True, eq=False)
class PowerSum:
    """(|dy| height)^power + (|dx| width)^power, with `power` 1 or 2; sides of 0 cost nothing."""

    whole: SeparableCost
    height: Fraction
    width: Fraction
    power: int

    @property
    def steps(self) -> tuple[Fraction, Fraction]:
        """See `GroundCost`."""
        rows = len(self.whole.rows)
        columns = len(self.whole.columns)
        # Convex: no step within the grid is larger than the one that leads out of it.
        return (
            self.height**self.power * (rows**self.power - (rows - 1) ** self.power),
            self.width**self.power * (columns**self.power - (columns - 1) ** self.power),
        )

    def bounds(self, flow: Ints, down: Ints, right: Ints, least: int) -> Bounds:
        """See `GroundCost`."""
        # A whole cost is a fixed multiple of the real one along each axis, so the smaller of the
        # two multiples bounds the real cost of every plan.
        cost = Fraction(0)
        multiples = []
        for side, whole, moved in (
            (self.height, self.whole.rows, down),
            (self.width, self.whole.columns, right),
        ):
            if side > 0 and len(whole) > 1:
                cost += side**self.power * _exact_dot(flow, moved**self.power)
                multiples.append(side**self.power / int(whole[1]))
        # The least real cost is no more than that of this plan.
        return cost, min(multiples, default=Fraction(0)) * least, cost


@dataclass(frozen=True, eq=False)
class SquaredSum:
    """(|dy| height + |dx| width)^2; `whole` is the same with whole numbers for the sides."""

    whole: TableCost
    height: Fraction
    width: Fraction
    whole_sides: tuple[int, int]

    @property
    def steps(self) -> tuple[Fraction, Fraction]:
        """See `GroundCost`."""
        rows, columns = self.whole.table.shape
        # (x + h)^2 - x^2 <= 2 (x + h) h, and x + h is at most the extent of the grid.
        farthest = 2 * (self.height * (rows - 1) + self.width * (columns - 1))
        return farthest * self.height, farthest * self.width

    def bounds(self, flow: Ints, down: Ints, right: Ints, least: int) -> Bounds:
        """See `GroundCost`."""
        cost = self.height**2 * _exact_dot(flow, down**2)
        cost += 2 * self.height * self.width * _exact_dot(flow, down * right)
        cost += self.width**2 * _exact_dot(flow, right**2)
        multiples = [
            side / whole
            for side, whole in zip((self.height, self.width), self.whole_sides, strict=True)
            if side > 0
        ]
        return cost, min(multiples, default=Fraction(0)) ** 2 * least, cost


@dataclass(frozen=True, eq=False)
class Tabulated:
    """Real costs table[|dy|, |dx|] (R, C), each within `error` of its whole cost / scale."""

    whole: TableCost
    table: FloatArray
    scale: int
    error: Fraction  # in whole units

    @property
    def steps(self) -> tuple[Fraction, Fraction]:
        """See `GroundCost`."""
        rows = np.diff(self.table, axis=0).max(initial=0.0)
        columns = np.diff(self.table, axis=1).max(initial=0.0)
        # Two entries, each off by 7 * 2^-53 of the largest (`_tabulated`), and their difference.
        rounding = Fraction(float(self.table.max())) / 2**49
        return Fraction(float(rows)) + rounding, Fraction(float(columns)) + rounding

    def bounds(self, flow: Ints, down: Ints, right: Ints, least: int) -> Bounds:
        """See `GroundCost`."""
        units = int(flow.sum())
        # Whole costs misjudge no plan, the cheapest included, by more than `error` a unit.
        lower = (least - self.error * units) / self.scale
        upper = (least + self.error * units) / self.scale
        cost = Fraction(math.fsum(map(mul, flow.tolist(), self.table[down, right].tolist())))
        # `cost` is of a rounded table, so it is kept between the bounds.
        return max(lower, min(cost, upper)), max(lower, Fraction(0)), upper


@dataclass(frozen=True, eq=False)
class Given:
    """Whole costs taken as they are."""

    whole: SeparableCost

    @property
    def steps(self) -> tuple[Fraction, Fraction]:
        """See `GroundCost`."""
        return (
            Fraction(int(np.diff(self.whole.rows).max(initial=0))),
            Fraction(int(np.diff(self.whole.columns).max(initial=0))),
        )

    def bounds(self, flow: Ints, down: Ints, right: Ints, least: int) -> Bounds:
        """See `GroundCost`."""
        return Fraction(least), Fraction(least), Fraction(least)


def ground_cost(
    shape: tuple[int, int],
    nodes: int,
    order: int,
    ground: str | SeparableCost,
    sides: Sides,
) -> GroundCost:
    """Return the cost ground distance ** order on a grid.

    Parameters
    ----------
    shape : (R, C)
    nodes : int
        Most nodes, sources and targets, that a network will have.
    order : {1, 2}
    ground : {"euclidean", "cityblock"} or SeparableCost
        The latter is the cost itself; order and sides do not matter.
    sides : (height, width)
        Of a cell, in the unit of the distance; 0 along an axis that no mass moves along.

    Raises
    ------
    InputError
        The sides are too different, or the costs or the grid too large, for sums in 64 bits.
    """
    limit = COST_LIMIT // nodes
    if isinstance(ground, SeparableCost):
        largest = int(ground.rows[-1]) + int(ground.columns[-1])
        if largest > limit:
            raise InputError(
                f"ground must have costs of at most {limit} on a map with {nodes} filled cells, "
                f"got {largest}"
            )
        return Given(ground)
    if (order, ground) in ((2, "euclidean"), (1, "cityblock")):
        return _power_sum(shape, limit, order, sides)
    squared = _squared_sum(shape, limit, sides) if ground == "cityblock" else None
    return squared or _tabulated(shape, limit, order, ground, sides)


def check_shape(cost: SeparableCost, shape: tuple[int, ...]) -> None:
    """Check that costs have as many rows and columns as the maps.

    Raises
    ------
    InputError
        They have others.
    """
    given = (len(cost.rows), len(cost.columns))
    if given != shape:
        raise InputError(
            f"ground must have a cost for each of {shape} rows and columns, got {given}"
        )


def _power_sum(shape: tuple[int, int], limit: int, power: int, sides: Sides) -> PowerSum:
    height, width = (Fraction(side) for side in sides)
    span = sum((cells - 1) ** power for cells in shape)
    # The largest cost is at most the larger whole number times `span`.
    whole = _whole_ratio(height**power, width**power, limit // max(span, 1))
    if whole is None:
        raise _too_different(sides, shape)
    steps = [np.arange(cells, dtype=np.int64) ** power for cells in shape]
    return PowerSum(SeparableCost(whole[0] * steps[0], whole[1] * steps[1]), height, width, power)


def _squared_sum(shape: tuple[int, int], limit: int, sides: Sides) -> SquaredSum | None:
    height, width = (Fraction(side) for side in sides)
    span = sum(cells - 1 for cells in shape)
    # The largest cost is at most (the larger whole number times `span`)^2.
    whole = _whole_ratio(height, width, math.isqrt(limit) // max(span, 1))
    if whole is None:
        return None
    down, right = (side * np.arange(n) for side, n in zip(whole, shape, strict=True))
    return SquaredSum(TableCost((down[:, None] + right[None, :]) ** 2), height, width, whole)


def _whole_ratio(first: Fraction, second: Fraction, largest: int) -> tuple[int, int] | None:
    """Return whole numbers up to `largest` in the ratio of the given ones, to RELATIVE_ERROR.

    None if no such numbers exist.
    """
    if 0 in (first, second):
        return (int(first > 0), int(second > 0)) if largest >= 1 else None
    if first > second:
        swapped = _whole_ratio(second, first, largest)
        return None if swapped is None else swapped[::-1]
    # At least 1 from here on, so of the two the numerator is the one to bound.
    ratio = second / first
    # For denominators up to n the nearest ratio has a numerator up to n * ratio + 1.
    near = ratio.limit_denominator(max(int((largest - 1) / ratio), 1))
    if near.numerator > largest or abs(near / ratio - 1) > RELATIVE_ERROR:
        return None
    return near.denominator, near.numerator


def _tabulated(
    shape: tuple[int, int], limit: int, order: int, ground: str, sides: Sides
) -> Tabulated:
    steps = (float(side) * np.arange(n) for side, n in zip(sides, shape, strict=True))
    down, right = np.ix_(*steps)
    table = (np.hypot(down, right) if ground == "euclidean" else down + right) ** order
    largest = float(table.max())
    nearest = float(table[table > 0].min(initial=math.inf))
    scale = int(2.0 ** math.floor(math.log2(limit / largest))) if largest > 0 else 1
    if int(np.rint(largest * scale)) > limit:  # the logarithm was rounded
        scale //= 2
    whole = np.rint(table * scale).astype(np.int64)
    # Scaling by a power of 2 is exact, and so is the difference of two close floats. Sides, their
    # products, sums and roots were rounded: seven times 2^-53 of the largest, if all add up.
    error = (
        Fraction(float(abs(whole - table * scale).max())) + Fraction(8 * largest * scale) / 2**53
    )
    if scale < 1 or (largest > 0 and error > TABLE_ERROR * Fraction(nearest) * scale):
        raise _too_different(sides, shape)
    return Tabulated(TableCost(whole), table, scale, error)


def _too_different(sides: Sides, shape: tuple[int, int]) -> InputError:
    height, width = map(float, sides)
    return InputError(
        f"cell must have sides that are less different for 64-bit sums on a grid of "
        f"{shape[0]} x {shape[1]} cells, got {height:g} to {width:g}: aggregate both maps"
    )


def _exact_dot(first: Ints, second: Ints) -> int:
    return sum(map(mul, first.tolist(), second.tolist()))
