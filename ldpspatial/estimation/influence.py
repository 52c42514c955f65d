"""How far forged reports can move a map: what forgers reach, and what none can pass.

Of all reports a share s is forged: any output cells, chosen together by people who know the table
and the map. The others are of density f0, with distribution g0 = M f0. The fit is that of maximum
likelihood, in the limit of many reports, on (1 - s) g0 + s w, w what the forgers send.

What they reach is computed. All forgers send one output cell, the counts are fitted, and the
distance between both maps is exact. Where the fit is linear in the counts no mixture w does better:
squared W2 is convex in the fitted map, so it is largest at a corner of the simplex of all w.
Elsewhere this is an attack, and optimised mixtures passed it by a tenth at most
(docs/experiments/forged-reports.md).

What none can pass is proved. The fit f satisfies M^T(g / M f) <= 1 in every cell (Karush, Kuhn,
Tucker), and the part of it that is forged adds at least s e^-eps, whatever is sent, as no two
entries of a row of M differ by more than the factor e^eps. So every fit lies in the convex set

    M^T(g0 / M f) <= (1 - s e^-eps) / (1 - s).

The share of a region r over this set has a convex dual (:func:`_least`), and any point of the dual
is a proof. For W2 the same dual with the weights of one disk tells how much forgers can take from
each disk, in closed form (:func:`_least_reports`); what they took may lie anywhere
(:func:`_farthest`).
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.signal import fftconvolve
from scipy.special import logsumexp

from client_sdk import ResponseTable
from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.protocol import operators
from ldpspatial.metrics import Transport, transport, wasserstein
from ldpspatial.validate import density_array, instance, number_array, number_in

Array = NDArray[np.float64]

MARGIN = 1.25  # optimised forgeries passed what one output cell reaches by a tenth at most
STEPS = 200  # of SQUAREM, from the map that nobody forged
QUICK_STEPS = 25  # enough to tell the worst of the output cells that are tried
SETTLED_STEP = 1e-9  # of the mass in one step of EM
LONGEST_LEAP = 1e4  # in steps of EM
SETTLED = 3  # of those tried are fitted to the end
TRIED = 6  # rows of output cells, and cells a row, besides those of the square's edge
TRIED_ON_LARGE = 3
QUICK_SIDE = 24
ROUNDING = 1e-5  # in cells, of the distances that the proof is made of
EXACT_SIDE = 64  # cells a side up to which maps are compared as they are
POOLED = 12  # blocks a side on which these are compared
TRANSPORT_SIDE = 40  # blocks a side of the maps whose distance is part of the proof
NEAR_THE_MOST = 1.02  # the proof looks for the worst place up to this factor
SMOOTHINGS = (0.1, 0.03, 0.01, 0.003, 0.001)  # of the least cell, as shares of the weights' range
DUAL_STEPS = 80  # with each of these
OFF_DISK = 1.5 ** np.arange(-20, 21)  # weights of all reports beside those of one output cell


@dataclass(frozen=True)
class RegionInfluence:
    """How far forgers move the share of one region.

    Attributes
    ----------
    lower, upper : float
        What forgers of one output cell, of those that were tried, make of the region's weighted
        share: attacks.
    least, most : float
        Proved: no forgery takes the share of the maximum likelihood fit below or above it.
    share : float
        The region's weighted share with nothing forged.
    """

    lower: float
    upper: float
    least: float
    most: float
    share: float


@dataclass(frozen=True)
class Influence:
    """How far forgers of a share of all reports can move a map.

    Attributes
    ----------
    share : float in [0, 1)
        Forged, of all reports.
    w2 : float
        What the map moves by at most, W2 in cells: 1.25 times what is reached, or what is
        proven where that is less. Measured, not proved: no optimised forgery passed it, be the map
        by EM, EM run to its limit, or the field.
    reached : float
        W2 in cells between the maps without and with forgeries that are all of one output cell, the
        worst of those that are tried: an attack, which anybody can repeat. On more than 64 cells a
        side of both maps in blocks.
    proven : float
        W2 in cells which no forgery can pass, by the weights of the table: for the maximum
        likelihood fit of many reports. Wide of the mark where disks are of several cells.
    cell : (int, int)
        The output cell of that attack, (row, col) as reports have it.
    """

    share: float
    w2: float
    reached: float
    proven: float
    cell: tuple[int, int]
    channel: StampChannel = field(repr=False, compare=False)
    density: Array = field(repr=False, compare=False)
    attacked: tuple[Array, ...] = field(repr=False, compare=False)

    def region(self, weights: ArrayLike) -> RegionInfluence:
        """Return how far forgers move the weighted share of a region.

        Parameters
        ----------
        weights : (d, d) array in [0, 1]
            The covered share of each cell.

        Raises
        ------
        InputError
            The weights have another shape, or a value outside [0, 1].
        """
        region = number_array("weights", weights, self.density.shape, "[0, 1]", bools=True)
        shares = [float((region * each).sum()) for each in (self.density, *self.attacked)]
        honest = shares[0]
        if not self.share:
            return RegionInfluence(honest, honest, honest, honest, honest)
        law = self.channel.forward(self.density)
        slack = _slack(self.channel, self.share)
        # Rounding of sums of d^2 numbers is far below this.
        least = _least(region, self.channel, self.density, law, slack) - 1e-9
        most = 1e-9 - _least(-region, self.channel, self.density, law, slack)
        return RegionInfluence(
            min(shares), max(shares), max(least, region.min()), min(most, region.max()), honest
        )


def influence(channel: StampChannel, density: ArrayLike, share: float) -> Influence:
    """Return how far forgers of a share of all reports can move a map.

    Parameters
    ----------
    channel : StampChannel
    density : (d, d) array
        The map of those who are honest: non-negative, sums to 1.
    share : float in [0, 1)
        Forged, of all reports.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=6.0, cells=5))
    >>> found = influence(channel, np.full((5, 5), 1 / 25), 0.05)
    >>> bool(0 < found.reached <= found.proven)
    True
    >>> found.region(np.eye(5)).most < 0.4
    True
    """
    instance("channel", channel, StampChannel)
    honest = density_array("density", density, channel.input_shape)
    forged = number_in("share", share, "[0, 1)")
    cells = _tried(channel)
    if not forged:
        return Influence(forged, 0.0, 0.0, 0.0, cells[0], channel, honest, ())
    fits = {
        cell: _fitted(channel, honest, forged, cell, _steps(channel, QUICK_STEPS, 5))
        for cell in cells
    }
    pooled = _pooled(honest, POOLED)
    far = [wasserstein(pooled, _pooled(fits[cell], POOLED), certify=False) for cell in cells]
    some = SETTLED if len(honest) <= QUICK_SIDE else 1
    best = [cells[k] for k in np.argsort(far)[-some:]]
    fits |= {
        cell: _fitted(channel, honest, forged, cell, _steps(channel, STEPS, 100)) for cell in best
    }
    moved = [_moved(honest, fits[cell]) for cell in best]
    reached = max(moved)
    worst = best[int(np.argmax(moved))]
    proven = max(_proven(channel, honest, forged) + ROUNDING, reached)
    return Influence(
        forged,
        min(MARGIN * reached, proven),
        reached,
        proven,
        worst,
        channel,
        honest,
        tuple(fits.values()),
    )


def _steps(channel: StampChannel, steps: int, least: int) -> int:
    """Return how many steps there is time for: fewer on larger grids, where each takes longer."""
    return max(least, int(steps / max(1.0, (channel.input_shape[0] / EXACT_SIDE) ** 2)))


def _moved(before: Array, after: Array) -> float:
    """Return W2 in cells; on grids above 64 cells a side between the maps of their blocks."""
    side = -(-len(before) // EXACT_SIDE)
    return side * wasserstein(
        _pooled(before, EXACT_SIDE), _pooled(after, EXACT_SIDE), certify=False
    )


def _tried(channel: StampChannel) -> list[tuple[int, int]]:
    """Return output cells all over the output domain, along its edge and that of the square."""
    table = channel.table
    last = table.cells - 1
    count = TRIED if table.cells <= QUICK_SIDE else TRIED_ON_LARGE
    cells = set()
    for row in _spread(-table.radius, last + table.radius, count, last):
        margin = table.margin(row)
        cells |= {(row, col) for col in _spread(-margin, last + margin, count, last)}
    return sorted(cells)


def _spread(first: int, end: int, count: int, last: int) -> set[int]:
    return {0, last, *(int(k) for k in np.linspace(first, end, count).round())}


def _fitted(
    channel: StampChannel, density: Array, share: float, cell: tuple[int, int], steps: int
) -> Array:
    """Return the fit of the map where all that is forged is one output cell."""
    law = (1 - share) * channel.forward(density)
    radius = channel.table.radius
    law[cell[0] + radius, cell[1] + radius] += share
    start = (1 - share) * density + share / density.size  # EM fills no cell that is empty
    return _most_likely(channel, law, start, steps)


def _most_likely(channel: StampChannel, law: Array, start: Array, steps: int) -> Array:
    """Return where EM goes to, by SQUAREM (Varadhan and Roland 2008, scheme S3).

    Estimators stop EM early on purpose; here its limit is wanted.
    """
    forward, adjoint = operators(channel)
    support = channel.support

    def ratio(density: Array) -> tuple[float, Array]:
        predicted = np.where(support, forward(density), 1.0)
        return float((law * np.log(predicted)).sum()), adjoint(law / predicted)

    density = start
    for _ in range(steps):
        first = density * ratio(density)[1]
        likelihood, second = ratio(first)
        second = first * second
        step = first - density
        if np.abs(step).sum() < SETTLED_STEP:
            break
        bend = second - first - step
        length = min(
            float(np.linalg.norm(step)) / max(float(np.linalg.norm(bend)), 1e-300), LONGEST_LEAP
        )
        if length > 1:
            leap = density + 2 * length * step + length**2 * bend
            leap = np.maximum(leap, 1e-12 * first)
            leap = leap / leap.sum()
            if ratio(leap)[0] >= likelihood:
                density = leap
                continue
        density = second / second.sum()
    return np.asarray(density)


def _pooled(density: Array, blocks: int) -> Array:
    """Return a map's mass in blocks of equal sides, at most so many a side."""
    side = -(-len(density) // blocks)
    count = -(-len(density) // side)
    padded = np.pad(density, (0, count * side - len(density)))
    return np.asarray(padded.reshape(count, side, count, side).sum((1, 3)))


def _slack(channel: StampChannel, share: float) -> float:
    """Return what M^T(g0 / M f) is at most, in every cell, for a fit f with forgeries."""
    return (1 - share / float(channel.table.max_ratio())) / (1 - share)


def _least(
    weights: Array, channel: StampChannel, density: Array, law: Array, slack: float
) -> float:
    """Return a number that weights.f of no fit is below; the best that the dual's search finds.

    For b >= 0 on outputs and a >= 0 on cells, with A = M a: weights.f >= min(weights - M^T b) +
    b.Mf, and b M f + A g0 / M f >= 2 sqrt(b A g0), of which the second sums to slack * sum a at
    most. So

        weights.f >= min(weights - M^T b) + 2 sum sqrt(b A g0) - slack * sum a.
    """
    forward, adjoint = operators(channel)
    support = channel.support
    base = 0.9 * density + 0.1 / density.size
    root_law = np.sqrt(law[support])
    spread = max(float(np.ptp(weights)), 1e-12)

    def parts(x: Array) -> tuple[Array, Array, Array, Array, Array]:
        b = np.zeros(support.shape)
        b[support] = np.exp(np.clip(x[: root_law.size], -40, 40))
        a = base * np.exp(np.clip(x[root_law.size :], -40, 40)).reshape(base.shape)
        moved = np.maximum(forward(a)[support], 0)  # FFTs leave values just below 0
        return b, a, moved, np.sqrt(b[support] * moved) * root_law, weights - adjoint(b)

    def smoothed(x: Array, width: float) -> tuple[float, Array]:
        b, a, moved, roots, rest = parts(x)
        total = float(logsumexp(-rest / width))
        at = np.exp(-rest / width - total)
        ratio = np.zeros(support.shape)
        ratio[support] = np.divide(roots, moved, out=np.zeros_like(roots), where=moved > 0)
        gradient_b = roots - forward(at)[support] * b[support]
        gradient_a = (adjoint(ratio) - slack) * a
        value = -width * total + 2 * roots.sum() - slack * a.sum()
        return -value, -np.concatenate([gradient_b, gradient_a.ravel()])

    x = np.zeros(root_law.size + base.size)
    best = -np.inf
    for smoothing in SMOOTHINGS:
        x = minimize(
            smoothed, x, args=(smoothing * spread,), jac=True, method="L-BFGS-B",
            options={"maxiter": DUAL_STEPS, "maxcor": 20},
        ).x  # fmt: skip
        _, a, _, roots, rest = parts(x)
        best = max(best, float(rest.min() + 2 * roots.sum() - slack * a.sum()))
    return best


def _proven(channel: StampChannel, density: Array, share: float) -> float:
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
    least = np.where(channel.support, _least_reports(channel, density, law, share), 0.0)
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


def _least_reports(channel: StampChannel, density: Array, law: Array, share: float) -> Array:
    """Return what M f of no fit is below, by output cell.

    The dual of :func:`_least` for one output cell y, with b = 1 at y and beta more everywhere, and
    a = tau ((1 - theta) f0 + theta at the cell of the square nearest to y). The best tau is known,
    and leaves -beta + T^2 / slack, T = sum sqrt(b g0 A). Table's weights are rounded down to two
    levels, which T only falls by.
    """
    table = channel.table
    base = table.base_weight / table.total_weight
    lifts = _lift(table)
    high = lifts >= lifts.max() / 2
    lift = float(lifts[high].min())
    radius = table.radius
    nearest = np.clip(np.arange(-radius, table.cells + radius), 0, table.cells - 1)
    off = np.abs(np.arange(-radius, table.cells + radius) - nearest) + radius
    inside = high[np.ix_(off, off)]
    slack = _slack(channel, share)
    law = law * channel.support
    best = np.zeros(law.shape)
    for theta in (0.0, *np.minimum(np.sqrt(share) * np.geomspace(0.01, 10, 13), 1)):
        outer = np.sqrt(law * np.maximum((1 - theta) * law + theta * base, 0))
        inner = np.sqrt(law * np.maximum((1 - theta) * law + theta * (base + lift), 0))
        more = fftconvolve(inner - outer, high.astype(float), "valid")
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
    source = _pooled(density, TRANSPORT_SIDE)
    stays = _pooled(left, TRANSPORT_SIDE)
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
