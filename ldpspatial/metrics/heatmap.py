"""Heat maps, and how similar two of them are, by the measures that papers on heat maps use.

A heat map is a map of masses seen through a Gaussian filter. Similarity, correlation and divergence
compare cells in place and are blind to how far mass is off, which is why they are taken of filtered
maps; the earth mover's distance is not blind, and is also meaningful for raw ones.
"""

import math

import numpy as np
import numpy.typing as npt

from ldpspatial.errors import InputError
from ldpspatial.metrics._maps import FloatArray, checked_pair, normalised_pair
from ldpspatial.metrics.wasserstein import wasserstein
from ldpspatial.validate import number_in, whole_number

KL_OFFSET = 2.2e-16
"""Keeps the divergence finite: mass m without an estimate costs m (36 + ln m) nats."""

# Relative spread of a map that is constant but for the rounding of its cells.
_ROUNDING = 8 * np.finfo(np.float64).eps


def heat_map(p: npt.ArrayLike, sigma: float) -> FloatArray:
    """Return a map seen through a Gaussian filter that loses no mass at the border.

    Each cell spreads its own mass over the grid: h(x) = sum over x' of p(x') k(x - x') / Z(x'),
    where k(o) = exp(-|o|^2 / (2 sigma^2)) and Z(x') is the sum of k(x - x') over the cells x of
    the grid. Kernel and Z separate over the axes, so that the filter is one small matrix a side:
    it is exact, no kernel is cut off.

    Parameters
    ----------
    p : array_like, shape (rows, columns)
        Masses >= 0 with a positive total.
    sigma : float >= 0
        Standard deviation in cells; 0 returns the map as it is.

    Returns
    -------
    ndarray, shape (rows, columns)
        Masses with the total of `p`, up to rounding.

    Raises
    ------
    InputError
        An argument breaks its rule.

    References
    ----------
    Ghazi et al., Differentially Private Heatmaps, AAAI 2023, section 4. They leave open what a
    kernel does at the border; here its mass stays inside.

    Examples
    --------
    >>> heat_map([[0, 0, 1]], 1e6).round(6).tolist()
    [[0.333333, 0.333333, 0.333333]]
    """
    masses, _ = checked_pair(p, p)
    width = number_in("sigma", sigma, "[0, inf)")
    if width == 0:
        return masses
    rows, columns = masses.shape
    seen: FloatArray = _spread(rows, width) @ masses @ _spread(columns, width).T
    return seen


def similarity(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Return the sum over cells of min(p, q) of the normalised maps, in [0, 1]; 1 if equal.

    Parameters
    ----------
    p, q : array_like, shape (rows, columns)
        Masses >= 0 with totals that are positive and equal up to 1e-6 relative; each map is
        divided by its own total.

    Raises
    ------
    InputError
        A map breaks these rules.

    References
    ----------
    Bylinskii et al., What Do Different Evaluation Metrics Tell Us About Saliency Models?, IEEE
    TPAMI 41(3), 2019, distribution-based metrics: SIM. It is 1 - total variation.

    Examples
    --------
    >>> similarity([[1, 1, 0, 0]], [[0, 1, 1, 0]])
    0.5
    """
    first, second = normalised_pair(p, q)
    return float(np.minimum(first, second).sum())


def pearson(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Return Pearson's correlation of two maps over their cells, in [-1, 1].

    A map that is constant, up to the rounding of its cells, has no correlation: the answer is nan.
    Parameters and errors are those of `similarity`.

    References
    ----------
    Bylinskii et al. 2019: CC.

    Examples
    --------
    >>> pearson([[1, 2, 3]], [[3, 2, 1]])
    -1.0
    """
    first, second = (_standardised(each) for each in normalised_pair(p, q))
    if first is None or second is None:
        return math.nan
    # The product of two unit vectors may round to just beyond 1.
    return float(np.clip((first * second).sum(), -1.0, 1.0))


def kl_divergence(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Return the sum over cells of p ln(e + p / (q + e)) of the normalised maps, in nats.

    The Kullback-Leibler divergence of an estimate from the truth with e = 2.2e-16 against empty
    cells. Not symmetric: the truth comes first. Of a map and itself it is 0 up to some e a cell,
    not exactly.

    Parameters and errors are those of `similarity`, `p` being the truth and `q` the estimate.

    References
    ----------
    Bylinskii et al. 2019: KL.

    Examples
    --------
    >>> round(kl_divergence([[2, 2]], [[1, 3]]), 4)  # (ln 2 + ln 2/3) / 2
    0.1438
    """
    truth, estimate = normalised_pair(p, q)
    terms = truth * np.log(KL_OFFSET + truth / (estimate + KL_OFFSET))
    return max(0.0, float(terms.sum()))  # rounding leaves some -1e-14 of equal maps


def earth_movers_distance(p: npt.ArrayLike, q: npt.ArrayLike, blocks: int | None = None) -> float:
    """Return the exact earth mover's distance: W1 with 1-norm ground distance, unit square.

    The longer side of the map has length 1: cells are squares of side 1 / max(rows, columns), also
    where the map is not square.

    Parameters
    ----------
    p, q : array_like, shape (rows, columns)
        As in `similarity`.
    blocks : int, optional
        Sum both maps into blocks x blocks equal parts first (blocks must divide rows and columns)
        and measure between the centres of those. Faster, and off by less than the height and the
        width of a block together.

    Returns
    -------
    float
        The distance, between 0 for equal maps and 2.

    Raises
    ------
    InputError
        An argument breaks its rule.

    References
    ----------
    Ghazi et al., Differentially Private Heatmaps, AAAI 2023, section 2.1. `wasserstein` for how it
    is computed.

    Examples
    --------
    >>> earth_movers_distance([[1, 0], [0, 0]], [[0, 0], [0, 1]])
    1.0
    """
    first, second = checked_pair(p, q)
    rows, columns = first.shape
    longest = max(rows, columns)
    if blocks is None:
        return wasserstein(first, second, order=1, ground="cityblock", cell=1 / longest)
    coarse = block_sums(first, blocks), block_sums(second, blocks)
    high = rows // blocks
    wide = columns // blocks
    cell = (high / longest, wide / longest)
    return wasserstein(*coarse, order=1, ground="cityblock", cell=cell)


def block_sums(p: npt.ArrayLike, blocks: int) -> FloatArray:
    """Return the masses of blocks x blocks equal parts of a map, shape (blocks, blocks).

    Raises
    ------
    InputError
        `blocks` is not a whole number that divides rows and columns.

    Examples
    --------
    >>> block_sums([[1, 2, 3, 4], [5, 6, 7, 8]], 2).tolist()
    [[3.0, 7.0], [11.0, 15.0]]
    """
    masses, _ = checked_pair(p, p)
    rows, columns = masses.shape
    blocks = whole_number("blocks", blocks, 1, min(rows, columns))
    if rows % blocks or columns % blocks:
        raise InputError(f"blocks must divide {rows} rows and {columns} columns, got {blocks}")
    # Axes: row of blocks, row within, column of blocks, column within.
    parts = masses.reshape(blocks, rows // blocks, blocks, columns // blocks)
    sums: FloatArray = parts.sum(axis=(1, 3))
    return sums


def _spread(side: int, sigma: float) -> FloatArray:
    """Return the matrix (side, side) whose column j is the kernel around j, of sum 1."""
    offsets = np.subtract.outer(np.arange(side), np.arange(side))
    with np.errstate(over="ignore", under="ignore"):  # a narrow kernel holds nothing that far off
        kernel = np.exp(-((offsets / sigma) ** 2) / 2)
    matrix: FloatArray = kernel / kernel.sum(axis=0)
    return matrix


def _standardised(density: FloatArray) -> FloatArray | None:
    """Return a map with mean 0 and norm 1, or None where it is constant."""
    if density.max() - density.min() <= _ROUNDING * density.max():
        return None
    centred = density / density.max()  # small values would square to 0 otherwise
    centred -= centred.mean()
    standard: FloatArray = centred / np.linalg.norm(centred)
    return standard
