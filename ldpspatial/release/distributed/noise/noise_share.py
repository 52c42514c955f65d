"""Noise share: what one client adds to its vector, as the client package draws it.

The law and its sampler are in ``client_sdk.rounds.noise``. Here they raise InputError.
"""

from collections.abc import Sequence

from client_sdk import rounds
from client_sdk.shared import Entropy
from ldpspatial.validate import input_errors


class NoiseShare(rounds.NoiseShare):
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
    InputError
        A field breaks its rule.

    Examples
    --------
    >>> from client_sdk import entropy
    >>> share = NoiseShare(0.5, sensitivity=1, least_survivors=900)
    >>> len(share.sample(340, entropy.system))
    340
    """

    @input_errors()
    def __post_init__(self) -> None:
        super().__post_init__()

    @input_errors()
    def sample(self, length: int, entropy: Entropy) -> list[int]:
        """Draw the shares of the entries of one vector, as `client_sdk.rounds.NoiseShare` does."""
        return super().sample(length, entropy)


@input_errors()
def client_vector(
    contribution: Sequence[int], share: rounds.NoiseShare, modulus: int, entropy: Entropy
) -> list[int]:
    """Return what a client hands to the secure sum, as `client_sdk.rounds.client_vector` does.

    Raises
    ------
    InputError
        A bad argument, or a contribution that the noise is not made for.
    """
    return rounds.client_vector(contribution, share, modulus, entropy)
