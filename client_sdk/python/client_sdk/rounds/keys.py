"""What client and server derive alike: the masks of keys and seeds, and what is signed."""

from collections.abc import Mapping
from hashlib import sha256

from client_sdk.rounds.errors import ProtocolError
from client_sdk.rounds.masks import (
    Ints,
    bits_of_numbers,
    expand,
)
from client_sdk.rounds.messages import KeyAdvert
from client_sdk.rounds.primitives import (
    KeyPair,
    derive,
    verified,
)
from client_sdk.rounds.terms import Terms, encoded


def own_mask(terms: Terms, client: int, seed: bytes) -> Ints:
    """Return the mask that a client adds for itself, shape (length,)."""
    key = derive(seed, terms.digest, terms.label("own mask", client))
    return expand(key, terms.length, terms.bits)


def seed_check(terms: Terms, client: int, seed: bytes) -> bytes:
    """Return what tells a seed from others and nothing else: derived beside the mask's key."""
    return derive(seed, terms.digest, terms.label("seed check", client))


def pair_mask(terms: Terms, pair: KeyPair, client: int, other: KeyAdvert) -> Ints:
    """Return what a client adds for a pair, shape (length,): the negative of what the other adds.

    Parameters
    ----------
    terms : Terms
    pair : KeyPair
        The client's mask keys.
    client : int
    other : KeyAdvert
    """
    label = terms.label("pair mask", *sorted((client, other.client)))  # sorted: one key for both
    mask = expand(pair.agree(other.mask_key, terms.digest, label), terms.length, terms.bits)
    return mask if client > other.client else -mask


def key_statement(terms: Terms, cipher_key: bytes, mask_key: bytes) -> bytes:
    """Return what a client signs of its public keys."""
    return terms.label("keys") + cipher_key + mask_key


def survivor_statements(
    terms: Terms, survivors: frozenset[int], adverts: Mapping[int, KeyAdvert]
) -> dict[int, bytes]:
    """Return what clients sign of the survivors, by signer.

    Besides the survivors it names public keys that are drawn afresh for each session, so that a
    signature is worth nothing in another session of the same terms, should a server start two. On
    the complete graph these are the keys of all, and who signs vouches for one list of keys and
    one of survivors. On a circle signer and verifier both know no keys but their own two clients',
    and the signer's are named.

    Parameters
    ----------
    terms : Terms
    survivors : frozenset of int
    adverts : mapping of client to KeyAdvert
        Of the signers; on the complete graph of all clients that have joined.
    """
    told = terms.label("survivors") + bits_of_numbers(survivors, terms.clients)
    fresh = {
        client: encoded(client) + advert.cipher_key + advert.mask_key
        for client, advert in sorted(adverts.items())
    }
    if terms.complete:
        return dict.fromkeys(fresh, told + sha256(b"".join(fresh.values())).digest())
    return {client: told + keys for client, keys in fresh.items()}


def check_advert(terms: Terms, advert: KeyAdvert, directory: Mapping[int, bytes]) -> None:
    """Refuse public keys that the client of that number has not signed for this session.

    Raises
    ------
    ProtocolError
    """
    statement = key_statement(terms, advert.cipher_key, advert.mask_key)
    identity = directory.get(advert.client) if 0 <= advert.client < terms.clients else None
    if identity is None or not verified(identity, advert.signature, statement):
        raise ProtocolError(f"the keys of client {advert.client} are not signed by it")
