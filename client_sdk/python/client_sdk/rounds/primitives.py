"""The cryptography that the protocol stands on, from the library of that name; nothing of our own.

Key agreement: X25519 (RFC 7748). Key derivation: HKDF-SHA256 (RFC 5869). Mask stream: ChaCha20
(RFC 8439). Encryption of shares: ChaCha20-Poly1305 (RFC 8439). Signatures: Ed25519 (RFC 8032).
Authentication codes: HMAC-SHA256 (RFC 2104).
"""

import hmac

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
CODE_BYTES = 16  # of an authentication code
IDENTITY_BYTES = 2 * KEY_BYTES
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

    def agree(self, other: bytes, salt: bytes, label: bytes, size: int = KEY_BYTES) -> bytes:
        """Return key bytes shared with the holder of another public key, ``size`` of them.

        Both public keys enter the derivation, so that the result stands for this very pair.

        Raises
        ------
        ProtocolError
            The public key is one of the few with which every private key agrees on zero.
        """
        try:
            shared = self._key.exchange(X25519PublicKey.from_public_bytes(other))
        except ValueError:
            raise ProtocolError("a public key is not a valid X25519 key") from None
        first, second = sorted((self.public, other))
        return derive(shared, salt, label + first + second, size)


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


def derive(secret: bytes, salt: bytes, label: bytes, size: int = KEY_BYTES) -> bytes:
    """Return bytes derived from a secret by HKDF-SHA256; other labels, independent bytes."""
    return HKDF(SHA256(), size, salt, label).derive(secret)


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


def code(key: bytes, statement: bytes) -> bytes:
    """Return the 16-byte authentication code of a statement: HMAC-SHA256, cut."""
    return hmac.digest(key, statement, "sha256")[:CODE_BYTES]


def is_code(key: bytes, found: bytes, statement: bytes) -> bool:
    """Tell whether a code is that of a statement, in a time that does not depend on how near."""
    return hmac.compare_digest(code(key, statement), found)


class SigningKey:
    """An Ed25519 signing key: a directory's, or the half of an identity that signs.

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


def can_sign(public: bytes) -> bool:
    """Tell whether 32 bytes may be an Ed25519 public key that one holder alone signs for.

    A number below the field's size, and none of the points of small order, for which anybody makes
    signatures: those with y = 0, 1 and -1, and with the two y of order 8.
    """
    y = int.from_bytes(public, "little") & ((1 << 255) - 1)  # the highest bit is the sign of x
    return y < FIELD and y not in _SMALL_ORDER


_Y_OF_ORDER_8 = int("7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7", 16)
_SMALL_ORDER = frozenset({0, 1, FIELD - 1, _Y_OF_ORDER_8, FIELD - _Y_OF_ORDER_8})


class Identity:
    """A client's long-term keys, enrolled before any session: one to sign, one to agree with.

    Parameters
    ----------
    signing, agreement : bytes, 32 each
        Private keys, of Ed25519 and X25519.

    Attributes
    ----------
    public : bytes, 64
        What is enrolled: the public key of its signatures, then that of its agreements.
    """

    def __init__(self, signing: bytes, agreement: bytes) -> None:
        self._signing = SigningKey(lambda _: signing)
        self.agreement = KeyPair(agreement)
        self.public = self._signing.public + self.agreement.public

    @classmethod
    def draw(cls, entropy: Entropy) -> "Identity":
        """Return a new one."""
        return cls(random_bytes(entropy, KEY_BYTES), random_bytes(entropy, KEY_BYTES))

    def sign(self, statement: bytes) -> bytes:
        """Return the 64-byte signature of a statement."""
        return self._signing.sign(statement)


def signing_half(identity: bytes) -> bytes:
    """Return the public key that an identity's signatures are verified with."""
    return identity[:KEY_BYTES]


def agreement_half(identity: bytes) -> bytes:
    """Return the public key that others agree on keys with."""
    return identity[KEY_BYTES:]
