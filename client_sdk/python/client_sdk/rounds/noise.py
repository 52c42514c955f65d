"""Noise share: what one client adds to its vector, so that the noise of a sum is discrete Laplace.

A share is X - Y with X, Y independent and Polya(1 / n, a), a = exp(-epsilon / sensitivity), where
n honest survivors at least are in every sum that is revealed (Bagdasaryan et al. 2022, section 4).
It is drawn exactly, in whole numbers, from the operating system's entropy. Draw k with
P(k) = (1 - a) a^k, permute k things at random, and keep each cycle of the permutation with
probability 1 / n: how many things are kept is Polya(1 / n, a). The exponential formula for cycles
gives the generating function,

    (1 - a) sum_k a^k E[z^kept | k] = (1 - a) exp(sum_j a^j / j (1 - 1/n + z^j / n))
                                    = ((1 - a) / (1 - a z))^(1 / n).

No table and no float, so the law is the ideal one: delta is 0. docs/noise-shares.md has the proof
in full. Only the standard library is needed, as on a device.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import index

from client_sdk.entropy import Entropy, random_bytes
from client_sdk.errors import ParameterError
from client_sdk.validate import exact_epsilon, shown, whole_number

Below = Callable[[int], int]  # bound -> uniform whole number in [0, bound)

MAX_SURVIVORS = 1 << 32
MAX_SENSITIVITY = 1 << 32
MAX_BITS = 62  # a modulus of 2^62 is the largest with which int64 holds a residue and a half
PAGE_BYTES = 1024  # a call for entropy costs as much as some hundred bytes of it


@dataclass(frozen=True)
class NoiseShare:
    """The law of the noise that each client adds to each entry of its vector.

    Attributes
    ----------
    epsilon : fractions.Fraction, or int, Decimal or float, from 0.000001 to 20
        Of one sum. A float is read as the smaller of what it holds and what it shows.
    sensitivity : int in [1, 2^32]
        Largest L1 norm of a client's contribution.
    least_survivors : int in [1, 2^32]
        Fewest honest clients in any sum that is revealed: of that shard, not of another.

    Raises
    ------
    ParameterError
        A field breaks its rule.

    Examples
    --------
    >>> from client_sdk import entropy
    >>> share = NoiseShare(Fraction(1, 2), sensitivity=1, least_survivors=900)
    >>> len(share.sample(340, entropy.system))
    340
    """

    epsilon: Fraction | float
    sensitivity: int
    least_survivors: int

    def __post_init__(self) -> None:
        whole_number("sensitivity", self.sensitivity, 1, MAX_SENSITIVITY)
        whole_number("least_survivors", self.least_survivors, 1, MAX_SURVIVORS)
        exact_epsilon(self.epsilon)

    @property
    def decay(self) -> Fraction:
        """Return epsilon / sensitivity, exactly: a is exp(-decay)."""
        return exact_epsilon(self.epsilon) / int(self.sensitivity)

    def sample(self, length: int, entropy: Entropy) -> list[int]:
        """Draw the shares of the entries of one vector, independently.

        Parameters
        ----------
        length : int >= 0
        entropy : callable, number of bytes -> so many fresh random bytes
            `client_sdk.entropy.system` on a device; ``rng.bytes`` in a simulation.
        """
        decay = self.decay
        parts = int(self.least_survivors)
        draw = Uniform(entropy).below
        # X and Y from draws of their own: of one geometric number, they would not be independent.
        return [polya(decay, parts, draw) - polya(decay, parts, draw) for _ in range(length)]


def checked_modulus(modulus: object) -> int:
    """Return a power of two from 2 to 2^62, or raise ParameterError.

    No other modulus will do: the low bits of a sum are those of the summands' low bits, and that
    is why the total modulo m is all that the vectors modulo m tell.
    """
    number = whole_number("modulus", modulus, 2, 1 << MAX_BITS)
    if number & (number - 1):
        raise ParameterError(f"modulus must be a power of two, got {number}")
    return number


def client_vector(
    contribution: Sequence[int], share: NoiseShare, modulus: int, entropy: Entropy
) -> list[int]:
    """Return what a client hands to the secure sum: contribution and noise modulo a power of two.

    Parameters
    ----------
    contribution : whole numbers >= 0 with a sum of at most ``share.sensitivity``
    share : NoiseShare
    modulus : int, a power of two from 2 to 2^62
    entropy : callable
        As in :meth:`NoiseShare.sample`.

    Raises
    ------
    ParameterError
        Another modulus, or a contribution that the noise is not made for; its entries are not
        repeated, as they are the client's secret.
    """
    mask = checked_modulus(modulus) - 1
    if not isinstance(share, NoiseShare):
        raise ParameterError(f"share must be a NoiseShare, got {type(share).__name__}")
    if not callable(entropy):
        raise ParameterError(f"entropy must be a function, got {shown(entropy)}")
    rule = f"whole numbers >= 0 with a sum of at most {share.sensitivity} (not repeated here)"
    try:
        # Numbers of Python: those of numpy run over, and a fraction would show in the total.
        own = [index(entry) for entry in contribution]
    except TypeError:
        raise ParameterError(f"contribution must be {rule}") from None
    if min(own, default=0) < 0 or sum(own) > share.sensitivity:
        raise ParameterError(f"contribution must be {rule}")
    noise = share.sample(len(own), entropy)
    # & gives the residue of a negative number too: Python's has its sign bit without end.
    return [(entry + extra) & mask for entry, extra in zip(own, noise, strict=True)]


def polya(decay: Fraction, parts: int, draw: Below) -> int:
    """Draw from Polya(1 / parts, exp(-decay)): the sum of ``parts`` of these is geometric."""
    return cycles_kept(geometric(decay, draw), parts, draw)


def cycles_kept(size: int, parts: int, draw: Below) -> int:
    """Return how many things lie in kept cycles of a random permutation, kept one in ``parts``.

    The cycle of the first of k things is 1, .., k long, with equal probability, and the others
    are permuted at random: about ln k rounds.
    """
    kept = 0
    while size:
        cycle = 1 + draw(size)
        if draw(parts) == 0:
            kept += cycle
        size -= cycle
    return kept


def geometric(decay: Fraction, draw: Below) -> int:
    """Draw k = 0, 1, .. with probability (1 - exp(-decay)) exp(-decay k).

    Canonne, Kamath and Steinke (2020), algorithm 2: with decay = s / t, draw u + t v with
    probability proportional to exp(-(u + t v) / t), and divide by s.
    """
    s = decay.numerator
    t = decay.denominator
    u = draw(t)
    while not exponential_coin(u, t, draw):
        u = draw(t)
    v = 0
    while exponential_coin(1, 1, draw):
        v += 1
    return (u + t * v) // s


def exponential_coin(u: int, t: int, draw: Below) -> bool:
    """Throw a coin that shows heads with probability exp(-u / t), 0 <= u <= t.

    Canonne, Kamath and Steinke (2020), algorithm 1: coins of u/t, u/2t, u/3t, .. until one shows
    tails; heads if it is the first, the third, ... A coin of u/kt is one of 1/k and one of u/t.
    """
    k = 1
    while draw(k) == 0 and draw(t) < u:
        k += 1
    return k % 2 == 1


class Uniform:
    """Uniform whole numbers of any size from random bytes, fetched by the page."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._page = b""
        self._used = 0

    def below(self, bound: int) -> int:
        """Return a uniform whole number in [0, bound), by rejection: no modulo, so no bias."""
        if bound == 1:
            return 0
        # More than half of the values below 2^bits are accepted.
        bits = (bound - 1).bit_length()
        size = (bits + 7) // 8
        mask = (1 << bits) - 1
        while True:
            value = int.from_bytes(self._take(size), "big") & mask
            if value < bound:
                return value

    def _take(self, size: int) -> bytes:
        if self._used + size > len(self._page):
            # The rest of the last page is dropped: no byte is read twice, or draws would depend.
            self._page = random_bytes(self._entropy, max(size, PAGE_BYTES))
            self._used = 0
        self._used += size
        return self._page[self._used - size : self._used]
