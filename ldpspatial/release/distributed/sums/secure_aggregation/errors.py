"""What can go wrong for the server in a session of secure aggregation.

::

    LdpSpatialError
    └── AbortedError   (RuntimeError)  the server ends a session without a sum

A message that must not be acted on is a `client_sdk.rounds.ProtocolError`, on both sides.
"""

from ldpspatial.errors import LdpSpatialError


class AbortedError(LdpSpatialError, RuntimeError):
    """Too few clients are left, or their shares do not fit: there is no sum, not even a part."""
