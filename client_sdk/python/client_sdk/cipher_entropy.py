"""Random bytes for many draws: AES-256 in counter mode, under keys of the operating system.

Simulations ask for gigabytes, which the operating system's own generator is slow to give. That
generator is a stream cipher under a secret key as well. Here it gives the keys alone, a fresh one
for every mebibyte, and each is used at once and forgotten: no state is left that two threads could
share, that a forked child could inherit, or that anyone could seed. Devices do not use this; it
needs the package cryptography (``ldpspatial-client[fast]``).
"""

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from client_sdk import entropy

__all__ = ["system_keyed"]

KEY_BYTES = 32
FIRST_BLOCK = bytes(16)  # a key makes one stream, so all may begin at the same counter
PIECE = (
    1 << 20
)  # bytes a key: at most 2^16 blocks of AES; docs/privacy.md (section 2.7) counts them
ZEROS = bytes(PIECE)  # enciphered, they are the stream itself


def system_keyed(n: int) -> bytes:
    """Return n bytes of AES-256 in counter mode, each mebibyte under a fresh key.

    Raises
    ------
    OSError, NotImplementedError
        The operating system gives no key.
    """
    if n <= PIECE:
        return _stream(n)
    return b"".join(_stream(min(PIECE, n - begun)) for begun in range(0, n, PIECE))


def _stream(n: int) -> bytes:
    key = entropy.system(KEY_BYTES)
    cipher = Cipher(algorithms.AES(key), modes.CTR(FIRST_BLOCK))
    return cipher.encryptor().update(memoryview(ZEROS)[:n])
