"""Speed of releases: the central and distributed ones, and all of many people."""

from fractions import Fraction
from functools import partial
from typing import get_args

import numpy as np

from client_sdk.shared import system_entropy
from experiments.benchmarks.timing import Table, in_process, seconds
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells, cells_by_user
from ldpspatial.privacy.discrete_laplace import sample
from ldpspatial.release.central import SparseEmd
from ldpspatial.release.central.pyramid import Pyramid
from ldpspatial.release.central.quantise import unit_sums
from ldpspatial.release.central.reconstruct import MeasuredLevel, reconstruct
from ldpspatial.release.distributed import Cohort, NoiseShare
from ldpspatial.release.level_sums import Aim
from ldpspatial.release.local import DifferenceSets, SubsetSelection
from tests.support import naive_central

USERS, VISITS = 200, 40
DRAWS = 100_000
SCALE = 10**6, 453_083
EVERYBODY, FINE = 10_000_000, 1024
MANY = [(each, aim) for each in ("local", "central", "distributed") for aim in get_args(Aim)]
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
    return HEADER, [*rows, *_noise()]


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


def many_people() -> Table:
    """Time the recommended releases, and take their memory, for a country on a fine map."""
    rows: list[list[object]] = []
    for model, aim in MANY:
        found = in_process(
            "import numpy as np\n"
            "import ldpspatial as lp\n"
            "from ldpspatial.places.users import cells_by_user\n"
            "rng = np.random.default_rng(1)\n"
            f"n, side = {EVERYBODY}, {FINE}\n"
            "spots, width = rng.integers(side, size=(60, 2)), side / rng.uniform(20, 300, 60)\n"
            "town = rng.integers(60, size=n)\n"
            "row, col = (\n"
            "    np.clip(rng.standard_normal(n) * width[town] + spots[town, i], 0, side - 1)\n"
            "    .astype(np.int64) for i in (0, 1)\n"
            ")\n"
            "cells = row * side + col\n"
            "del row, col, town\n"
            f"best = lp.recommended(side, 1.0, n, model={model!r}, aim={aim!r})\n"
            "began = time.process_time()\n"
            "best.release(cells_by_user(np.arange(n), cells, (side, side)), 1.0, rng)\n"
            "result['seconds'] = time.process_time() - began"
        )
        rows.append([model, aim, f"{found['seconds']:.0f} s", f"{found['peak_mb']:,.0f} MB"])
    return ["model", "aim", "CPU time", "peak memory"], rows


def sets() -> Table:
    """Count the reports of ten million people that are sets of a million cells."""
    rng, size = np.random.default_rng(1), FINE**2
    few, every = (rng.integers(size, size=n) for n in (1_000, EVERYBODY))
    own = seconds(lambda: DifferenceSets().frequencies(every, size, 1.0, rng), repeats=3)
    subsets = seconds(lambda: SubsetSelection().frequencies(few, size, 1.0, rng), repeats=3)
    hours = subsets / len(few) * len(every)
    row: list[object] = [
        f"{EVERYBODY:,} reports that are sets of {size:,} cells, drawn and counted",
        f"{own:.1f} s (`difference-sets`)",
        f"{hours / 3600:.1f} h (`subset-selection`, from {len(few):,} reports)",
        f"{hours / own:.1g}",
    ]
    return HEADER, [row]


def _noise() -> list[list[object]]:
    """Many exact draws of discrete Laplace noise beside a library's, a plain loop's and floats."""
    import opendp.prelude as dp  # noqa: PLC0415 - the extra `bench`, for this row alone

    dp.enable_features("contrib")
    zeros = [0] * DRAWS
    domain = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    library = dp.m.make_laplace(*domain, scale=SCALE[0] / SCALE[1])
    rng, success = np.random.default_rng(1), -np.expm1(-SCALE[1] / SCALE[0])
    own = seconds(lambda: sample(DRAWS, *SCALE, system_entropy)) / DRAWS
    others = (
        ("OpenDP, exact", lambda: library(zeros), DRAWS),
        ("the same integers in Python", lambda: [_slow_draw(SCALE) for _ in range(200)], 200),
        (
            "NumPy, two `geometric`: floats from a seed, not private",
            lambda: rng.geometric(success, DRAWS) - rng.geometric(success, DRAWS),
            DRAWS,
        ),
    )
    times = [seconds(call) / draws for _, call, draws in others]
    what = f"a discrete Laplace draw, of {DRAWS:,}"
    return [
        [what, f"{own * 1e9:.0f} ns", f"{time * 1e9:,.0f} ns ({name})", f"{time / own:.2g}"]
        for (name, _, _), time in zip(others, times, strict=True)
    ]


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
