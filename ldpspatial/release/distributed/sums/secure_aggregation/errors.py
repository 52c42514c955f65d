"""What can go wrong in a session of secure aggregation.

::

    LdpSpatialError
    ├── ProtocolError  (RuntimeError)  a message that must not be acted on: who got it refuses
    └── AbortedError   (RuntimeError)  the server ends a session without a sum
"""

from ldpspatial.errors import LdpSpatialError


class ProtocolError(LdpSpatialError, RuntimeError):
    """A message breaks the protocol; the client that got it leaves the session and sends no more.

    A server that gets such a message from a client goes on as if that client had failed.
    """


class AbortedError(LdpSpatialError, RuntimeError):
    """Too few clients are left, or their shares do not fit: there is no sum, not even a part."""
