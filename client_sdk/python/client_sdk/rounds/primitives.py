"""The cryptography that the protocol stands on, from the library of that name; nothing of our own.

Key agreement: X25519 (RFC 7748). Key derivation: HKDF-SHA256 (RFC 5869). Mask stream: ChaCha20
(RFC 8439). Encryption of shares: ChaCha20-Poly1305 (RFC 8439). Signatures: Ed25519 (RFC 8032).
"""

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from client_sdk.entropy import Entropy, random_bytes
from client_sdk.rounds.errors import ProtocolError

KEY_BYTES = 32
SIGNATURE_BYTES = 64
SEAL_BYTES = 16  # by which what is sealed is longer
FIELD = (1 << 255) - 19  # an X25519 public key is a number below it
# Every key here encrypts one message or expands one mask, ever: a nonce has nothing to tell apart.
STREAM_START = bytes(16)
SEAL_NONCE = bytes(12)


class KeyPair:
    """An X25519 key pair.

    Attributes
    ----------
    private, public : bytes, 32 each
    """

    def __init__(self, private: bytes) -> None:
        self._key = X25519PrivateKey.from_private_bytes(private)
        self.private = private
        self.public = self._key.public_key().public_bytes_raw()

    def agree(self, other: bytes, salt: bytes, label: bytes) -> bytes:
        """Return the 32-byte key shared with the holder of another public key.

        Both public keys enter the derivation, so that the result stands for this very pair.

        Raises
        ------
        ProtocolError
            The public key is one of the few with which every private key agrees on zero.
        """
        return self.agreed(other, salt, label)[0]

    def agreed(self, other: bytes, salt: bytes, *labels: bytes) -> list[bytes]:
        """Return a key as :meth:`agree` does for each label, at the price of one agreement."""
        try:
            shared = self._key.exchange(X25519PublicKey.from_public_bytes(other))
        except ValueError:
            raise ProtocolError("a public key is not a valid X25519 key") from None
        first, second = sorted((self.public, other))
        return [derive(shared, salt, label + first + second) for label in labels]


def usable(public: bytes) -> bool:
    """Tell whether 32 bytes are a public key that others can agree on a key with.

    A number below the field's size, and none of the few with which every private key agrees on
    zero. One private key stands for all: each is a multiple of 8, as are the orders of those.
    """
    if int.from_bytes(public, "little") >= FIELD:
        return False
    try:
        KeyPair(bytes(KEY_BYTES)).agree(public, b"", b"")
    except ProtocolError:
        return False
    return True


def derive(secret: bytes, salt: bytes, label: bytes) -> bytes:
    """Return 32 bytes derived from a secret by HKDF-SHA256; other labels, independent bytes."""
    return HKDF(SHA256(), KEY_BYTES, salt, label).derive(secret)


def keystream(key: bytes, size: int) -> bytes:
    """Return the first bytes of the ChaCha20 stream of a key that is used for nothing else."""
    cipher = Cipher(algorithms.ChaCha20(key, STREAM_START), mode=None)
    return cipher.encryptor().update(bytes(size))


def seal(key: bytes, plaintext: bytes, associated: bytes) -> bytes:
    """Encrypt and authenticate with a key that is used for this one message."""
    return ChaCha20Poly1305(key).encrypt(SEAL_NONCE, plaintext, associated)


def unseal(key: bytes, ciphertext: bytes, associated: bytes) -> bytes:
    """Decrypt what :func:`seal` made.

    Raises
    ------
    ProtocolError
        The ciphertext was not made with this key for these associated data.
    """
    try:
        return ChaCha20Poly1305(key).decrypt(SEAL_NONCE, ciphertext, associated)
    except InvalidTag:
        raise ProtocolError("encrypted shares were altered, or made for another use") from None


class SigningKey:
    """An Ed25519 signing key: a client's identity, enrolled before any session.

    Attributes
    ----------
    public : bytes, 32
        What others verify with.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(random_bytes(entropy, KEY_BYTES))
        self.public = self._key.public_key().public_bytes_raw()

    def sign(self, statement: bytes) -> bytes:
        """Return the 64-byte signature of a statement."""
        return self._key.sign(statement)


def verified(public: bytes, signature: bytes, statement: bytes) -> bool:
    """Tell whether a signature of a statement was made with the key of a public key."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, statement)
    except InvalidSignature:
        return False
    return True
