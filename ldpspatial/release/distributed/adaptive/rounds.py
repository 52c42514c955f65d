"""Rounds of an interactive histogram: how users answer, what is seen, how the tree grows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ldpspatial.places.users import UserCells
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.release import Fact
from ldpspatial.validate import MICRO, one_of

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_ROUNDS = 1000
Shown: TypeAlias = Literal["positive", "threshold"]
Answers: TypeAlias = Callable[[PrefixTree, np.random.Generator], sparse.csr_array]


@runtime_checkable
class Locations(Protocol):
    """How a user with one position or many answers a round."""

    @property
    def scale(self) -> int:
        """The weight of a person in a sum."""

    def sensitivity(self, length: int) -> int:
        """Return the largest L1 norm of an answer of that length."""

    def of(self, users: UserCells, rng: np.random.Generator) -> Answers:
        """Return what gives the users' answers to a tree: whole numbers >= 0, (users, elements).

        ``rng`` serves for what is drawn once and holds for all rounds.
        """


@dataclass(frozen=True)
class OneLocation:
    """Every user answers with one position, the same in all rounds; sensitivity 1.

    Attributes
    ----------
    pick : {"drawn", "most visited"}
        A visit drawn uniformly, which leaves the expected map as it is; or the cell visited most,
        the variant that the paper measures, which favours homes.
    """

    pick: Literal["drawn", "most visited"] = "drawn"
    scale: ClassVar[int] = 1

    def __post_init__(self) -> None:
        one_of("pick", self.pick, ("drawn", "most visited"))

    def sensitivity(self, length: int) -> int:
        """Return 1: a user is in one element."""
        return 1

    def of(self, users: UserCells, rng: np.random.Generator) -> Answers:
        """Choose each user's position; the answers are one-hot rows."""
        cells = self.cells(users, rng)
        return lambda tree, _: one_hot(tree.assign(cells), len(tree))

    def cells(self, users: UserCells, rng: np.random.Generator) -> Ints:
        """Return the cell that each user answers with, shape (users,)."""
        return users.one_cell_each(rng) if self.pick == "drawn" else users.most_visited()


@dataclass(frozen=True, eq=False)
class Round:
    """One round of a run.

    Attributes
    ----------
    tree : PrefixTree
        What was asked.
    counts : (length,) array
        Noisy number of people by element, of those who were asked; negative where noise is.
    micro : int
        Epsilon of this round in millionths.
    remaining : int
        Millionths left for the rounds after it; 0 after the last.
    threshold : float
        Elements with more people than this are split, those with a quarter of it or less removed.
    deviation : float
        Standard deviation of the noise in a count, in people.
    survivors : int
        Users whose answers are in the counts; 0 where every shard was withheld.
    asked : int
        Users who were asked.
    best : int
        Most users whom this round or one after it can ask.
    may_wrap : bool
        Whether a shard's sum may have left the range of its modulus.
    """

    tree: PrefixTree
    counts: Array
    micro: int
    remaining: int
    threshold: float
    deviation: float
    survivors: int
    asked: int
    best: int
    may_wrap: bool = False

    @property
    def spent(self) -> float:
        """Epsilon of this round."""
        return self.micro / MICRO

    def density(self, shown: Shown = "positive") -> Array:
        """Return the map that counts above 0 stand for, or those from the threshold on."""
        least = 0.0 if shown == "positive" else self.threshold
        return self.tree.density(np.where(self.counts >= least, self.counts, 0.0))


def one_hot(entries: Ints, length: int) -> sparse.csr_array:
    """Return rows of zeros with a single one, int64, shape (len(entries), length)."""
    ones = np.ones(len(entries), dtype=np.int64)
    return sparse.csr_array((ones, entries, np.arange(len(entries) + 1)), (len(entries), length))


def grown(tree: PrefixTree, counts: Array, threshold: float, depth: int) -> PrefixTree:
    """Split what has more people than the threshold, remove what has a quarter of it or less.

    In between elements stay: the children of a square just above the threshold have a quarter of
    its people each, on average, and are not to vanish at once.

    Parameters
    ----------
    tree : PrefixTree
    counts : (T,) array
    threshold : float
    depth : int
        Nodes of this depth are not split, nor pixels.

    Examples
    --------
    >>> tree = grown(PrefixTree.quadrants((4, 4)), np.array([9.0, 2.0, 3.0, 8.0]), 8.0, 10)
    >>> tree.elements
    ((0, 0, 0), (1, 1, 0), (1, 1, 1), (2, 0, 0), (2, 0, 1), (2, 1, 0), (2, 1, 1))
    """
    limit = min(depth, tree.depth)
    counted = list(zip(tree.elements, counts.tolist(), strict=True))
    split = [node for node, count in counted if count > threshold and node[0] < limit]
    removed = [node for node, count in counted if count <= threshold / 4]
    return tree.split(split).collapse(removed)


def last_revealed(trace: Sequence[Round]) -> Round:
    """Return the last round of which the server saw a sum, the last of all if it saw none."""
    return next((step for step in reversed(trace) if step.survivors), trace[-1])


def facts(trace: Sequence[Round], once: bool = False) -> Mapping[str, Fact]:
    """Return what a table shows of a run.

    ``vector_length`` is the most that a user sends: in all rounds, or in one where users are asked
    ``once``. Leaves and survivors are those of the round that the map is of.
    """
    final = last_revealed(trace)
    lengths = [step.counts.size for step in trace]
    return {
        "rounds": len(trace),
        "vector_length": max(lengths) if once else sum(lengths),
        "leaves": len(final.tree),
        "epsilons": " ".join(f"{step.spent:.4g}" for step in trace),
        "asked": " ".join(str(step.asked) for step in trace),
        "survivors": final.survivors,
        "rounds_that_may_wrap": sum(step.may_wrap for step in trace),
    }
