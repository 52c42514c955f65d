"""Speeds of the device side."""

import random
import secrets
import subprocess
import sys
from bisect import bisect_right
from itertools import accumulate
from statistics import median

import numpy as np

from client_sdk import (
    Collection,
    Grid,
    Randomizer,
    ResponseTable,
    entropy,
    kernels,
    response_table,
)
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
    ends = list(accumulate(weights))
    floats = seconds(lambda: [random.choices(cells, cum_weights=ends) for _ in range(CALLS)])  # noqa: S311
    whole = seconds(
        lambda: [cells[bisect_right(ends, secrets.randbelow(ends[-1]))] for _ in range(CALLS)]
    )
    what = f"one `Randomizer.randomize`, any position, d = {CELLS}, no numba"
    kept = f"of {len(ends):,} sums kept for one position"
    return (
        ["what", "ldpspatial", "alternative", "ratio"],
        [
            _device_row(what, own, whole / CALLS, f"`secrets.randbelow` and bisection, {kept}"),
            _device_row(what, own, floats / CALLS, f"`random.choices` {kept}: floats, seeded"),
            _import_row(),
        ],
    )


def _device_row(what: str, own: float, other: float, which: str) -> list[object]:
    return [what, f"{own * 1e6:.1f} µs", f"{other * 1e6:.1f} µs ({which})", f"{other / own:.2g}"]


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
        other = REPORTS / seconds(lambda t=table: _numpy_reports(t, rows, cols, rng), repeats=3)
        what = f"`randomize_many`, {mechanism}, d = {CELLS}, entropy included"
        speed = f"{own / 1e6:.1f} million/s"
        every = f"{system / 1e6:.1f} million/s (every byte from the operating system)"
        numpy = f"{other / 1e6:.1f} million/s (NumPy, vectorised, floats from a seed: not private)"
        result.append([what, speed, every, f"{own / system:.1f}"])
        result.append([what, speed, numpy, f"{own / other:.1f}"])
    return ["what", "ldpspatial", "alternative", "ratio"], result


def _numpy_reports(
    table: ResponseTable, rows: np.ndarray, cols: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw all reports in NumPy: any output cell, or one of the disk by its weight above."""
    offsets, outputs = np.array(list(table.weights)), np.array(table.output_cells())
    above = np.array(list(table.weights.values()), float) - table.base_weight
    ends = np.cumsum(above)
    at = rng.random(len(rows)) * (ends[-1] + table.base_weight * len(outputs))
    near = at < ends[-1]
    out = outputs[rng.integers(len(outputs), size=len(rows))]
    steps = offsets[np.searchsorted(ends, at[near], side="right")]
    out[near] = np.column_stack([rows[near], cols[near]]) + steps
    return np.asarray(out)
