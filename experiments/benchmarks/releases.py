"""Speed of the central and distributed releases."""

from fractions import Fraction
from functools import partial

import numpy as np

from client_sdk.shared import system_entropy
from experiments.benchmarks.timing import Table, seconds
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.discrete_laplace import sample
from ldpspatial.release.central import SparseEmd
from ldpspatial.release.central.pyramid import Pyramid
from ldpspatial.release.central.quantise import unit_sums
from ldpspatial.release.central.reconstruct import MeasuredLevel, reconstruct
from ldpspatial.release.distributed import Cohort, NoiseShare
from tests.support import naive_central

USERS, VISITS = 200, 40
HEADER = ["what", "ldpspatial", "alternative", "ratio"]


def central() -> Table:
    """Sparse EMD beside HiGHS on the same program; exact noise beside a plain loop."""
    rows: list[list[object]] = []
    for side in (256, 1024):
        users = _users(side)
        tree, levels = _measured(users)
        own = seconds(partial(reconstruct, tree, levels))
        targets, left_out = naive_central.programme(tree, levels)
        solve = partial(naive_central.least_objective_small, tree.depth, targets, left_out)
        solver = seconds(partial(solve, levels[0].level))
        release = partial(SparseEmd().release, users, 1.0, np.random.default_rng(1))
        whole = seconds(release)
        rows.append(
            [
                f"sparse EMD, reconstruction, D = {side}, w = 20",
                _ms(own),
                f"{_ms(solver)} (HiGHS, same program, its matrix built in Python)",
                f"{solver / own:.2g}",
            ]
        )
        rows.append([f"sparse EMD, whole release, D = {side}, {USERS} users", _ms(whole), "", ""])
    draws = 100_000
    scale = 10**6, 453_083
    own = seconds(lambda: sample(draws, *scale, system_entropy)) / draws
    plain = seconds(lambda: [_slow_draw(scale) for _ in range(200)]) / 200
    rows.append(
        [
            "exact discrete Laplace draw",
            f"{own * 1e9:.0f} ns",
            f"{plain * 1e6:.1f} µs (the same integers in Python)",
            f"{plain / own:.2g}",
        ]
    )
    return HEADER, rows


def distributed() -> Table:
    """Time a client's share of the noise, and a round of many clients."""
    share = NoiseShare(1.0, 1, 9_000)
    client = seconds(lambda: share.sample(1_300, system_entropy))
    length, clients = 1_048_576, 100_000
    people = cells_by_user(np.arange(clients), np.arange(clients) * 7 % length, (1024, 1024))
    rng = np.random.default_rng(1)
    fast = seconds(lambda: Cohort().sum(people.visits, 1.0, 1, rng), repeats=3)
    every = client / 1_300 * length * clients
    rows: list[list[object]] = [
        ["a client's noise, 1,300 entries", _ms(client), "", ""],
        [
            f"a round of {clients:,} clients x {length:,} entries, simulated",
            f"{fast:.2f} s",
            f"{every / 86_400:.0f} days (every client's share drawn; from the row above)",
            f"{every / fast:.1g}",
        ],
    ]
    return HEADER, rows


def _users(side: int) -> UserCells:
    rng = np.random.default_rng(side)
    spots = rng.integers(side, size=(30, 2))
    at = spots[rng.integers(30, size=USERS * VISITS)] + rng.normal(
        0, side / 60, (USERS * VISITS, 2)
    )
    row, col = np.clip(at, 0, side - 1).astype(np.int64).T
    return cells_by_user(np.arange(USERS * VISITS) % USERS, row * side + col, (side, side))


def _measured(users: UserCells) -> tuple[Quadtree, list[MeasuredLevel]]:
    tree = Quadtree(users.shape)
    release = SparseEmd()
    budget = release.split(10**6, tree.depth)
    rng = np.random.default_rng(1)
    return tree, release.measure(Pyramid(tree, *unit_sums(users)), budget, rng.bytes)


def _slow_draw(scale: tuple[int, int]) -> int:
    return naive_central.discrete_laplace(Fraction(*scale), system_entropy)


def _ms(duration: float) -> str:
    return f"{duration * 1000:.1f} ms"
