"""Is a collection document epsilon-LDP? Decided by building every probability of every report.

Written from docs/protocol.md alone: the disk as a dictionary, the output domain as a set, one
distribution per input cell. Only fit for small grids.
"""

from fractions import Fraction
from typing import Any

from mpmath import mp, mpf, workdps  # type: ignore[import-untyped]

Cell = tuple[int, int]


def disk_of(weights: list[list[int]]) -> dict[Cell, int]:
    disk = {}
    for x, row in enumerate(weights):
        for y, weight in enumerate(row):
            for a, b in ((x, y), (y, x)):
                disk.update({(s * a, t * b): weight for s in (-1, 1) for t in (-1, 1)})
    return disk


def domain_of(weights: list[list[int]], cells: int) -> set[Cell]:
    square = [(i, j) for i in range(cells) for j in range(cells)]
    return {(i + di, j + dj) for i, j in square for di, dj in disk_of(weights)}


def totals(weights: list[list[int]], cells: int, base: int) -> dict[str, int]:
    """Return the two derived fields of a document."""
    size = len(domain_of(weights, cells))
    lifts = sum(weight - base for weight in disk_of(weights).values())
    return {"output_size": size, "total_weight": size * base + lifts}


def distribution(document: dict[str, Any], row: int, col: int) -> dict[Cell, Fraction]:
    """Return the probability of every report of input cell (row, col)."""
    disk, base = disk_of(document["weights"]), document["base_weight"]
    domain = domain_of(document["weights"], document["grid"]["cells"])
    weights = {(r, c): disk.get((r - row, c - col), base) for r, c in domain}
    return {cell: Fraction(weight, document["total_weight"]) for cell, weight in weights.items()}


def is_private(document: dict[str, Any]) -> bool:
    """Tell whether no report is likelier by more than e^epsilon under any input."""
    cells = range(document["grid"]["cells"])
    inputs = [distribution(document, row, col) for row in cells for col in cells]
    if any(sum(p.values()) != 1 or min(p.values()) <= 0 for p in inputs):
        return False
    worst = max(
        max(p[report] for p in inputs) / min(p[report] for p in inputs) for report in inputs[0]
    )
    with workdps(60):
        bound = mp.exp(mpf(document["micro_epsilon"]) / 10**6)
        return bool(mpf(worst.numerator) / worst.denominator <= bound)
