"""Into how many cells a square is cut, and how much larger than the area it is."""

from ldpspatial.release.local.disks.disk_radius import MAX_USERS
from ldpspatial.validate import number_in, whole_number

CELLS = 64
MANY_CELLS = 128
MANY_USERS = 1_000_000  # from here on finer cells tell more of regions
FINEST_CELL_M = 10.0  # about what the positions of a phone resolve


def recommended_cells(n_users: int, side_m: float | None = None) -> int:
    """Return into how many cells a side a square is cut.

    64, and 128 from 10^6 users on. Cells cost no privacy, since the disk grows with them, and no
    accuracy of the map in metres; but a region that cuts large cells is answered badly
    (docs/ranges.md). No cell is smaller than 10 m, which positions do not resolve.

    Parameters
    ----------
    n_users : int in [1, 10^12]
    side_m : float > 0, optional
        Side of the square in metres.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> recommended_cells(50_000), recommended_cells(2_000_000), recommended_cells(50_000, 200)
    (64, 128, 20)
    """
    users = whole_number("n_users", n_users, 1, MAX_USERS)
    cells = MANY_CELLS if users >= MANY_USERS else CELLS
    if side_m is None:
        return cells
    side = number_in("side_m", side_m, "(0, 20000000]")
    return max(1, min(cells, int(side / FINEST_CELL_M)))


def with_ring(side_m: float, cells: int, radius: int) -> tuple[float, int]:
    """Return side and cells of a square with a ring around it, as wide as a disk's radius.

    Devices outside of a square report from its edge, and those reports are spread over a disk. With
    the ring, that edge is a radius away from the area that matters.

    Parameters
    ----------
    side_m : float > 0
        Of the area in metres.
    cells : int in [1, 4096]
        Of the area along a side.
    radius : int >= 0
        Of the disk in cells. The ring is a cell wide at least.

    Examples
    --------
    >>> with_ring(12_800.0, 64, 10)
    (16800.0, 84)
    """
    wider = cells + 2 * max(radius, 1)
    return side_m * wider / cells, wider
