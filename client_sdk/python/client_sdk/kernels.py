"""The same draws as :mod:`client_sdk.sampling`, compiled, for many reports at once.

For simulations, audits and benchmarks: one process holds many positions there. The only module
of the package that needs numpy and numba; install ``ldpspatial-client[fast]``. Entropy comes
from a cipher under keys of the operating system (:mod:`client_sdk.cipher_entropy`), the arithmetic
is on 64-bit integers, and for the same entropy the reports equal those of the scalar code.
"""

from collections.abc import Callable
from typing import Any

try:
    import numpy as np
    from numba import njit
    from numpy.typing import ArrayLike, NDArray

    from client_sdk import cipher_entropy
except ImportError as error:
    raise ImportError(
        "client_sdk.kernels needs numpy, numba and cryptography: install ldpspatial-client[fast]"
    ) from error

from client_sdk.entropy import DRAW_BYTES, Entropy
from client_sdk.errors import ParameterError, PositionError
from client_sdk.grid import PLANE_FAR, TURN, UNIT, Grid
from client_sdk.response import ResponseTable, orbit, orbit_size
from client_sdk.sampling import Excess, Parts

__all__ = ["cells_of", "draw_many", "randomize_many"]

Ints = NDArray[np.int64]
CHUNK_DRAWS = 1 << 17  # 0.9 MB of entropy at a time stays in the cache


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function and cache the result on disk where there is a place for it."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:  # a read-only installation and no home folder: compile in every process
        return njit(nogil=True)(function)


def randomize_many(table: ResponseTable, rows: ArrayLike, cols: ArrayLike) -> tuple[Ints, Ints]:
    """Draw one report for each input cell.

    No seed repeats the reports: their random bits come from AES-256 in counter mode, under keys
    that the operating system gives afresh. For simulation; a device draws from the operating
    system itself.

    Parameters
    ----------
    table : ResponseTable
    rows, cols : (n,) integer arrays in [0, cells)
        Input cells of n users.

    Returns
    -------
    out_rows, out_cols : (n,) int64 arrays
        Reported cells; negative or >= cells in the margin.

    Raises
    ------
    ParameterError
        Arrays of different length, not integer, or cells outside the square.
    OSError, NotImplementedError
        The operating system gives no random bytes.
    """
    return draw_many(table, rows, cols, cipher_entropy.system_keyed)


def draw_many(
    table: ResponseTable, rows: ArrayLike, cols: ArrayLike, entropy: Entropy
) -> tuple[Ints, Ints]:
    """Draw as :func:`randomize_many` does, from a given entropy source (for tests)."""
    cells_in = _input_cells(table, rows, cols)
    cells_out = np.empty_like(cells_in[0]), np.empty_like(cells_in[1])
    plan = _plan(table)
    mask = (1 << (table.total_weight - 1).bit_length()) - 1
    n = len(cells_in[0])
    done = 0
    while done < n:
        # One draw fills at most one report, so no entropy is asked for and left over.
        draws = min(CHUNK_DRAWS, n - done)
        data = np.frombuffer(entropy(draws * DRAW_BYTES), np.uint8)
        done = _fill(data, mask, plan, cells_in, cells_out, done)
    return cells_out


def cells_of(grid: Grid, lats: ArrayLike, lons: ArrayLike) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Return the cells of many positions, and which of them lie in the square.

    The vectorised twin of :meth:`Grid.cell` and :meth:`Grid.contains`.

    Parameters
    ----------
    grid : Grid
    lats, lons : (n,) arrays of degrees, or of y and x on a plane grid

    Returns
    -------
    rows, cols : (n,) int64 arrays in [0, cells)
    inside : (n,) bool array

    Raises
    ------
    ParameterError
        Arrays of different length or not of numbers.
    PositionError
        A position is not finite, or not a latitude and longitude; says how many, never which
        or where.
    """
    y, x = (
        _vector(name, values, "iuf").astype(np.float64)
        for name, values in (("lats", lats), ("lons", lons))
    )
    if len(y) != len(x):
        raise ParameterError(f"lats and lons must have one length, got {len(y)} and {len(x)}")
    geographic = grid.kind == "geographic"
    # On a plane only what is not finite is refused: silence would tell who is far away.
    most = (90.0, 360.0) if geographic else (float(np.finfo(np.float64).max),) * 2
    good = (np.abs(y) <= most[0]) & (np.abs(x) <= most[1])
    if not good.all():
        bad = int((~good).sum())
        raise PositionError(f"{bad} of {len(y)} positions are not finite or out of range")
    if not geographic:
        y = np.clip(y, -PLANE_FAR, PLANE_FAR)
        x = np.clip(x, -PLANE_FAR, PLANE_FAR)
    # One multiplication and one addition, not fused, as docs/protocol.md (section 1) has them:
    # rounded in another way, a position on an edge could fall into another cell.
    dy = np.floor(y * UNIT + 0.5).astype(np.int64) - grid.south
    dx = np.floor(x * UNIT + 0.5).astype(np.int64) - grid.west
    if geographic:
        # The turn around the middle of the square: it may cross the antimeridian, and a position
        # beyond its west edge is nearest to that edge.
        half = (TURN - grid.width) // 2
        dx = (dx + half) % TURN - half
    inside = (dy >= 0) & (dy <= grid.height) & (dx >= 0) & (dx <= grid.width)
    # Clipping to the square first keeps dy * cells within 64 bits.
    rows = np.clip(dy, 0, grid.height) * grid.cells // grid.height
    cols = np.clip(dx, 0, grid.width) * grid.cells // grid.width
    last = grid.cells - 1
    return np.minimum(rows, last), np.minimum(cols, last), inside


def _input_cells(table: ResponseTable, rows: ArrayLike, cols: ArrayLike) -> tuple[Ints, Ints]:
    arrays = []
    for name, values in (("rows", rows), ("cols", cols)):
        array = _vector(name, values, "iu")
        if array.size and (array.min() < 0 or array.max() >= table.cells):
            raise ParameterError(f"{name} must lie in 0..{table.cells - 1} (not repeated here)")
        arrays.append(np.ascontiguousarray(array, np.int64))
    if len(arrays[0]) != len(arrays[1]):
        raise ParameterError(
            f"rows and cols must have one length, got {len(arrays[0])} and {len(arrays[1])}"
        )
    return arrays[0], arrays[1]


def _vector(name: str, values: ArrayLike, kinds: str) -> NDArray[Any]:
    """Return a one-dimensional array of a dtype kind ("i", "u" or "f")."""
    rule = f"{name} must be a one-dimensional array of {'numbers' if 'f' in kinds else 'integers'}"
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        raise ParameterError(rule) from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in kinds):
        raise ParameterError(f"{rule}, got shape {array.shape} of {array.dtype}")
    return array


def _plan(table: ResponseTable) -> tuple[Any, ...]:
    """Spread the parts of a table over flat arrays for the kernel."""
    parts = Parts(table)
    sizes = [orbit_size(x, y) for x, y, _ in parts.mixed.orbits]
    low = (
        parts.low_end,
        table.base_weight,
        _output_cells(table),
    )
    high = parts.high_end, table.max_weight - table.base_weight, _offsets(parts.high)
    # Orbit i owns the integers [ends[i], ends[i + 1]) and the offsets [starts[i], starts[i + 1]).
    mixed = (
        np.array([0, *parts.mixed_ends], np.int64),
        np.array([excess for _, _, excess in parts.mixed.orbits], np.int64),
        np.cumsum([0, *sizes], dtype=np.int64),
        _offsets(parts.mixed),
    )
    return table.total_weight, low, high, mixed


def _output_cells(table: ResponseTable) -> Ints:
    """Return ``table.output_cells()`` as an (N, 2) array, row by row."""
    margins = np.array([table.margin(row) for row in table.output_rows])
    lengths = table.cells + 2 * margins
    rows = np.repeat(np.array(table.output_rows), lengths)
    starts = np.repeat(np.cumsum(lengths) - lengths + margins, lengths)
    return np.stack([rows, np.arange(rows.size) - starts], axis=1)


def _offsets(part: Excess) -> Ints:
    flat = [offset for x, y, _ in part.orbits for offset in orbit(x, y)]
    return np.array(flat, np.int64).reshape(-1, 2)


@compiled
def _fill(data, mask, plan, cells_in, cells_out, done):  # type: ignore[no-untyped-def]
    """Fill reports from ``done`` on, of which there are at least as many as draws in the entropy.

    Return how many are done then.
    """
    total, (low_end, base, cells), (high_end, high_excess, high), mixed_part = plan
    ends, excess, starts, mixed = mixed_part
    for u in _accepted(data, mask, total):
        if u < low_end:
            index = u // base
            cells_out[0][done] = cells[index, 0]
            cells_out[1][done] = cells[index, 1]
        elif u < high_end:
            # All high cells have one excess: a division finds the cell, no search for its orbit.
            index = (u - low_end) // high_excess
            cells_out[0][done] = cells_in[0][done] + high[index, 0]
            cells_out[1][done] = cells_in[1][done] + high[index, 1]
        else:
            v = u - high_end
            i = np.searchsorted(ends, v, side="right") - 1
            index = starts[i] + (v - ends[i]) // excess[i]
            cells_out[0][done] = cells_in[0][done] + mixed[index, 0]
            cells_out[1][done] = cells_in[1][done] + mixed[index, 1]
        done += 1
    return done


@compiled
def _accepted(data, mask, total):  # type: ignore[no-untyped-def]
    """Return the integers of the entropy, in order, that are below the total."""
    found = np.empty(data.size // DRAW_BYTES, np.int64)
    count = 0
    for k in range(found.size):
        u = np.int64(0)
        for j in range(DRAW_BYTES * k, DRAW_BYTES * (k + 1)):
            u = (u << 8) | np.int64(data[j])
        u &= mask  # 56 bits were read, so u never was negative
        # A comparison that is counted, not a branch: no processor guesses random numbers.
        found[count] = u
        count += u < total
    return found[:count]
