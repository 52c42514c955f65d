"""Rules for arguments, each written once."""

from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells
from ldpspatial.release.release import check_run
from ldpspatial.validate import whole_number

MAX_CLIENTS = 1 << 32
MAX_SENSITIVITY = 1 << 32
MAX_BITS = 62  # a modulus of 2^62 is the largest with which int64 holds a residue and a half


def checked_modulus(modulus: object) -> int:
    """Return a power of two from 2 to 2^62, or raise InputError.

    No other modulus will do: the low bits of a sum are those of the summands' low bits, and that
    is why the total modulo m is all that the vectors modulo m tell.
    """
    number = whole_number("modulus", modulus, 2, 1 << MAX_BITS)
    if number & (number - 1):
        raise InputError(f"modulus must be a power of two, got {number}")
    return number


def check_clients(users: object, epsilon: object, rng: object) -> None:
    """Check what a distributed release is run with; how many take part is public.

    What is refused here is refused whatever the users hold.
    """
    check_run(users, epsilon, rng)
    if isinstance(users, UserCells) and len(users) == 0:
        raise InputError("users must hold at least one user, got none")
