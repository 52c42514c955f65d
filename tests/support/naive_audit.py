"""Slow, obvious twins of the exact part of ldpspatial.privacy.audit: all inputs, all outputs."""

from collections.abc import Iterator
from fractions import Fraction

from client_sdk import ResponseTable


def input_cells(table: ResponseTable) -> Iterator[tuple[int, int]]:
    return ((row, col) for row in range(table.cells) for col in range(table.cells))


def weight(table: ResponseTable, source: tuple[int, int], target: tuple[int, int]) -> int:
    offset = (target[0] - source[0], target[1] - source[1])
    return table.weights.get(offset, table.base_weight)


def realised_ratio(table: ResponseTable) -> Fraction:
    worst = Fraction(1)
    for target in table.output_cells():
        seen = [weight(table, source, target) for source in input_cells(table)]
        worst = max(worst, Fraction(max(seen), min(seen)))
    return worst


def totals(table: ResponseTable) -> set[int]:
    """Return the distinct sums of the weights over the output domain, one of every input cell."""
    targets = list(table.output_cells())
    return {
        sum(weight(table, source, target) for target in targets) for source in input_cells(table)
    }
