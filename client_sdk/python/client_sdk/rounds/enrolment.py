"""Enrolment: certificates of identities, and how a device asks for its seat in a round.

A *directory* enrols each person's identity once for a campaign: it gives it a number and signs
both. Whoever runs it decides who may enrol, and clients trust it for that; the server of the
rounds does not have its key. So clients of a session get each other's identities from the server
and check the directory's signature: no identity is the server's own invention, and nobody has two
seats.
"""

from dataclasses import dataclass

from client_sdk.errors import ParameterError
from client_sdk.rounds.errors import ProtocolError
from client_sdk.rounds.primitives import (
    IDENTITY_BYTES,
    KEY_BYTES,
    SIGNATURE_BYTES,
    Identity,
    SigningKey,
    agreement_half,
    can_sign,
    signing_half,
    usable,
    verified,
)
from client_sdk.rounds.terms import NUMBER_BYTES

CERTIFICATE_BYTES = NUMBER_BYTES + IDENTITY_BYTES + SIGNATURE_BYTES
REQUEST_BYTES = CERTIFICATE_BYTES + SIGNATURE_BYTES
_CERTIFICATE = b"ldpspatial certificate 2"
_SEAT = b"ldpspatial seat 2"


@dataclass(frozen=True)
class Certificate:
    """What a directory says: this identity is enrolled in the campaign, under this number.

    Attributes
    ----------
    number : int in [0, 2^32)
    identity : bytes, 64
        An Ed25519 public key to verify with, and an X25519 public key to agree with.
    signature : bytes, 64
        Of the directory.
    """

    number: int
    identity: bytes
    signature: bytes

    @classmethod
    def issue(
        cls, directory: SigningKey, campaign: str, number: int, identity: bytes
    ) -> "Certificate":
        """Return a certificate, signed with the key of the directory."""
        signature = directory.sign(_statement(campaign, number, identity))
        return cls(number, identity, signature)

    def to_bytes(self) -> bytes:
        """Return 132 bytes: number, identity, signature."""
        return self.number.to_bytes(NUMBER_BYTES, "big") + self.identity + self.signature

    @classmethod
    def from_bytes(cls, data: bytes, directory: bytes, campaign: str) -> "Certificate":
        """Read a certificate and check who signed it.

        Parameters
        ----------
        data : bytes
            Anything at all.
        directory : bytes, 32
            Public key of the directory.
        campaign : str
            Digest of the campaign.

        Raises
        ------
        ProtocolError
            It is malformed, or the directory has not signed it for this campaign.
        """
        if not isinstance(data, bytes) or len(data) != CERTIFICATE_BYTES:
            raise ProtocolError(f"a certificate must be {CERTIFICATE_BYTES} bytes")
        number = int.from_bytes(data[:NUMBER_BYTES], "big")
        identity = data[NUMBER_BYTES : NUMBER_BYTES + IDENTITY_BYTES]
        signature = data[NUMBER_BYTES + IDENTITY_BYTES :]
        if not verified(directory, signature, _statement(campaign, number, identity)):
            raise ProtocolError("a certificate is not signed by the directory for this campaign")
        return cls(number, identity, signature)


def seat_request(
    identity: SigningKey | Identity, certificate: bytes, campaign: str, number: int
) -> bytes:
    """Return what a device sends to get a seat in round ``number``: nobody else can ask for it."""
    return certificate + identity.sign(_asking(campaign, number, certificate))


def check_seat_request(data: bytes, directory: bytes, campaign: str, number: int) -> Certificate:
    """Return whose request it is.

    Raises
    ------
    ProtocolError
        It is malformed, not of an enrolled identity, or not signed by it for this round.
    """
    if not isinstance(data, bytes) or len(data) != REQUEST_BYTES:
        raise ProtocolError(f"a request for a seat must be {REQUEST_BYTES} bytes")
    certificate, signature = data[:CERTIFICATE_BYTES], data[CERTIFICATE_BYTES:]
    found = Certificate.from_bytes(certificate, directory, campaign)
    if not verified(
        signing_half(found.identity), signature, _asking(campaign, number, certificate)
    ):
        raise ProtocolError("a request for a seat is not signed by the identity that it names")
    return found


def check_identity(identity: object) -> bytes:
    """Return 64 bytes that can be an identity, or refuse them.

    Raises
    ------
    ParameterError
        They are of another size, or one of the two is a key that anybody has, such as zeros.
    """
    if not isinstance(identity, bytes) or len(identity) != IDENTITY_BYTES:
        raise ParameterError(f"identity must be {IDENTITY_BYTES} bytes")
    if not can_sign(signing_half(identity)) or not usable(agreement_half(identity)):
        raise ParameterError(
            "identity must be public keys of Ed25519 and X25519, neither zeros nor another of the "
            "few of small order"
        )
    return identity


def check_directory(directory: object) -> bytes:
    """Return 32 bytes that can be the public key of a directory, or refuse them.

    Raises
    ------
    ParameterError
        As for :func:`check_identity`: whoever has such a key, so that it says nothing who signed.
    """
    if not isinstance(directory, bytes) or len(directory) != KEY_BYTES or not can_sign(directory):
        raise ParameterError(
            f"directory must be a public key of Ed25519, {KEY_BYTES} bytes, neither zeros nor "
            "another of the few of small order"
        )
    return directory


def _statement(campaign: str, number: int, identity: bytes) -> bytes:
    return _CERTIFICATE + bytes.fromhex(campaign) + number.to_bytes(NUMBER_BYTES, "big") + identity


def _asking(campaign: str, number: int, certificate: bytes) -> bytes:
    return _SEAT + bytes.fromhex(campaign) + number.to_bytes(NUMBER_BYTES, "big") + certificate
