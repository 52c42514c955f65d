"""For tests only: entropy that repeats itself.

Nothing in the package imports this module but ``client_sdk.conformance``, which is for tests
itself, and a Randomizer cannot be given another source than the operating system. Use
:class:`FixedEntropy` with :class:`client_sdk.sampling.Sampler` to check another implementation
against the vectors.
"""

import hashlib


class FixedEntropy:
    """Hands out the given bytes in order, and fails when they are used up."""

    def __init__(self, data: bytes):
        self._data = data
        self._used = 0

    def __call__(self, n: int) -> bytes:
        """Return the next n bytes."""
        chunk = self._data[self._used : self._used + n]
        if len(chunk) < n:
            raise EOFError(f"the fixed entropy holds {len(self._data)} bytes, more were asked for")
        self._used += n
        return chunk

    @property
    def used(self) -> int:
        """Number of bytes handed out."""
        return self._used


class StreamEntropy:
    """An endless reproducible stream: SHA-256 in counter mode over a label."""

    def __init__(self, label: str):
        self._label = label.encode()
        self._counter = 0
        self._buffer = b""

    def __call__(self, n: int) -> bytes:
        """Return the next n bytes."""
        blocks = [self._buffer]
        have = len(self._buffer)
        while have < n:
            block = hashlib.sha256(self._label + self._counter.to_bytes(8, "big")).digest()
            self._counter += 1
            blocks.append(block)
            have += len(block)
        data = b"".join(blocks)
        self._buffer = data[n:]
        return data[:n]
