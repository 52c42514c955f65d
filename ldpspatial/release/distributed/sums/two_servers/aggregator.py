"""What a client sends to two aggregators, and what each of these gives to a collector.

The numbers are those of Prio3 (draft-irtf-cfrg-vdaf, sections 6.1 and 7.4.3 to 7.4.5): vectors of
whole numbers modulo a prime of 128 bits, in two shares that add up to them. Each aggregator adds
its shares of the reports that were found valid, then discrete Laplace noise of its own, and the
collector adds the two sums.

There is no cryptography here. Prio3 draws a share from a seed, and has the client prove to both
aggregators that a report is valid, of which each sees its share alone; here a share is uniform, and
:func:`is_valid` looks at both shares, as no party of the protocol can.
"""

from collections.abc import Sequence
from typing import TypeAlias

from client_sdk.shared import Entropy
from ldpspatial.errors import InputError
from ldpspatial.privacy.discrete_laplace import sample
from ldpspatial.validate import function, random_bytes, whole_number

Share: TypeAlias = list[int]  # residues modulo PRIME

PRIME = 2**66 * 4611686018427387897 + 1  # Field128
ELEMENT_BYTES = 16


def split(vector: Sequence[int], entropy: Entropy) -> tuple[Share, Share]:
    """Divide a vector of whole numbers into two shares, each uniform by itself.

    Parameters
    ----------
    vector : sequence of int
        Any numbers: what a report should be is for :func:`is_valid` to say.
    entropy : callable
        Number of bytes -> so many uniform and independent bytes.

    Examples
    --------
    >>> from client_sdk.shared import system_entropy
    >>> leader, helper = split([0, 1, 0], system_entropy)
    >>> [(one + other) % PRIME for one, other in zip(leader, helper)]
    [0, 1, 0]
    """
    function("entropy", entropy)
    helper = [_residue(entropy) for _ in vector]
    leader = [(number - own) % PRIME for number, own in zip(vector, helper, strict=True)]
    return leader, helper


def is_valid(leader: Share, helper: Share, most: int) -> bool:
    """Tell whether a report's numbers are not negative and add up to ``most`` or less.

    With ``most`` 1 that is what Prio3MultihotCountVec proves for a largest weight of 1.

    Raises
    ------
    InputError
        Shares that are no whole numbers, or of unlike length.

    Examples
    --------
    >>> is_valid([0, 1], [0, 0], 1), is_valid([0, 2], [0, 0], 1), is_valid([2, 1], [0, -2], 1)
    (True, False, False)
    """
    for field, share in (("leader", leader), ("helper", helper)):
        if not all(type(number) is int for number in share):
            raise InputError(f"{field} must hold whole numbers alone")
    if len(leader) != len(helper):
        raise InputError(f"helper must be as long as leader, {len(leader)}, got {len(helper)}")
    numbers = [(one + other) % PRIME for one, other in zip(leader, helper, strict=True)]
    # Each by itself first: residues of large numbers may add up to a small one.
    return all(number <= most for number in numbers) and sum(numbers) <= most


class Aggregator:
    """One of two servers: its sum of shares, and its noise.

    Parameters
    ----------
    length : int >= 1
        Of a report.
    numerator, denominator : int in [1, 2^53)
        Of the scale of the noise, as in :func:`ldpspatial.privacy.discrete_laplace.sample`.
    entropy : callable
        What noise is drawn from.

    Raises
    ------
    InputError
        An argument breaks its rule.
    """

    def __init__(self, length: int, numerator: int, denominator: int, entropy: Entropy):
        self._sum = [0] * whole_number("length", length, 1)
        self._scale = numerator, denominator
        self._entropy = function("entropy", entropy)
        self._collected = False

    def add(self, share: Share) -> None:
        """Add this aggregator's share of a report that was found valid.

        Raises
        ------
        InputError
            A share of another length, or the batch was collected.
        """
        if self._collected:
            raise InputError("share must come before its batch is collected")
        if len(share) != len(self._sum):
            raise InputError(f"share must have {len(self._sum)} numbers, got {len(share)}")
        self._sum = [(own + one) % PRIME for own, one in zip(self._sum, share, strict=True)]

    def noisy_sum(self) -> Share:
        """Return what goes to the collector, once: the sum of shares and noise on each number.

        Raises
        ------
        InputError
            The batch was collected before. Noise that is drawn anew would cancel in a mean.
        """
        if self._collected:
            raise InputError("a batch must be collected once, got a second request")
        self._collected = True
        noise = sample(len(self._sum), *self._scale, self._entropy).tolist()
        return [(own + drawn) % PRIME for own, drawn in zip(self._sum, noise, strict=True)]


def collect(leader: Share, helper: Share) -> list[int]:
    """Return the signed sums that two noisy shares add up to.

    Examples
    --------
    >>> collect([5, PRIME - 3, 1], [2, 1, 0])
    [7, -2, 1]
    """
    sums = [(one + other) % PRIME for one, other in zip(leader, helper, strict=True)]
    return [number - PRIME if number > PRIME // 2 else number for number in sums]


def _residue(entropy: Entropy) -> int:
    """Return a uniform number below PRIME, by rejection (VDAF, section 6.2)."""
    while True:
        drawn = int.from_bytes(random_bytes(entropy, ELEMENT_BYTES), "little")
        if drawn < PRIME:
            return drawn
