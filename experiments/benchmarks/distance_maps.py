"""Pairs of maps to measure distances on: the kinds of DOTmark, and kinds of people.

References
----------
Schrieber, Schuhmacher and Gottschlich, DOTmark - a benchmark for discrete optimal transport,
IEEE Access 5, 2017: noise, Gaussian random fields, bumps and shapes. The parameters
here are of the same kind, not theirs.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter

from client_sdk.shared import metres_per_degree
from ldpspatial.datasets import CITY_CENTER, CITY_SIDE_M, city

FloatArray: TypeAlias = npt.NDArray[np.float64]
Cells: TypeAlias = tuple[int, int]
Pair: TypeAlias = tuple[FloatArray, FloatArray]
DrawMap: TypeAlias = Callable[[Cells, np.random.Generator], FloatArray]
DrawPair: TypeAlias = Callable[[Cells, np.random.Generator], Pair]

SEEDS = (0, 1, 2)
PEOPLE = 20_000
"""Distinct users of a city."""
SPOTS = 300
FILTER_CELLS = 4.0
"""Standard deviation of the Gaussian filter of a heat map."""


def draw_pair(name: str, cells: Cells, seed: int) -> Pair:
    """Draw two maps of a class of `CLASSES`, each float64 of total 1, (rows, columns) = `cells`."""
    p, q = CLASSES[name](cells, np.random.default_rng([seed, *name.encode()]))
    return p / p.sum(), q / q.sum()


def checkins_against_estimate(cells: Cells, seed: int) -> Pair:
    """Draw raw check-ins of a city, and a dense, noisy estimate of the same.

    Each user spreads a mass of 1 over some visits. The estimate is the heat map with Laplace noise
    of a fifth of the mean mass on every cell, negatives set to 0. Totals are 1.
    """
    rng = np.random.default_rng([seed, 1])
    raw = _checkins(cells, _venues(rng), rng)
    noise = rng.laplace(scale=0.2 * raw.mean(), size=cells)
    estimate = np.maximum(_heat(raw) + noise, 0.0)
    return raw / raw.sum(), estimate / estimate.sum()


def smooth_heat_maps(cells: Cells, seed: int) -> Pair:
    """Draw the heat maps of two crowds that visit the same venues. Totals are 1."""
    rng = np.random.default_rng([seed, 2])
    venues = _venues(rng)
    first, second = (_heat(_checkins(cells, venues, rng)) for _ in range(2))
    return first / first.sum(), second / second.sum()


def _white_noise(cells: Cells, rng: np.random.Generator) -> FloatArray:
    return rng.random(cells)


def _gaussian_field(
    cells: Cells, smoothness: float, reach: float, rng: np.random.Generator
) -> FloatArray:
    """Return a Matern field, mean 0 and variance 1 over the map; `reach` in sides of the map.

    White noise is filtered by the root of the spectral density (1 + (2 pi reach |k|)^2)^-(nu + 1),
    on a torus of twice the side, so that opposite edges of the map have little in common.
    """
    rows, columns = cells
    side = max(cells)
    k_down = np.fft.fftfreq(2 * rows, 1 / side)[:, None]
    k_right = np.fft.rfftfreq(2 * columns, 1 / side)
    density = (1 + (2 * np.pi * reach) ** 2 * (k_down**2 + k_right**2)) ** -(smoothness + 1)
    white = np.fft.rfft2(rng.standard_normal((2 * rows, 2 * columns)))
    field = np.fft.irfft2(white * np.sqrt(density), (2 * rows, 2 * columns))[:rows, :columns]
    standard: FloatArray = (field - field.mean()) / max(float(field.std()), 1e-12)
    return standard


def _rough_field(cells: Cells, rng: np.random.Generator) -> FloatArray:
    return np.exp(_gaussian_field(cells, 0.25, 0.05, rng))


def _smooth_field(cells: Cells, rng: np.random.Generator) -> FloatArray:
    return np.exp(_gaussian_field(cells, 2.5, 0.15, rng))


def _gaussian_mixture(cells: Cells, rng: np.random.Generator) -> FloatArray:
    """Return six round bumps; far from all of them masses are tiny, down to 1e-20 of the peak."""
    down, right = _places(cells)
    density = np.zeros(cells)
    for weight, y, x, spread in rng.uniform([0.2, 0, 0, 0.02], [1, 1, 1, 0.12], (6, 4)):
        density += weight * np.exp(-((down - y) ** 2 + (right - x) ** 2) / (2 * spread**2))
    return density


def _shapes(cells: Cells, rng: np.random.Generator) -> FloatArray:
    """Return 1 on a union of two discs, two rectangles and a ring, 0 elsewhere."""
    down, right = _places(cells)
    inside = np.zeros(cells, bool)
    for kind in ("disc", "disc", "rectangle", "rectangle", "ring"):
        (y, x), (half_height, half_width) = rng.random(2), rng.uniform(0.05, 0.2, 2)
        if kind == "rectangle":
            inside |= (np.abs(down - y) <= half_height) & (np.abs(right - x) <= half_width)
        else:
            away = np.hypot(down - y, right - x)
            inside |= (away <= half_width) & (away >= (kind == "ring") * 0.6 * half_width)
        inside[int(y * cells[0]), int(x * cells[1])] = True  # a small grid may have no cell inside
    return inside.astype(np.float64)


def _city(cells: Cells, rng: np.random.Generator) -> Pair:
    """Return counts of a synthetic city, and an estimate of them: smooth, each cell 20 % off."""
    counts = _counts(city(PEOPLE, rng), np.ones(PEOPLE), cells)
    smooth = gaussian_filter(counts, 0.02 * max(cells), mode="nearest")
    return counts, smooth * rng.lognormal(sigma=0.2, size=cells)


def _sparse_spots(cells: Cells, rng: np.random.Generator) -> FloatArray:
    size = cells[0] * cells[1]
    spots = rng.choice(size, min(SPOTS, -(-size // 4)), replace=False)
    masses = np.zeros(size)
    masses[spots] = rng.standard_exponential(len(spots))
    return masses.reshape(cells)


def _mostly_empty(cells: Cells, rng: np.random.Generator) -> FloatArray:
    """Return random masses on the 2 to 5 % of the cells where a rough field is highest."""
    field = _gaussian_field(cells, 1.0, 0.05, rng)
    highest = field >= np.quantile(field, 1 - rng.uniform(0.02, 0.05))
    return highest * rng.standard_exponential(cells)


def _places(cells: Cells) -> tuple[FloatArray, FloatArray]:
    """Return the centres of the cells, (rows, 1) and (1, columns), on the unit square."""
    rows, columns = cells
    return (np.arange(rows)[:, None] + 0.5) / rows, (np.arange(columns)[None, :] + 0.5) / columns


def _venues(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return places of venues (n, 2), and their popularity, heavy-tailed, of total 1."""
    popularity = rng.pareto(2.0, 8_000) + 0.1
    return city(len(popularity), rng), popularity / popularity.sum()


def _checkins(
    cells: Cells, venues: tuple[FloatArray, FloatArray], rng: np.random.Generator
) -> FloatArray:
    """Return the sum of the users' maps, each of mass 1 over a geometric number of visits."""
    places, popularity = venues
    visits = rng.geometric(0.2, PEOPLE)
    venue = rng.choice(len(places), visits.sum(), p=popularity)
    return _counts(places[venue], np.repeat(1 / visits, visits), cells)


def _heat(masses: FloatArray) -> FloatArray:
    smooth: FloatArray = gaussian_filter(masses, FILTER_CELLS, mode="nearest")
    return smooth


def _counts(points: FloatArray, weights: FloatArray, cells: Cells) -> FloatArray:
    """Return the weight of points (latitude, longitude) of the city in each cell."""
    shares = (points - CITY_CENTER) * metres_per_degree(CITY_CENTER[0]) / CITY_SIDE_M + 0.5
    at = np.clip((shares * cells).astype(np.int64), 0, np.array(cells) - 1)
    masses = np.zeros(cells)
    np.add.at(masses, (at[:, 0], at[:, 1]), weights)
    return masses


def _twice(draw: DrawMap) -> DrawPair:
    return lambda cells, rng: (draw(cells, rng), draw(cells, rng))


CLASSES: dict[str, DrawPair] = {
    "white noise": _twice(_white_noise),
    "rough field": _twice(_rough_field),
    "smooth field": _twice(_smooth_field),
    "gaussian mixture": _twice(_gaussian_mixture),
    "shapes": _twice(_shapes),
    "city": _city,
    "sparse spots": _twice(_sparse_spots),
    "mostly empty": _twice(_mostly_empty),
}
