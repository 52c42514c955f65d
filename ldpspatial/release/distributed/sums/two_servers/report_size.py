"""How large a report to two servers is, by the formulas of Prio3 and DAP.

Prio3 (draft-irtf-cfrg-vdaf-20): a report is a vector of field elements of 16 bytes and a proof. The
proof of a vector of n elements in chunks of c has ceil(n / c) calls of a gadget with 2 c wires and
degree 2: 2 c elements, and 2 (p - 1) + 1 more, p the least power of two above the number of calls
(section 7.3). The leader's share is written out, the helper's is a seed; both hold 32 bytes more,
the blind of the joint randomness, of which the public share has 32 bytes a server.

DAP (draft-ietf-ppm-dap, upload request): each share is sealed to its server by HPKE with X25519 and
an AEAD with a tag of 16 bytes, without extensions.
"""

from dataclasses import dataclass

from ldpspatial.release.distributed.sums.two_servers.aggregator import ELEMENT_BYTES
from ldpspatial.validate import whole_number

MAX_LENGTH = 1 << 32  # lengths are 32 bits wide in a DAP task
SEED_BYTES = 32
# Id 16, time 8, two lengths 2 + 4; for each server configuration 1, key 2 + 32, length 4, tag 16,
# and inside the seal two lengths more, 2 + 4.
ENVELOPE_BYTES = 30
SEAL_BYTES = 61


@dataclass(frozen=True)
class ReportSize:
    """Sizes of one report to two servers.

    Attributes
    ----------
    elements : int
        Field elements of the encoded vector.
    chunk_length : int
    proof_elements : int
    public, leader, helper : int
        Bytes of the public share and of both input shares, before they are sealed.
    upload : int
        Bytes that a client sends: all of these, sealed.
    verifier : int
        Bytes that each server tells the other of its share when they check the report.
    """

    elements: int
    chunk_length: int
    proof_elements: int
    public: int
    leader: int
    helper: int
    upload: int
    verifier: int


def multihot_report(length: int, most: int = 1, chunk_length: int | None = None) -> ReportSize:
    """Return the sizes for Prio3MultihotCountVec: ones in at most ``most`` of ``length`` places.

    Parameters
    ----------
    length : int in [1, 2^32]
    most : int in [1, length]
        The largest weight, which takes as many elements more as it has bits.
    chunk_length : int, optional
        With which the proof is shortest where it is not given.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> size = multihot_report(4096)
    >>> size.chunk_length, size.proof_elements, size.leader, size.helper, size.upload
    (66, 259, 69728, 64, 70008)
    """
    places = whole_number("length", length, 1, MAX_LENGTH)
    weight = whole_number("most", most, 1, places)
    return _size(places + weight.bit_length(), chunk_length)


def histogram_report(length: int, chunk_length: int | None = None) -> ReportSize:
    """Return the sizes for Prio3Histogram: a one in just one of ``length`` places.

    Parameters
    ----------
    length : int in [1, 2^32]
        The place for "none of these" included, where there is one.
    chunk_length : int, optional

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> histogram_report(100, 10).leader  # a test vector of the draft
    2448
    """
    return _size(whole_number("length", length, 1, MAX_LENGTH), chunk_length)


def _size(elements: int, chunk_length: int | None) -> ReportSize:
    if chunk_length is None:
        chunk = _best_chunk(elements)
    else:
        chunk = whole_number("chunk_length", chunk_length, 1, MAX_LENGTH)
    proof = _proof_elements(elements, chunk)
    public = 2 * SEED_BYTES
    leader = ELEMENT_BYTES * (elements + proof) + SEED_BYTES
    helper = 2 * SEED_BYTES
    return ReportSize(
        elements=elements,
        chunk_length=chunk,
        proof_elements=proof,
        public=public,
        leader=leader,
        helper=helper,
        upload=ENVELOPE_BYTES + public + leader + helper + 2 * SEAL_BYTES,
        verifier=ELEMENT_BYTES * (2 * chunk + 2) + SEED_BYTES,
    )


def _proof_elements(elements: int, chunk: int) -> int:
    calls = -(-elements // chunk)
    points = 1 << calls.bit_length()  # the least power of two above the number of calls
    return 2 * chunk + 2 * (points - 1) + 1


def _best_chunk(elements: int) -> int:
    """Return the chunk length of the shortest proof; the larger of two that are as good.

    Of all that need the same power of two the least chunk is best, so one a power is looked at.
    """
    bits = range(1, elements.bit_length() + 2)
    chunks = [-(-elements // ((1 << bit) - 1)) for bit in bits]
    return min(chunks, key=lambda chunk: _proof_elements(elements, chunk))
