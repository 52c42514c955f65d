"""The name under which a ledger holds a reading that was answered (docs/protocol.md, section 8)."""

import hashlib
import hmac

from client_sdk.errors import ParameterError
from client_sdk.validate import unicode_text

KEY_BYTES = 32


def event_name(key: bytes, digest: str, event: str) -> bytes:
    """Return the 32 bytes that stand for an event of one collection or series.

    HMAC-SHA256 over the length of the digest, a colon, the digest and the event. The length keeps
    apart what would be one text when written together; the key, which a ledger makes for itself,
    keeps a list of likely events from being hashed once for all devices.

    Parameters
    ----------
    key : bytes
        32 random bytes of this ledger.
    digest : str
        Digest of the collection or series.
    event : str
        The app's name for one reading of the position; not normalised.

    Raises
    ------
    ParameterError
        The key has another length, or a text is empty or holds half of a surrogate pair.

    Examples
    --------
    >>> event_name(bytes(32), "ab", "c") == event_name(bytes(32), "a", "bc")
    False
    """
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise ParameterError(f"key must be {KEY_BYTES} bytes")  # it is a secret: no value
    digest = unicode_text("digest", digest)
    event = unicode_text("event", event)
    return hmac.digest(key, f"{len(digest)}:{digest}{event}".encode(), hashlib.sha256)
