"""Shamir's secret sharing over a prime field (Shamir, "How to share a secret", CACM 1979).

A secret is the value at 0 of a polynomial of degree below t with otherwise uniform coefficients;
holder x > 0 gets its value at x. Any t values give the secret back; any t - 1 are uniform and
independent of it, exactly. The arithmetic is on Python's whole numbers and takes no care to run in
constant time.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from client_sdk.entropy import Entropy, random_bytes

PRIME = (1 << 128) - 159  # just below a power of two to draw from
SHARE_BYTES = 16  # of a share, and of a secret: a number of the field, most significant first
UNREDUCED = 16  # steps of a polynomial between two reductions


def draw(entropy: Entropy) -> bytes:
    """Return a secret: a uniform number of the field, which is 128 bits but for 2^-120."""
    return _uniform(PRIME, entropy).to_bytes(SHARE_BYTES, "big")


def split(
    secret: int, needed: int, holders: Sequence[int], entropy: Entropy, prime: int = PRIME
) -> list[int]:
    """Return one share of a secret for each holder.

    Parameters
    ----------
    secret : int in [0, prime)
    needed : int >= 1
        t, how many shares give the secret back.
    holders : sequence of int in [1, prime), all different
        Where the polynomial is evaluated.
    entropy : callable
        Takes n, returns n random bytes.
    prime : int
        Size of the field.

    Examples
    --------
    >>> import os
    >>> shares = split(1234, 2, [1, 2, 3], os.urandom)
    >>> combine({1: shares[0], 3: shares[2]})
    1234
    """
    # The leading coefficient may be 0: were it never, t - 1 shares would rule out a secret.
    coefficients = [_uniform(prime, entropy) for _ in range(needed - 1)]
    # Horner, reduced now and then: numbers stay short. At x = 0, where no holder is, the value is
    # the secret itself.
    parts = [coefficients[k : k + UNREDUCED] for k in range(0, len(coefficients), UNREDUCED)]
    shares = []
    for x in holders:
        value = 0
        for part in parts:
            for coefficient in part:
                value = (value + coefficient) * x
            value %= prime
        shares.append((value + secret) % prime)
    return shares


def combine(shares: Mapping[int, int], prime: int = PRIME) -> int:
    """Return the secret, from as many shares as are needed for it, by holder.

    With fewer, or a wrong one, the result is another number of the field.
    """
    weights = _weights_at_zero(tuple(shares), prime)
    values = shares.values()
    return sum(weight * y for weight, y in zip(weights, values, strict=True)) % prime


@lru_cache(maxsize=16)  # in a complete graph the same holders answer for every secret
def _weights_at_zero(holders: tuple[int, ...], prime: int) -> list[int]:
    """Return the Lagrange weights with which values at ``holders`` add up to the value at 0."""
    weights = []
    for x in holders:
        above, below = 1, 1
        for other in holders:
            # The Lagrange polynomial of x at 0: the product of (0 - other) / (x - other).
            if other != x:
                above = above * other % prime
                below = below * (other - x) % prime
        weights.append(above * pow(below, -1, prime) % prime)
    return weights


def _uniform(bound: int, entropy: Entropy) -> int:
    """Return a uniform number in [0, bound): of as many bits as it takes, by rejection."""
    bits = (bound - 1).bit_length()
    size = -(-bits // 8)
    mask = (1 << bits) - 1
    while True:
        value = int.from_bytes(random_bytes(entropy, size), "big") & mask
        if value < bound:
            return value
