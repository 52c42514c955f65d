"""Planar Laplace noise (Andrés et al., CCS 2013), the usual way to geo-indistinguishability.

Noise of density epsilon^2 / (2 pi) e^(-epsilon r) is added to the raw position, and what comes out
is put into the nearest cell of the map, which is post-processing. Two positions at distance r give
one report with probabilities whose ratio is at most e^(epsilon r): geo-indistinguishability, NOT
epsilon-LDP, for far positions differ without bound.
"""

from dataclasses import dataclass
from math import pi, sqrt
from typing import ClassVar, Literal

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from client_sdk import Grid
from client_sdk.kernels import cells_of
from client_sdk.shared import TURN, UNIT
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.errors import InputError
from ldpspatial.estimation import LikelihoodGain, estimate
from ldpspatial.places.points import Points
from ldpspatial.places.users import Positions, UserCells, user_cells
from ldpspatial.privacy.claims import TAKING_PART, PrivacyClaim
from ldpspatial.privacy.local_privacy import local_privacy
from ldpspatial.release.local.local_release import (
    ONE_REPORT,
    PUBLIC_MAP,
    LocalRelease,
    check_rule,
    estimator_name,
    side_within,
    square_side,
)
from ldpspatial.release.release import Fact, Released
from ldpspatial.validate import check_epsilon, check_generator, one_of

Array = NDArray[np.float64]
Rates = tuple[float, float]

NOT_LDP = "not epsilon-LDP: the loss between two positions is epsilon times their distance"
REAL_NOISE = (
    "the noise is real numbers: float64 draws of it, as here, keep the claim up to their rounding "
    "and not to the last digit"
)
SEVERAL = "between users of several positions it is that of the two positions farthest apart"

MOST_CELLS = 64  # its channel is a matrix of 134 MB
RATES = 1e-6, 1e3  # epsilon per cell for which the quadrature was measured
STEP_GAIN = 2e-3  # nats, see PlanarLaplace

NODES = 20  # of Gauss and Legendre, in each panel and axis
FINEST = 12  # the panels next to 0 halve so many times
REACH = 60  # what lies so many lengths 1 / epsilon beyond the map is left out: e^-60 of it
WIDEST = 8  # lengths 1 / epsilon that a panel spans at most


@dataclass(frozen=True)
class PlanarLaplace(LocalRelease):
    """Planar Laplace noise on raw positions, snapped to the map, then EM.

    This is simulation: float64 draws. On a device they would not keep the claim to the letter. The
    low digits of a noised float can give its position away (Mironov, CCS 2012), and with finite
    precision the epsilon that holds is larger than asked for and holds up to a limited distance
    (Andrés et al., section 5).

    EM's default rule stops when a step gains less than 0.002 nats times (epsilon d)^2, the number
    of patches of one noise length 1 / epsilon that the map has room for. The scale of mechanisms
    that keep epsilon-LDP, e^epsilon, is not a guide: with epsilon per cell EM would overfit, with
    the loss across the map it would not start.

    Attributes
    ----------
    unit : {"cell", "metre"}
        What epsilon is per. "cell": lengths are in cells, and :meth:`run` takes the sides of the
        grid's cells for them. "metre": on the ground, in the equirectangular projection at the
        centre of the square, or in units of a plane grid; needs a grid, so only ``run`` works.
    rule : {"scaled", "likelihood", "published"}
        When EM stops; "likelihood" is that of :func:`ldpspatial.estimate` with epsilon per cell.
    """

    unit: Literal["cell", "metre"] = "cell"
    rule: str = "scaled"

    name: ClassVar[str] = "planar-laplace"

    def __post_init__(self) -> None:
        one_of("unit", self.unit, ("cell", "metre"))
        check_rule(self.rule)

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return epsilon-geo-indistinguishability per cell or metre; it is not epsilon-LDP.

        It holds between raw positions. Between cells it holds at the distance of their centres,
        when positions are spread alike in both: each is compared with the other cell's at that
        very distance. Two positions of those cells can be sqrt(2) cells farther apart.
        """
        check_epsilon(epsilon)
        if self.unit == "cell":
            _check_rates(epsilon, epsilon)
            where = "distances are between raw positions, in cells of the map"
        else:
            where = (
                "distances are between raw positions, in metres of the equirectangular projection "
                "at the square's centre, or in units of a plane grid"
            )
        return geo_claim(epsilon, self.unit, where, REAL_NOISE)

    def channel(self, cells: int, epsilon: float) -> MatrixChannel:
        """Return the probabilities of reported cells, positions uniform in their cells.

        Raises
        ------
        InputError
            The unit is the metre, or the map has more than 64 x 64 cells.
        """
        self._needs_cells()
        self.claim(epsilon)
        return planar_laplace_channel(cells, (epsilon, epsilon))

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the mean distance of an observer's guess from a reported cell, in cells."""
        return local_privacy(self.channel(cells, epsilon))

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Noise one position a user, drawn uniformly in the cell; epsilon is per cell.

        Raises
        ------
        InputError
            The unit is the metre: cells alone have no size.
        """
        self._needs_cells()
        claim = self.claim(epsilon)
        side = square_side(self.name, users)
        at = np.stack(np.divmod(users.one_cell_each(rng), side)) + rng.random((2, len(users)))
        return self._report(at, side, (claim.epsilon, claim.epsilon), claim, rng)

    def run(
        self, points: Positions, grid: Grid, epsilon: float, rng: np.random.Generator
    ) -> Released:
        """Noise one raw position a user; epsilon is per :attr:`unit`.

        Arguments and errors are those of :meth:`ldpspatial.release.release.Release.run`.
        """
        claim = self.claim(epsilon)
        epsilon = claim.epsilon
        check_generator(rng)
        user_cells(points, grid)  # which refuses what is not positions
        at = _one_position_each(points, grid, rng)
        height, width = grid.cell_size
        if self.unit == "cell":
            rates = epsilon, epsilon
            # Along the shorter side a metre is more of a cell: the worst direction counts.
            per_metre = epsilon / min(height, width)
        else:
            rates = epsilon * height, epsilon * width
            per_metre = epsilon
        _check_rates(*rates)
        return self._report(at, grid.cells, rates, claim, rng, {"epsilon_per_metre": per_metre})

    def _report(
        self,
        at: Array,
        side: int,
        rates: Rates,
        claim: PrivacyClaim,
        rng: np.random.Generator,
        more: dict[str, Fact] | None = None,
    ) -> Released:
        """Noise (2, n) positions in cells, count them by cell and estimate the density."""
        channel = planar_laplace_channel(side, rates)
        # Noise on the raw position, before its cell or the edge: what follows is post-processing.
        noised = at + planar_laplace_noise(at.shape[1], rng) / np.array(rates)[:, None]
        rows, columns = np.clip(np.floor(noised), 0, side - 1).astype(np.int64)
        counts = np.bincount(rows * side + columns, minlength=side**2)
        rule = noise_patches(channel) if self.rule == "scaled" else self.rule
        found = estimate(channel, counts, rule)
        facts: dict[str, Fact] = {
            "estimator": estimator_name(found),
            "notion": f"geo-indistinguishability per {self.unit}, not epsilon-LDP",
            "epsilon_per_cell": max(rates),
            "iterations": found.iterations,
        }
        return Released(found.density, claim, {**facts, **(more or {})}, found)

    def _needs_cells(self) -> None:
        if self.unit != "cell":
            raise InputError(
                f"unit must be cell where there is no grid that says how long one is, got "
                f"{self.unit}: run {self.name} on positions and a grid"
            )


def geo_claim(epsilon: float, distance: str, *conditions: str) -> PrivacyClaim:
    """Return epsilon-geo-indistinguishability of one report, epsilon per that distance."""
    return PrivacyClaim(
        "local",
        float(epsilon),
        notion="geo-indistinguishability",
        distance=distance,
        conditions=(NOT_LDP, *conditions, SEVERAL, ONE_REPORT, PUBLIC_MAP, TAKING_PART),
    )


def noise_patches(channel: MatrixChannel) -> LikelihoodGain:
    """Return the stop at 0.002 (epsilon d)^2 nats, for a channel whose epsilon is per cell."""
    patches = channel.epsilon**2 * channel.input_shape[0] * channel.input_shape[1]
    return LikelihoodGain(STEP_GAIN * patches, "scaled")


def planar_laplace_noise(size: int, rng: np.random.Generator) -> Array:
    """Draw (2, size) planar Laplace noise of epsilon 1: Gamma(2) far, in a uniform direction.

    The inverse of the radius' distribution, -(W(-1, (p - 1) / e) + 1), gives the same law.
    """
    radius = rng.standard_gamma(2, size)  # density r e^-r in polar coordinates, not e^-r
    angle = rng.uniform(0, 2 * pi, size)
    return np.asarray(radius * np.stack([np.sin(angle), np.cos(angle)]))


def planar_laplace_channel(cells: int, rates: Rates) -> MatrixChannel:
    """Return the channel of planar Laplace noise from cell to cell of a square map.

    The position is uniform in its cell; a cell at the edge collects what falls outside nearest to
    it. With N the noise, the probability of an offset o along one axis is the mean of the triangle
    max(0, 1 - abs(N - o)), and of o or more that of the ramp N - o + 1 cut to [0, 1]. The mean of a
    product of two such functions is a double integral, by Gauss and Legendre with 20 nodes a panel
    and axis; panels end where the functions bend and shrink towards the cusp of the density at 0.
    The error, measured against panels half as wide, is below 1e-12.

    Parameters
    ----------
    cells : int in [1, 64]
    rates : (float, float) in [1e-6, 1000]
        Epsilon per height of a cell and per width.
    """
    cells = side_within(PlanarLaplace.name, cells, MOST_CELLS)
    epsilon = sqrt(rates[0] * rates[1])
    if cells == 1:  # which is at both edges
        return MatrixChannel(np.ones((1, 1)), (1, 1), epsilon)
    (down, weight_down), (across, weight_across) = (_rule(cells, rate) for rate in rates)
    apart = np.hypot(rates[0] * down[:, None], rates[1] * across)
    # epsilon^2 is the product of the rates: a density per cell, as nodes are in sides of cells.
    mass = epsilon**2 / (2 * pi) * np.exp(-apart) * np.outer(weight_down, weight_across)
    moments = _bends(cells, down) @ mass @ _bends(cells, across).T
    output, given = np.indices((cells, cells))
    which = np.abs(output - given)
    which[[0, -1]] += cells  # at the edges: so far or farther
    # Axes: output row, output column, given row, given column.
    matrix = moments[which[:, None, :, None], which[None, :, None, :]]
    return MatrixChannel(matrix.reshape(cells**2, cells**2), (cells, cells), epsilon)


def _bends(cells: int, noise: Array) -> Array:
    """Return triangles, then ramps, of all offsets at +noise and -noise together."""
    offset = np.arange(cells)[:, None]
    both = [sign * noise - offset for sign in (1, -1)]
    # Nodes lie on one quadrant of the noise; its mirror images add up here, axis by axis.
    triangles = sum(np.clip(1 - np.abs(x), 0, None) for x in both)
    ramps = sum(np.clip(x + 1, 0, 1) for x in both)
    return np.concatenate([triangles, ramps])


def _rule(cells: int, rate: float) -> tuple[Array, Array]:
    """Return nodes and weights for integrals over noise from 0 on along one axis."""
    inner = np.concatenate([[0], 2.0 ** np.arange(-FINEST, 1), np.arange(2.0, cells + 1)])
    # Triangles and ramps bend at whole numbers; halving towards 0 follows the cusp of the density.
    edges = inner.tolist()
    width = 1.0
    while edges[-1] < inner[-1] + REACH / rate:
        width = min(2 * width, WIDEST / rate)
        edges.append(edges[-1] + width)
    x, weights = leggauss(NODES)
    half = np.diff(edges) / 2
    nodes = (np.array(edges[:-1]) + half)[:, None] + np.outer(half, x)
    return nodes.ravel(), np.outer(half, weights).ravel()


def _one_position_each(points: Positions, grid: Grid, rng: np.random.Generator) -> Array:
    """Return for each user one position of those in the square, drawn uniformly.

    Shape (2, users): in heights of a cell from the south, in widths from the west.
    """
    if isinstance(points, Points):
        ids = points.users
        coordinates = points.coordinates
    elif isinstance(points, tuple) and len(points) == 2 and np.ndim(points[1]) == 2:
        ids = np.asarray(points[0])
        coordinates = np.asarray(points[1])
    else:
        ids = None
        coordinates = np.asarray(points)
    inside = np.flatnonzero(cells_of(grid, coordinates[:, 0], coordinates[:, 1])[2])
    if ids is not None:
        inside = rng.permutation(inside)  # a user's first one now is any of them
        inside = inside[np.unique(ids[inside], return_index=True)[1]]
    up, east = coordinates[inside].T * UNIT - np.array([[grid.south], [grid.west]])
    if grid.kind == "geographic":  # from the near side, whichever way longitudes are written
        half = (TURN - grid.width) / 2
        east = (east + half) % TURN - half
    return np.stack([up / grid.height, east / grid.width]) * grid.cells


def _check_rates(*rates: float) -> None:
    low, high = RATES
    for rate in rates:
        if not low <= rate <= high:
            raise InputError(f"epsilon must be {low:g} to {high:g} per cell, got {rate:.6g}")
