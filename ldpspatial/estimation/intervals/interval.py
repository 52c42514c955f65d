"""What intervals are made of: a share between two ends, and the rules that all methods keep."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from ldpspatial.errors import InputError
from ldpspatial.validate import number_array

Array = NDArray[np.float64]
Bounds = Callable[[Array], tuple[float, float]]  # weights of the cells -> lower, upper
# Variance of a share by where people are, over that of all or nothing: as if for half of them every
# share were equally likely.
WITHIN = 1 / 3


@dataclass(frozen=True)
class Interval:
    """A share of the population with its confidence interval, all in [0, 1]."""

    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Uncertainty:
    """Pointwise confidence intervals of an estimate.

    Attributes
    ----------
    level : float
        Probability with which one interval covers the truth (each by itself, not all at once).
    method : {"posterior", "fisher", "levels"}
        Of the cells, and of regions but for the next.
    lower, upper : (d, d) arrays in [0, 1]
        Interval of each cell.
    density : (d, d) array
        Whose sum over a region is its share: the mean of the samples with "posterior", and where
        "auto" chose between it and "fisher".
    moved : bool
        Whether a share that would lie outside of its interval is moved to the nearest end of it.
    of_regions : str or None
        Where regions are told otherwise than cells are: "posterior or fisher", as "auto" chose, or
        "levels, parts apart".
    """

    level: float
    method: str
    lower: Array
    upper: Array
    density: Array
    _bounds: Bounds  # of weights in [0, 1]
    moved: bool = False
    of_regions: str | None = None
    _method_of: Callable[[Array], str] | None = None  # of weights in [0, 1]

    @property
    def width(self) -> Array:
        """(d, d) array, upper minus lower."""
        return self.upper - self.lower

    def region(self, mask: ArrayLike) -> Interval:
        """Return the share of people in a region of whole cells, with its interval.

        Parameters
        ----------
        mask : (d, d) bool array
            True for the cells of the region.

        Returns
        -------
        Interval
            As of :func:`ldpspatial.estimation.intervals.regions.region_share` by the same method;
            "auto" may be another one there for an estimate without samples.
        """
        try:
            cells = np.asarray(mask)
        except ValueError:  # rows of different lengths
            raise InputError("mask must be a bool array, of one shape") from None
        if cells.dtype != bool or cells.shape != self.lower.shape:
            raise InputError(
                f"mask must be a bool array of shape {self.lower.shape}, "
                f"got {cells.dtype} of shape {cells.shape}"
            )
        weights = cells.astype(np.float64)
        share = share_of(self.density, weights)
        return interval_of(share, *self.bounds(weights), moved=self.moved)

    def width_of(self, weights: ArrayLike) -> float:
        """Return how wide the interval of a region is; arguments and errors are those of bounds."""
        lower, upper = self.bounds(weights)
        return upper - lower

    def method_of(self, weights: ArrayLike) -> str:
        """Return which method tells a region; arguments and errors are those of bounds."""
        checked = number_array("weights", weights, self.lower.shape, "[0, 1]", bools=True)
        return self.method if self._method_of is None else self._method_of(checked)

    def bounds(self, weights: ArrayLike) -> tuple[float, float]:
        """Return lower and upper bound of the share in a region with these weights of the cells.

        Parameters
        ----------
        weights : (d, d) array
            In [0, 1]: the part of a cell's people who count. With method "levels" a weight between
            is that of a cut cell, of whose people all or none may be inside, or with its parts
            apart as many in the mean.

        Raises
        ------
        InputError
            What is no array of numbers, another shape, or a weight outside of [0, 1].
        """
        return self._bounds(
            number_array("weights", weights, self.lower.shape, "[0, 1]", bools=True)
        )


def interval_of(share: float, lower: float, upper: float, moved: bool) -> Interval:
    """Return a share with its interval, moved to the nearest end where it must not lie outside."""
    return Interval(min(max(share, lower), upper) if moved else share, lower, upper)


def standard_errors(level: float) -> float:
    """Return how many standard errors an interval of this level reaches to either side."""
    # The lower tail: (1 + level) / 2 rounds to 1 near level 1, which would give infinity.
    return -float(ndtri((1 - level) / 2))


def cut_to_shares(center: Array | np.float64, reach: Array | float) -> tuple[Array, Array]:
    """Cut intervals to [0, 1], never to nothing.

    An unbiased estimate may be negative. Its interval then starts at 0 and reaches as far as if
    the estimate were 0, so that a cell never looks certain because of a negative number.
    """
    lower = np.clip(np.minimum(center, 1) - reach, 0, 1)
    upper = np.clip(np.maximum(center, 0) + reach, 0, 1)
    return np.asarray(lower), np.asarray(upper)


def scaled_bounds(weights: Array, of_unit: Bounds) -> tuple[float, float]:
    """Return the bounds of a share by a method for weights that reach from 0 to 1.

    What a method adds, and where it cuts, is a share of all people. Weights from low to high
    hold low of everybody at least and high at most: they are scaled, and the bounds scaled back,
    which leaves the weights of whole cells as they are.
    """
    low, high = float(weights.min()), float(weights.max())
    if low == high:  # nowhere, or everywhere
        return low, high
    ends = of_unit(unit_of(weights))
    # Written so, an end of 0 is exactly low and one of 1 exactly high.
    lower, upper = (float(np.clip(low * (1 - end) + high * end, low, high)) for end in ends)
    return lower, upper


def unit_of(weights: Array) -> Array:
    """Return weights, not all of them equal, scaled to reach from 0 to 1."""
    low = weights.min()
    return np.asarray((weights - low) / (weights.max() - low))


def share_of(density: Array, weights: Array) -> float:
    """Return the share in a region, kept from leaving what the weights allow by rounding."""
    return float(np.clip((weights * density).sum(), weights.min(), weights.max()))
