"""First-order Markov model of moves between cells that touch, and trajectories drawn from it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from ldpspatial.compiled import compiled
from ldpspatial.places.users import Trails
from ldpspatial.release.local.trajectories.trajectory_release import Array, Ints

WAYS = 9  # eight neighbours, and to stay
STAY = 4  # in row order


@dataclass(frozen=True)
class MoveDomain:
    """The moves of a king on a square map, and "none" as the last symbol.

    Attributes
    ----------
    side : int
        Cells a row.
    stays : bool
        Whether to stay is a move.
    """

    side: int
    stays: bool = True

    @cached_property
    def targets(self) -> Ints:
        """(cells, 9) array of the cell that each way leads to, -1 where it is no move."""
        row, column = np.divmod(np.arange(self.side**2)[:, None], self.side)
        down, across = np.divmod(np.arange(WAYS)[None, :], 3)
        to = np.stack([row + down - 1, column + across - 1])
        inside = np.asarray(((to >= 0) & (to < self.side)).all(axis=0))
        inside[:, STAY] &= self.stays
        return np.where(inside, to[0] * self.side + to[1], -1)

    @cached_property
    def symbols(self) -> Ints:
        """(cells, 9) array of the symbol of each move; -1 where it is none."""
        inside = self.targets >= 0
        return np.where(inside, np.cumsum(inside).reshape(inside.shape) - 1, -1)

    @property
    def none(self) -> int:
        """The symbol of a slot without a move, which is the number of moves.

        That is (3 side - 2)^2 if to stay is one of them, side^2 less if not.
        """
        # Along one axis 3 side - 2 ordered pairs of indices are the same or neighbours.
        return (3 * self.side - 2) ** 2 - (0 if self.stays else self.side**2)

    def of(self, before: Ints, after: Ints) -> Ints:
        """Return the symbols of moves between cells that touch."""
        down = after // self.side - before // self.side
        across = after % self.side - before % self.side
        return np.asarray(self.symbols[before, 3 * (down + 1) + across + 1])


@dataclass(frozen=True)
class MarkovModel:
    """What the server knows of trajectories.

    Attributes
    ----------
    domain : MoveDomain
    starts : (cells,) array that sums to 1
        Law of the first cell.
    moves : (cells, 9) array
        Moves a report of a move, by cell and way.
    ends : (cells,) array that sums to 1
        Law of the last cell.
    """

    domain: MoveDomain
    starts: Array
    moves: Array
    ends: Array


def synthesise(model: MarkovModel, lengths: Ints, rng: np.random.Generator) -> Trails:
    """Draw one trajectory of each length.

    The last move leans to where trajectories end, by the ratio of the reported law of the last
    cell to the one that the moves alone would give: where both agree it is a move like any other.
    A trajectory ends early in a cell that no move was estimated to leave, as in the published code.
    """
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    cells = rng.choice(len(model.starts), size=len(lengths), p=model.starts)
    expected = last_cells(model, lengths)
    lean = np.divide(model.ends, expected, out=np.zeros_like(expected), where=expected > 0)
    drawn = rng.random(starts[-1])
    walked = _walk(starts, cells, model.moves, model.domain.targets, lean, drawn)
    kept = np.add.reduceat(walked >= 0, starts[:-1])
    return Trails(np.concatenate([[0], np.cumsum(kept)]).astype(np.int64), walked[walked >= 0])


def last_cells(model: MarkovModel, lengths: Ints) -> Array:
    """Return the law of the last cell of walks of these lengths by the starts and moves alone."""
    cells = len(model.starts)
    out = model.moves.sum(axis=1)
    before, way = np.nonzero((model.domain.targets >= 0) & (model.moves > 0))
    chances = model.moves[before, way] / out[before]
    after = model.domain.targets[before, way]
    step = scipy.sparse.csr_array((chances, (after, before)), shape=(cells, cells))
    going = len(lengths)
    law = model.starts
    last = np.zeros(cells)
    # law: where a walk that is long enough is at this point. Those that found no way on have
    # dropped out, so it may sum to less than 1. going: how many walks are long enough.
    for ending in np.bincount(lengths)[1:]:
        last += law * np.where(out > 0, ending, going)  # no way on: all that are there end
        going -= ending
        law = step @ law
    return np.asarray(last / len(lengths), np.float64)


@compiled
def _walk(starts, first, moves, targets, lean, drawn):  # type: ignore[no-untyped-def]
    """Return the cells of the walks, -1 after the end of one that found no way on."""
    walked = np.full(starts[-1], -1)
    for user in range(first.size):
        cell = first[user]
        walked[starts[user]] = cell
        for k in range(starts[user] + 1, starts[user + 1]):
            way = -1
            if k == starts[user + 1] - 1:
                way = _chosen(moves[cell] * lean[targets[cell]], drawn[k])
            if way < 0:
                way = _chosen(moves[cell], drawn[k])
            if way < 0:
                break
            cell = targets[cell, way]
            walked[k] = cell
    return walked


@compiled
def _chosen(weights, uniform):  # type: ignore[no-untyped-def]
    """Return an index with probability proportional to its weight, -1 where all are 0."""
    left = uniform * weights.sum()
    chosen = -1
    for k in range(weights.size):
        if weights[k] > 0:  # the last of these takes what rounding leaves over
            chosen = k
            left -= weights[k]
            if left < 0:
                break
    return chosen
