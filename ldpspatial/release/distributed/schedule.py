"""Schedule: how much of a run's epsilon a round gets, and what it is good enough to decide.

Formulas of Bagdasaryan et al. 2022, sections 5.3 and 5.4; where its text and its results disagree,
docs/adaptive.md says which reading this is.
"""

from math import ceil, sqrt

from ldpspatial.privacy.discrete_laplace import epsilon_for, noise_deviation
from ldpspatial.release.distributed._checks import micro_of
from ldpspatial.release.distributed.sums.cohort import Cohort
from ldpspatial.validate import MICRO

LEAST_MEAN = 3  # people for each element: where noise is small, who is asked would decide
TAIL = 20  # noise exceeds this many standard deviations with a chance of about e^-28


class Budget:
    """Epsilon of a run, paid out in whole millionths: the unit in which devices count.

    Attributes
    ----------
    micro : int
        Millionths that remain.

    Raises
    ------
    InputError
        Epsilon is not a positive number, or less than a millionth.

    Examples
    --------
    >>> budget = Budget(0.3)
    >>> [budget.pay(0.1), budget.pay(0.1000009), budget.pay_all()], budget.micro
    ([100000, 100000, 100000], 0)
    """

    def __init__(self, epsilon: float) -> None:
        self.micro = micro_of(epsilon)

    def pay(self, wanted: float) -> int:
        """Pay what is wanted, rounded down but at least a millionth; all if that is less."""
        if wanted * MICRO >= self.micro:
            return self.pay_all()
        paid = max(int(wanted * MICRO), 1)  # no round can be played at epsilon 0
        self.micro -= paid
        return paid

    def pay_all(self) -> int:
        """Pay what remains."""
        paid = self.micro
        self.micro = 0
        return paid


def wanted_epsilon(
    calibration: float, clients: int, length: int, cohort: Cohort, scale: int, sensitivity: int
) -> float:
    """Return the epsilon that makes noise small beside the mean count of a vector's elements.

    Two standard deviations of the total over K shards are ``calibration`` times the mean count
    ``clients / length``, so each shard's is c U / (2 T sqrt(K)); a person counts ``scale``.

    Examples
    --------
    >>> cohort = Cohort(shard_size=10_000)
    >>> [round(wanted_epsilon(0.1, 10_000, 4**i, cohort, 1, 1), 3) for i in (1, 2, 3)]
    [0.011, 0.045, 0.181]
    """
    shards = cohort.shard_count(clients)
    deviation = calibration * clients / (2 * length * sqrt(shards))
    return epsilon_for(scale * deviation, sensitivity)


def wanted_people(
    calibration: float,
    epsilon: float,
    length: int,
    most: int,
    cohort: Cohort,
    scale: int,
    sensitivity: int,
) -> float:
    """Return how many people make noise small beside the mean count of a vector's elements.

    All of whom answer at epsilon, and nobody else: the fewest n for which two standard deviations
    of the total over the K shards of n are at most ``calibration`` times ``n / length``, so the
    least solution of n = 2 T sqrt(K) tau / c; and not fewer than three people for each element,
    or an average one would be empty by chance. A number beyond ``most`` stands for all beyond it.

    Examples
    --------
    >>> cohort = Cohort(shard_size=10_000)
    >>> [round(wanted_people(0.1, 1.0, 4**i, 100_000, cohort, 1, 1)) for i in (1, 2, 3, 6)]
    [109, 434, 1737, 111162]
    """
    in_one = 2 * length * noise_deviation(epsilon, sensitivity) / (calibration * scale)
    people = max(in_one, float(LEAST_MEAN * length))
    while people <= most:
        shards = cohort.shard_count(max(ceil(people), 1))
        if in_one * sqrt(shards) <= people:
            break
        people = in_one * sqrt(shards)
    return people


def split_threshold(
    clients: int, epsilon: float, cohort: Cohort, scale: int, sensitivity: int
) -> float:
    """Return two standard deviations of a count's noise at an epsilon, in people."""
    shards = cohort.shard_count(clients)
    return 2 * sqrt(shards) * noise_deviation(epsilon, sensitivity) / scale


def may_wrap(clients: int, epsilon: float, cohort: Cohort, scale: int, sensitivity: int) -> bool:
    """Tell whether a shard's sum can leave the half of the modulus that stands for its sign.

    True where everybody in one element, with noise of 20 standard deviations, would.
    """
    size = cohort.shards(clients)[0]
    # Nobody fails: size shares, each with 1 / honest of the variance that the noise is made for.
    widest = noise_deviation(epsilon, sensitivity) * sqrt(size / cohort.honest(size))
    return scale * size + TAIL * widest >= cohort.modulus / 2
