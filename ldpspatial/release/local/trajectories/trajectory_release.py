"""What releases of trajectories share: one ordered list of visits a user, protected as a whole."""

from fractions import Fraction
from math import inf, nextafter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ldpspatial.compiled import compiled
from ldpspatial.errors import InputError
from ldpspatial.places.users import Trails, UserCells
from ldpspatial.privacy.claims import TAKING_PART, PrivacyClaim
from ldpspatial.release.local.local_release import PUBLIC_MAP, square_side
from ldpspatial.validate import MAX_EPSILON, MIN_EPSILON, number_in

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Weigh = Literal["user", "visit"]

LEAST_EPSILON = float(MIN_EPSILON)
ONE_TRAJECTORY = "one trajectory a user, of any length, protected as a whole"
SAME_REPORTS = "every user sends the same public number of reports, whatever the length"
USERS_PUBLIC = "the number of users is public"
COMMON = (ONE_TRAJECTORY, SAME_REPORTS, USERS_PUBLIC, PUBLIC_MAP, TAKING_PART)


def trails_of(name: str, users: UserCells) -> Trails:
    """Return the users' visits in order, on a square map.

    Raises
    ------
    InputError
        The order of the visits is unknown, or the map is not square.
    """
    square_side(name, users)
    if users.trails is None:
        raise InputError(f"{name} needs the visits in order: users must hold trails, got None")
    return users.trails


def trajectory_claim(epsilon: float, *conditions: str) -> PrivacyClaim:
    """Return eps-LDP of a whole trajectory, replaced by any other of any length."""
    epsilon = number_in("epsilon", epsilon, f"[{LEAST_EPSILON}, {MAX_EPSILON}]")
    conditions = *COMMON, *conditions
    return PrivacyClaim("local", epsilon, unit="trajectory", conditions=conditions)


def share_of(epsilon: float, part: Fraction) -> float:
    """Return the largest float that is at most that part of epsilon.

    Rounded down, so that shares whose parts sum to 1 never spend more than epsilon in exact
    arithmetic.
    """
    exact = Fraction(float(epsilon)) * part  # Fraction does not take numpy's numbers
    share = float(exact)
    return nextafter(share, -inf) if Fraction(share) > exact else share


def check_share(epsilon: float, part: Fraction) -> None:
    """Refuse an epsilon whose smallest share is below the least at which reports are drawn."""
    if not share_of(epsilon, part) > LEAST_EPSILON:
        raise InputError(
            f"epsilon must be more than {float(MIN_EPSILON / part):.6g}, so that each report "
            f"spends more than {LEAST_EPSILON:f}, got {epsilon!r}"
        )


def evenly_spaced(trails: Trails, points: int) -> Ints:
    """Return the visits of even ranks from the first to the last; shape (users, points).

    Rank j (T - 1) / (points - 1) of T visits, rounded to the nearest, halves down; for one point
    the middle visit. Short trajectories repeat visits.
    """
    last = trails.lengths[:, None] - 1
    steps = max(points - 1, 1)
    numerators = np.arange(points)[None, :] if points > 1 else np.array([[0.5]])
    ranks = np.ceil(last * numerators / steps - 0.5).astype(np.int64)
    cells: Ints = trails.cells[trails.starts[:-1, None] + ranks]
    return cells


def drawn_visits(trails: Trails, slots: int, rng: np.random.Generator) -> Ints:
    """Return visits drawn uniformly with replacement; shape (users, slots)."""
    ranks = rng.integers(trails.lengths[:, None], size=(len(trails), slots))
    cells: Ints = trails.cells[trails.starts[:-1, None] + ranks]
    return cells


def density_of(trails: Trails, cells: int, weigh: Weigh) -> Array:
    """Return the map of trajectories.

    Parameters
    ----------
    trails : Trails
        At least one user.
    cells : int
        Number of cells of the map.
    weigh : {"user", "visit"}
        Every trajectory weighs the same, or every visit does.

    Returns
    -------
    (cells,) array that sums to 1
    """
    lengths = trails.lengths
    weights = np.repeat(1 / lengths, lengths) if weigh == "user" else None
    mass = np.bincount(trails.cells, weights, minlength=cells)
    return np.asarray(mass / mass.sum(), np.float64)


def without_stays(trails: Trails) -> Trails:
    """Return trajectories without the visits to the cell of the visit before."""
    first = trails.starts[:-1]
    kept = np.ones(len(trails.cells), bool)
    kept[1:] = trails.cells[1:] != trails.cells[:-1]
    kept[first] = True
    starts = np.concatenate([[0], np.cumsum(np.add.reduceat(kept, first))]).astype(np.int64)
    return Trails(starts, trails.cells[kept])


def adjacent_moves(trails: Trails, side: int, most: int) -> Trails:
    """Return trajectories whose successive cells touch, of at most ``most`` points.

    Between two visits that do not touch go the cells of a straight line, a king's move each: as
    many moves as the larger of the two offsets. A trajectory that jumps becomes longer by the
    cells on its way, and these count in its map; a visit to the cell of the visit before stays a
    point of its own.

    Parameters
    ----------
    trails : Trails
    side : int
        Cells a row.
    most : int >= 1
        Points after which a trajectory is cut.
    """
    lengths = _walked_lengths(trails.starts, trails.cells, side, most)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Trails(starts, _walked_cells(trails.starts, trails.cells, side, starts))


@compiled
def _walked_lengths(starts, cells, side, most):  # type: ignore[no-untyped-def]
    """Return the number of points of each walk, at most ``most``."""
    lengths = np.ones(starts.size - 1, np.int64)
    for user in range(starts.size - 1):
        for k in range(starts[user], starts[user + 1] - 1):
            if lengths[user] >= most:
                break
            # Moves of a king on the way: the larger offset; to stay counts as one.
            down = abs(cells[k + 1] // side - cells[k] // side)
            across = abs(cells[k + 1] % side - cells[k] % side)
            lengths[user] += max(down, across, 1)
        lengths[user] = min(lengths[user], most)
    return lengths


@compiled
def _walked_cells(starts, cells, side, ends):  # type: ignore[no-untyped-def]
    """Return the cells of the walks; walk u fills entries ends[u] to ends[u + 1]."""
    walked = np.empty(ends[-1], np.int64)
    for user in range(starts.size - 1):
        k = starts[user]
        at = ends[user]
        walked[at] = cells[k]
        at += 1
        while at < ends[user + 1]:
            row = cells[k] // side
            column = cells[k] % side
            down = cells[k + 1] // side - row
            across = cells[k + 1] % side - column
            steps = max(abs(down), abs(across), 1)
            for step in range(1, min(steps, ends[user + 1] - at) + 1):
                # Nearest whole number, halves up, on integers: floor(x + 1/2).
                r = row + (2 * step * down + steps) // (2 * steps)
                c = column + (2 * step * across + steps) // (2 * steps)
                walked[at] = r * side + c
                at += 1
            k += 1
    return walked
