"""Speeds of the exact distance, beside POT and OR-Tools on the same whole-number maps.

Every answer is compared too: a benchmark of a wrong answer is worth nothing.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import ot

from experiments.benchmarks.distance_maps import (
    CLASSES,
    SEEDS,
    checkins_against_estimate,
    draw_pair,
    smooth_heat_maps,
)
from experiments.benchmarks.flow_oracles import (
    IntArray,
    Network,
    four_neighbour_network,
    pot_dense_cost,
    solve,
    two_hop_network,
    whole_masses,
)
from experiments.benchmarks.timing import Table, in_process
from ldpspatial import transport, wasserstein
from ldpspatial.metrics._maps import ground_cost

TOTAL = 2**30
REPEATS = 3
Pair = tuple[IntArray, IntArray]


def squared_small() -> Table:
    """Squared cost on small maps, where POT's matrix is small too."""
    rows = []
    for cells in (5, 10, 15, 20, 32):
        own = []
        dense = []
        for pair in _pairs("white noise", cells):
            own.append(_own(pair, 2, "euclidean", repeats=9)[0])
            began = time.perf_counter()
            pot_dense_cost(*pair)
            dense.append(time.perf_counter() - began)
        rows.append([f"{cells} x {cells}", _s(own), _s(dense)])
    return ["white noise", "ldpspatial, with proof", "POT"], rows


def squared_64() -> Table:
    """Squared cost at 64 x 64 against POT's dense solver and OR-Tools on the two-hop network."""
    rows = []
    ratios = []
    for name in CLASSES:
        own = []
        dense = []
        flow = []
        for pair in _pairs(name, 64):
            seconds, cost = _own(pair, 2, "euclidean")
            began = time.perf_counter()
            by_pot = pot_dense_cost(*pair)
            dense.append(time.perf_counter() - began)
            flow.append(_or_tools(pair, two_hop_network, cost))
            _check(abs(by_pot - cost) <= 1e-9 * cost, name)
            own.append(seconds)
        ratios.append((median(dense) / median(own), median(flow) / median(own)))
        rows.append([name, _s(own), _s(dense), _s(flow), *map(_ratio, ratios[-1])])
    rows.append(_medians(ratios, 3))
    return ["class, 64 x 64", "ldpspatial", "POT", "OR-Tools", "POT ratio", "OR-Tools ratio"], rows


def squared_128() -> Table:
    """Squared cost at 128 x 128 against OR-Tools; POT's matrix does not fit."""
    rows = []
    ratios = []
    for name in CLASSES:
        own = []
        flow = []
        for pair in _pairs(name, 128):
            seconds, cost = _own(pair, 2, "euclidean")
            own.append(seconds)
            flow.append(_or_tools(pair, two_hop_network, cost))
        ratios.append((median(flow) / median(own),))
        rows.append([name, _s(own), _s(flow), _ratio(ratios[-1][0])])
    rows.append(_medians(ratios, 2))
    return ["class, 128 x 128", "ldpspatial", "OR-Tools", "ratio"], rows


def squared_256() -> Table:
    """Squared cost at 256 x 256, where neither alternative ends within minutes; one seed."""
    rows = []
    for name in CLASSES:
        pair = whole_masses(*draw_pair(name, (256, 256), SEEDS[0]), TOTAL)
        filled = sum(int(np.count_nonzero(each)) for each in pair)
        rows.append([name, f"{filled:,}", _s([_own(pair, 2, "euclidean", repeats=1)[0]])])
    return ["class, 256 x 256", "filled cells of both maps", "ldpspatial"], rows


def cityblock_256() -> Table:
    """W1 of the 1-norm at 256 x 256 against OR-Tools on the four-neighbour network."""
    rows = []
    ratios = []
    for name, draw in (
        ("raw sparse check-ins, noisy estimate", checkins_against_estimate),
        ("smooth heat maps", smooth_heat_maps),
    ):
        own = []
        flow = []
        for seed in SEEDS:
            pair = whole_masses(*draw((256, 256), seed), TOTAL)
            seconds, cost = _own(pair, 1, "cityblock", repeats=1)
            own.append(seconds)
            flow.append(_or_tools(pair, four_neighbour_network, cost))
        ratios.append((median(flow) / median(own),))
        rows.append([name, _s(own), _s(flow), _ratio(ratios[-1][0])])
    rows.append(_medians(ratios, 2))
    return ["maps, 256 x 256", "ldpspatial", "OR-Tools", "ratio"], rows


def euclidean_64() -> Table:
    """W1 of the 2-norm at 64 x 64 against POT's dense solver on the surplus of each map."""
    rows = []
    for name in CLASSES:
        own = []
        dense = []
        for pair in _pairs(name, 64):
            own.append(_own(pair, 1, "euclidean")[0])
            common = np.minimum(*pair)
            began = time.perf_counter()
            by_pot = _pot_euclidean(pair[0] - common, pair[1] - common) / TOTAL
            dense.append(time.perf_counter() - began)
            value = wasserstein(*pair, 1)
            _check(abs(by_pot - value) <= 1e-9 * value, name)
        rows.append([name, _s(own), _s(dense), _ratio(median(dense) / median(own))])
    return ["class, 64 x 64", "ldpspatial", "POT", "ratio"], rows


def memory() -> Table:
    """Peak memory of a process that computes one distance from two arrays."""
    rows = []
    least = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for cells in (4, 64, 128, 256):
            np.save(Path(folder, "maps.npy"), np.stack(_pairs("smooth field", cells)[0]))
            code = (
                "import numpy as np\nfrom ldpspatial import wasserstein\n"
                f"wasserstein(*np.load({str(Path(folder, 'maps.npy'))!r}))"
            )
            peak = in_process(code)["peak_mb"]
            least = least or peak  # of the runtime and the compiled code alone
            rows.append([f"{cells} x {cells}", f"{peak:.0f} MB", f"{peak - least:.0f} MB"])
    return ["squared cost", "peak of the process", "above that at 4 x 4"], rows


def _pot_euclidean(p: IntArray, q: IntArray) -> float:
    matrix = ground_cost(np.argwhere(p > 0) * 1.0, np.argwhere(q > 0) * 1.0, 1, "euclidean")
    # POT calls whole numbers infeasible for its own rounding; powers of 2 round nothing.
    least = ot.emd2(p[p > 0] / TOTAL, q[q > 0] / TOTAL, matrix, numItermax=10**8)
    return float(least) * TOTAL


def _pairs(name: str, cells: int) -> list[Pair]:
    return [whole_masses(*draw_pair(name, (cells, cells), seed), TOTAL) for seed in SEEDS]


def _own(pair: Pair, order: int, ground: str, repeats: int = REPEATS) -> tuple[float, int]:
    """Return the median seconds of the whole call, proof included, and the whole least cost."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        plan = transport(*pair, order, ground)
        times.append(time.perf_counter() - began)
    return median(times), round(plan.value**order * TOTAL)


def _or_tools(pair: Pair, network: Callable[[IntArray, IntArray], Network], cost: int) -> float:
    """Return the seconds of OR-Tools, building its network included."""
    solution = solve(lambda: network(*pair))
    _check(solution.cost == cost, f"{solution.cost} against {cost}")
    return solution.build_seconds + solution.solve_seconds


def _check(right: bool, what: str) -> None:
    if not right:
        raise RuntimeError(f"two solvers disagree: {what}")


def _s(seconds: list[float]) -> str:
    value = median(seconds)
    return f"{value * 1000:.{0 if value > 0.1 else 1}f} ms" if value < 1 else f"{value:.1f} s"


def _ratio(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"


def _medians(ratios: list[tuple[float, ...]], blank: int) -> list[object]:
    columns = zip(*ratios, strict=True)
    return ["median of the classes", *[""] * blank, *(_ratio(median(x)) for x in columns)]
