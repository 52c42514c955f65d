"""Many positions a user: each answers with the share of their visits to every element.

Shares are made whole numbers for the secure sum: times gamma, and rounded at random without bias
(Bagdasaryan et al. 2022, section 5.7). The rounding is drawn anew in every round and privacy does
not rest on it: what bounds the sensitivity holds for every outcome.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells, counts_within
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.adaptive.rounds import Answers
from ldpspatial.validate import one_of, whole_number

Ints = NDArray[np.int64]
MAX_SCALE = 1 << 31


@dataclass(frozen=True)
class ManyLocations:
    """Every user answers with all positions, each user of the same weight.

    Systematic rounding keeps the sum of an answer at gamma exactly, so the noise in people does
    not depend on the length of the vector; each entry has the law that stochastic rounding gives
    it, and only their dependence differs. Stochastic rounding needs noise for gamma + T.

    Attributes
    ----------
    scale : int in [1, 2^31]
        gamma, the weight of a person. Rounding adds at most a deviation of sqrt(users) / (2 gamma)
        people to a count.
    rounding : {"systematic", "stochastic"}
        All entries of an answer with one random number, or each with its own, the paper's way.
    most_places : int >= 1, optional
        For stochastic rounding: a public bound on a user's cells. Of those with more, the most
        visited count. Sensitivity is then gamma + min(T, most_places).

    Raises
    ------
    InputError
        A field breaks its rule.
    """

    scale: int = 1000
    rounding: Literal["systematic", "stochastic"] = "systematic"
    most_places: int | None = None

    def __post_init__(self) -> None:
        whole_number("scale", self.scale, 1, MAX_SCALE)
        one_of("rounding", self.rounding, ("systematic", "stochastic"))
        if self.most_places is not None:
            whole_number("most_places", self.most_places, 1, MAX_SCALE)
            if self.rounding == "systematic":
                raise InputError("most_places must be left out: systematic rounding needs no bound")

    def sensitivity(self, length: int) -> int:
        """Return the largest L1 norm of an answer of that length.

        Examples
        --------
        >>> ManyLocations(100).sensitivity(40), ManyLocations(100, "stochastic").sensitivity(40)
        (100, 140)
        """
        if self.rounding == "systematic":
            return self.scale
        return self.scale + min(length, self.most_places or length)

    def of(self, users: UserCells, rng: np.random.Generator) -> Answers:
        """Return what rounds the users' shares; nothing is drawn before the rounds."""
        # So that scale C_i + R of `systematic` fits 64 bits.
        visits = _with_data(users.visits, counts_within(users.visits, (1 << 61) // self.scale))
        if self.most_places is not None:
            visits = most_visited_cells(visits, self.most_places)
        rounded = systematic if self.rounding == "systematic" else stochastic

        def answers(tree: PrefixTree, rng: np.random.Generator) -> sparse.csr_array:
            return rounded(visits_by_element(visits, tree), self.scale, rng)

        return answers


def visits_by_element(visits: sparse.csr_array, tree: PrefixTree) -> sparse.csr_array:
    """Return how often each user was in each element, int64, shape (users, elements)."""
    cells = tree.labels.size
    ones = np.ones(cells, dtype=np.int64)
    element = sparse.csr_array(
        (ones, tree.labels.ravel(), np.arange(cells + 1)), (cells, len(tree))
    )
    summed = sparse.csr_array(visits @ element)
    summed.sort_indices()
    return summed


def systematic(visits: sparse.csr_array, scale: int, rng: np.random.Generator) -> sparse.csr_array:
    """Round each row's shares times ``scale`` to whole numbers that add up to ``scale``.

    With C_i the visits up to entry i of n and R uniform in {0, .., n - 1}, entry i becomes
    floor((scale C_i + R) / n) - floor((scale C_(i-1) + R) / n). In whole numbers, hence without
    bias: floor((x + R) / n) has mean x / n. The last of these terms is scale, the first 0.

    Parameters
    ----------
    visits : sparse CSR array of int64, shape (users, elements)
        Whole numbers >= 0, with a positive sum in each row.
    scale : int
    rng : numpy.random.Generator
    """
    totals, row = _totals(visits)
    # C_i of each entry: the running sum over all rows, less that of the rows before.
    ends = np.cumsum(visits.data) - (np.cumsum(totals) - totals)[row]
    starts = ends - visits.data
    offset = rng.integers(totals)[row]  # one R a user, or the terms do not telescope
    n = totals[row]
    parts = (scale * ends + offset) // n - (scale * starts + offset) // n
    return _with_data(visits, parts)


def stochastic(visits: sparse.csr_array, scale: int, rng: np.random.Generator) -> sparse.csr_array:
    """Round each share times ``scale`` up with the chance of its fraction, independently.

    Parameters are those of :func:`systematic`.
    """
    totals, row = _totals(visits)
    n = totals[row]
    whole, rest = np.divmod(scale * visits.data, n)
    # A coin of exactly rest / n, in whole numbers.
    return _with_data(visits, whole + (rng.integers(n) < rest))


def most_visited_cells(visits: sparse.csr_array, most: int) -> sparse.csr_array:
    """Return each row's ``most`` largest entries, the first ones of equals, without the rest."""
    _, row = _totals(visits)
    order = np.lexsort((-visits.data, row))  # by row, largest first; stable
    rank = np.arange(row.size) - visits.indptr[row[order]]
    kept = np.sort(order[rank < most])
    place = row[kept], visits.indices[kept]
    return sparse.coo_array((visits.data[kept], place), shape=visits.shape).tocsr()


def _totals(visits: sparse.csr_array) -> tuple[Ints, Ints]:
    """Return the sum of each row, and the row of each entry."""
    row = np.repeat(np.arange(visits.shape[0]), np.diff(visits.indptr))
    return np.asarray(visits.sum(axis=1), dtype=np.int64).ravel(), row


def _with_data(like: sparse.csr_array, data: Ints) -> sparse.csr_array:
    rounded = sparse.csr_array((data, like.indices, like.indptr), shape=like.shape, copy=True)
    rounded.eliminate_zeros()
    return rounded
