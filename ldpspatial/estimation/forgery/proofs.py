"""What no forgery can pass, proved from the weights of the table.

Of all reports a share s is forged. The others are of density f0, with distribution g0 = M f0, and
the fit f is that of maximum likelihood to c = (1 - s) g0 + s w, w what the forgers send. By the
conditions of Karush, Kuhn and Tucker M^T(c / M f) <= 1 in every cell.

For the share of a region (:func:`least_share`) take any b >= 0 on outputs and a >= 0 on cells. Then

    r.f >= min(r - M^T b) + b.Mf + (M a).(c / M f) - sum a,

and each p = (M f)_y lies between the least and the largest entry of its row, q and q e^eps. So an
output cell to which a part w_y of the forgers' reports goes adds

    h_y(w_y) = min over p of b_y p + (M a)_y ((1 - s) g0_y + s w_y) / p

at least. As a minimum of linear functions it is concave in w_y, so the sum over all output cells is
least where all that is forged is one cell: sum h_y(0) + min (h_y(1) - h_y(0)).

For W2 (:func:`most_moved`) what is forged adds s e^-eps at least, as no two entries of a row of M
differ by more than the factor e^eps: M^T(g0 / M f) <= (1 - s e^-eps) / (1 - s). The dual with the
weights of one disk tells how much forgers can take from each disk, in closed form; what they took
may lie anywhere. For how far the maps are that no region forbids no proof is known that is short of
looking everywhere: W2 is convex in the map, and the largest value of a convex function may hide in
any corner of the set.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from client_sdk import ResponseTable
from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.protocol import operators
from ldpspatial.estimation.window_sums import window_sums
from ldpspatial.metrics import Transport, transport

Array = NDArray[np.float64]

SCALES = (0.2, 5.0)  # of b and a where searches of the dual start, of which the better goes on
SMOOTHINGS = (0.03, 0.003, 0.0003)  # of least values, as shares of the weights' range
DUAL_STEPS = 200  # with each of these
GAIN = 1e-8  # of the bound, below which a step ends the search
ROUNDED = 1e-9  # sums of d^2 numbers are rounded by far less
TRANSPORT_SIDE = 40  # blocks a side of the maps whose distance is part of the proof
NEAR_THE_MOST = 1.02  # the proof looks for the worst place up to this factor
OFF_DISK = 1.5 ** np.arange(-20, 21)  # weights of all reports beside those of one output cell


@dataclass(frozen=True)
class LeastShare:
    """What no forgery passes, and a forgery that comes near.

    Attributes
    ----------
    bound : float
        The weighted share of no fit is below it.
    forged : (d + 2b, d + 2b) array
        Distribution of what forgers send where the proof has least room.
    """

    bound: float
    forged: Array


def least_share(weights: Array, channel: StampChannel, density: Array, share: float) -> LeastShare:
    """Return a number that weights.f of no fit is below; the best that a search of the dual finds.

    Any a and b are a proof, by the inequality of the module; the search is by their square roots.
    Both searches begin with even ones; large ones suit what hardly shows in reports.

    Parameters
    ----------
    weights : (d, d) array
    channel : StampChannel
    density : (d, d) array
        Of those who are honest.
    share : float in (0, 1)
        Forged, of all reports.
    """
    spread = float(np.ptp(weights))
    if not spread:
        even = channel.support / channel.support.sum()
        return LeastShare(float(weights.min()), even)
    dual = _Dual(weights / spread, channel, density, share)
    begun = []
    for scale in SCALES:
        x = dual.ascended(np.full(dual.size, np.sqrt(scale)), SMOOTHINGS[0])
        begun.append((dual.bound(x), x))
    x = max(begun, key=lambda pair: pair[0])[1]
    for width in SMOOTHINGS[1:]:
        x = dual.ascended(x, width)
    forged = np.zeros(channel.support.shape)
    forged[channel.support] = dual.forged(x, SMOOTHINGS[-1])
    bound = max(dual.bound(x), *(value for value, _ in begun), float(weights.min()) / spread)
    return LeastShare(bound * spread - ROUNDED, forged)


class _Dual:
    """The bound of :func:`least_share` as a function of roots of b and a.

    Least values over cells and over outputs are smoothed over a width for its gradient.
    """

    def __init__(self, weights: Array, channel: StampChannel, density: Array, share: float):
        self._forward, self._adjoint = operators(channel)
        self._support = channel.support
        self._weights = weights
        table = channel.table
        self._base = 0.9 * density + 0.1 / density.size
        self._least = table.base_weight / table.total_weight
        self._most = self._least * float(table.max_ratio())
        self._honest = (1 - share) * np.maximum(channel.forward(density)[self._support], 0)
        self._all = self._honest + share
        self.size = self._honest.size + density.size

    def ascended(self, x: Array, width: float) -> Array:
        """Return where a search from x ends."""
        # Of tens of thousands of variables each has a small part in the gradient.
        options = {"maxiter": DUAL_STEPS, "maxcor": 20, "gtol": 0, "ftol": GAIN}
        found = scipy.optimize.minimize(
            self._smooth, x, args=(width,), jac=True, method="L-BFGS-B", options=options
        )
        return np.asarray(found.x)

    def bound(self, x: Array) -> float:
        """Return what is proved."""
        at = self._at(x)
        return float(at.rest.min() + at.sent.min()) + at.fixed

    def forged(self, x: Array, width: float) -> Array:
        """Return in which outputs the least value is: the forgers' part of the saddle point."""
        return _soft_least(self._at(x).sent, width)[1]

    def _smooth(self, x: Array, width: float) -> tuple[float, Array]:
        """Return the smooth bound and its gradient, with minus signs."""
        at = self._at(x)
        rest, where = _soft_least(at.rest, width)
        sent, by = _soft_least(at.sent, width)
        slope_b = at.low + by * (at.high - at.low) - self._forward(where)[self._support]
        slope_a = np.zeros(self._support.shape)
        slope_a[self._support] = self._honest / at.low + by * (
            self._all / at.high - self._honest / at.low
        )
        above = (self._adjoint(slope_a) - 1) * self._base * at.root_a
        gradient = np.concatenate([2 * at.root_b * slope_b, (2 * above).ravel()])
        return -(rest + sent + at.fixed), -gradient

    def _at(self, x: Array) -> "_Point":
        root_b = x[: self._honest.size]
        root_a = x[self._honest.size :].reshape(self._base.shape)
        b = np.zeros(self._support.shape)
        b[self._support] = root_b**2
        a = self._base * root_a**2
        moved = np.maximum(self._forward(a)[self._support], 0)  # FFTs leave values just below 0
        ratio = np.sqrt(moved / np.maximum(b[self._support], 1e-300))
        low = np.clip(ratio * np.sqrt(self._honest), self._least, self._most)
        high = np.clip(ratio * np.sqrt(self._all), self._least, self._most)
        without = b[self._support] * low + moved * self._honest / low
        sent = b[self._support] * high + moved * self._all / high - without
        rest = self._weights - self._adjoint(b)
        return _Point(root_b, root_a, low, high, rest, sent, float(without.sum() - a.sum()))


@dataclass(frozen=True)
class _Point:
    """Where M f is for the least of each h(0) and h(1), and the parts of the bound."""

    root_b: Array
    root_a: Array
    low: Array
    high: Array
    rest: Array  # r - M^T b, by cell
    sent: Array  # h(1) - h(0), by output
    fixed: float


def _soft_least(values: Array, width: float) -> tuple[float, Array]:
    """Return a smooth value just below the least one, and its gradient."""
    least = values.min()
    weights = np.exp((least - values) / width)
    total = weights.sum()
    return float(least - width * np.log(total)), weights / total


def most_moved(channel: StampChannel, density: Array, share: float) -> float:
    """Return a W2 in cells that no fit of forged reports is beyond.

    Let k be the part of the channel that tells of the place: the distribution of report minus cell
    given that the report is not of the even part. W2(f, k f) is at most k's root mean square
    length, and k f = (M f - q) / (1 - q N) is at least what :func:`_least_reports` leaves of it.
    """
    corner = _to_one_cell(density)
    table = channel.table
    base = table.base_weight / table.total_weight
    told = 1 - base * table.output_size
    if told <= 0:
        return corner
    law = channel.forward(density)
    least = np.where(channel.support, _least_reports(channel, law, share), 0.0)
    left = np.maximum(least - base, 0) / told * channel.support
    if left.sum() < 0.02:  # next to nothing is known to stay
        return corner
    offsets = np.arange(-table.radius, table.radius + 1)
    squares = offsets[:, None] ** 2 + offsets**2
    blur = float(np.sqrt((_lift(table) * squares).sum() / told))
    return min(corner, blur + _farthest(np.pad(density, table.radius), left))


def _to_one_cell(density: Array) -> float:
    """Return the W2 of the map to the worst of all maps: W2^2 is convex, so to one cell."""
    places = np.arange(len(density))
    squared = 0.0
    for axis in (0, 1):
        mass = density.sum(axis=1 - axis)
        # A convex function of the cell: largest at an end.
        squared += max(float(mass @ (places - end) ** 2) for end in (0, places[-1]))
    return float(np.sqrt(squared))


def _least_reports(channel: StampChannel, law: Array, share: float) -> Array:
    """Return what M f of no fit is below, by output cell.

    With b >= 0 on outputs and a >= 0 on cells, A = M a: b M f + A g0 / M f >= 2 sqrt(b A g0), and
    the second sums to slack * sum a at most. For one output cell y, b is 1 at y and beta more
    everywhere, and a = tau ((1 - theta) f0 + theta at the cell of the square nearest to y). The
    best tau is known, and leaves -beta + T^2 / slack, T = sum sqrt(b g0 A). Table's weights are
    rounded down to two levels, which T only falls by.
    """
    table = channel.table
    base = table.base_weight / table.total_weight
    lifts = _lift(table)
    high = lifts >= lifts.max() / 2
    lift = float(lifts[high].min())
    radius = table.radius
    square = slice(radius, radius + table.cells)
    nearest = np.clip(np.arange(-radius, table.cells + radius), 0, table.cells - 1)
    off = np.abs(np.arange(-radius, table.cells + radius) - nearest) + radius
    inside = high[np.ix_(off, off)]
    slack = _slack(channel, share)
    law = law * channel.support
    best = np.zeros(law.shape)
    for theta in (0.0, *np.minimum(np.sqrt(share) * np.geomspace(0.01, 10, 13), 1)):
        outer = np.sqrt(law * np.maximum((1 - theta) * law + theta * base, 0))
        inner = np.sqrt(law * np.maximum((1 - theta) * law + theta * (base + lift), 0))
        more = window_sums(inner - outer, high.astype(float))[square, square]
        everywhere = (outer.sum() + more)[np.ix_(nearest, nearest)] - 1e-12
        own = np.where(inside, inner, outer)
        for beta in OFF_DISK * max(float(law.max()), base):
            total = np.sqrt(beta) * everywhere + (np.sqrt(beta + 1) - np.sqrt(beta)) * own
            best = np.maximum(best, total**2 / slack - beta)
    return best


def _lift(table: ResponseTable) -> Array:
    """Return (2b + 1, 2b + 1) probabilities above those of the even part, by offset."""
    lift = np.zeros((2 * table.radius + 1,) * 2)
    for (row, col), weight in table.weights.items():
        lift[row + table.radius, col + table.radius] = weight - table.base_weight
    return lift / table.total_weight


def _farthest(density: Array, left: Array) -> float:
    """Return the most that W2(density, left + mass anywhere) can be, the rest of a unit of mass.

    Convex in where that mass is, so it is largest with all of it in one cell. A plan for one cell
    is a plan for any other, with the ends of the paths moved there: an upper bound for all cells at
    once. Worst cells are solved until none is left that could be much worse than those solved.
    """
    side = -(-len(density) // TRANSPORT_SIDE)
    off = (side - 1) / np.sqrt(2) * 2  # both maps are moved to the middles of their blocks
    source = pooled(density, TRANSPORT_SIDE)
    stays = pooled(left, TRANSPORT_SIDE)
    free = 1 - stays.sum()
    squared = np.full(source.shape, np.inf)
    found = 0.0
    cell = (0, 0)
    for _ in range(source.size):
        target = stays.copy()
        target[cell] += free
        plan = transport(source, target, certify=False)
        found = max(found, plan.value)
        part = float(free / target[cell])
        squared = np.minimum(squared, _with_ends_moved(plan, cell, part, source.shape))
        row, col = np.unravel_index(squared.argmax(), squared.shape)
        cell = (int(row), int(col))
        if squared[cell] <= (NEAR_THE_MOST * found) ** 2:
            break
    return float(side * np.sqrt(squared.max() + 1e-9) + off)


def _with_ends_moved(
    plan: Transport, cell: tuple[int, int], part: float, shape: tuple[int, ...]
) -> Array:
    """Return the cost of a plan where this part of all that arrives at a cell goes to another."""
    arrives = (plan.targets == cell).all(axis=1)
    paths = ((plan.sources - plan.targets) ** 2).sum(axis=1)
    fixed = float((plan.mass * np.where(arrives, 1 - part, 1) * paths).sum())
    sources = plan.sources[arrives]
    mass = part * plan.mass[arrives]
    by_axis = [
        ((np.arange(shape[axis])[:, None] - sources[:, axis]) ** 2) @ mass for axis in (0, 1)
    ]
    return np.asarray(fixed + by_axis[0][:, None] + by_axis[1])


def _slack(channel: StampChannel, share: float) -> float:
    """Return what M^T(g0 / M f) is at most, in every cell, for a fit f with forgeries."""
    return (1 - share / float(channel.table.max_ratio())) / (1 - share)


def pooled(density: Array, blocks: int) -> Array:
    """Return a map's mass in blocks of equal sides, at most so many a side."""
    side = -(-len(density) // blocks)
    count = -(-len(density) // side)
    padded = np.pad(density, (0, count * side - len(density)))
    return np.asarray(padded.reshape(count, side, count, side).sum((1, 3)))
