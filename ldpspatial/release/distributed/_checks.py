"""Rules for arguments, each written once."""

from client_sdk.rounds import checked_modulus as checked_by_the_client
from ldpspatial.validate import input_errors

MAX_BITS = 62  # a modulus of 2^62 is the largest with which int64 holds a residue and a half
MAX_CLIENTS = 1 << 32
MAX_SENSITIVITY = 1 << 32


@input_errors()
def checked_modulus(modulus: object) -> int:
    """Return a power of two from 2 to 2^62, or raise InputError."""
    return checked_by_the_client(modulus)
