"""Forgeries that are optimised against a map, and the fits that they aim at."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from experiments.forgers import farthest
from ldpspatial import StampChannel
from ldpspatial.estimation.forgery.attacks import priced
from ldpspatial.estimation.limit_fits import LimitFits
from ldpspatial.metrics import wasserstein

Array = NDArray[np.float64]
Aim = Callable[[Array], tuple[float, Array]]  # of a fit: what it is worth, and a unit of its mass

STEPS = (1.0, 0.5, 0.25, 0.1, 0.05, 0.02, 0.007)  # parts of the reports that are moved at once
WORTH_IT = 1e-5  # of the value, which a step adds at least
TRIED = 60  # single output cells
QUICK = 1e-4  # how far fits are settled that tell the worst of them


def fitting(channel: StampChannel, density: Array, share: float, rounds: int = 6) -> list[Array]:
    """Return forgeries that the model fits exactly, by alternating maximisation.

    Given the prices of cells the best such map is a linear program; its transport gives new prices.
    It starts from squared distances to the corners, and from chance. Dense and slow.
    """
    matrix = channel.matrix()
    law = matrix @ density.ravel()
    rows, cols = np.indices(density.shape)
    last = len(density) - 1
    rng = np.random.default_rng(1)
    starts = [
        rows**2 + cols**2,
        (last - rows) ** 2 + (last - cols) ** 2,
        rng.standard_normal(density.shape),
    ]
    found = []
    for start in starts:
        weights = start.astype(np.float64)
        for _ in range(rounds):
            best = linprog(
                -weights.ravel(),
                A_ub=-matrix,
                b_ub=-(1 - share) * law,
                A_eq=np.ones((1, density.size)),
                b_eq=[1],
            ).x.clip(0)
            weights = priced(density, best.reshape(density.shape))[1]
        forged = np.maximum(matrix @ (best / best.sum()) - (1 - share) * law, 0)
        found.append(forged / forged.sum())
    return found


def far_from(density: Array) -> Aim:
    """Return the aim of those who want the map far away: squared W2, and its prices."""
    return partial(priced, density)


def ascended(
    channel: StampChannel,
    density: Array,
    share: float,
    aim: Aim,
    forged: Array,
    rounds: int = 12,
) -> tuple[Array, Array]:
    """Return a forgery that is improved by steepest ascent, and its fit of maximum likelihood.

    Each round moves a part of all that is sent, or all of what is worth the least, to the output
    cell that adds most.

    Parameters
    ----------
    channel : StampChannel
    density : (d, d) array
        Of those who are honest.
    share : float
        Forged, of all reports.
    aim : callable
        Takes a fit; returns its value and what a unit of mass adds to that, by cell.
    forged : (outputs,) array
        A distribution on the output domain, where the ascent starts.
    rounds : int
    """
    support = channel.support
    honest = (1 - share) * channel.forward(density)
    limits = LimitFits(channel)

    def law(sent: Array) -> Array:
        counts = honest.copy()
        counts[support] += share * sent
        return counts

    fit = limits.fit(law(forged), density)
    value, worth = aim(fit)
    for _ in range(rounds):
        slope = limits.slopes(law(forged), fit, worth)[support]
        best = None
        for sent in _moves(forged, slope):
            there = limits.fit(law(sent), fit)
            reached, priced = aim(there)
            if reached > value + WORTH_IT * abs(value):
                best = sent, there, reached, priced
                break
        if best is None:
            break
        forged, fit, value, worth = best
    return forged, fit


def _moves(forged: Array, slope: Array) -> Iterator[Array]:
    """Yield what may be sent next, largest steps first."""
    corner = np.eye(1, len(forged), int(slope.argmax())).ravel()
    used = np.flatnonzero(forged > 1e-6)
    least = used[slope[used].argmin()]
    yield corner
    if slope[least] < slope.max():
        swapped = forged + forged[least] * corner
        swapped[least] = 0
        yield swapped
    for step in STEPS[1:]:
        yield (1 - step) * forged + step * corner


def starts(
    channel: StampChannel, density: Array, share: float, rng: np.random.Generator
) -> dict[str, Array]:
    """Return forgeries to ascend from, by name: single outputs, honest-looking, and mixtures.

    The single outputs are the worst of sixty that chance chose, far from each other.
    """
    support = channel.support
    places = np.argwhere(support)
    worst = _worst(channel, density, share, rng.permutation(len(places))[:TRIED])
    single = [np.eye(1, len(places), k).ravel() for k in worst]
    found = {f"single {k + 1}": each for k, each in enumerate(single)}
    found["two singles"] = (single[0] + single[1]) / 2
    last = len(density) - 1
    row, col = farthest(density)
    for name, corner in {"far corner": (row, col), "other corner": (last - row, col)}.items():
        there = np.zeros(density.shape)
        there[corner] = 1
        drawn = channel.forward(there)[support]
        found[f"drawn, {name}"] = drawn / drawn.sum()
        if channel.table.radius:
            alone = drawn - drawn.min()
            found[f"disk alone, {name}"] = alone / alone.sum()
    found["random"] = rng.dirichlet(np.full(len(places), 0.05))
    found["noise"] = np.full(len(places), 1 / len(places))
    return found


def _worst(
    channel: StampChannel, density: Array, share: float, tried: NDArray[np.int64], kept: int = 4
) -> list[int]:
    """Return the worst of some output cells, given by their numbers, which lie apart."""
    support = channel.support
    places = np.argwhere(support)
    limits = LimitFits(channel)
    moved = []
    for k in tried:
        law = (1 - share) * channel.forward(density)
        law[tuple(places[k])] += share
        fit = limits.fit(law, density, QUICK)
        moved.append(wasserstein(density, fit, certify=False))
    found: list[int] = []
    for k in np.argsort(moved)[::-1]:
        far = [int(abs(places[tried[k]] - places[each]).max()) for each in found]
        if min(far, default=len(support)) >= len(density) // 6:
            found.append(int(tried[k]))
    return found[:kept]
