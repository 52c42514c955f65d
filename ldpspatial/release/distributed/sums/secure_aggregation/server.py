"""The server of secure aggregation: it relays keys and shares, and adds up masked vectors.

It follows the protocol of Bonawitz et al. (CCS 2017, figure 4). No message that it receives holds a
vector without masks, and it asks for nothing but what the rounds ask for.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from client_sdk.rounds.shared import (
    SHARE_BYTES,
    Confirmation,
    Confirmations,
    Ints,
    KeyAdvert,
    KeyList,
    MaskedVector,
    Message,
    ProtocolError,
    Revealed,
    SharesIn,
    SharesOut,
    Step,
    Survivors,
    Terms,
    check_advert,
    circle,
    combine,
    mask_pair,
    own_mask,
    pair_mask,
    seed_check,
    usable,
)
from client_sdk.shared import Entropy, system_entropy
from ldpspatial.release.distributed.sums.secure_aggregation.errors import AbortedError

Answers: TypeAlias = "dict[int, Message]"


class Server:
    """The server in one session.

    A round is: :meth:`receive` each client's message, then :meth:`close_round`, which returns what
    each client that is left gets. After the last round :meth:`total` holds the sum.

    Parameters
    ----------
    terms : Terms
    directory : sequence or mapping of bytes, 64 each
        Identity of every enrolled client; whom a mapping leaves out cannot take part.
    entropy : callable, optional
        Takes n, returns n random bytes; the operating system's, but for tests.

    Attributes
    ----------
    survivors : frozenset of int
        Whose vectors are in the sum; empty before round 2 is closed.
    """

    def __init__(
        self,
        terms: Terms,
        directory: Sequence[bytes] | Mapping[int, bytes],
        entropy: Entropy = system_entropy,
    ) -> None:
        self.terms = terms
        self.survivors: frozenset[int] = frozenset()
        known = directory if isinstance(directory, Mapping) else dict(enumerate(directory))
        self._directory = known
        self._entropy = entropy
        self._step: Step | None = Step.ADVERTISE
        self._heard: set[int] = set()  # in this round
        self._left: set[int] = set(range(terms.clients))  # after the last round
        self._mask_keys: dict[int, bytes] = {}
        self._taken: set[bytes] = set()
        self._neighbours: dict[int, frozenset[int]] = {}  # of each client, itself among them
        self._shares_out: dict[int, SharesOut] = {}
        self._sum: Ints = np.zeros(terms.length, dtype=np.int64)
        self._confirmed: dict[int, Confirmation] = {}
        self._revealed: dict[int, Revealed] = {}
        self._total: Ints | None = None

    def receive(self, message: Message) -> None:
        """Take a client's message of this round.

        Raises
        ------
        ProtocolError
            It is of another session or round, from a client that has left or been heard already, or
            not what the protocol asks for. The server goes on without that client.
        """
        if not isinstance(message, Message) or message.step is not self._step:
            raise ProtocolError("a message out of its round")
        message.check(self.terms)
        if message.client not in self._left or message.client in self._heard:
            raise ProtocolError(f"client {message.client} has left, or has been heard already")
        match message:
            case KeyAdvert():
                self._take_advert(message)
            case SharesOut():
                self._take_shares(message)
            case MaskedVector():
                # Modulo 2^64, of which the modulus is a divisor.
                self._sum = self._sum + message.residues
            case Confirmation():
                self._take_confirmation(message)
            case Revealed():
                self._take_revealed(message)
            case _:
                raise ProtocolError("a message that clients do not send")
        self._heard.add(message.client)

    def close_round(self) -> Answers:
        """End the round, go on with those who have been heard; return what to send to each.

        Raises
        ------
        AbortedError
            Fewer than the threshold are left, or what they revealed does not give the sum. The
            session is over.
        """
        step = self._step
        self._step = None
        if step is None:
            raise AbortedError("the session is over")
        left, self._left, self._heard = self._heard, self._heard, set()
        if len(left) < self.terms.threshold:
            raise AbortedError(
                f"{len(left)} clients are left after round {step.value}, "
                f"below the threshold {self.terms.threshold}"
            )
        answers: Mapping[Step, Callable[[], Answers]] = {
            Step.ADVERTISE: self._key_lists,
            Step.SHARE: self._shares_in,
            Step.MASK: self._survivor_lists,
            Step.CONFIRM: self._confirmations,
            Step.REVEAL: self._unmask,
        }
        answer = answers[step]()
        self._step = Step(step + 1) if step < Step.REVEAL else None
        return answer

    def total(self) -> Ints:
        """Return the sum of the survivors' vectors modulo 2^bits, shape (length,).

        Raises
        ------
        AbortedError
            The session is not over, or ended without a sum.
        """
        if self._total is None:
            raise AbortedError("there is no sum")
        return self._total

    def _take_advert(self, message: KeyAdvert) -> None:
        """Take a key only if no neighbour will refuse it: it would leave, not the one at fault."""
        check_advert(self.terms, message, self._directory)
        key = message.mask_key
        # Nobody can copy the key of another before it has been taken: the lists are not out yet.
        if key in self._taken or not usable(key):
            raise ProtocolError(f"client {message.client} sent a key that cannot be used, or twice")
        self._taken.add(key)
        self._mask_keys[message.client] = key

    def _key_lists(self) -> Answers:
        # Drawn now, so that no client's keys depend on who its neighbours are.
        joined = sorted(self._left)
        self._neighbours = circle(joined, self.terms.degree, self._entropy)
        lists: Answers = {}
        for client in joined:
            keys = tuple((v, self._mask_keys[v]) for v in sorted(self._neighbours[client]))
            lists[client] = KeyList(self.terms.digest, client, keys)
        return lists

    def _others(self, client: int) -> list[int]:
        """Return the neighbours of a client in the order in which it names them."""
        return sorted(self._neighbours[client] - {client})

    def _take_shares(self, message: SharesOut) -> None:
        if len(message.sealed) != len(self._others(message.client)):
            raise ProtocolError(f"client {message.client} has not sent each neighbour its shares")
        self._shares_out[message.client] = message

    def _shares_in(self) -> Answers:
        inboxes: dict[int, list[tuple[int, bytes]]] = {client: [] for client in self._left}
        for sender, message in sorted(self._shares_out.items()):
            for receiver, ciphertext in zip(self._others(sender), message.sealed, strict=True):
                if receiver in inboxes:
                    inboxes[receiver].append((sender, ciphertext))
        digest = self.terms.digest
        return {v: SharesIn(digest, v, tuple(sealed)) for v, sealed in inboxes.items()}

    def _survivor_lists(self) -> Answers:
        self.survivors = frozenset(self._left)
        digest = self.terms.digest
        n = self.terms.clients
        return {client: Survivors(digest, client, self.survivors, n) for client in self._left}

    def _confirmed_to(self, client: int) -> list[int]:
        """Return to whom a client confirms the survivors, in the order in which it does so."""
        return [v for v in self._others(client) if v in self.survivors]

    def _take_confirmation(self, message: Confirmation) -> None:
        # What is in the codes their receivers alone can tell.
        if len(message.codes) != len(self._confirmed_to(message.client)):
            raise ProtocolError(f"client {message.client} has not confirmed to each neighbour")
        self._confirmed[message.client] = message

    def _confirmations(self) -> Answers:
        inboxes: dict[int, list[tuple[int, bytes]]] = {client: [] for client in self._left}
        for sender, message in sorted(self._confirmed.items()):
            for receiver, found in zip(self._confirmed_to(sender), message.codes, strict=True):
                if receiver in inboxes:
                    inboxes[receiver].append((sender, found))
        digest = self.terms.digest
        return {v: Confirmations(digest, v, tuple(codes)) for v, codes in inboxes.items()}

    def _asked_of(self, client: int) -> tuple[list[int], list[int]]:
        """Return of whom a client reveals shares of seeds, and of whom of mask keys."""
        sharing = sorted(self._neighbours[client] & self._shares_out.keys())
        alive = [v for v in sharing if v in self.survivors]
        return alive, [v for v in sharing if v not in self.survivors]

    def _take_revealed(self, message: Revealed) -> None:
        alive, failed = self._asked_of(message.client)
        if len(message.seeds) != len(alive) or len(message.keys) != len(failed):
            raise ProtocolError(f"client {message.client} has not revealed what was asked for")
        self._revealed[message.client] = message

    def _unmask(self) -> Answers:
        terms = self.terms
        total = self._sum
        shares: dict[int, dict[int, int]] = {owner: {} for owner in self._shares_out}
        for holder, message in sorted(self._revealed.items()):
            alive, failed = self._asked_of(holder)
            revealed = *message.seeds, *message.keys
            for owner, share in zip([*alive, *failed], revealed, strict=True):
                shares[owner][holder + 1] = share
        # Masks of pairs of survivors have cancelled. Left are the own masks of survivors, and the
        # masks of their pairs with clients that shared secrets and failed.
        for owner in self.survivors:
            seed = self._secret(owner, shares[owner])
            if seed_check(terms, owner, seed) != self._shares_out[owner].seed_check:
                raise AbortedError(f"shares of the seed of client {owner} do not fit")
            total = total - own_mask(terms, owner, seed)
        for owner in self._shares_out.keys() - self.survivors:
            pair = mask_pair(terms, owner, self._secret(owner, shares[owner]))
            if pair.public != self._mask_keys[owner]:
                raise AbortedError(f"shares of the mask key of client {owner} do not fit")
            # What survivors have added for the pair, its owner would have taken away.
            for other in self._neighbours[owner] & self.survivors:
                total = total + pair_mask(terms, pair, owner, other, self._mask_keys[other])
        self._total = total & np.int64(terms.modulus - 1)
        return {}

    def _secret(self, owner: int, shares: Mapping[int, int]) -> bytes:
        """Put a secret together from as many of the shares as it takes."""
        needed = self.terms.shares
        if len(shares) < needed:
            raise AbortedError(f"{len(shares)} shares of client {owner} are left, {needed} needed")
        secret = combine(dict(list(shares.items())[:needed]))
        return secret.to_bytes(SHARE_BYTES, "big")
