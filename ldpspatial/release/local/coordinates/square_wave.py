"""Square wave with EMS: the mechanism for one coordinate, on maps of one row.

A report lies within b of the value with a high density and elsewhere, up to b beyond the unit
interval, with one that is lower by a factor e^epsilon (Li et al., SIGMOD 2020, section 5). On d
cells that is a band of 2b + 1 cells out of d + 2b. Held, like the client's tables, as whole
weights over one whole total: the claim is the ratio of two integers, and no float is compared with
a random float.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import BITS, ONE, exp_below
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.errors import InputError
from ldpspatial.estimation import EM, Estimate, estimate
from ldpspatial.estimation.estimate import find_estimator
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.privacy.whole_draws import two_weights
from ldpspatial.release.local.coordinates.fine_ems import FineEMS
from ldpspatial.release.local.local_release import (
    LocalRelease,
    estimator_name,
)
from ldpspatial.release.release import Fact, Released
from ldpspatial.validate import (
    MAX_CELLS,
    exact_epsilon,
    input_errors,
    true_or_false,
    whole_number,
)

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SquareWaveTable:
    """Whole weights of one square wave.

    Attributes
    ----------
    cells : int
        Number d of cells of the coordinate; input cells are 0..d-1.
    radius : int
        Half-width b; reports are -b..d-1+b.
    base_weight, band_weight : int
        Weight of a report more than b cells from the input, and of one within b.
    """

    cells: int
    radius: int
    base_weight: int
    band_weight: int

    @property
    def outputs(self) -> int:
        """Number d + 2b of reports."""
        return self.cells + 2 * self.radius

    @property
    def total_weight(self) -> int:
        """Sum of the weights over all reports, the same for every input."""
        band = 2 * self.radius + 1
        return band * self.band_weight + (self.outputs - band) * self.base_weight

    def max_ratio(self) -> Fraction:
        """Return the ratio of the two weights: no report is likelier by more under any input."""
        return Fraction(self.band_weight, self.base_weight)

    def matrix(self) -> Array:
        """Return the (d + 2b, d) probabilities of report y - b given the cell, at [y, cell]."""
        away = np.arange(self.outputs)[:, None] - self.radius - np.arange(self.cells)
        weights = np.where(np.abs(away) <= self.radius, self.band_weight, self.base_weight)
        return np.asarray(weights / self.total_weight, np.float64)

    def draw(self, at: Ints, rng: np.random.Generator) -> Ints:
        """Return one report for each input cell, both (n,), reports from -b to d-1+b.

        The base weight lies on all reports alike, what the band has above it on the band alone:
        one whole number below the total picks the part and the report in it.
        """
        drawn = rng.integers(self.total_weight, size=len(at))
        # Both branches are computed for all; what np.where leaves out may be no report at all.
        above = drawn - self.outputs * self.base_weight
        anywhere = drawn // self.base_weight
        near = at + above // (self.band_weight - self.base_weight)
        return np.asarray(np.where(above < 0, anywhere, near) - self.radius)

    def counts(self, reports: Ints) -> Ints:
        """Return the (d + 2b,) counts of reports."""
        return np.bincount(reports + self.radius, minlength=self.outputs)


def optimal_half_width(epsilon: float) -> float:
    """Return the half-width b on the unit interval (Li et al. 2020, section 5.3).

    It maximises an upper bound of the mutual information between value and report:
    b = k / (2m) with m and k of :func:`information_terms`. It falls from 1/2 at epsilon 0.

    Raises
    ------
    InputError
        Epsilon is not a number from .000001 to 20.

    Examples
    --------
    >>> round(optimal_half_width(1.0), 6)
    0.256083
    """
    m, k = information_terms(exact_epsilon(epsilon))
    return k / (2 * m)


@input_errors()
def square_wave_table(
    cells: int, epsilon: float, radius: int | None = None, parts: int = 1
) -> SquareWaveTable:
    """Return the weights of a square wave on d cells.

    The base weight is the largest power of two that keeps the total below 2^53, the band's weight
    is rounded down: their ratio is at most e^(epsilon / parts), exactly.

    Parameters
    ----------
    cells : int in [1, 4096]
    epsilon : float in [.000001, 20]
    radius : int in [0, 2 cells], optional
        Half-width in cells, by default that of the unit interval times d, rounded down.
    parts : int in [1, 2], optional
        Number of reports that share epsilon, each with this table.

    Raises
    ------
    InputError
        A parameter breaks its rule.
    """
    d = whole_number("cells", cells, 1, MAX_CELLS)
    exponent = exact_epsilon(epsilon) / whole_number("parts", parts, 1, 2)
    m, k = information_terms(exponent)
    widest = d * k // (2 * m) if radius is None else radius
    b = whole_number("radius", widest, 0, 2 * d)
    weights = two_weights(exponent, likelier=2 * b + 1, others=d - 1)
    return SquareWaveTable(d, b, weights.base, weights.top)


def square_wave_matrix(cells: int, epsilon: float, radius: int | None = None) -> Array:
    """Return the (d + 2b, d) probabilities of a square wave, rows for reports -b..d-1+b.

    Parameters and errors are those of :func:`square_wave_table`.

    Examples
    --------
    >>> matrix = square_wave_matrix(4, epsilon=1.0)
    >>> matrix.shape, matrix.sum(axis=0).round(12).tolist()
    ((6, 4), [1.0, 1.0, 1.0, 1.0])
    """
    return square_wave_table(cells, epsilon, radius).matrix()


def information_terms(exponent: Fraction) -> tuple[int, int]:
    """Return m = e^eps (e^eps - 1 - eps) and k = eps e^eps - e^eps + 1, scaled by 2^192.

    The best radii of square wave, disk and rhombus are functions of their ratio. Both vanish as
    epsilon^2 / 2 at 0, where float64 has no digits left of them.
    """
    eps = (exponent.numerator << BITS) // exponent.denominator
    e = exp_below(exponent)
    return e * (e - ONE - eps) >> BITS, (eps * e >> BITS) - e + ONE


def offset_law(matrix: Array) -> Array:
    """Return how many cells an observer's guess is off: its law over 0..d-1, uniform prior.

    Parameters
    ----------
    matrix : (outputs, d) array
        Probabilities of reports given the cell.

    Returns
    -------
    (d,) array
        Entry k is the probability that cell and guess, both from the posterior, lie k apart.
    """
    cells = matrix.shape[1]
    joint = matrix / cells
    pairs = joint.T @ (joint / joint.sum(axis=1, keepdims=True))  # cell by guess
    apart = np.abs(np.subtract.outer(np.arange(cells), np.arange(cells)))
    law = np.bincount(apart.ravel(), weights=pairs.ravel(), minlength=cells)
    return np.asarray(law, np.float64)


@dataclass(frozen=True)
class WaveRelease(LocalRelease):
    """What the releases by square wave share: EM, smoothed or not.

    Attributes
    ----------
    smoothing : bool
        Smooth with [1, 2, 1] / 4 along every axis after each step, reflecting at the edges.
    rule : str
        When EM stops, as in :func:`ldpspatial.estimate`.
    """

    smoothing: bool = True
    rule: str = "scaled"

    def __post_init__(self) -> None:
        object.__setattr__(self, "smoothing", true_or_false("smoothing", self.smoothing))
        found = find_estimator(self.rule)
        if self.smoothing and not isinstance(found, EM):
            own = f"rule {found.name}, which finds its own"
            raise InputError(f"smoothing must be False with {own}, got True")

    @property
    def smoother(self) -> str | None:
        """Name of the smoother."""
        return "binomial" if self.smoothing else None

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP: the ratio of the whole weights is at most e^epsilon."""
        claim = super().claim(epsilon)
        exact_epsilon(epsilon)
        return claim

    def facts(self, table: SquareWaveTable, reports: int, *found: Estimate) -> dict[str, Fact]:
        """Return the facts of a run in which every user sent that many reports."""
        return {
            "estimator": estimator_name(found[0]),
            "radius": table.radius,
            "realised_epsilon": reports * log(table.max_ratio()),
            "iterations": sum(one.iterations for one in found),
        }


@dataclass(frozen=True)
class MarginalRelease(WaveRelease):
    """What releases share that estimate one coordinate at a time.

    Attributes
    ----------
    smoothing : bool
        Smooth with [1, 2, 1] / 4 after each step, reflecting at the edges.
    rule : str
        When EM stops, as in :func:`ldpspatial.estimate`.
    fine : bool
        Smooth bins of about 1/1024 of the interval, as the authors of square wave do
        (:class:`~ldpspatial.release.local.coordinates.fine_ems.FineEMS`), or whole cells, as the
        comparison of Du et al. 2024 does.
    """

    fine: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "fine", true_or_false("fine", self.fine))

    def marginal(self, table: SquareWaveTable, reports: Ints, epsilon: float) -> Estimate:
        """Return the (1, d) density behind one or more reports of a coordinate."""
        channel = MatrixChannel(table.matrix(), (1, table.cells), epsilon)
        rule = find_estimator(self.rule)
        if self.smoothing and self.fine and isinstance(rule, EM):
            return estimate(channel, table.counts(reports), FineEMS(rule.stop))
        return estimate(channel, table.counts(reports), self.rule, self.smoother)


@dataclass(frozen=True)
class SquareWave(MarginalRelease):
    """Square wave with EMS on a map of one row (Li et al., SIGMOD 2020).

    Attributes
    ----------
    smoothing, rule, fine
        As in :class:`MarginalRelease`.
    """

    name: ClassVar[str] = "sw-ems"

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the mean distance of an observer's guess, in cells of a row of that many."""
        return float(offset_law(square_wave_matrix(cells, epsilon)) @ np.arange(cells))

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Draw one report a user and estimate the density of the row from their counts.

        Raises
        ------
        InputError
            The map has more than one row.
        """
        claim = self.claim(epsilon)
        rows, columns = users.shape
        if rows != 1:
            raise InputError(f"{self.name} needs a map of one row, got {rows} x {columns} cells")
        table = square_wave_table(columns, epsilon)
        reports = table.draw(users.one_cell_each(rng), rng)
        found = self.marginal(table, reports, epsilon)
        return Released(found.density, claim, self.facts(table, 1, found), found)
