"""Secure aggregation as a secure sum: all rounds between separate objects, in one process."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from client_sdk.rounds.shared import MAX_CLIENTS, SESSION_BYTES, Ints, Neighbours, Step, Terms
from client_sdk.shared import Entropy, system_entropy
from ldpspatial.release.distributed._checks import checked_modulus
from ldpspatial.release.distributed.sums.secure_aggregation.session import enrol, play
from ldpspatial.release.distributed.sums.secure_sum import check_vectors
from ldpspatial.validate import input_errors, random_bytes, whole_number

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class SecureAggregation:
    """Sums vectors of clients by the protocol of Bonawitz et al. (CCS 2017).

    A :class:`~ldpspatial.release.distributed.sums.secure_sum.SecureSum`. What it promises against
    whom, and on which assumptions, is in docs/secure-aggregation.md.

    Attributes
    ----------
    threshold : int >= 2
        Fewest survivors for which a sum is revealed.
    bits : int in [1, 62]
        The modulus is 2^bits.
    neighbours : Neighbours or None
        None shares every secret with every client; see
        :func:`choose_neighbours` for less work.
    entropy : callable
        Takes n, returns n random bytes; the operating system's, but for tests.
    colluding, honest_server
        As in :class:`Terms`. With neighbours the server has to be trusted to follow the protocol.

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
    entropy: Entropy = field(default=system_entropy, repr=False)
    colluding: int = 0
    honest_server: bool = False

    def __post_init__(self) -> None:
        whole_number("threshold", self.threshold, 2, MAX_CLIENTS)
        # The other fields are terms of every session, and the rules for them stand there.
        self._terms(bytes(SESSION_BYTES), self.threshold, 1, self.colluding)

    @input_errors()
    def _terms(self, session: bytes, clients: int, length: int, colluding: int) -> Terms:
        return Terms(
            session=session,
            clients=clients,
            threshold=self.threshold,
            bits=self.bits,
            length=length,
            neighbours=self.neighbours,
            colluding=colluding,
            honest_server=self.honest_server,
        )

    def check(self, clients: int, colluding: int) -> None:
        """Refuse a sum of so many clients, of whom so many may collude, before it begins."""
        self._terms(bytes(SESSION_BYTES), clients, 1, max(colluding, self.colluding))

    @classmethod
    def of_modulus(
        cls,
        modulus: int,
        threshold: int,
        neighbours: Neighbours | None = None,
        entropy: Entropy = system_entropy,
        colluding: int = 0,
        honest_server: bool = False,
    ) -> "SecureAggregation":
        """Return the secure sum modulo a power of two: what `sum_clients` and `ClientCohort` call.

        Raises
        ------
        InputError
            Another modulus, or a field breaks its rule.

        Examples
        --------
        >>> SecureAggregation.of_modulus(modulus=1 << 20, threshold=8)
        SecureAggregation(threshold=8, bits=20, neighbours=None, colluding=0, honest_server=False)
        """
        bits = checked_modulus(modulus).bit_length() - 1
        return cls(threshold, bits, neighbours, entropy, colluding, honest_server)

    @property
    def modulus(self) -> int:
        """2^bits."""
        return 1 << self.bits

    @property
    def assumption(self) -> str:
        """What hiding the vectors rests on, as a condition of a claim."""
        server = (
            "any server: twice the threshold exceeds clients and colluding ones together"
            if not self.honest_server
            else "a server that follows the protocol"
            if self.neighbours is None
            else "a server that follows the protocol, and neighbours from choose_neighbours"
        )
        return (
            "computational: sums by secure aggregation on X25519, HKDF-SHA256, HMAC-SHA256, "
            f"ChaCha20-Poly1305 and Ed25519, with {server}"
        )

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
            Shapes that do not fit, entries that are not residues, or more clients than the
            threshold protects against any server.
        """
        check_vectors(vectors, survivors, self.modulus)
        clients, length = vectors.shape
        if clients < self.threshold:
            return None
        session = random_bytes(self.entropy, SESSION_BYTES)
        terms = self._terms(session, clients, length, self.colluding)
        failing = dict.fromkeys(np.flatnonzero(~survivors).tolist(), Step.MASK)
        return play(*enrol(terms, self.entropy), vectors, failing).total
