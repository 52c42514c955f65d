"""Slow, obvious twin of Shamir's secret sharing: powers, a linear system, all polynomials."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product


def split(secret: int, others: Sequence[int], holders: Sequence[int], prime: int) -> list[int]:
    """Evaluate secret + a x^(t-1) + b x^(t-2) + ... where a, b, ... are ``others``."""
    degrees = range(len(others), 0, -1)
    return [
        (secret + sum(a * x**d for a, d in zip(others, degrees, strict=True))) % prime
        for x in holders
    ]


def combine(shares: Mapping[int, int], prime: int) -> int:
    """Solve for all coefficients of the polynomial through the shares; return the constant one."""
    size = len(shares)
    rows = [[x**d % prime for d in range(size)] + [y] for x, y in shares.items()]
    for column in range(size):
        pivot = next(r for r in range(column, size) if rows[r][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        inverse = _inverse(rows[column][column], prime)
        rows[column] = [value * inverse % prime for value in rows[column]]
        for r in range(size):
            if r != column:
                factor = rows[r][column]
                rows[r] = [
                    (a - factor * b) % prime for a, b in zip(rows[r], rows[column], strict=True)
                ]
    secret: int = rows[0][-1]
    return secret


def views(secret: int, needed: int, holders: Sequence[int], prime: int) -> Counter[tuple[int, ...]]:
    """Count what the holders see, over all polynomials of degree below ``needed``."""
    polynomials = product(range(prime), repeat=needed - 1)
    return Counter(tuple(split(secret, others, holders, prime)) for others in polynomials)


def _inverse(value: int, prime: int) -> int:
    if prime < 1000:  # search: no theorem needed
        return next(x for x in range(prime) if x * value % prime == 1)
    return pow(value, prime - 2, prime)  # Fermat, where the code uses Euclid
