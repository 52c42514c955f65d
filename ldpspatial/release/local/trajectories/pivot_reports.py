"""What a device sends in PivotTrace: the draws, compiled, each from one uniform number.

Domains depend on public numbers and on what was drawn before, never on the trajectory. Every draw
is made at the largest sensitivity of its own domain:

- k-RR: a value of ``size`` is kept with probability e^eps / (e^eps + size - 1), else each other one
  is equally likely.
- Exponential mechanism over candidate cells: cell y is drawn with probability proportional to
  e^{-eps d(x, y) / (2 D)}, D the diameter of the candidates (McSherry and Talwar 2007). The truth
  x may lie anywhere: what counts are differences of two candidates' distances from it, which by the
  triangle inequality never exceed D, so that no probability moves by more than e^eps.
"""

import numpy as np

from ldpspatial.compiled import compiled


@compiled
def kept(size, epsilon):  # type: ignore[no-untyped-def]
    """Return the probability that k-RR keeps the value."""
    return 1 / (1 + (size - 1) * np.exp(-epsilon))


@compiled
def randomised_value(value, size, epsilon, uniform):  # type: ignore[no-untyped-def]
    """Return the k-RR report on a value in [0, size)."""
    keep = kept(size, epsilon)
    if uniform < keep or size == 1:
        return value
    # Given that it exceeds keep, `uniform` is uniform above it: one number serves for both draws.
    other = min(int((uniform - keep) / (1 - keep) * (size - 1)), size - 2)
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
def nearness_law(row, column, candidates, epsilon):  # type: ignore[no-untyped-def]
    """Return the law of the exponential mechanism over (k, 2) candidates from a cell."""
    largest = diameter(candidates)
    scale = epsilon / (2 * largest) if largest > 0 else 0.0
    law = np.empty(candidates.shape[0])
    least = np.inf
    for k in range(law.size):
        law[k] = distance(candidates, k, row, column)
        least = min(least, law[k])
    total = 0.0
    for k in range(law.size):
        law[k] = np.exp(-scale * (law[k] - least))  # the likeliest has weight 1: no underflow to 0
        total += law[k]
    for k in range(law.size):
        law[k] /= total
    return law


@compiled
def near_cell(row, column, candidates, epsilon, uniform):  # type: ignore[no-untyped-def]
    """Return the index of a candidate that is drawn by the exponential mechanism."""
    law = nearness_law(row, column, candidates, epsilon)
    left = uniform
    for k in range(law.size):
        left -= law[k]
        if left < 0:
            return k
    return law.size - 1  # the law may sum to less than `uniform` by rounding


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
def region(points, radii, side, epsilon, drawn):  # type: ignore[no-untyped-def]
    """Draw the activity region of a trajectory.

    Half of epsilon for its centre, by the exponential mechanism over all cells from the one nearest
    to the mean of the points; half for the least public radius that holds all points around the
    reported centre, by k-RR.

    Returns
    -------
    centre : (2,) array
    size : index of the radius
    """
    everywhere = block_cells(np.array([0, side - 1, 0, side - 1]))
    k = points.shape[0]
    row, column = 0, 0
    for j in range(k):
        row += points[j, 0]
        column += points[j, 1]
    near = near_cell(
        nearest_whole(row, k), nearest_whole(column, k), everywhere, epsilon / 2, drawn[0]
    )
    centre = everywhere[near]
    far = 0
    for j in range(k):
        far = max(far, abs(points[j, 0] - centre[0]), abs(points[j, 1] - centre[1]))
    size = 0
    while size < radii.size - 1 and radii[size] < far:
        size += 1
    return centre, randomised_value(size, radii.size, epsilon / 2, drawn[1])


@compiled
def copy_reports(points, first, block, sectors, shares, drawn):  # type: ignore[no-untyped-def]
    """Draw one copy: every other point a pivot, those between targets.

    Parameters
    ----------
    points : (K, 2) int64 array, K >= 2
    first : {0, 1}
        The first pivot.
    block : (4,) int64 array
    sectors : int
    shares : (3,) array
        Epsilon of a report of a pivot, a direction and a target.
    drawn : (2 K - 1,) array in [0, 1)

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
        chosen = near_cell(points[j, 0], points[j, 1], cells, shares[0], drawn[j])
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
            heard[pair] = randomised_value(seen, sectors, shares[1], drawn[last + 1 + pair])
        candidates = cells_towards(cells, pivots, heard[low:beyond], sectors)
        chosen = near_cell(row, column, candidates, shares[2], drawn[j])
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
