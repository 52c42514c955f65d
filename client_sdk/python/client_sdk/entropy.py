"""The only source of randomness: the operating system.

There is no seed and no way to pass one to a Randomizer. Tests hand a deterministic
:data:`Entropy` to the inner functions of :mod:`client_sdk.sampling` (see client_sdk.testing).
"""

import os
from collections.abc import Callable

from client_sdk.errors import ParameterError

Entropy = Callable[[int], bytes]  # n -> n fresh random bytes

DRAW_BYTES = 7  # a draw is 56 bits, of which the lowest k decide


def system(n: int) -> bytes:
    """Return n bytes from the operating system's cryptographic generator."""
    return os.urandom(n)


def random_bytes(entropy: Entropy, size: int) -> bytes:
    """Return so many bytes of an entropy function.

    Fewer would end in keys or noise that are not what was promised, or the same every time. The
    message repeats none of them: they are secret.
    """
    given = entropy(size)
    if not isinstance(given, bytes | bytearray) or len(given) != size:
        got = f"{len(given)}" if isinstance(given, bytes | bytearray) else type(given).__name__
        raise ParameterError(
            f"entropy must return as many bytes as it is asked for, {size}, got {got}"
        )
    return bytes(given)


def below(bound: int, entropy: Entropy) -> int:
    """Return a uniform integer in [0, bound), bound < 2**53, by rejection.

    Seven bytes are read big-endian and cut to the bit length of bound - 1; a value that is
    still too large is thrown away and seven more are read. No modulo, so no bias.
    """
    mask = (1 << (bound - 1).bit_length()) - 1
    while True:
        value = int.from_bytes(entropy(DRAW_BYTES), "big") & mask
        if value < bound:
            return value
