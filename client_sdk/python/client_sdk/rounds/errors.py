"""What can go wrong for a client in a round.

::

    ClientError
    └── ProtocolError  (RuntimeError)  a message that must not be acted on: who got it refuses
"""

from client_sdk.errors import ClientError


class ProtocolError(ClientError, RuntimeError):
    """A message breaks the protocol; the client that got it leaves the session and sends no more.

    A server that gets such a message from a client goes on as if that client had failed.
    """
