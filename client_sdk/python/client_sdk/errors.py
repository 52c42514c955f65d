"""What can go wrong on the device.

::

    ClientError
    ├── ParameterError   (ValueError)    a bad value for a mechanism, grid or collection
    ├── PositionError    (ValueError)    a position is not valid (the message never repeats it)
    ├── CollectionError  (ValueError)    a document or report is malformed, altered, not private
    ├── BudgetError      (RuntimeError)  the device has spent what it may spend
    ├── AlreadyGivenError (RuntimeError) the reading has had its report
    ├── NotAskedError    (RuntimeError)  the device does not answer this window of a series
    └── LedgerError      (OSError)       the record of spending cannot be read or written
        └── LedgerUnavailableError       it cannot be used just now: no room, no permission, ...
            └── LedgerBusyError          others are using it

No message ever repeats a location: error texts end up in crash reports.
"""


class ClientError(Exception):
    """Base of every error that this package raises on purpose."""


class ParameterError(ClientError, ValueError):
    """A parameter breaks its rule; the message names field, rule and value."""


class PositionError(ClientError, ValueError):
    """A position cannot be read; the message names field and rule, never the value."""


class CollectionError(ClientError, ValueError):
    """A collection document or a report is malformed, altered or breaks its privacy claim."""


class BudgetError(ClientError, RuntimeError):
    """The report would spend more than this device may spend."""


class AlreadyGivenError(ClientError, RuntimeError):
    """The report of this event was given before, and was acknowledged or discarded since."""


class NotAskedError(ClientError, RuntimeError):
    """The device does not answer the window of the series that its clock shows."""


class LedgerError(ClientError, OSError):
    """The ledger file is missing, damaged, locked or read-only: no report is given."""


class LedgerUnavailableError(LedgerError):
    """The ledger is not damaged and cannot be used just now: the same call may go through later.

    The disk is full or read-only, permissions are missing, too many files are open.
    """


class LedgerBusyError(LedgerUnavailableError):
    """Another thread or process is using the ledger: the same call may go through later."""
