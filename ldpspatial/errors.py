"""What can go wrong on the server and at the analyst's desk.

::

    LdpSpatialError
    ├── InputError   (ValueError)    an argument or a file breaks a rule: field, rule and value
    └── SolverError  (RuntimeError)  a numerical method did not reach its answer

Errors of the client package (client_sdk.ClientError) pass through unchanged.
"""


class LdpSpatialError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(LdpSpatialError, ValueError):
    """An argument or a file breaks a rule; the message names field, rule and value."""


class SolverError(LdpSpatialError, RuntimeError):
    """A numerical method stopped before its answer was certain."""
