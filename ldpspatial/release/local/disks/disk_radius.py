"""How large a plain disk should be: the least expected W2, from cells, epsilon and users.

DAM's radius maximises a bound on mutual information (Du et al. 2024, section V-C), which weighs all
scales alike and ignores the number of users. W2 does not weigh them alike. For a small error of the
density, its square is the H^-1 norm (Peyre, ESAIM: COCV 2018): a wave of the error with Laplacian
eigenvalue l counts 1 / l. Reports tell of a wave of the density with information
n (p - q)^2 N / g, p and q the probabilities in and outside the disk, g the probability of a report
under a uniform map, and N the squared norm of what the disk makes of the wave. The wave ends at the
square's edges, and reports come from beyond them: so N is no zero of the disk's Fourier transform
squared, but a mean of its squares over waves nearby.

A map is compared with the n people who reported, not against the law that they were drawn from.
Chance moves each wave of theirs by a variance of s = 1 / (n cells^2), and 1 / information is that
chance and the noise of reports in one. With a prior variance v of each wave of the law, what is
left of theirs is (v + s) (1 - s information) / (1 + v information), and the linearised risk R the
sum of that over l. A wider disk loses fine waves, a smaller one spends its epsilon on telling
neighbours apart.

The prior has two parts. Smooth maps, v proportional to l^-3, with a mean squared contrast of 8, are
what mixtures of kernels make of real ones. Single crowded cells, v alike for all waves, with a
contrast of .15, are what these leave out: where much is known (epsilon from 2, many users) smaller
disks can tell them apart.

Two things keep W2 from being linear, and decide where very much is known. People sit in cells: to
bring a share m of a cell's people next door costs m, while the H^-1 norm counts m^2. So R is R^1/2
below 1. And real maps have empty parts, where no estimate is below 0. There noise does not cancel
out: it leaves strays, who are missing where people are, far away. They are the fewer the less a
cell outside the disk reports (q), and the more cells a disk has. With u the standard deviation of
what is told of an empty cell, in shares of what a cell holds in the mean, they cost in proportion
to the side and to u / (1 + 40 u), as the prior empties such parts where little is known. Both
factors were set by measurement on six squares of Chicago and New York with 100,000 users or more,
the prior's three numbers with fewer (docs/recommended.md).

The risk is flat near its minimum. Of disks with nearly the least the smallest is taken: fields
behind it are sampled faster. Where reports say next to nothing (n epsilon^2 below 1 or so) all
disks have nearly the least, so that this is a small one or a single cell. And the radius may rise a
little with epsilon or with users, by what is nearly the least, and more from a million users to
ten, where R comes below 1.
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, isqrt, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import optimal_squared_radius
from ldpspatial.validate import MAX_CELLS, exact_epsilon, whole_number

Array = NDArray[np.float64]

SMOOTHNESS = 3.0  # prior variance of a smooth wave: its Laplacian eigenvalue to minus this power
CONTRAST = 8.0  # prior mean of (density / uniform - 1)^2 of the smooth part
PEAKS = 0.15  # the same of single cells
WAVES = 128  # waves along an axis; finer ones are left open by all disks but the smallest
MARGIN = 16  # waves beyond, which the square's edges mix with them
STRAYS = 0.1  # squared cells that strays add to W2^2, a cell of the side, times u
FAINT = 0.025  # the u from which the prior begins to empty such parts
NEARLY = 1.005  # of the least risk, which is the least for what is known of risks
ALL_BELOW = 64  # all disks of a smaller squared radius are compared
STEP = 1.1  # of larger ones those whose squared radii differ by this factor
NINE = 2  # no candidate: 3 x 3 cells, which measured 3 to 5 % farther off than their risk says
WIDEST = 4  # squared radii to this multiple of DAM's are compared
MAX_USERS = 10**12
FOR_USERS = 100_000  # where nobody said how many will report


def disk_squared_radius(cells: int, epsilon: float, n_users: int) -> int:
    """Return the square of the disk radius with nearly the least risk, in squared cells.

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
    [18, 5, 1, 0]
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
    # + 1, as DAM's may be 0. With a radius of 1.5 sides a disk covers the square from any cell, and
    # the risk is exact up to there.
    most = min(WIDEST * (optimal_squared_radius(epsilon, cells) + 1), 4 * cells * cells)
    covering = 9 * cells * cells // 4
    candidates = [square for square in _squares(most) if square <= covering and square != NINE]
    risks = {square: disk_risk(cells, float(epsilon), n_users, square) for square in candidates}
    nearly = NEARLY * min(risks.values())
    return min(square for square, risk in risks.items() if risk <= nearly)


def disk_risk(cells: int, epsilon: float, n_users: int, squared_radius: int) -> float:
    """Return about the W2 in cells that a disk leads to, as the module's text has it."""
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
    information = n_users * rise**2 * _strengths(widths, cells).ravel()[1:] / uniform
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
    flow = cells**2 * float((spread / eigenvalue).sum())
    # Standard deviation of what the reports say of a cell that is empty, and its neighbours too, in
    # shares of what a cell holds in the mean.
    faint = cells**2 * sqrt(q / (n_users * area)) / (rise * area)
    strays = STRAYS * cells * faint / (1 + faint / FAINT)
    return sqrt(max(flow, sqrt(flow)) + strays)


def _strengths(widths: list[int], cells: int) -> Array:
    """Return the squared norms of what the disk makes of the square's cosine waves."""
    # Exact where the disk's diameter is at most so many sides, less 1; at 3 it covers the square.
    sides = 2 if 2 * widths[0] <= cells else 4
    windows = _windows(cells, sides)
    wave = 2 * pi * np.arange(windows.shape[1]) / (sides * cells)
    return np.asarray(windows @ _transform(widths, wave) ** 2 @ windows.T)


@lru_cache(maxsize=16)
def _windows(cells: int, sides: int) -> Array:
    """Return the power of each wave, cut off at the square's edges, at the waves of some sides."""
    wave = pi * np.arange(min(cells, WAVES)) / cells
    waves = np.cos(np.outer(wave, np.arange(cells) + 0.5))
    waves /= np.sqrt((waves**2).sum(axis=1, keepdims=True))
    power = np.abs(np.fft.rfft(waves, sides * cells)) ** 2 / (sides * cells)
    power[:, 1:-1] *= 2  # and the mirror image of the others
    return np.asarray(power[:, : (WAVES + MARGIN) * sides // 2])


def _transform(widths: list[int], wave: Array) -> Array:
    """Return the disk's Fourier transform at waves along both axes, of which the first is 0."""
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
