"""What a device sends in PivotTrace: the draws, compiled, each from one uniform whole number.

Domains depend on public numbers and on what was drawn before, never on the trajectory. Every draw
is made at the largest sensitivity of its own domain, from whole weights between a base and a top
(:mod:`ldpspatial.privacy.whole_draws`), here an array (base, top):

- k-RR: the value of ``size`` has the top, every other one the base, and top / base is at most
  e^eps.
- Exponential mechanism over candidate cells (McSherry and Talwar 2007): cell y has about the weight
  top e^{-eps (d(x, y) - d(x)) / (2 D)}, d(x) the distance of the nearest candidate and D the
  diameter of the candidates. The truth x may lie anywhere: by the triangle inequality
  d(x, y) - d(x) never exceeds D, so that weights lie between e^{-eps/2} top and top. What the claim
  rests on is less than that: weights are cut to [base, top], and top / base is at most e^{eps/2}.
  Then the weight of a cell and the total both differ by that factor at most, whatever floats made
  of the distances, and no probability moves by more than e^eps.
"""

import numpy as np
from numpy.typing import NDArray

from ldpspatial.compiled import compiled
from ldpspatial.privacy.whole_draws import two_weights

Ints = NDArray[np.int64]


def value_weights(size: int, epsilon: float) -> Ints:
    """Return (base, top) of k-RR on that many values."""
    weights = two_weights(epsilon, 1, size - 1)
    return np.array([weights.base, weights.top])


def cell_weights(cells: int, epsilon: float) -> Ints:
    """Return (base, top) of the exponential mechanism over at most that many cells."""
    weights = two_weights(epsilon / 2, likelier=cells, others=0)
    return np.array([weights.base, weights.top])


@compiled
def randomised_value(value, size, weights, rng):  # type: ignore[no-untyped-def]
    """Return the k-RR report on a value in [0, size)."""
    base, top = weights
    above = rng.integers(0, top + (size - 1) * base) - top
    if above < 0:
        return value
    other = above // base
    return other + (other >= value)


@compiled
def sector(row, column, from_row, from_column, sectors):  # type: ignore[no-untyped-def]
    """Return the sector of the direction to a cell: 0 is centred on growing columns.

    Sectors turn from columns to rows. The cell itself lies in sector 0.
    """
    turns = np.arctan2(row - from_row, column - from_column) / (2 * np.pi) * sectors
    # Half-way directions are the same for every machine: rounding hides the last digits of pi.
    return int(np.floor(np.round(turns + 0.5, 9))) % sectors


@compiled
def diameter(candidates):  # type: ignore[no-untyped-def]
    """Return the largest distance between two candidates, which stand row by row."""
    most = 0.0
    # Distance from a point is convex along a row, so the farthest pair lies at ends of rows.
    ends = np.empty((candidates.shape[0], 3))  # row, first column, last column
    rows = 0
    for k in range(candidates.shape[0]):
        if rows == 0 or ends[rows - 1, 0] != candidates[k, 0]:
            ends[rows, 0] = candidates[k, 0]
            ends[rows, 1] = candidates[k, 1]
            rows += 1
        ends[rows - 1, 2] = candidates[k, 1]
    for first in range(rows):
        for second in range(first, rows):
            down = ends[second, 0] - ends[first, 0]
            across = max(ends[second, 2] - ends[first, 1], ends[first, 2] - ends[second, 1])
            most = max(most, np.hypot(down, across))
    return most


@compiled
def distance(cells, k, row, column):  # type: ignore[no-untyped-def]
    """Return the Euclidean distance of cell k from another, in cells."""
    down = cells[k, 0] - row
    across = cells[k, 1] - column
    return np.sqrt(float(down * down + across * across))


@compiled
def nearness(row, column, candidates, weights):  # type: ignore[no-untyped-def]
    """Return the whole weights of (k, 2) candidates in the exponential mechanism from a cell."""
    base, top = weights
    largest = diameter(candidates)
    scale = np.log(top / base) / largest if largest > 0 else 0.0
    away = np.empty(candidates.shape[0])
    for k in range(away.size):
        away[k] = distance(candidates, k, row, column)
    away -= away.min()
    found = np.empty(away.size, np.int64)
    for k in range(away.size):
        found[k] = min(max(int(top * np.exp(-scale * away[k])), base), top)
    return found


@compiled
def near_cell(row, column, candidates, weights, rng):  # type: ignore[no-untyped-def]
    """Return the index of a candidate that is drawn by the exponential mechanism."""
    each = nearness(row, column, candidates, weights)
    left = rng.integers(0, each.sum())
    k = 0
    while left >= each[k]:
        left -= each[k]
        k += 1
    return k


@compiled
def block_cells(block):  # type: ignore[no-untyped-def]
    """Return the (k, 2) cells of a block, row by row."""
    columns = block[3] - block[2] + 1
    cells = np.empty(((block[1] - block[0] + 1) * columns, 2), np.int64)
    for k in range(cells.shape[0]):
        cells[k, 0] = block[0] + k // columns
        cells[k, 1] = block[2] + k % columns
    return cells


@compiled
def cells_towards(cells, pivots, heard, sectors):  # type: ignore[no-untyped-def]
    """Return the cells in the reported sectors of all pivots; all cells where there is none.

    A pivot's own cell lies in all of its sectors, as it lies in no direction.
    """
    found = np.empty_like(cells)
    count = 0
    for k in range(cells.shape[0]):
        inside = True
        for j in range(pivots.shape[0]):
            own = cells[k, 0] == pivots[j, 0] and cells[k, 1] == pivots[j, 1]
            seen = sector(cells[k, 0], cells[k, 1], pivots[j, 0], pivots[j, 1], sectors)
            inside = inside and (own or seen == heard[j])
        if inside:
            found[count, 0] = cells[k, 0]
            found[count, 1] = cells[k, 1]
            count += 1
    return found[:count] if count else cells


@compiled
def nearest_whole(total, parts):  # type: ignore[no-untyped-def]
    """Return the whole number nearest to total / parts; halves go to the even one.

    So that a mean that lies half-way between two cells favours no side.
    """
    low = total // parts
    rest = total % parts
    return low + (2 * rest > parts or (2 * rest == parts and low % 2 == 1))


@compiled
def middle(points):  # type: ignore[no-untyped-def]
    """Return the cell nearest to the mean of the points."""
    k = points.shape[0]
    row, column = 0, 0
    for j in range(k):
        row += points[j, 0]
        column += points[j, 1]
    return nearest_whole(row, k), nearest_whole(column, k)


@compiled
def reach(points, centre, radii):  # type: ignore[no-untyped-def]
    """Return the place of the least radius that holds all points around a centre."""
    far = 0
    for j in range(points.shape[0]):
        far = max(far, abs(points[j, 0] - centre[0]), abs(points[j, 1] - centre[1]))
    size = 0
    while size < radii.size - 1 and radii[size] < far:
        size += 1
    return size


@compiled
def region(points, radii, side, weights, rng):  # type: ignore[no-untyped-def]
    """Draw the activity region of a trajectory.

    Half of epsilon for its centre, by the exponential mechanism over all cells from the one nearest
    to the mean of the points; half for the least public radius that holds all points around the
    reported centre, by k-RR. ``weights`` holds those of the one and of the other.

    Returns
    -------
    centre : (2,) array
    size : index of the radius
    """
    everywhere = block_cells(np.array([0, side - 1, 0, side - 1]))
    row, column = middle(points)
    centre = everywhere[near_cell(row, column, everywhere, weights[0], rng)]
    return centre, randomised_value(reach(points, centre, radii), radii.size, weights[1], rng)


@compiled
def copy_reports(points, first, block, sectors, weights, rng):  # type: ignore[no-untyped-def]
    """Draw one copy: every other point a pivot, those between targets.

    Parameters
    ----------
    points : (K, 2) int64 array, K >= 2
    first : {0, 1}
        The first pivot.
    block : (4,) int64 array
    sectors : int
    weights : (3, 2) int64 array
        Of a report of a pivot, a direction and a target.
    rng : numpy.random.Generator

    Returns
    -------
    noisy : (K, 2) int64 array
        Pivots and targets as reported.
    heard : (K - 1,) int64 array
        Reported sector of the target of each pair of neighbours, seen from their reported pivot.
    """
    last = points.shape[0] - 1
    cells = block_cells(block)
    noisy = np.empty((last + 1, 2), np.int64)
    heard = np.empty(last, np.int64)
    for j in range(first, last + 1, 2):
        chosen = near_cell(points[j, 0], points[j, 1], cells, weights[0], rng)
        noisy[j, 0], noisy[j, 1] = cells[chosen, 0], cells[chosen, 1]
    for j in range(1 - first, last + 1, 2):
        row, column = points[j]
        low, beyond = max(j - 1, 0), min(j + 1, last)  # pairs (low, low + 1), (low + 1, low + 2)
        pivots = np.empty((beyond - low, 2), np.int64)
        for pair in range(low, beyond):
            beside = pair if pair < j else pair + 1
            pivots[pair - low, 0], pivots[pair - low, 1] = noisy[beside, 0], noisy[beside, 1]
            # From the reported pivot, not from the true one: domains may depend on reports alone.
            seen = sector(row, column, noisy[beside, 0], noisy[beside, 1], sectors)
            heard[pair] = randomised_value(seen, sectors, weights[1], rng)
        candidates = cells_towards(cells, pivots, heard[low:beyond], sectors)
        chosen = near_cell(row, column, candidates, weights[2], rng)
        noisy[j, 0], noisy[j, 1] = candidates[chosen, 0], candidates[chosen, 1]
    return noisy, heard


@compiled
def block_around(centre, radius, side):  # type: ignore[no-untyped-def]
    """Return first and last row, first and last column of the region on the map."""
    block = np.empty(4, np.int64)
    for axis in range(2):
        block[2 * axis] = max(centre[axis] - radius, 0)
        block[2 * axis + 1] = min(centre[axis] + radius, side - 1)
    return block
