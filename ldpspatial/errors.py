"""What can go wrong on the server and at the analyst's desk.

::

    LdpSpatialError
    ├── InputError   (ValueError)    an argument or a file breaks a rule: field, rule and value
    └── SolverError  (RuntimeError)  a numerical method did not reach its answer
    InputWarning     (UserWarning)   an argument was taken, and the data speak against it

What the client package refuses among the arguments of a function here is an InputError too; what
its own objects raise (client_sdk.ClientError) stays theirs.
"""

from collections.abc import Callable, Mapping


class LdpSpatialError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(LdpSpatialError, ValueError):
    """An argument or a file breaks a rule; the message names field, rule and value.

    Parameters
    ----------
    message : str
        Where another argument would help, ``{remedy}`` stands for it.
    remedy : (str, object), optional
        That argument and its value: ``method='posterior'`` in Python, and an option for who calls
        the command line.
    """

    def __init__(self, message: str, remedy: tuple[str, object] | None = None):
        self._message = message
        self._remedy = remedy
        if remedy is not None:
            message = message.replace("{remedy}", f"{remedy[0]}={remedy[1]!r}")
        super().__init__(message)

    def with_options(self, options: Mapping[str, str]) -> str:
        """Return the message for the command line, whose options stand for these arguments."""
        if self._remedy is None:
            return str(self)
        argument, value = self._remedy
        if argument not in options:  # in brackets it is an aside, which cannot be typed there
            return str(InputError(self._message.replace(" ({remedy})", ""), self._remedy))
        wanted = options[argument] if value is True else f"{options[argument]} {value}"
        return self._message.replace("{remedy}", wanted)

    def retold(self, words: Callable[[str], str]) -> "InputError":
        """Return this error with its message in other words, and with its remedy."""
        return InputError(words(self._message), self._remedy)


class InputWarning(UserWarning):
    """An argument was taken, and the data speak against it."""


class SolverError(LdpSpatialError, RuntimeError):
    """A numerical method stopped before its answer was certain."""
