"""What servers of rounds share with devices, under names that stay.

An app needs none of this. A server builds on it, so that keys, masks, signatures and messages have
one definition on both sides:

- the session: ``Client``, ``Step``, ``Terms``, ``NUMBER_BYTES``, ``SESSION_BYTES``,
  ``ProtocolError``;
- messages: ``Message``, ``KeyAdvert``, ``KeyList``, ``SharesOut``, ``SharesIn``, ``MaskedVector``,
  ``Survivors``, ``Confirmation``, ``Confirmations``, ``Revealed``;
- keys: ``IDENTITY_BYTES``, ``KEY_BYTES``, ``Identity``, ``KeyPair``, ``Seats``, ``SigningKey``,
  ``check_advert``, ``code``, ``key_statement``, ``mask_pair``, ``own_mask``, ``pair_keys``,
  ``pair_mask``, ``seal``, ``seed_check``, ``survivor_statement``, ``usable``;
- sharing: ``MAX_CLIENTS``, ``SHARE_BYTES``, ``Neighbours``, ``circle``, ``combine``;
- enrolment: ``Certificate``, ``check_directory``, ``check_identity``, ``check_seat_request``;
- arrays: ``Ints``.

The modules that these come from may change; these names do not.
"""

from client_sdk.rounds.client import Client
from client_sdk.rounds.enrolment import (
    Certificate,
    check_directory,
    check_identity,
    check_seat_request,
)
from client_sdk.rounds.errors import ProtocolError
from client_sdk.rounds.graph import MAX_CLIENTS, Neighbours, circle
from client_sdk.rounds.keys import (
    Seats,
    check_advert,
    key_statement,
    mask_pair,
    own_mask,
    pair_keys,
    pair_mask,
    seed_check,
    survivor_statement,
)
from client_sdk.rounds.masks import Ints
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
    KeyPair,
    SigningKey,
    code,
    seal,
    usable,
)
from client_sdk.rounds.shamir import SHARE_BYTES, combine
from client_sdk.rounds.terms import NUMBER_BYTES, SESSION_BYTES, Step, Terms
from client_sdk.rounds.wire import Message

__all__ = [
    "IDENTITY_BYTES",
    "KEY_BYTES",
    "MAX_CLIENTS",
    "NUMBER_BYTES",
    "SESSION_BYTES",
    "SHARE_BYTES",
    "Certificate",
    "Client",
    "Confirmation",
    "Confirmations",
    "Identity",
    "Ints",
    "KeyAdvert",
    "KeyList",
    "KeyPair",
    "MaskedVector",
    "Message",
    "Neighbours",
    "ProtocolError",
    "Revealed",
    "Seats",
    "SharesIn",
    "SharesOut",
    "SigningKey",
    "Step",
    "Survivors",
    "Terms",
    "check_advert",
    "check_directory",
    "check_identity",
    "check_seat_request",
    "circle",
    "code",
    "combine",
    "key_statement",
    "mask_pair",
    "own_mask",
    "pair_keys",
    "pair_mask",
    "seal",
    "seed_check",
    "survivor_statement",
    "usable",
]
