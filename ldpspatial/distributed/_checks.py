"""Rules for arguments, each written once."""

from client_sdk import ParameterError
from client_sdk.validate import whole_number
from ldpspatial.errors import InputError

MAX_CLIENTS = 1 << 32
MAX_SENSITIVITY = 1 << 32
MAX_BITS = 62  # a modulus of 2^62 is the largest with which int64 holds a residue and a half


def checked_whole(field: str, value: object, low: int, high: int) -> int:
    """Return a whole number in [low, high] as an int, or raise InputError."""
    try:
        return whole_number(field, value, low, high)
    except ParameterError as error:
        raise InputError(str(error)) from None


def checked_modulus(modulus: object) -> int:
    """Return a power of two from 2 to 2^62, or raise InputError.

    No other modulus will do: the low bits of a sum are those of the summands' low bits, and that
    is why the total modulo m is all that the vectors modulo m tell.
    """
    number = checked_whole("modulus", modulus, 2, 1 << MAX_BITS)
    if number & (number - 1):
        raise InputError(f"modulus must be a power of two, got {number}")
    return number
