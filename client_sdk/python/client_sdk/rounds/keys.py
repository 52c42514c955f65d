"""What client and server derive alike: keys of pairs, masks, and what is signed or confirmed."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from client_sdk.rounds.errors import ProtocolError
from client_sdk.rounds.masks import (
    Ints,
    bits_of_numbers,
    expand,
)
from client_sdk.rounds.messages import KeyAdvert
from client_sdk.rounds.primitives import (
    KEY_BYTES,
    KeyPair,
    agreement_half,
    derive,
    signing_half,
    verified,
)
from client_sdk.rounds.terms import Terms, encoded


class PairKeys(NamedTuple):
    """The keys that two clients share in one session, as one of them uses them."""

    seals: bytes  # shares for the other
    opens: bytes  # shares from the other
    confirms: bytes  # survivors to the other
    checks: bytes  # the survivors that the other confirms


class Seats:
    """Who sits where in a session and with which mask key, as one client was told.

    Parameters
    ----------
    terms : Terms
    identities, mask_keys : mapping of client to bytes
        64 and 32 bytes, of the client and its neighbours: on the complete graph of all who have
        joined.
    """

    def __init__(
        self, terms: Terms, identities: Mapping[int, bytes], mask_keys: Mapping[int, bytes]
    ) -> None:
        self._identities = identities
        self._seats = {v: encoded(v) + identities[v] + key for v, key in sorted(mask_keys.items())}
        self._whole = self._digest(self._seats) if terms.complete else None

    def agreement_key(self, client: int) -> bytes:
        """Return the long-term key that others agree on keys with."""
        return agreement_half(self._identities[client])

    def known_to_both(self, low: int, high: int) -> bytes:
        """Return the SHA-256 of what both clients of a pair have to be told alike.

        All seats on the complete graph; on a circle, where neighbours of one are strangers to the
        other, their own two.
        """
        return self._digest((low, high)) if self._whole is None else self._whole

    def _digest(self, clients: Iterable[int]) -> bytes:
        return sha256(b"".join([self._seats[v] for v in clients])).digest()


def pair_keys(terms: Terms, agreement: KeyPair, client: int, other: int, seats: Seats) -> PairKeys:
    """Return the keys of a pair: known to those two alone, and only if they were told alike.

    Long-term keys are agreed on, and who sits where enters, with mask keys that are drawn afresh
    for each session. So a key serves one session, though its name came twice, and what was sealed
    or confirmed by somebody who was told of other seats or other mask keys does not hold.

    Parameters
    ----------
    terms : Terms
    agreement : KeyPair
        The client's long-term key.
    client, other : int
    seats : Seats
        As the client was told.

    Raises
    ------
    ProtocolError
        Nobody can agree with the other's key.
    """
    low, high = sorted((client, other))
    label = terms.label("pair", low, high) + seats.known_to_both(low, high)
    shared = agreement.agree(seats.agreement_key(other), terms.digest, label, 4 * KEY_BYTES)
    seal_up, seal_down, confirm_up, confirm_down = (  # up: from the smaller number to the larger
        shared[place : place + KEY_BYTES] for place in range(0, len(shared), KEY_BYTES)
    )
    if client == low:
        return PairKeys(seal_up, seal_down, confirm_up, confirm_down)
    return PairKeys(seal_down, seal_up, confirm_down, confirm_up)


def mask_pair(terms: Terms, client: int, secret: bytes) -> KeyPair:
    """Return a client's key pair for masks, from the 16 bytes that are shared of it."""
    return KeyPair(derive(secret, terms.digest, terms.label("mask key", client)))


def own_mask(terms: Terms, client: int, seed: bytes) -> Ints:
    """Return the mask that a client adds for itself, shape (length,)."""
    key = derive(seed, terms.digest, terms.label("own mask", client))
    return expand(key, terms.length, terms.bits)


def seed_check(terms: Terms, client: int, seed: bytes) -> bytes:
    """Return what tells a seed from others and nothing else: derived beside the mask's key."""
    return derive(seed, terms.digest, terms.label("seed check", client))


def pair_mask(terms: Terms, pair: KeyPair, client: int, other: int, mask_key: bytes) -> Ints:
    """Return what a client adds for a pair, shape (length,): the negative of what the other adds.

    Parameters
    ----------
    terms : Terms
    pair : KeyPair
        The client's mask keys.
    client, other : int
    mask_key : bytes, 32
        The other's public one.
    """
    label = terms.label("pair mask", *sorted((client, other)))  # sorted: one key for both
    mask = expand(pair.agree(mask_key, terms.digest, label), terms.length, terms.bits)
    return mask if client > other else -mask


def key_statement(terms: Terms, mask_key: bytes) -> bytes:
    """Return what a client signs of its public key for masks."""
    return terms.label("keys") + mask_key


def survivor_statement(terms: Terms, survivors: frozenset[int]) -> bytes:
    """Return what clients confirm of the survivors to each other.

    The keys that they do so with stand for this session, its seats and its mask keys (`pair_keys`).
    """
    return terms.label("survivors") + bits_of_numbers(survivors, terms.clients)


def check_advert(terms: Terms, advert: KeyAdvert, directory: Mapping[int, bytes]) -> None:
    """Refuse a public key that the client of that number has not signed for this session.

    Raises
    ------
    ProtocolError
    """
    identity = directory.get(advert.client)
    statement = key_statement(terms, advert.mask_key)
    if identity is None or not verified(signing_half(identity), advert.signature, statement):
        raise ProtocolError(f"the key of client {advert.client} is not signed by it")
