"""Intervals for the share of people in a region, given as weights of the cells.

Five methods. "fisher", "bootstrap" and "posterior" are those of
:mod:`ldpspatial.estimation.intervals.cells`, "scores", for reports that are sets, that of
:mod:`ldpspatial.estimation.intervals.scores`.
"likelihood" inverts the likelihood-ratio test of the share under what every density obeys,
f >= 0 and sum f = 1: its interval is the range of r.f over the densities f whose log-likelihood
is within chi2_1(level) / 2 of the largest, r the weights. (Rust and Burrus 1972 for Gaussian
noise. That the quantile with one degree of freedom is large enough where f >= 0 binds is not a
theorem: Batlle et al. 2023, arXiv 2310.02461, have counterexamples. One of ours: a region that is
empty next to crowded cells has as many one-sided errors as cells, and not one. Where people are
spread the interval covers at its level or above; docs/estimation.md has the measurements.)

How an end is found. The upper end u is the largest r.f with l(f) >= c, l the mean log-likelihood
of a report, a concave function. For every tilt t > 0, weak duality gives

    u <= (max over the simplex of [l(f) + t r.f] - c) / t,

with equality where the maximiser has l = c. An interior-point method finds the maximiser, a
one-dimensional search the tilt. What is returned is always the right-hand side, with an upper
bound of the maximum in it: numerical errors can widen an interval and never narrow it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.special import ndtri

from ldpspatial.channels.protocol import MATRIX_LIMIT, Channel, operators
from ldpspatial.errors import InputError
from ldpspatial.estimation.intervals.cells import (
    BOOTSTRAP,
    Interval,
    cell_intervals,
    informative_fisher,
    is_conditional,
    scaled_bounds,
    share_of,
)
from ldpspatial.estimation.intervals.scores import score_bounds
from ldpspatial.estimation.result import Estimate
from ldpspatial.validate import instance, number_array, number_in, one_of

Array = NDArray[np.float64]

COUNT_METHODS = (
    "auto",
    "likelihood",
    "fisher",
    "bootstrap",
    "posterior",
)  # of reports that can be counted
METHODS = (*COUNT_METHODS, "scores")
# Up to here a region takes seconds (docs/estimation.md); fisher before it, where it is informative.
AUTO_LIKELIHOOD_CELLS = 32
LIKELIHOOD_CELLS = 64  # the Hessian has d^4 entries, and its sum takes d^6 steps
LEAST_DROP = 1e-6  # nats; a level so near 0 that less is allowed gives this much wider intervals
ROUNDING = 1e-13  # no smaller drop of a mean log-likelihood is certain; matters from 10^13 reports
GAP = 1e-6  # parts of the allowed drop by which a maximum may be missed
CLOSE = 0.02  # relative distance from the allowed drop; the end is off by about its square / 8
TIGHT, LEAST_GAP = 1e-4, 1e-9  # of an end, relative to its distance from the middle, or a share
NEWTON_STEPS, TILTS = 80, 40


@dataclass(frozen=True)
class ShareIntervals:
    """The intervals of any region by one method, "auto" already resolved."""

    method: str
    _density: Array
    _bounds: Callable[[Array], tuple[float, float]]

    def of(self, weights: ArrayLike) -> Interval:
        """Return the share in a region with these weights of the cells, and its interval."""
        checked = check_weights(weights, self._density.shape)
        return Interval(share_of(self._density, checked), *self._bounds(checked))


def region_share(
    estimate: Estimate,
    region_weights: ArrayLike,
    level: float = 0.95,
    method: str = "auto",
    rng: np.random.Generator | None = None,
) -> Interval:
    """Return the share of the people in a region, with a confidence interval.

    Parameters
    ----------
    estimate : Estimate
    region_weights : (d, d) array in [0, 1]
        Share of each cell that the region covers, as :mod:`ldpspatial.places.regions` makes
        them; a bool array for whole cells.
    level : float in (0, 1)
    method : {"auto", "likelihood", "fisher", "bootstrap", "posterior", "scores"}
        "likelihood": all shares that the likelihood-ratio test does not reject, with
        f >= 0; to 64 cells a side, narrower than "fisher" and right for all but maps of a
        few crowded cells. "fisher" and "bootstrap" as in
            :func:`ldpspatial.estimation.intervals.cells.cell_intervals`.
        "scores": for reports that are sets (OUE, OLH, subset selection) and no others, the
        mean of what each tells alone, -+ z standard errors; right for every map and side.
        "fisher" and "likelihood" are refused there, and "bootstrap" covers too seldom.
        "posterior": from the samples of rule field, as there.
        "auto": scores for sets; posterior where there are samples; else fisher to 20 cells a side,
        likelihood to 32 and where fisher cannot, bootstrap beyond.
    rng : numpy.random.Generator
        Needed by "bootstrap" only.

    Returns
    -------
    Interval
        ``estimate`` is the share in this density. It may lie outside an interval that comes
        from the reports alone ("likelihood", "fisher", "scores"), and often does so where
        nearly all people crowd into a few cells: no cell holds fewer than 0 people, so
        noise in the empty cells adds up at the cost of the crowded ones, and EM stops early.
        The interval is left as it is; that of "fisher" is right there (docs/ranges.md).

    Raises
    ------
    InputError
        A bad argument; more cells than the method takes; too few reports for "fisher".

    Examples
    --------
    >>> import numpy as np
    >>> from client_sdk import response_table
    >>> channel = StampChannel(response_table("dam", epsilon=3.5, cells=5))
    >>> counts = np.round(1e4 * channel.forward(np.eye(5) / 5))
    >>> weights = np.zeros((5, 5))
    >>> weights[:, :2], weights[:, 2] = 1, 0.5  # the western half of the square
    >>> half = region_share(EM().fit(channel, counts), weights)
    >>> 0.45 < half.lower < 0.5 < half.upper < 0.55
    True
    """
    shape = instance("estimate", estimate, Estimate).density.shape
    weights = check_weights(region_weights, shape)  # before what may take minutes
    return share_intervals(estimate, level, method, rng).of(weights)


def share_intervals(
    estimate: Estimate, level: float, method: str, rng: np.random.Generator | None = None
) -> ShareIntervals:
    """Compute what is common to all regions.

    Arguments and errors are those of :func:`region_share`.
    """
    instance("estimate", estimate, Estimate)
    level = number_in("level", level, "(0, 1)")
    one_of("method", method, METHODS)
    if is_conditional(estimate.channel):
        method = "scores" if method == "auto" else method
        if method not in ("scores", "bootstrap"):  # measured: no coverage
            raise InputError(
                "method must be scores, or bootstrap with rng, where the channel knows only the "
                f"reports that came, got {method!r}; bootstrap knows nothing of EM's bias"
            )
    side = max(estimate.channel.input_shape)
    if method == "auto" and estimate.samples is not None:
        method = "posterior"
    if method == "auto":
        if found := informative_fisher(estimate, level):
            return ShareIntervals("fisher", estimate.density, found.bounds)
        method = "likelihood" if side <= AUTO_LIKELIHOOD_CELLS else "bootstrap"
    bounds: Callable[[Array], tuple[float, float]]
    if method == "scores":
        bounds = score_bounds(estimate.channel, estimate.counts, level)
    elif method == "likelihood":
        bounds = LikelihoodRegions(estimate.channel, estimate.counts, level).bounds
    else:
        bounds = cell_intervals(estimate, level, method, rng).bounds
    return ShareIntervals(method, estimate.density, bounds)


def check_weights(weights: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return the weights of a region as float64, or refuse invalid ones."""
    return number_array("region_weights", weights, shape, "[0, 1]", bools=True)


@dataclass(frozen=True)
class _Point:
    """A density inside the simplex with its multipliers of f >= 0."""

    density: Array
    multipliers: Array


class LikelihoodRegions:
    """Profile-likelihood intervals of shares, for counts of one channel at one level.

    Parameters
    ----------
    channel : Channel
        Up to 64 cells a side.
    counts : array
        Shaped like ``channel.support``.
    level : float in (0, 1)

    Raises
    ------
    InputError
        More than 64 cells a side, or more than 2^27 pairs of a cell and a kind of report.
    """

    def __init__(self, channel: Channel, counts: Array, level: float):
        if max(channel.input_shape) > LIKELIHOOD_CELLS:
            raise InputError(
                f"method likelihood takes at most {LIKELIHOOD_CELLS} cells a side, "
                f"got {max(channel.input_shape)}: use {{remedy}}",
                remedy=BOOTSTRAP,
            )
        seen = counts > 0
        self._law = _columns(channel, seen)
        self._observed = counts[seen] / counts.sum()
        # The quantile of chi-square with one degree of freedom is z^2.
        drop = max(float(ndtri((1 - level) / 2)) ** 2 / 2, LEAST_DROP)
        self._drop = max(drop / float(counts.sum()), ROUNDING)  # of l, a mean over reports
        size = self._law.shape[1]
        nothing = np.zeros(size)
        flat = np.full(size, 1 / size)
        slope = self._slope(flat)
        # Slope + multipliers is one number, as at an optimum. Slopes are about 1: .1 is inside.
        start = _Point(flat, slope.max() - slope + 0.1)
        # Within about half of the allowed drop, and as far from every edge as that permits.
        self._middle = self._climb(nothing, start, self._drop / (size + 1))
        best = self._climb(nothing, self._middle, GAP * self._drop / size)
        # As far as `best` misses the maximum, the level c is too low and intervals are wider.
        self._reference = self._law @ best.density

    def bounds(self, weights: Array) -> tuple[float, float]:
        """Return the smallest and largest share of a region with these weights of the cells."""
        # The smallest share of w is 1 - the largest of 1 - w, as f sums to 1.
        return scaled_bounds(
            weights.ravel(), lambda unit: (1 - self._largest(1 - unit), self._largest(unit))
        )

    def _largest(self, weights: Array) -> float:
        """Return the largest share of weights in [0, 1] at the allowed drop, never too small."""
        middle = self._middle.density
        stiffness = self._middle.multipliers / middle
        # A parabola of Hessian C loses t^2 (r . C^-1 r) / 2 at tilt t; r is centred, as sum f = 1.
        away = weights - weights @ middle
        try:
            factor = linalg.cho_factor(self._hessian(middle) + np.diag(stiffness), lower=True)
            spread = float(away @ linalg.cho_solve(factor, away))
        except linalg.LinAlgError:  # a first guess is all that is asked
            spread = float(away**2 @ (1 / stiffness))
        tilt = float(np.sqrt(2 * self._drop / spread))  # right if l were a parabola
        bound = 1.0
        low = 0.0
        high = np.inf
        power, before = 2.0, (0.0, 0.0)  # of the tilt in the drop; logs of the last tilt and drop
        # The drop grows with the tilt: at `low` it is too small, at `high` too large.
        for step in range(TILTS):
            point = self._climb(tilt * weights, self._middle, GAP * self._drop / weights.size)
            lost = -self._likelihood(point.density)
            slope = self._slope(point.density) + tilt * weights
            # A concave function rises from here by no more than this anywhere on the simplex.
            to_come = slope.max() - slope @ point.density
            share = float(weights @ point.density)
            bound = min(bound, share + (self._drop - lost + to_come) / tilt)
            near = max(TIGHT * (bound - weights @ middle), LEAST_GAP)
            if abs(lost / self._drop - 1) < CLOSE or (lost < self._drop and bound - share < near):
                break
            low, high = (tilt, high) if lost < self._drop else (low, tilt)
            # `lost` may be 0 or below where `best` misses the maximum.
            now = float(np.log(tilt)), float(np.log(max(lost / self._drop, 1e-3)))
            if step and now[1] != before[1]:
                power = (now[1] - before[1]) / (now[0] - before[0])
            before = now
            # The drop goes like tilt^power, 2 for a parabola: solved for the allowed drop.
            tilt *= float(np.exp(np.clip(-now[1] / np.clip(power, 0.1, 10), -3, 3)))
            if not low < tilt < high:
                tilt = (low + high) / 2
        return bound

    def _climb(self, tilt: Array, start: _Point, target: float) -> _Point:
        """Maximise l(f) + tilt.f on the simplex, up to a gap of about ``target`` a cell.

        Mehrotra's predictor and corrector on the conditions of optimality: slope + multipliers is
        the same number everywhere, and density * multipliers is ``target``.
        """
        f = start.density
        z = start.multipliers
        level = float((self._slope(f) + tilt + z) @ f)
        for _ in range(NEWTON_STEPS):
            slope = self._slope(f) + tilt
            # Where all f z = target the left side is at most target * size; twice that will do.
            if slope.max() - slope @ f <= 2 * target * f.size:
                break
            off = slope + z - level
            curve = self._hessian(f)
            curve[np.diag_indices(f.size)] += z / f
            try:
                factor = linalg.cho_factor(curve, lower=True, overwrite_a=True)
            except linalg.LinAlgError:  # rounding stops it here: bounds hold at any point
                break
            ones = linalg.cho_solve(factor, np.ones(f.size))
            mean = float(z @ f) / f.size
            df, dz, _ = _step(f, z, off, 0.0, factor, ones)
            reach = _room(f, df, z, dz)
            ahead = float((f + reach * df) @ (z + reach * dz)) / f.size
            # Mehrotra: the farther the predictor gets, the lower the aim; it left out df dz.
            aim = max((ahead / mean) ** 3 * mean, target) - df * dz
            df, dz, dlevel = _step(f, z, off, aim, factor, ones)
            reach = min(1.0, 0.99 * _room(f, df, z, dz))  # f and z stay above 0: both divide
            f = f + reach * df
            z = z + reach * dz
            level = level + reach * dlevel
        return _Point(f, z)

    def _likelihood(self, density: Array) -> float:
        """Return the mean log-likelihood of a report above that of the reference."""
        return float(self._observed @ np.log(self._law @ density / self._reference))

    def _slope(self, density: Array) -> Array:
        return np.asarray((self._observed / (self._law @ density)) @ self._law)

    def _hessian(self, density: Array) -> Array:
        """Return the second derivatives of the mean log-likelihood, with the sign turned."""
        # M^T diag(observed / g^2) M as a product with its transpose: symmetric also when rounded.
        rows = self._law * (np.sqrt(self._observed) / (self._law @ density))[:, None]
        return np.asarray(rows.T @ rows)


def _columns(channel: Channel, seen: NDArray[np.bool_]) -> Array:
    """Return the channel's matrix for the reports that were seen, one column per input cell."""
    rows, columns = channel.input_shape
    entries = rows * columns * int(seen.sum())
    if entries > MATRIX_LIMIT:
        raise InputError(
            f"method likelihood takes at most {MATRIX_LIMIT} pairs of a cell and a kind of report "
            f"that came, got {entries}: use {{remedy}}",
            remedy=BOOTSTRAP,
        )
    unit = np.zeros((rows, columns))
    law = np.empty((rows * columns, int(seen.sum())))
    forward, _ = operators(channel)
    for k in range(rows * columns):
        unit.flat[k] = 1
        law[k] = forward(unit)[seen]
        unit.flat[k] = 0
    return np.ascontiguousarray(law.T)


def _step(
    f: Array, z: Array, off: Array, aim: "Array | float", factor: tuple[Array, bool], ones: Array
) -> tuple[Array, Array, float]:
    """Return the Newton step of density, multipliers and level; the step keeps the sum."""
    # Put in dz = aim / f - z - (z / f) df: (H + Z/F) df = off + aim / f - z - dlevel.
    change = linalg.cho_solve(factor, off + aim / f - z)
    # `ones` solves the same system for 1. The level is what brings the sum of f + df to 1.
    dlevel = float((change.sum() - (1 - f.sum())) / ones.sum())
    df = change - dlevel * ones
    return df, aim / f - z - z / f * df, dlevel


def _room(f: Array, df: Array, z: Array, dz: Array) -> float:
    """Return how much of a step keeps everything >= 0; at most 1."""
    at = np.concatenate([f, z])
    by = np.concatenate([df, dz])
    return float(np.min(-at[by < 0] / by[by < 0], initial=1.0))
