"""Secure sum: what a server learns of many vectors is their sum modulo m, or nothing.

Vectors hold residues in [0, m). The modulus is a power of two, so the sum of residues is right
whatever the order, and a signed total is read back from the half of the range that it lies in.
"""

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.release.distributed._checks import MAX_CLIENTS, checked_modulus
from ldpspatial.validate import whole_number

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Whole = TypeVar("Whole", int, Ints)


class SecureSum(Protocol):
    """Sums vectors of one shard of clients without showing any of them.

    The noise shares of the clients rest on the threshold: below it nothing may become known.
    """

    @property
    def modulus(self) -> int:
        """The power of two that vectors are added modulo."""

    @property
    def threshold(self) -> int:
        """Fewest survivors for which a sum is revealed."""

    @property
    def assumption(self) -> str:
        """What hiding the vectors rests on, as a condition of a claim."""

    def total(self, vectors: Ints, survivors: Bools) -> Ints | None:
        """Return the sum of the survivors' vectors, or nothing.

        Parameters
        ----------
        vectors : (clients, length) int64 array in [0, modulus)
        survivors : (clients,) bool array
            Who is still there when the sum is opened.

        Returns
        -------
        (length,) int64 array in [0, modulus), or None where fewer than ``threshold`` survive.
        """


class SecureSums(Protocol):
    """Makes the secure sum of a shard: a class like `ModularSum`, or a function.

    Where it is called, what it returns is checked against both arguments, so that a function with
    the two exchanged is noticed.
    """

    def __call__(self, modulus: int, threshold: int) -> SecureSum:
        """Return a secure sum with this modulus and this threshold."""


@dataclass(frozen=True)
class ModularSum:
    """The sum as a trusted party would form it: for simulation, no cryptography.

    Attributes
    ----------
    modulus : int
        A power of two from 2 to 2^62.
    threshold : int >= 1

    Examples
    --------
    >>> vectors = np.array([[1, 7], [2, 7], [4, 7]])
    >>> here = np.array([True, False, True])
    >>> ModularSum(8, 2).total(vectors, here), ModularSum(8, 3).total(vectors, here)
    (array([5, 6]), None)
    """

    modulus: int
    threshold: int

    def __post_init__(self) -> None:
        checked_modulus(self.modulus)
        whole_number("threshold", self.threshold, 1, MAX_CLIENTS)

    @property
    def assumption(self) -> str:
        """What hiding the vectors rests on, as a condition of a claim."""
        return "sums by a party that all trust"

    def total(self, vectors: Ints, survivors: Bools) -> Ints | None:
        """Return the sum of the survivors' vectors; None below the threshold.

        Raises
        ------
        InputError
            Shapes that do not fit, or entries that are not residues.
        """
        check_vectors(vectors, survivors, self.modulus)
        if np.count_nonzero(survivors) < self.threshold:
            return None
        # int64 wraps modulo 2^64, of which the modulus is a divisor: no sum is too large.
        total: Ints = vectors[survivors].sum(axis=0, dtype=np.int64)
        return encode(total, self.modulus)


def check_vectors(vectors: Ints, survivors: Bools, modulus: int) -> None:
    """Refuse vectors that are not residues, or not one for each client."""
    if vectors.ndim != 2 or vectors.dtype != np.int64:
        raise InputError(
            f"vectors must be an int64 array (clients, length), got {vectors.dtype} {vectors.shape}"
        )
    if survivors.shape != vectors.shape[:1] or survivors.dtype != np.bool_:
        raise InputError(
            f"survivors must be a bool for each of {len(vectors)} clients, "
            f"got {survivors.dtype} {survivors.shape}"
        )
    if vectors.size and (vectors.min() < 0 or vectors.max() >= modulus):
        raise InputError(f"vectors must lie in [0, {modulus}) (not repeated here)")


def encode(values: Whole, modulus: int) -> Whole:
    """Return whole numbers modulo a power of two: residues in [0, modulus).

    Examples
    --------
    >>> encode(np.array([-4, -1, 0, 3, 8]), 8), encode(-1, 8)
    (array([4, 7, 0, 3, 0]), 7)
    """
    return values & (modulus - 1)


def decode(residues: Whole, modulus: int) -> Whole:
    """Return the signed numbers in [-modulus/2, modulus/2) that residues in [0, modulus) stand for.

    A total beyond that range comes back as another number: accuracy is lost, never privacy. Sums
    of several shards are decoded one by one and then added, so that only a shard can wrap.

    Examples
    --------
    >>> decode(np.array([0, 3, 4, 7]), 8), decode(7, 8)
    (array([ 0,  3, -4, -1]), -1)
    """
    half = modulus // 2
    return ((residues + half) & (modulus - 1)) - half
