"""A client of secure aggregation: Bonawitz et al. (CCS 2017, figure 4), rounds 0 to 4.

A client answers each round once, in order. Whatever it cannot accept makes it refuse and leave: it
answers nothing any more. So a server gets one answer a round from it, and of every other client's
two secrets it reveals a share of one at most.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from client_sdk.entropy import Entropy
from client_sdk.entropy import system as system_entropy
from client_sdk.errors import ParameterError
from client_sdk.rounds import shamir
from client_sdk.rounds.errors import ProtocolError
from client_sdk.rounds.keys import (
    PairKeys,
    Seats,
    key_statement,
    mask_pair,
    own_mask,
    pair_keys,
    pair_mask,
    seed_check,
    survivor_statement,
)
from client_sdk.rounds.masks import Ints, bits_of_numbers, numbers_of_bits
from client_sdk.rounds.messages import (
    Confirmation,
    Confirmations,
    KeyAdvert,
    KeyList,
    MaskedVector,
    Revealed,
    SharesIn,
    SharesOut,
    Survivors,
)
from client_sdk.rounds.primitives import (
    IDENTITY_BYTES,
    KEY_BYTES,
    Identity,
    code,
    is_code,
    seal,
    unseal,
)
from client_sdk.rounds.terms import Step, Terms
from client_sdk.rounds.wire import Message, Reader, as_text, from_text, listed, require


class Client:
    """One client in one session.

    Parameters
    ----------
    terms : Terms
    number : int in [0, terms.clients)
        Which client of the directory this is.
    identity : Identity
        Its long-term keys.
    directory : sequence or mapping of bytes, 64 each
        Identities of the enrolled clients by their numbers, from a party that clients trust for
        that (a public-key infrastructure), never from the server. A sequence holds those of all; a
        mapping at least its own, and those of its neighbours before round 1.
    entropy : callable, optional
        Takes n, returns n random bytes; the operating system's, but for tests.
    """

    def __init__(
        self,
        terms: Terms,
        number: int,
        identity: Identity,
        directory: Sequence[bytes] | Mapping[int, bytes],
        entropy: Entropy = system_entropy,
    ) -> None:
        keys = directory if isinstance(directory, Mapping) else dict(enumerate(directory))
        if not isinstance(directory, Mapping) and len(directory) != terms.clients:
            raise ParameterError(
                f"directory must hold {terms.clients} identities, got {len(directory)}"
            )
        if not 0 <= number < terms.clients or keys.get(number) != identity.public:
            raise ParameterError(
                f"number must be that of the identity in the directory, got {number}"
            )
        self._begin(terms, number, entropy)
        self._identity: Identity | None = identity
        self._directory = keys

    def _begin(self, terms: Terms, number: int, entropy: Entropy) -> None:
        self.terms, self.number = terms, number
        self._entropy = entropy
        self._next: Step | None = Step.ADVERTISE
        self._pairs: dict[int, PairKeys] = {}

    def advertise(self) -> KeyAdvert:
        """Round 0: draw the key pair for masks, return the public key."""
        with self._round(Step.ADVERTISE):
            self._mask_secret = shamir.draw(self._entropy)
            self._mask_pair = mask_pair(self.terms, self.number, self._mask_secret)
            public = self._mask_pair.public
            signature = self._known_identity().sign(key_statement(self.terms, public))
            return KeyAdvert(self.terms.digest, self.number, public, signature)

    def share(self, message: KeyList) -> SharesOut:
        """Round 1: agree with the neighbours, share the two secrets among them and oneself.

        Who sits where and with which key is as the server says. It enters what is agreed on, so
        that only shares whose sender was told the same open in round 2, before a mask is made.

        Raises
        ------
        ProtocolError
            Too few keys, a repeated one, one of a stranger, or not one's own among them; an
            identity in two seats.
        """
        with self._round(Step.SHARE, message, KeyList):
            self._mask_keys = self._checked_keys(message)
            self._seed = shamir.draw(self._entropy)
            holders = sorted(self._mask_keys)
            points = [holder + 1 for holder in holders]  # the secret itself is at 0
            shares = {}
            for name, secret in (("seed", self._seed), ("key", self._mask_secret)):
                number = int.from_bytes(secret, "big")
                dealt = shamir.split(number, self.terms.shares, points, self._entropy)
                shares[name] = dict(zip(holders, dealt, strict=True))
            # None of its own mask key: that is revealed only if it fails, when it cannot answer.
            self._seed_shares = {self.number: shares["seed"].pop(self.number)}
            self._key_shares: dict[int, int] = {}
            self._pairs = self._agreed(shares["seed"])
            self._identity = None  # who found it later would open what was sealed by and for it
            sealed = tuple(
                self._seal(holder, seed, shares["key"][holder])
                for holder, seed in shares["seed"].items()
            )
            check = seed_check(self.terms, self.number, self._seed)
            return SharesOut(self.terms.digest, self.number, check, sealed)

    def mask(self, message: SharesIn, vector: Ints) -> MaskedVector:
        """Round 2: open the neighbours' shares, return the vector under all its masks.

        Parameters
        ----------
        message : SharesIn
        vector : (terms.length,) int64 array in [0, terms.modulus)
            Not kept.

        Raises
        ------
        ParameterError
            The vector breaks its rule.
        ProtocolError
            Too few neighbours are left, or shares were altered or are not for this use.
        """
        with self._round(Step.MASK, message, SharesIn):
            _check_vector(vector, self.terms)
            senders = self._distinct(sender for sender, _ in message.sealed)
            if not senders <= self._pairs.keys():
                raise ProtocolError("shares come from a client that is not a neighbour")
            if len(senders) + 1 < self.terms.shares:
                raise ProtocolError(f"too few neighbours sent shares: {len(senders)}")
            for sender, ciphertext in message.sealed:
                self._open(sender, ciphertext)
            masked = self._masked(vector)
            del self._seed, self._mask_secret, self._mask_pair, self._mask_keys
            return MaskedVector(self.terms.digest, self.number, masked, self.terms.bits)

    def confirm(self, message: Survivors) -> Confirmation:
        """Round 3: confirm to the neighbours the one set of survivors that shares are revealed for.

        Raises
        ------
        ProtocolError
            Too few survivors, oneself not among them, or one who never sent shares.
        """
        with self._round(Step.CONFIRM, message, Survivors):
            told = message.numbers
            if self.number not in told:
                raise ProtocolError("the survivors do not include this client")
            if len(told) < self.terms.threshold:
                raise ProtocolError(f"{len(told)} survivors are fewer than the threshold")
            # In the complete graph all clients are neighbours, and none may be unheard of.
            known = self._known_of(told)
            if not known <= self._seed_shares.keys():
                raise ProtocolError("a survivor never sent its shares")
            if len(known) < self.terms.shares:
                raise ProtocolError(f"{len(known)} neighbours survive: too few to unmask anyone")
            self._accept(told)
            codes = tuple(
                code(self._pairs[neighbour].confirms, self._statement)
                for neighbour in sorted(known - {self.number})
            )
            return Confirmation(self.terms.digest, self.number, codes)

    def reveal(self, message: Confirmations) -> Revealed:
        """Round 4: return shares of survivors' seeds and of the others' mask keys.

        Raises
        ------
        ProtocolError
            Too few neighbours have confirmed the same survivors, or others are named.
        """
        with self._round(Step.REVEAL, message, Confirmations):
            senders = self._distinct(sender for sender, _ in message.codes)
            if not senders <= self._survivors - {self.number}:
                raise ProtocolError("others than surviving neighbours have confirmed")
            # Codes that do not hold are not counted: who sent one must not keep others from a sum.
            agreed = 1 + sum(
                is_code(self._pairs[sender].checks, found, self._statement)
                for sender, found in message.codes
            )
            if agreed < self.terms.shares:
                raise ProtocolError(
                    f"{agreed} clients have confirmed the same survivors: too few to reveal shares"
                )
            # Never both of one client: seed and mask key together would bare its vector.
            alive = self._survivors
            seeds = tuple(s for v, s in sorted(self._seed_shares.items()) if v in alive)
            keys = tuple(s for v, s in sorted(self._key_shares.items()) if v not in alive)
            return Revealed(self.terms.digest, self.number, seeds, keys)

    def saved(self) -> dict[str, Any]:
        """Return what this client needs from now on, of texts and whole numbers below 2^53.

        Secrets that no later round takes are left out: after round 2 its seed and mask key. Whoever
        keeps it sees to it that of one state there is one client (`Participant`).
        """
        due = self._next
        state: dict[str, Any] = {"due": -1 if due is None else int(due)}
        if due in (Step.SHARE, Step.MASK):
            state["mask_secret"] = as_text(self._mask_secret)
        if due is Step.MASK:
            state["mask_keys"] = as_text(listed(self._mask_keys.items()))
            state["seed"] = as_text(self._seed)
        if due is not None and due >= Step.MASK:
            state["seed_shares"] = _written(self._seed_shares)
            state["key_shares"] = _written(self._key_shares)
            # Those that were used are empty.
            state["pairs"] = as_text(listed((v, b"".join(keys)) for v, keys in self._pairs.items()))
        if due is Step.REVEAL:
            state["told"] = as_text(bits_of_numbers(self._told, self.terms.clients))
        return state

    @classmethod
    def restored(
        cls,
        terms: Terms,
        number: int,
        state: Mapping[str, Any],
        identity: Identity | None = None,
        directory: Mapping[int, bytes] | None = None,
        entropy: Entropy = system_entropy,
    ) -> "Client":
        """Return the client that goes on from what :meth:`saved` returned.

        ``identity`` and ``directory`` are needed for round 1, and not later.
        """
        client = cls.__new__(cls)
        client._begin(terms, number, entropy)
        client._identity, client._directory = identity, directory or {}
        due = state["due"]
        client._next = None if due < 0 else Step(due)
        if "mask_secret" in state:
            client._mask_secret = from_text(state["mask_secret"])
            client._mask_pair = mask_pair(terms, number, client._mask_secret)
        if "seed" in state:
            client._mask_keys = _read(state["mask_keys"], KEY_BYTES)
            client._seed = from_text(state["seed"])
        if "pairs" in state:
            for name in ("seed_shares", "key_shares"):
                shares = _read(state[name], shamir.SHARE_BYTES)
                numbers = {v: int.from_bytes(share, "big") for v, share in shares.items()}
                setattr(client, f"_{name}", numbers)
            dropped = _used(Step(due - 1))
            size = (len(PairKeys._fields) - dropped) * KEY_BYTES
            starts = range(0, size, KEY_BYTES)
            client._pairs = {
                v: PairKeys._make([b""] * dropped + [keys[k : k + KEY_BYTES] for k in starts])
                for v, keys in _read(state["pairs"], size).items()
            }
        if "told" in state:
            client._accept(numbers_of_bits(from_text(state["told"]), terms.clients))
        return client

    @contextmanager
    def _round(
        self, step: Step, message: object = None, kind: type[Message] | None = None
    ) -> Iterator[None]:
        """Let a round happen once and in its turn; an error in it is the end."""
        due = self._next
        self._next = None
        if due is not step:
            raise ProtocolError(f"client {self.number} does not answer round {step.value} now")
        if kind is not None:
            why = "a message of another session, round or client"
            if not isinstance(message, kind):
                raise ProtocolError(why)
            message.check(self.terms)
            require(message.client == self.number, why)
        yield
        self._next = Step(step + 1) if step < Step.REVEAL else None
        self._forget(step)

    def _forget(self, step: Step) -> None:
        """Drop what no round after this one takes of the keys of pairs and the others' shares."""
        used = _used(step)
        self._pairs = {
            v: PairKeys._make([b""] * used + [*keys[used:]]) for v, keys in self._pairs.items()
        }
        if step is Step.REVEAL:
            self._pairs, self._seed_shares, self._key_shares = {}, {}, {}

    def _known_identity(self) -> Identity:
        if self._identity is None:
            raise ProtocolError(f"client {self.number} has given its long-term keys up")
        return self._identity

    def _checked_keys(self, message: KeyList) -> dict[int, bytes]:
        found = dict(message.keys)
        self._distinct(owner for owner, _ in message.keys)
        if found.get(self.number) != self._mask_pair.public:
            raise ProtocolError("a client's own key is missing or altered in the list of keys")
        if not self.terms.shares <= len(found) <= self.terms.degree + 1:
            raise ProtocolError(f"a list of {len(found)} clients' keys is too short or too long")
        if len(set(found.values())) < len(found):
            raise ProtocolError("a public key occurs twice in the list of keys")
        for owner in found:
            identity = self._directory.get(owner) if 0 <= owner < self.terms.clients else None
            if identity is None or len(identity) != IDENTITY_BYTES:
                raise ProtocolError(f"client {owner} is not enrolled")
        if len({self._directory[owner] for owner in found}) < len(found):
            raise ProtocolError("one identity sits in two seats")
        return found

    def _known_of(self, told: frozenset[int]) -> frozenset[int]:
        """Return whose shares this client may hold, of those who survive."""
        return told if self.terms.complete else told & {*self._pairs, self.number}

    def _accept(self, told: frozenset[int]) -> None:
        """Take a list of survivors for the one that shares will be revealed for."""
        self._told = told
        self._survivors = self._known_of(told)
        self._statement = survivor_statement(self.terms, told)

    def _distinct(self, numbers: Iterator[int]) -> set[int]:
        listed = list(numbers)
        distinct = set(listed)
        if len(distinct) < len(listed):
            raise ProtocolError("a client occurs twice in a list")
        return distinct

    def _agreed(self, others: Iterable[int]) -> dict[int, PairKeys]:
        seats = Seats(self.terms, self._directory, self._mask_keys)
        agreement = self._known_identity().agreement
        return {v: pair_keys(self.terms, agreement, self.number, v, seats) for v in others}

    def _seal(self, receiver: int, seed_share: int, key_share: int) -> bytes:
        passage = self.terms.label("shares", self.number, receiver)
        plaintext = b"".join(
            share.to_bytes(shamir.SHARE_BYTES, "big") for share in (seed_share, key_share)
        )
        return seal(self._pairs[receiver].seals, plaintext, passage)

    def _open(self, sender: int, ciphertext: bytes) -> None:
        passage = self.terms.label("shares", sender, self.number)
        plaintext = unseal(self._pairs[sender].opens, ciphertext, passage)
        seed_share = int.from_bytes(plaintext[: shamir.SHARE_BYTES], "big")
        key_share = int.from_bytes(plaintext[shamir.SHARE_BYTES :], "big")
        if max(seed_share, key_share) >= shamir.PRIME:
            raise ProtocolError(f"client {sender} sent no pair of shares")
        self._seed_shares[sender], self._key_shares[sender] = seed_share, key_share

    def _masked(self, vector: Ints) -> Ints:
        terms = self.terms
        masked: Ints = vector + own_mask(terms, self.number, self._seed)
        for other in self._key_shares:  # who sent shares: of those both know the pair's mask
            key = self._mask_keys[other]
            masked += pair_mask(terms, self._mask_pair, self.number, other, key)
        # int64 wraps modulo 2^64, of which the modulus is a divisor.
        masked &= np.int64(terms.modulus - 1)
        return masked


def _check_vector(vector: Ints, terms: Terms) -> None:
    if vector.dtype != np.int64 or vector.shape != (terms.length,):
        raise ParameterError(
            f"vector must be an int64 array of shape ({terms.length},), "
            f"got {vector.dtype} {vector.shape}"
        )
    if vector.min() < 0 or vector.max() >= terms.modulus:
        raise ParameterError(f"vector must lie in [0, {terms.modulus}) (not repeated here)")


def _used(step: Step) -> int:
    """Return how many keys of a pair no later round takes: each has its own, in their order."""
    return step - Step.ADVERTISE


def _written(shares: Mapping[int, int]) -> str:
    """Return shares by their owners as a text."""
    return as_text(listed((v, s.to_bytes(shamir.SHARE_BYTES, "big")) for v, s in shares.items()))


def _read(text: str, size: int) -> dict[int, bytes]:
    """Return what was listed by clients in a text, ``size`` bytes each."""
    return dict(Reader(from_text(text)).pairs(size))
