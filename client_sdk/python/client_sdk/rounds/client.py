"""A client of secure aggregation: Bonawitz et al. (CCS 2017, figure 4), rounds 0 to 4.

A client answers each round once, in order. Whatever it cannot accept makes it refuse and leave: it
answers nothing any more. So a server gets one answer a round from it, and of every other client's
two secrets it reveals a share of one at most.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from client_sdk.entropy import Entropy, random_bytes
from client_sdk.entropy import system as system_entropy
from client_sdk.errors import ParameterError
from client_sdk.rounds import shamir
from client_sdk.rounds.errors import ProtocolError
from client_sdk.rounds.keys import (
    check_advert,
    key_statement,
    own_mask,
    pair_mask,
    seed_check,
    survivor_statements,
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
    KEY_BYTES,
    KeyPair,
    SigningKey,
    seal,
    unseal,
    verified,
)
from client_sdk.rounds.terms import Step, Terms
from client_sdk.rounds.wire import Message, Reader, require


class Client:
    """One client in one session.

    Parameters
    ----------
    terms : Terms
    number : int in [0, terms.clients)
        Which client of the directory this is.
    identity : SigningKey
        Its long-term key.
    directory : sequence or mapping of bytes, 32 each
        Public keys of the enrolled clients by their numbers, from a party that clients trust for
        that (a public-key infrastructure), never from the server. A sequence holds those of all; a
        mapping at least its own, and those of its neighbours before round 1.
    entropy : callable, optional
        Takes n, returns n random bytes; the operating system's, but for tests.
    """

    def __init__(
        self,
        terms: Terms,
        number: int,
        identity: SigningKey,
        directory: Sequence[bytes] | Mapping[int, bytes],
        entropy: Entropy = system_entropy,
    ) -> None:
        keys = directory if isinstance(directory, Mapping) else dict(enumerate(directory))
        if not isinstance(directory, Mapping) and len(directory) != terms.clients:
            raise ParameterError(
                f"directory must hold {terms.clients} public keys, got {len(directory)}"
            )
        if not 0 <= number < terms.clients or keys.get(number) != identity.public:
            raise ParameterError(
                f"number must be that of the identity in the directory, got {number}"
            )
        self.terms, self.number = terms, number
        self._identity = identity
        self._directory = keys
        self._entropy = entropy
        self._next: Step | None = Step.ADVERTISE

    def advertise(self) -> KeyAdvert:
        """Round 0: draw two key pairs, return the public keys."""
        with self._round(Step.ADVERTISE):
            self._cipher_pair = KeyPair(random_bytes(self._entropy, KEY_BYTES))
            self._mask_pair = KeyPair(random_bytes(self._entropy, KEY_BYTES))
            public = self._cipher_pair.public, self._mask_pair.public
            signature = self._identity.sign(key_statement(self.terms, *public))
            self._advert = KeyAdvert(self.terms.digest, self.number, *public, signature)
            return self._advert

    def share(self, message: KeyList) -> SharesOut:
        """Round 1: check the neighbours' keys, share the two secrets among them and oneself.

        Raises
        ------
        ProtocolError
            Too few keys, a repeated or forged one, or not one's own among them.
        """
        with self._round(Step.SHARE, message, KeyList):
            self._adverts = self._checked_adverts(message)
            self._seed = random_bytes(self._entropy, KEY_BYTES)
            holders = sorted(self._adverts)
            points = [holder + 1 for holder in holders]  # the secret itself is at 0
            shares = {}
            for name, secret in (("seed", self._seed), ("key", self._mask_pair.private)):
                number = int.from_bytes(secret, "big")
                dealt = shamir.split(number, self.terms.shares, points, self._entropy)
                shares[name] = dict(zip(holders, dealt, strict=True))
            # None of its own mask key: that is revealed only if it fails, when it cannot answer.
            self._seed_shares = {self.number: shares["seed"].pop(self.number)}
            self._key_shares: dict[int, int] = {}
            self._keys = {holder: self._keys_with(holder) for holder in shares["seed"]}
            sealed = tuple(
                (holder, self._seal(holder, seed, shares["key"][holder]))
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
            if not senders <= self._adverts.keys() - {self.number}:
                raise ProtocolError("shares come from a client that is not a neighbour")
            if len(senders) + 1 < self.terms.shares:
                raise ProtocolError(f"too few neighbours sent shares: {len(senders)}")
            for sender, ciphertext in message.sealed:
                self._open(sender, ciphertext)
            return MaskedVector(
                self.terms.digest, self.number, self._masked(vector), self.terms.bits
            )

    def confirm(self, message: Survivors) -> Confirmation:
        """Round 3: sign the one set of survivors that the shares revealed next will be for.

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
            self._signature = self._identity.sign(self._statements[self.number])
            return Confirmation(self.terms.digest, self.number, self._signature)

    def reveal(self, message: Confirmations) -> Revealed:
        """Round 4: return shares of survivors' seeds and of the others' mask keys.

        Raises
        ------
        ProtocolError
            Too few neighbours have signed the same survivors, or a signature is not theirs.
        """
        with self._round(Step.REVEAL, message, Confirmations):
            signers = self._distinct(signer for signer, _ in message.signatures)
            if not signers <= self._survivors or len(signers) < self.terms.shares:
                raise ProtocolError("too few neighbours, or others, have confirmed the survivors")
            for signer, signature in message.signatures:
                if signer == self.number and signature == self._signature:
                    continue
                if not verified(self._directory[signer], signature, self._statements[signer]):
                    raise ProtocolError(f"client {signer} has not confirmed the same survivors")
            # Never both of one client: seed and mask key together would bare its vector.
            alive = self._survivors
            seeds = tuple((v, s) for v, s in self._seed_shares.items() if v in alive)
            keys = tuple((v, s) for v, s in self._key_shares.items() if v not in alive)
            return Revealed(self.terms.digest, self.number, seeds, keys)

    def saved(self) -> dict[str, Any]:
        """Return what this client needs from now on, of texts and whole numbers below 2^53.

        Secrets that no later round takes are left out: after round 2 its own keys and seed.
        Whoever keeps it sees to it that of one state there is one client (`Participant`).
        """
        due = self._next
        state: dict[str, Any] = {"due": -1 if due is None else int(due)}
        if due in (Step.SHARE, Step.MASK):
            state["mask_key"] = self._mask_pair.private.hex()
        if due is Step.SHARE:
            state["cipher_key"] = self._cipher_pair.private.hex()
        if due is not None and due >= Step.MASK:
            adverts = self._adverts.values()
            state["adverts"] = [[advert.client, advert.body().hex()] for advert in adverts]
            state["seed_shares"] = [[v, f"{s:x}"] for v, s in self._seed_shares.items()]
            state["key_shares"] = [[v, f"{s:x}"] for v, s in self._key_shares.items()]
        if due is Step.MASK:
            state["seed"] = self._seed.hex()
            state["opening"] = [[v, back.hex()] for v, (_, back) in self._keys.items()]
        if due is Step.REVEAL:
            state["told"] = bits_of_numbers(self._told, self.terms.clients).hex()
            state["signature"] = self._signature.hex()
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`saved` returned, of a client with the same arguments."""
        due = state["due"]
        self._next = None if due < 0 else Step(due)
        digest = self.terms.digest
        if "mask_key" in state:
            self._mask_pair = KeyPair(bytes.fromhex(state["mask_key"]))
        if "cipher_key" in state:
            self._cipher_pair = KeyPair(bytes.fromhex(state["cipher_key"]))
            public = self._cipher_pair.public, self._mask_pair.public
            signature = self._identity.sign(key_statement(self.terms, *public))
            self._advert = KeyAdvert(digest, self.number, *public, signature)
        if "adverts" in state:
            self._adverts = {
                v: KeyAdvert(digest, v, **KeyAdvert.fields(Reader(bytes.fromhex(body)), self.terms))
                for v, body in state["adverts"]
            }
            self._seed_shares = {v: int(share, 16) for v, share in state["seed_shares"]}
            self._key_shares = {v: int(share, 16) for v, share in state["key_shares"]}
        if "seed" in state:
            self._seed = bytes.fromhex(state["seed"])
            self._keys = {v: (b"", bytes.fromhex(key)) for v, key in state["opening"]}
        if "told" in state:
            told = numbers_of_bits(bytes.fromhex(state["told"]), self.terms.clients)
            self._accept(told)
            self._signature = bytes.fromhex(state["signature"])

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

    def _checked_adverts(self, message: KeyList) -> dict[int, KeyAdvert]:
        adverts = {advert.client: advert for advert in message.adverts}
        self._distinct(advert.client for advert in message.adverts)
        if adverts.get(self.number) != self._advert:
            raise ProtocolError("a client's own keys are missing or altered in the list of keys")
        if not self.terms.shares <= len(adverts) <= self.terms.degree + 1:
            raise ProtocolError(f"a list of {len(adverts)} clients' keys is too short or too long")
        keys = [key for advert in adverts.values() for key in (advert.cipher_key, advert.mask_key)]
        if len(set(keys)) < len(keys):
            raise ProtocolError("a public key occurs twice in the list of keys")
        for advert in adverts.values():
            if advert.client != self.number:
                check_advert(self.terms, advert, self._directory)
        return adverts

    def _known_of(self, told: frozenset[int]) -> frozenset[int]:
        """Return whose shares this client may hold, of those who survive."""
        return told if self.terms.complete else frozenset(self._adverts) & told

    def _accept(self, told: frozenset[int]) -> None:
        """Take a list of survivors for the one that shares will be revealed for."""
        self._told = told
        self._survivors = self._known_of(told)
        self._statements = survivor_statements(self.terms, told, self._adverts)

    def _distinct(self, numbers: Iterator[int]) -> set[int]:
        listed = list(numbers)
        distinct = set(listed)
        if len(distinct) < len(listed):
            raise ProtocolError("a client occurs twice in a list")
        return distinct

    def _keys_with(self, other: int) -> tuple[bytes, bytes]:
        """Return the keys of what is sealed for a neighbour, and of what it seals for this one."""
        out = self.terms.label("shares", self.number, other)
        back = self.terms.label("shares", other, self.number)
        public = self._adverts[other].cipher_key
        key_out, key_back = self._cipher_pair.agreed(public, self.terms.digest, out, back)
        return key_out, key_back

    def _seal(self, receiver: int, seed_share: int, key_share: int) -> bytes:
        passage = self.terms.label("shares", self.number, receiver)
        plaintext = b"".join(
            share.to_bytes(shamir.SHARE_BYTES, "big") for share in (seed_share, key_share)
        )
        return seal(self._keys[receiver][0], plaintext, passage)

    def _open(self, sender: int, ciphertext: bytes) -> None:
        passage = self.terms.label("shares", sender, self.number)
        plaintext = unseal(self._keys[sender][1], ciphertext, passage)
        halves = plaintext[: shamir.SHARE_BYTES], plaintext[shamir.SHARE_BYTES :]
        seed_share, key_share = (int.from_bytes(half, "big") for half in halves)
        if max(seed_share, key_share) >= shamir.PRIME:
            raise ProtocolError(f"client {sender} sent no pair of shares")
        self._seed_shares[sender], self._key_shares[sender] = seed_share, key_share

    def _masked(self, vector: Ints) -> Ints:
        terms = self.terms
        masked: Ints = vector + own_mask(terms, self.number, self._seed)
        for other in self._key_shares:  # who sent shares: of those both know the pair's mask
            masked += pair_mask(terms, self._mask_pair, self.number, self._adverts[other])
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
