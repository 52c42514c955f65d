"""Which integers lead to which report, as one flat list: the obvious twin of the sampler.

Written from docs/protocol.md, section 4. The list names every interval of [0, total), so it is
only fit for small tables.
"""

from collections import defaultdict

Offset = tuple[int, int]
Interval = tuple[int, Offset]  # length, output cell


def by_orbit(weights: dict[Offset, int]) -> list[list[Offset]]:
    """Offsets in groups of mirror images: by (x, y), x >= y >= 0, then by (drow, dcol)."""
    orbits: dict[Offset, list[Offset]] = defaultdict(list)
    for drow, dcol in weights:
        x, y = max(abs(drow), abs(dcol)), min(abs(drow), abs(dcol))
        orbits[x, y].append((drow, dcol))
    return [sorted(images) for _, images in sorted(orbits.items())]


def intervals(
    weights: dict[Offset, int], cells: int, base: int, row: int, col: int
) -> list[Interval]:
    """Return the intervals from 0 up for input cell (row, col)."""
    square = [(i, j) for i in range(cells) for j in range(cells)]
    domain = sorted({(i + di, j + dj) for i, j in square for di, dj in weights})
    low = [(base, cell) for cell in domain]
    top = max(weights.values())
    high: list[Interval] = []
    mixed: list[Interval] = []
    for images in by_orbit(weights):
        for drow, dcol in images:
            lift = weights[drow, dcol] - base
            if lift:
                part = high if lift == top - base else mixed
                part.append((lift, (row + drow, col + dcol)))
    return low + high + mixed
