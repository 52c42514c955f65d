"""Secure aggregation as a secure sum: all rounds between separate objects, in one process."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from client_sdk.entropy import Entropy, system
from ldpspatial.distributed._checks import checked_whole
from ldpspatial.distributed.secure_aggregation.graph import MAX_CLIENTS, Neighbours
from ldpspatial.distributed.secure_aggregation.masks import Ints
from ldpspatial.distributed.secure_aggregation.session import enrol, play
from ldpspatial.distributed.secure_aggregation.terms import SESSION_BYTES, Step, Terms
from ldpspatial.distributed.secure_sum import check_vectors

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class SecureAggregation:
    """Sums vectors of clients by the protocol of Bonawitz et al. (CCS 2017).

    A :class:`~ldpspatial.distributed.secure_sum.SecureSum`. What it promises against whom, and on
    which assumptions, is in docs/secure-aggregation.md.

    Attributes
    ----------
    threshold : int >= 2
        Fewest survivors for which a sum is revealed.
    bits : int in [1, 62]
        The modulus is 2^bits.
    neighbours : Neighbours or None
        None shares every secret with every client; see
        :func:`~ldpspatial.distributed.secure_aggregation.graph.choose_neighbours` for less work.
    entropy : callable
        Takes n, returns n random bytes; the operating system's, but for tests.

    Raises
    ------
    InputError
        A field breaks its rule, or the package cryptography is missing.

    Examples
    --------
    >>> vectors = np.array([[1, 7], [2, 7], [4, 7]])
    >>> here = np.array([True, False, True])
    >>> SecureAggregation(2, bits=3).total(vectors, here)
    array([5, 6])
    >>> SecureAggregation(3, bits=3).total(vectors, here) is None
    True
    """

    threshold: int
    bits: int
    neighbours: Neighbours | None = None
    entropy: Entropy = field(default=system, repr=False)

    def __post_init__(self) -> None:
        checked_whole("threshold", self.threshold, 2, MAX_CLIENTS)
        # The other fields are terms of every session, and the rules for them stand there.
        Terms(bytes(SESSION_BYTES), self.threshold, self.threshold, self.bits, 1, self.neighbours)

    @property
    def modulus(self) -> int:
        """2^bits."""
        return 1 << self.bits

    def total(self, vectors: Ints, survivors: Bools) -> Ints | None:
        """Return the sum of the survivors' vectors, or nothing.

        Parameters
        ----------
        vectors : (clients, length) int64 array in [0, modulus)
        survivors : (clients,) bool array
            The others share their keys and fail before they send their masked vectors.

        Returns
        -------
        (length,) int64 array in [0, modulus), or None where fewer than ``threshold`` survive.

        Raises
        ------
        InputError
            Shapes that do not fit, or entries that are no residues.
        """
        check_vectors(vectors, survivors, self.modulus)
        clients, length = vectors.shape
        if clients < self.threshold:
            return None
        session = self.entropy(SESSION_BYTES)
        terms = Terms(session, clients, self.threshold, self.bits, length, self.neighbours)
        failing = dict.fromkeys(np.flatnonzero(~survivors).tolist(), Step.MASK)
        return play(*enrol(terms, self.entropy), vectors, failing).total
