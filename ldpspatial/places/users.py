"""Who was in which cell: users with one position or many, on a grid.

Every user weighs the same, however many positions they hold: a user's distribution is their share
of visits in each cell, and the map of the people is the mean of those distributions.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from client_sdk import Grid
from client_sdk.kernels import cells_of
from ldpspatial.errors import InputError
from ldpspatial.places.points import Points
from ldpspatial.validate import (
    check_generator,
    input_errors,
    instance,
    map_shape,
    number_array,
    whole_array,
    whole_number,
)

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
EARTH = (90.0, 360.0)  # degrees of latitude and longitude, in either direction
MOST_VISITS = 2.0**62  # of all users, for sums of 64 bits

Positions: TypeAlias = "ArrayLike | tuple[ArrayLike, ArrayLike] | Points"


@dataclass(frozen=True, eq=False, repr=False)
class Trails:
    """The cells of each user's visits in the order of the visits, for users of one trajectory each.

    Attributes
    ----------
    starts : (users + 1,) array of int64
        User u's visits are entries ``starts[u]`` to ``starts[u + 1]``, at least one each.
    cells : (visits,) array of int64
        Row * columns + column.
    """

    starts: Ints = field(repr=False)
    cells: Ints = field(repr=False)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __repr__(self) -> str:
        return f"Trails({len(self)} users, {len(self.cells)} visits)"

    @property
    def lengths(self) -> Ints:
        """Number of visits of each user."""
        return np.diff(self.starts)

    def of(self, user: int) -> Ints:
        """Return the cells of one user, in order."""
        return self.cells[self.starts[user] : self.starts[user + 1]]

    def take(self, users: Ints) -> "Trails":
        """Return the trails of these users, in this order."""
        lengths = self.lengths[users]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        # From where a visit lies in the new array to where it lies in the old one.
        shift = np.repeat(self.starts[users] - starts[:-1], lengths)
        return Trails(starts, self.cells[np.arange(starts[-1]) + shift])


@dataclass(frozen=True, eq=False, repr=False)
class UserCells:
    """Visits of users to the cells of a map.

    Its printed form shows how many there are and never where.

    Attributes
    ----------
    shape : (rows, columns)
    visits : sparse CSR array of whole numbers, shape (users, rows * columns)
        How often each user was in each cell, at least once each; a cell is row * columns + column.
    outside : int
        Positions that lay outside the map and were left out.
    users_outside : int
        Users with no position inside: they take no part.
    trails : Trails, optional
        The same visits in their order, for releases of trajectories.

    Raises
    ------
    InputError
        Visits of another type or shape, below 1, or a user without any; trails of other users.
    """

    shape: tuple[int, int]
    visits: sparse.csr_array = field(repr=False)
    outside: int = 0
    users_outside: int = 0
    trails: Trails | None = None

    def __post_init__(self) -> None:
        shape = map_shape("shape", self.shape)
        object.__setattr__(self, "shape", shape)
        size = shape[0] * shape[1]
        visits = instance("visits", self.visits, sparse.csr_array)
        if visits.dtype.kind not in "iu" or visits.ndim != 2 or visits.shape[1] != size:
            raise InputError(
                f"visits must be whole numbers of shape (users, {size}), "
                f"got {visits.dtype} of shape {visits.shape}"
            )
        if visits.nnz and visits.data.min() < 1:
            raise InputError(f"visits must be at least 1, got {visits.data.min()}")
        if not np.diff(visits.indptr).all():
            raise InputError("visits must hold a cell of every user, but one has none")
        for name in ("outside", "users_outside"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), 0))
        if self.trails is not None and len(instance("trails", self.trails, Trails)) != len(self):
            raise InputError(f"trails must be of {len(self)} users, got {len(self.trails)}")

    def __len__(self) -> int:
        return int(self.visits.shape[0])

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"UserCells({len(self)} users on {rows} x {columns} cells, {self.outside} outside)"

    @cached_property
    def distributions(self) -> sparse.csr_array:
        """Each user's share of visits by cell, float64, shaped like ``visits``; rows sum to 1."""
        shares = self.visits.astype(np.float64)  # whose sums do not wrap
        totals = np.asarray(shares.sum(axis=1)).ravel()
        shares.data /= np.repeat(totals, np.diff(shares.indptr))
        return shares

    @cached_property
    def density(self) -> Array:
        """Mean of the users' distributions, shape ``shape``: the truth that errors refer to.

        Raises
        ------
        InputError
            There is no user.
        """
        self.check_not_empty()
        mean = np.asarray(self.distributions.sum(axis=0), dtype=np.float64).ravel() / len(self)
        return mean.reshape(self.shape)

    @cached_property
    def visit_density(self) -> Array:
        """Share of all visits in each cell, shape ``shape``: who has more of them weighs more.

        Raises
        ------
        InputError
            There is no user.
        """
        self.check_not_empty()
        visits = self.visits.astype(np.float64).sum(axis=0)  # sums of floats do not wrap
        shares = np.asarray(visits, dtype=np.float64).ravel()
        density: Array = (shares / shares.sum()).reshape(self.shape)
        return density

    def check_not_empty(self) -> None:
        """Raise InputError where there is no user: a density is a mean over users."""
        if len(self) == 0:
            raise InputError("users must hold at least one user for a density, got none")

    def one_cell_each(self, rng: np.random.Generator) -> Ints:
        """Return for each user the cell of one of their visits, drawn uniformly; shape (users,)."""
        starts = self.visits.indptr[:-1].astype(np.int64)
        counts = self.visits.data
        if counts.sum(dtype=np.float64) > MOST_VISITS:  # sums would wrap: 40 digits of a share do
            counts = np.ceil(self.distributions.data * 2.0**40).astype(np.int64)
        ends = np.cumsum(counts)
        # All visits are numbered in one row; those of a user begin at `before`.
        before = ends[starts] - counts[starts]
        totals = ends[self.visits.indptr[1:].astype(np.int64) - 1] - before
        chosen = before + rng.integers(totals)
        # An entry's end is the first number of the next: hence the right side.
        entry = np.searchsorted(ends, chosen, side="right")
        cells: Ints = self.visits.indices[entry].astype(np.int64)
        return cells

    def most_visited(self) -> Ints:
        """Return each user's most visited cell, the first in a tie; shape (users,)."""
        cells: Ints = np.asarray(self.visits.argmax(axis=1)).ravel().astype(np.int64)
        return cells

    def sample(self, users: int, rng: np.random.Generator) -> "UserCells":
        """Return that many different users, drawn uniformly.

        Raises
        ------
        InputError
            ``users`` is not between 1 and the number of users.
        """
        users = whole_number("users", users, 1, len(self))
        check_generator(rng)
        chosen = np.sort(rng.choice(len(self), size=users, replace=False))
        trails = None if self.trails is None else self.trails.take(chosen)
        return UserCells(self.shape, self.visits[chosen], self.outside, self.users_outside, trails)


def user_cells(points: Positions, grid: Grid, may_be_empty: bool = False) -> UserCells:
    """Put users' positions on a grid.

    Parameters
    ----------
    points : (n, 2) array, pair (user ids, (n, 2) array), or Points
        Latitude and longitude (y and x on a plane grid). Without ids every row is a user.
    grid : client_sdk.Grid
    may_be_empty : bool
        Take any positions: of nobody, all outside, not finite, or not on the earth, which count as
        outside. What leaves a server under central privacy needs that: an error would tell that
        the only user inside is gone, or that somebody's position is broken.

    Raises
    ------
    InputError
        Arrays of a wrong shape or type, ids and positions of different lengths. Positions that are
        not finite or not on the earth, or none inside, unless the map may be empty.

    Examples
    --------
    >>> grid = Grid.plane(0, 0, 4.0, 4)
    >>> ann_twice = user_cells((["ann", "bob", "ann"], [[0.5, 0.5], [0.5, 3.5], [3.5, 0.5]]), grid)
    >>> ann_twice, ann_twice.density[0].tolist()
    (UserCells(2 users on 4 x 4 cells, 0 outside), [0.25, 0.0, 0.0, 0.5])
    """
    instance("grid", grid, Grid)
    ids, coordinates = _parts(points)
    instance("may_be_empty", may_be_empty, bool)
    good = _are_positions(coordinates, grid) if may_be_empty else None
    if good is not None and good.size == 0:
        return cells_by_user([], [], (grid.cells, grid.cells))
    at = number_array("points", coordinates, ("n", 2), where=good)
    with input_errors():
        rows, columns, inside = cells_of(grid, at[:, 0], at[:, 1])
    if good is not None:
        inside &= good[:, 0]
    if not inside.any() and not may_be_empty:
        raise InputError(
            f"points must lie in the square, but all {len(at)} lie outside: "
            "check the square, and that latitude and longitude are not swapped"
        )
    who = np.arange(len(at)) if ids is None else _codes(ids, len(at))
    cells = (rows * grid.cells + columns)[inside]
    users = cells_by_user(who[inside], cells, (grid.cells, grid.cells))
    absent = int(who.max()) + 1 - len(users)
    return replace(users, outside=int((~inside).sum()), users_outside=absent)


def _are_positions(coordinates: ArrayLike, grid: Grid) -> NDArray[np.bool_] | None:
    """Return twice for each position whether `cells_of` takes it; None of what is none at all."""
    try:
        given = np.asarray(coordinates)
    except ValueError:  # rows of different lengths
        return None
    if given.size == 0:  # a list or a pair of nobody
        return np.empty((0, 2), bool)
    if given.dtype.kind not in "iuf" or given.ndim != 2 or given.shape[1] != 2:
        return None
    most = EARTH if grid.kind == "geographic" else (np.inf, np.inf)
    good = (np.isfinite(given) & (np.abs(given) <= most)).all(axis=1)
    return np.column_stack([good, good])


def cells_by_user(users: ArrayLike, cells: ArrayLike, shape: tuple[int, int]) -> UserCells:
    """Count visits from one (user, cell) pair per visit; a user's pairs come in order of time.

    Parameters
    ----------
    users : (n,) array, n >= 0
        Whose visit it was, ids of any kind that sorts.
    cells : (n,) integer array in [0, rows * columns)
        Row * columns + column.
    shape : (rows, columns)

    Raises
    ------
    InputError
        Arrays of different lengths, or a cell beyond the map.
    """
    shape = map_shape("shape", shape)
    size = shape[0] * shape[1]
    where = whole_array("cells", cells, ("n",), 0, size)
    who = _codes(users, len(where))
    n = int(who.max(initial=-1)) + 1
    ones = np.ones(len(where), dtype=np.int64)
    visits = sparse.coo_array((ones, (who, where)), shape=(n, size)).tocsr()
    visits.sum_duplicates()
    # Stable: each user's visits stay in the order of time.
    order = np.argsort(who, kind="stable")
    starts = np.searchsorted(who[order], np.arange(n + 1)).astype(np.int64)
    return UserCells(shape, visits, trails=Trails(starts, where[order]))


def counts_within(visits: sparse.csr_array, most: int) -> Ints:
    """Return numbers of visits, (nnz,) int64, of which no user has more than about ``most``.

    Where a user has more, the last binary digits of that user's counts are dropped. That depends on
    this user alone; an error in its place would tell everybody that there is such a user.

    Parameters
    ----------
    visits : sparse CSR array of whole numbers of any type, shape (users, cells)
        At least 1 each.
    most : int >= 1
        Sums are at most this, up to the rounding of a float.
    """
    users = visits.shape[0]
    # None is below 1, so every whole type fits into the widest one.
    longest = np.uint64(np.iinfo(np.int64).max)
    counts = np.minimum(visits.data.astype(np.uint64), longest).astype(np.int64)
    who = np.repeat(np.arange(users), np.diff(visits.indptr))
    # In floats, which become too large and do not wrap.
    totals = np.bincount(who, weights=counts, minlength=users)
    digits = np.maximum(np.ceil(np.log2(np.maximum(totals, 1) / most)), 0).astype(np.int64)
    return np.asarray(counts >> digits[who])


def _parts(points: Positions) -> tuple[ArrayLike | None, ArrayLike]:
    if isinstance(points, Points):
        return points.users, points.coordinates
    with suppress(ValueError):  # rows of different lengths
        # A pair of two positions is told from ids with positions by the second alone: ids of a
        # wrong shape are then refused as ids.
        if isinstance(points, tuple) and len(points) == 2 and np.ndim(points[1]) == 2:
            ids: ArrayLike = points[0]
            return ids, points[1]
    return None, points  # type: ignore[return-value]


def _codes(ids: ArrayLike, n: int) -> Ints:
    """Return a code 0, 1, ... for every user, in sorted order."""
    try:
        given = np.asarray(ids)
    except ValueError:  # rows of different lengths
        raise InputError(f"user ids must have shape ({n},), one a position") from None
    if given.shape != (n,):
        raise InputError(f"user ids must have shape ({n},), one a position, got {given.shape}")
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise InputError("user ids must be finite where they are numbers")
    try:
        _, codes = np.unique(given, return_inverse=True)
    except TypeError:
        raise InputError("user ids must be of one type, so that they can be compared") from None
    return codes.astype(np.int64)
