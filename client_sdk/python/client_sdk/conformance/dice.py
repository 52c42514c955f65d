"""Choices that a seed decides, the same in every version of Python."""

from collections.abc import Sequence
from typing import TypeVar

from client_sdk.testing import StreamEntropy

T = TypeVar("T")


class Dice:
    """Choices from SHA-256 over a seed; their bias, below 2^-10, matters to no test."""

    def __init__(self, seed: str):
        self._stream = StreamEntropy(seed)

    def below(self, n: int) -> int:
        """Return a whole number in [0, n), n <= 2^62."""
        return int.from_bytes(self._stream(9), "big") % n

    def between(self, low: int, high: int) -> int:
        """Return a whole number in [low, high]."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """Return True in this many of a hundred cases."""
        return self.below(100) < percent

    def pick(self, things: Sequence[T]) -> T:
        """Return one of some things."""
        return things[self.below(len(things))]

    def shuffled(self, things: Sequence[T]) -> list[T]:
        """Return them in another order."""
        left = list(things)
        return [left.pop(self.below(len(left))) for _ in things]

    def raw(self, n: int) -> bytes:
        """Return n bytes."""
        return self._stream(n)
