"""The flows of a plan: how far each goes, and many of them summed up as a few."""

from dataclasses import dataclass

import numpy as np

from ldpspatial.metrics._maps import FloatArray
from ldpspatial.metrics.exact.grid_costs import SeparableCost
from ldpspatial.metrics.exact.network_simplex import Ints
from ldpspatial.metrics.transport import Transport

SECTORS = 8
"""Directions that flows are told apart by."""

SMALLEST_PERCENT = 1e-4  # below it shares are written in millionths


@dataclass(frozen=True)
class Bundles:
    """Flows that set out from one block of cells, in one direction and about as far, summed up.

    Attributes
    ----------
    start, end : (k, 2) float64
        Mean of the flows' sources and of their targets: row, column.
    mass : (k,) float64
        What they carry, as a share of the map's mass.
    cost : (k,) float64
        What they add to the mean cost of a unit of mass, distance ** order.
    """

    start: FloatArray
    end: FloatArray
    mass: FloatArray
    cost: FloatArray

    def __len__(self) -> int:
        return len(self.mass)

    def dearest(self, number: int) -> "Bundles":
        """Return the `number` bundles that cost most, in that order."""
        first = np.argsort(-self.cost, kind="stable")[:number]
        return Bundles(self.start[first], self.end[first], self.mass[first], self.cost[first])

    def number_for(self, share: float) -> int:
        """Return how many bundles, those that cost most first, make up a share < 1 of the cost."""
        reached = np.cumsum(-np.sort(-self.cost))
        return int(np.searchsorted(reached, share * self.cost.sum())) + 1


def flow_lengths(plan: Transport) -> FloatArray:
    """Return the distance (n,) that each flow of a plan goes, in the unit of `plan.cell`.

    Under a `SeparableCost`, which need not stem from a distance, it is cost ** (1 / order). So the
    sum of mass * length ** order is plan.value ** order in any case.
    """
    down, right = abs(plan.sources - plan.targets).T
    if isinstance(plan.ground, SeparableCost):
        cost = plan.ground.between(down, right).astype(np.float64)
        return np.asarray(cost ** (1 / plan.order), np.float64)
    height, width = plan.cell
    if plan.ground == "cityblock":
        return np.asarray(height * down + width * right, np.float64)
    return np.asarray(np.hypot(height * down, width * right), np.float64)


def single_flows(plan: Transport) -> Bundles:
    """Return the flows of a plan that go from one cell to another, each by itself."""
    moving = (plan.sources != plan.targets).any(axis=1)
    return Bundles(
        start=plan.sources[moving].astype(np.float64),
        end=plan.targets[moving].astype(np.float64),
        mass=plan.mass[moving],
        cost=(plan.mass * flow_lengths(plan) ** plan.order)[moving],
    )


def bundles(plan: Transport, block: tuple[int, int]) -> Bundles:
    """Sum up the flows of a plan that go from one cell to another.

    Flows of one bundle head for the same eighth of the compass and go equally far up to a factor of
    2, so none cancel each other and all end near the bundle's end. Those that go less than two
    blocks start in the same block of `block` (rows, columns) cells; those that go 2, 4, 8, ...
    times as far start in the same block of 2, 4, 8, ... times the size.
    """
    flows = single_flows(plan)
    sector, doublings = _headings(flows.end - flows.start, plan.cell, block)
    blocks = flows.start // (np.array(block) * 2.0 ** doublings[:, None])
    keys = np.column_stack([blocks, sector, doublings])
    _, bundle = np.unique(keys, axis=0, return_inverse=True)
    bundle = bundle.ravel()  # numpy 2.0 returned a column
    mass = _sums(bundle, flows.mass)
    return Bundles(
        start=_means(bundle, flows.start, flows.mass, mass),
        end=_means(bundle, flows.end, flows.mass, mass),
        mass=mass,
        cost=_sums(bundle, flows.cost),
    )


def _headings(
    ways: FloatArray, cell: tuple[float, float], block: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Return the sector of ways (n, 2) in cells, and how often two blocks double to their length.

    The first sector, 0, is centred on the east.
    """
    north, east = (ways * np.array(cell)).T
    turns = np.arctan2(north, east) / (2 * np.pi)
    blocks = np.hypot(*(ways / np.array(block)).T)
    # 0 below two blocks, 1 below four, ...; the maximum keeps short ways from going below 0.
    doublings = np.floor(np.log2(np.maximum(blocks, 1.0)))
    # Around due west turns are near -1/2 or 1/2: % makes the sectors -4 and 4 one.
    return np.asarray(np.rint(SECTORS * turns) % SECTORS), np.asarray(doublings)


def _means(bundle: Ints, places: FloatArray, mass: FloatArray, total: FloatArray) -> FloatArray:
    rows, columns = (_sums(bundle, mass * along) / total for along in places.T)
    return np.column_stack([rows, columns])


def _sums(bundle: Ints, values: FloatArray) -> FloatArray:
    return np.asarray(np.bincount(bundle, values), np.float64)


def share_text(share: float) -> str:
    """Return a share in percent, or in millionths where percents have too many digits."""
    if 0 < abs(share) < SMALLEST_PERCENT:
        return f"{1e6 * share:,.3g} ppm"
    return f"{1e2 * share:,.3g} %"


def length_text(length: float) -> str:
    """Return a length with four digits, or whole from 1000 on."""
    return f"{length:,.0f}" if length >= 1e3 else f"{length:.4g}"
