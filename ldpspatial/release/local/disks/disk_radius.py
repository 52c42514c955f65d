"""How large a plain disk should be: the least linearised W2 risk, from cells, epsilon and users.

DAM's radius maximises a bound on mutual information (Du et al. 2024, section V-C), which weighs all
scales alike and ignores the number of users. W2 does not weigh them alike. For a small error of the
density, its square is the H^-1 norm (Peyre, ESAIM: COCV 2018): a wave of the error with Laplacian
eigenvalue l counts 1 / l. Reports tell of a wave of the density with information
n ((p - q) S)^2 / g, S the disk's Fourier transform at that wave, p and q the probabilities in and
outside the disk, g the probability of a report under a uniform map.

A map is compared with the n people who reported, not against the law that they were drawn from.
Chance moves each wave of theirs by a variance of s = 1 / (n cells^2), and 1 / information is that
chance and the noise of reports in one. With a prior variance v of each wave of the law, what is
left of theirs is (v + s) (1 - s information) / (1 + v information), and the risk the sum of that
over l. A wider disk loses fine waves, a smaller one spends its epsilon on telling neighbours apart.

The prior has two parts. Smooth maps, v proportional to l^-3, with a mean squared contrast of 8, are
what mixtures of kernels make of real ones. Single crowded cells, v alike for all waves, with a
contrast of .15, are what these leave out: where much is known (epsilon from 2, many users) smaller
disks can tell them apart. All three numbers were set by measurement and matter little: the risk is
flat near its minimum (docs/recommended.md).
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, isqrt, log, pi

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import optimal_squared_radius
from ldpspatial.validate import MAX_CELLS, exact_epsilon, whole_number

Array = NDArray[np.float64]

SMOOTHNESS = 3.0  # prior variance of a smooth wave: its Laplacian eigenvalue to minus this power
CONTRAST = 8.0  # prior mean of (density / uniform - 1)^2 of the smooth part
PEAKS = 0.15  # the same of single cells
WAVES = 48  # waves along an axis; finer ones are left open by all disks but the smallest
ALL_BELOW = 64  # all disks of a smaller squared radius are compared
STEP = 1.1  # of larger ones those whose squared radii differ by this factor
WIDEST = 4  # squared radii to this multiple of DAM's are compared
MAX_USERS = 10**12
FOR_USERS = 100_000  # where nobody said how many will report


def disk_squared_radius(cells: int, epsilon: float, n_users: int) -> int:
    """Return the square of the disk radius with the least risk, in squared cells.

    Parameters
    ----------
    cells : int in [1, 4096]
        Side of the square in cells.
    epsilon : number in [0.000001, 20]
    n_users : int in [1, 10^12]
        Reports that will arrive.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> [disk_squared_radius(15, epsilon, 10_000) for epsilon in (1.4, 3.5, 5.0, 7.0)]
    [20, 5, 1, 0]
    """
    return _least_risk(
        whole_number("cells", cells, 1, MAX_CELLS),
        exact_epsilon(epsilon),
        whole_number("n_users", n_users, 1, MAX_USERS),
    )


@lru_cache(maxsize=256)
def _least_risk(cells: int, epsilon: Fraction, n_users: int) -> int:
    if cells == 1:
        return 0
    # + 1, as DAM's may be 0. With a radius of two sides a disk covers the square from any cell.
    most = min(WIDEST * (optimal_squared_radius(epsilon, cells) + 1), 4 * cells * cells)
    candidates = _squares(most)
    risks = {square: disk_risk(cells, float(epsilon), n_users, square) for square in candidates}
    return min(risks, key=lambda square: risks[square])


def disk_risk(cells: int, epsilon: float, n_users: int, squared_radius: int) -> float:
    """Return the expected W2 in cells of the best linear estimate, linearised, under the prior."""
    # widths[x]: how far the rows reach that lie x from the middle one, to either side.
    widths = [isqrt(squared_radius - x * x) for x in range(isqrt(squared_radius) + 1)]
    area = sum(2 * h + 1 for h in widths) * 2 - (2 * widths[0] + 1)
    # The Minkowski sum of square and disk, row by row.
    outputs = cells * (cells + 2 * widths[0]) + 2 * sum(cells + 2 * h for h in widths[1:])
    # The probability of a cell outside the disk, and by how much that of one inside exceeds it.
    q = 1 / (area * exp(epsilon) + outputs - area)
    rise = (exp(epsilon) - 1) * q
    # g of the module's text, of a report whose whole disk lies in the square.
    uniform = q + rise * area / cells**2
    # Entry 0, here and below, is the constant wave, which is known: densities sum to 1.
    information = n_users * (rise * _transform(widths, cells)).ravel()[1:] ** 2 / uniform
    # Eigenvalues of the grid's Laplacian with reflecting edges, along one axis.
    wave = 2 - 2 * np.cos(pi * np.arange(min(cells, WAVES)) / cells)
    eigenvalue = (wave[:, None] + wave[None, :]).ravel()[1:]
    prior = eigenvalue**-SMOOTHNESS
    # Parseval: variances of waves of norm 1 sum to CONTRAST / cells^2.
    prior *= CONTRAST / (prior.sum() * cells**2)
    prior += PEAKS / cells**4
    chance = 1 / (n_users * cells**2)
    noise = np.maximum(1 - chance * information, 0)  # rounding alone goes below 0
    spread = (prior + chance) * noise / (1 + prior * information)
    # The H^-1 norm is divided by the density, which is 1 / cells^2.
    return float(cells * np.sqrt((spread / eigenvalue).sum()))


def _transform(widths: list[int], cells: int) -> Array:
    """Return the disk's Fourier transform at the cosine waves of the square."""
    wave = pi * np.arange(min(cells, WAVES)) / cells
    # Sum over y = -h..h of cos(y w) is the Dirichlet kernel sin((h + 1/2) w) / sin(w / 2).
    half = np.array(widths)[:, None] + 0.5
    rows = np.broadcast_to(2 * half, (len(widths), len(wave))).copy()  # 2h + 1 at w = 0
    rows[:, 1:] = np.sin(half * wave[1:]) / np.sin(wave[1:] / 2)
    across = np.cos(np.outer(wave, np.arange(len(widths))))
    across[:, 1:] *= 2  # rows x and -x
    return np.asarray(across @ rows)


def _squares(most: int) -> list[int]:
    """Return squared radii from 0 to ``most``: all disks that differ, then steps of a ratio."""
    side = range(isqrt(ALL_BELOW) + 1)
    # Between two sums of two squares the disk gains no cell.
    sums = {x * x + y * y for x in side for y in range(x + 1) if x * x + y * y < ALL_BELOW}
    coarse = np.geomspace(
        ALL_BELOW,
        max(most, ALL_BELOW),
        1 + ceil(log(most / ALL_BELOW, STEP)) if most > ALL_BELOW else 0,
    )
    return sorted(square for square in {*sums, *map(int, coarse)} if square <= most)
