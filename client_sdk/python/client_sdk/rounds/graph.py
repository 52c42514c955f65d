"""Who shares with whom: everyone, or k neighbours on a random circle (Bell et al., CCS 2020).

Clients stand in a circle, in an order drawn at random after they have joined, and each is neighbour
of the k/2 before and the k/2 after it (a Harary graph). Secrets are shared with neighbours only, so
that work and traffic grow with k and not with the number of clients. That is safe and works unless
the order is unlucky, in one of three ways, for clients who collude and clients who fail
independently of the order:

- *exposed*: an honest client has t colluding neighbours, who know all its secrets (t is the number
  of shares that give a secret back);
- *disconnected*: the honest survivors fall into parts with no mask in common, and the sum of each
  part shows;
- *lost*: fewer than t of a client's neighbours are there at the end, and there is no sum.

The probabilities below are bounds from hypergeometric tails and the union over clients, in exact
fractions (Bell et al., section 3, with a sharper bound for "disconnected").
"""

from dataclasses import dataclass
from fractions import Fraction
from math import comb, perm

from client_sdk.entropy import Entropy
from client_sdk.entropy import below as uniform_below
from client_sdk.errors import ParameterError
from client_sdk.validate import finite_number, shown, whole_number

MAX_CLIENTS = 1 << 20
FAILURE = Fraction(1, 1 << 40)


@dataclass(frozen=True)
class Neighbours:
    """How many neighbours a client has, and how many shares give a secret back.

    Attributes
    ----------
    degree : int >= 2, even
        k. Where fewer clients have joined, all are neighbours of all.
    shares : int in [2, degree]
        t. A client keeps one share of its own secrets, so there are degree + 1 of each.

    Raises
    ------
    ParameterError
        A field breaks its rule.
    """

    degree: int
    shares: int

    def __post_init__(self) -> None:
        if whole_number("degree", self.degree, 2, MAX_CLIENTS) % 2:
            raise ParameterError(f"degree must be even, got {self.degree!r}")
        whole_number("shares", self.shares, 2, self.degree)


def choose_neighbours(
    clients: int, threshold: int, colluding: int, failure: Fraction = FAILURE
) -> Neighbours | None:
    """Return the smallest neighbourhoods that are safe and work but for a tiny probability.

    A sum is revealed only where ``threshold`` clients are left, so ``clients - threshold`` is how
    many may fail; the bounds hold for every number of clients from threshold to clients that may
    have joined. Among the numbers of shares that keep "lost" improbable the largest is taken: what
    is not needed for drop-outs goes against collusion.

    Parameters
    ----------
    clients : int >= 2
        Most clients of a session.
    threshold : int in [2, clients]
        Fewest survivors for which a sum is revealed.
    colluding : int in [0, threshold)
        Most clients that collude with the server and with each other.
    failure : Fraction in (0, 1)
        Bound for "exposed" or "disconnected", and again for "lost".

    Returns
    -------
    Neighbours, or None where only the complete graph will do.

    Raises
    ------
    ParameterError
        A bad argument.

    Examples
    --------
    >>> choose_neighbours(1000, 700, 100)
    Neighbours(degree=130, shares=51)
    >>> choose_neighbours(4, 2, 1) is None
    True
    """
    whole_number("clients", clients, 2, MAX_CLIENTS)
    whole_number("threshold", threshold, 2, clients)
    whole_number("colluding", colluding, 0, threshold - 1)
    if not 0 < finite_number("failure", failure) < 1:
        raise ParameterError(f"failure must be a number in (0, 1), got {shown(failure)}")
    for degree in range(2, clients - 1, 2):
        shares = _most_shares(clients, threshold, degree, failure)
        if shares < 2:
            continue
        # One bound for both (union); where the first alone is too large the second is not needed.
        unsafe = exposed(clients, threshold, colluding, degree, shares)
        if unsafe <= failure:
            unsafe += disconnected(clients, threshold, colluding, degree)
        if unsafe <= failure:
            return Neighbours(degree, shares)
    return None


def exposed(clients: int, threshold: int, colluding: int, degree: int, shares: int) -> Fraction:
    """Return a bound for the probability that an honest client has ``shares`` colluding neighbours.

    The fewer clients have joined, the larger the part that colludes: ``threshold`` is the worst.
    """
    others = threshold - 1
    degree = min(degree, others)
    good = others - colluding
    # Sets of `degree` neighbours with k colluding clients; the union over clients comes below.
    first, last = max(shares, degree - good), min(colluding, degree)
    if first > last:
        return Fraction(0)
    sets = comb(colluding, first) * comb(good, degree - first)
    hits = 0
    for k in range(first, last + 1):
        hits += sets
        # The sets with k + 1 from those with k, exactly: computed anew each would take minutes.
        sets = sets * (colluding - k) * (degree - k) // ((k + 1) * (good - degree + k + 1))
    return Fraction(clients * hits, comb(others, degree))


def disconnected(clients: int, threshold: int, colluding: int, degree: int) -> Fraction:
    """Return a bound for the probability that the honest survivors are not connected.

    They are not only if the circle has two gaps of at least k/2 clients who collude or have failed
    (one gap leaves a path). There are at most n (n - 1) / 2 places for the two, and k clients drawn
    without replacement are all bad with probability b (b - 1) ... / (n (n - 1) ...). Worst is n =
    ``clients``, of whom b = colluding + clients - threshold are bad.
    """
    bad = colluding + clients - threshold
    return Fraction(comb(clients, 2) * perm(bad, degree), perm(clients, degree))


def lost(clients: int, threshold: int, degree: int, shares: int) -> Fraction:
    """Return a bound for the probability that a secret finds fewer than ``shares`` holders alive.

    For a client that has failed: its neighbours are drawn from the others, of whom ``threshold``
    are left. A survivor counts itself, and is at least as well off.
    """
    others = clients - 1
    alive = min(threshold, others)
    misses = sum(_ways(others, alive, degree, k) for k in range(shares))
    return Fraction(clients * misses, comb(others, degree))


def circle(clients: list[int], degree: int, entropy: Entropy) -> dict[int, frozenset[int]]:
    """Return each client with its neighbours, itself among them, in a random order of the circle.

    Parameters
    ----------
    clients : list of int
    degree : int, even
        k; with k + 1 clients or fewer, all are neighbours.
    entropy : callable
    """
    n = len(clients)
    if degree >= n - 1:
        everyone = frozenset(clients)
        return dict.fromkeys(clients, everyone)
    order = list(clients)
    for last in range(n - 1, 0, -1):  # Fisher and Yates: every order is equally likely
        other = uniform_below(last + 1, entropy)
        order[last], order[other] = order[other], order[last]
    reach = degree // 2
    return {
        client: frozenset(order[(place + step) % n] for step in range(-reach, reach + 1))
        for place, client in enumerate(order)
    }


def _most_shares(clients: int, threshold: int, degree: int, failure: Fraction) -> int:
    """Return the largest number of shares for which ``lost`` is at most ``failure``."""
    others = clients - 1
    alive = min(threshold, others)
    # lost() <= failure with the denominators cleared: misses grow by one term a share.
    allowed = failure * Fraction(comb(others, degree), clients)
    misses, shares = 0, 0
    while shares < min(degree, threshold):
        misses += _ways(others, alive, degree, shares)
        if misses > allowed:
            break
        shares += 1
    return shares


def _ways(population: int, marked: int, drawn: int, hits: int) -> int:
    """Return in how many ways ``drawn`` of a population hold exactly ``hits`` marked ones."""
    return comb(marked, hits) * comb(population - marked, drawn - hits)
