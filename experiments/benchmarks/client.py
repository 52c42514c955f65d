"""Speeds of the device side."""

import random
import subprocess
import sys
from statistics import median

import numpy as np

from client_sdk import Collection, Grid, Randomizer, entropy, kernels, response_table
from experiments.benchmarks.timing import Table, in_process, seconds

CELLS, EPSILON = 64, 3.5
REPORTS = 5_000_000
CALLS = 20_000


def device() -> Table:
    """One report on a device, and the import of the client."""
    grid = Grid.from_center(48.0, 11.0, 12_000, CELLS)
    randomizer = Randomizer(Collection.create("benchmark", grid, EPSILON))
    table = randomizer.collection.table
    cells = table.output_cells()
    weights = [table.weights.get((row - 3, col - 4), table.base_weight) for row, col in cells]
    own = seconds(lambda: [randomizer.randomize((3, 4)) for _ in range(CALLS)]) / CALLS
    few = CALLS // 100
    other = seconds(lambda: [random.choices(cells, weights) for _ in range(few)]) / few  # noqa: S311
    return (
        ["what", "ldpspatial", "alternative", "ratio"],
        [
            [
                f"one `Randomizer.randomize`, d = {CELLS}, no numba",
                f"{own * 1e6:.1f} µs",
                f"{other * 1e6:.0f} µs (`random.choices`: floats, seeded)",
                f"{other / own:.0f}",
            ],
            _import_row(),
        ],
    )


def _import_row() -> list[object]:
    bare = _start_up("pass")
    own = _start_up("import client_sdk") - bare
    numpy = _start_up("import numpy") - bare
    code = (
        "import sys; before = set(sys.modules); import client_sdk\n"
        "new = {m.split('.')[0] for m in set(sys.modules) - before} - {'client_sdk'}\n"
        "result['foreign'] = sorted(new - set(sys.stdlib_module_names))"
    )
    foreign = in_process(code)["foreign"]
    return [
        f"`import client_sdk` ({len(foreign)} modules outside the standard library)",
        f"{own * 1e3:.0f} ms",
        f"{numpy * 1e3:.0f} ms (`import numpy`)",
        f"{numpy / own:.1f}",
    ]


def _start_up(statement: str) -> float:
    command = [sys.executable, "-c", statement]
    return median(seconds(lambda: subprocess.run(command, check=True), repeats=3) for _ in range(5))


def many_reports() -> Table:
    """Many reports on one core, entropy included."""
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, CELLS, (2, REPORTS))
    result: list[list[object]] = []
    for mechanism in ("dam", "huem"):
        table = response_table(mechanism, EPSILON, CELLS)
        own = REPORTS / seconds(lambda t=table: kernels.randomize_many(t, rows, cols))
        system = REPORTS / seconds(
            lambda t=table: kernels.draw_many(t, rows, cols, entropy.system), repeats=3
        )
        few = REPORTS // 100
        other = few / seconds(
            lambda t=table, n=few: _numpy_reports(t, rows[:n], cols[:n], rng), repeats=3
        )
        what = f"`randomize_many`, {mechanism}, d = {CELLS}, entropy included"
        speed = f"{own / 1e6:.1f} million/s"
        every = f"{system / 1e6:.1f} million/s (every byte from the operating system)"
        numpy = f"{other / 1e6:.2f} million/s (NumPy, float cumulative sums: not private)"
        result.append([what, speed, every, f"{own / system:.1f}"])
        result.append([what, speed, numpy, f"{own / other:.0f}"])
    return ["what", "ldpspatial", "alternative", "ratio"], result


def _numpy_reports(
    table: object, rows: np.ndarray, cols: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw as one would in NumPy: a row of cumulative probabilities per input cell."""
    cells = np.array(table.output_cells())  # type: ignore[attr-defined]
    side = 2 * table.radius + 1  # type: ignore[attr-defined]
    stamp = np.full((side, side), table.base_weight, float)  # type: ignore[attr-defined]
    for (drow, dcol), weight in table.weights.items():  # type: ignore[attr-defined]
        stamp[drow + table.radius, dcol + table.radius] = weight  # type: ignore[attr-defined]
    out = np.empty((len(rows), 2), np.int64)
    uniform = rng.random(len(rows))
    for key in np.unique(rows * CELLS + cols):
        users = np.flatnonzero(rows * CELLS + cols == key)
        offsets = cells - divmod(key, CELLS) + table.radius  # type: ignore[attr-defined]
        near = ((offsets >= 0) & (offsets < side)).all(axis=1)
        weights = np.full(len(cells), table.base_weight, float)  # type: ignore[attr-defined]
        weights[near] = stamp[tuple(offsets[near].T)]
        ends = np.cumsum(weights) / weights.sum()
        out[users] = cells[np.searchsorted(ends, uniform[users], side="right")]
    return out
