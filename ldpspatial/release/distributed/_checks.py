"""Rules for arguments, each written once."""

from client_sdk.rounds import checked_modulus as checked_by_the_client
from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells
from ldpspatial.release.release import check_run
from ldpspatial.validate import input_errors

MAX_BITS = 62  # a modulus of 2^62 is the largest with which int64 holds a residue and a half
MAX_CLIENTS = 1 << 32
MAX_SENSITIVITY = 1 << 32


@input_errors()
def checked_modulus(modulus: object) -> int:
    """Return a power of two from 2 to 2^62, or raise InputError."""
    return checked_by_the_client(modulus)


def check_clients(users: object, epsilon: object, rng: object) -> None:
    """Check what a distributed release is run with; how many take part is public.

    What is refused here is refused whatever the users hold.
    """
    check_run(users, epsilon, rng)
    if isinstance(users, UserCells) and len(users) == 0:
        raise InputError("users must hold at least one user, got none")
