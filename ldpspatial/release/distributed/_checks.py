"""Rules for arguments, each written once."""

from fractions import Fraction

from client_sdk.rounds import checked_modulus as checked_by_the_client
from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells
from ldpspatial.release.release import check_run
from ldpspatial.validate import MICRO, check_epsilon, input_errors

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


def micro_of(epsilon: float) -> int:
    """Return epsilon in whole millionths, rounded down.

    Raises
    ------
    InputError
        Epsilon is not a positive number, or less than a millionth.
    """
    check_epsilon(epsilon)
    # The float 0.3 stands for 3/10 but holds less: read as held, a millionth would be lost.
    micro = int(Fraction(str(float(epsilon))) * MICRO)
    if micro < 1:
        raise InputError(f"epsilon must be at least a millionth, got {epsilon!r}")
    return micro
