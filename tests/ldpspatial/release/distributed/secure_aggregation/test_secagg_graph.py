from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import comb

import pytest
from scipy.stats import chi2, hypergeom

from client_sdk import ParameterError
from client_sdk.entropy import below
from client_sdk.rounds.graph import (
    FAILURE,
    Neighbours,
    choose_neighbours,
    circle,
    disconnected,
    exposed,
    lost,
)
from tests.support.aggregation_rounds import seeded

FALSE_ALARM = 1e-6


def around(n: int, degree: int, place: int) -> set[int]:
    """The neighbours of a place of the circle, without itself."""
    reach = range(1, min(degree // 2, n) + 1)
    return {(place + s) % n for s in reach} | {(place - s) % n for s in reach} - {place}


def connected(places: set[int], n: int, degree: int) -> bool:
    seen, new = set[int](), {min(places)}
    while new:
        seen |= new
        new = {w for v in new for w in around(n, degree, v) & places} - seen
    return seen == places


def truly(
    clients: int, threshold: int, colluding: int, degree: int, shares: int
) -> dict[str, Fraction]:
    """The three probabilities, over all places of colluding clients and of honest ones who fail."""
    failing, cases = clients - threshold, 0
    bad = dict.fromkeys(("exposed", "disconnected", "lost"), 0)
    for colluders in combinations(range(clients), colluding):
        honest = set(range(clients)) - set(colluders)
        for failed in combinations(sorted(honest), failing):
            cases += 1
            alive = set(range(clients)) - set(failed)
            bad["exposed"] += any(
                len(around(clients, degree, v) & set(colluders)) >= shares for v in honest
            )
            bad["disconnected"] += not connected(honest & alive, clients, degree)
            bad["lost"] += any(
                len((around(clients, degree, v) | {v}) & alive) < shares for v in range(clients)
            )
    return {name: Fraction(times, cases) for name, times in bad.items()}


def test_the_bound_for_exposed_is_a_hypergeometric_tail() -> None:
    """Term by term against binomial coefficients, where shares or degree exceed what there is."""
    for threshold in range(2, 12):
        for colluding in range(threshold):
            for degree in range(2, 14, 2):
                drawn, good = min(degree, threshold - 1), threshold - 1 - colluding
                for shares in range(2, degree + 1):
                    hits = sum(
                        comb(colluding, k) * comb(good, drawn - k) for k in range(shares, drawn + 1)
                    )
                    slow = Fraction(16 * hits, comb(threshold - 1, drawn))
                    assert exposed(16, threshold, colluding, degree, shares) == slow


@pytest.mark.parametrize(
    ("clients", "threshold", "colluding", "degree", "shares"),
    [(8, 5, 2, 2, 2), (9, 6, 2, 4, 3), (9, 5, 2, 4, 2), (8, 8, 3, 2, 2), (9, 6, 3, 4, 2)],
)
def test_the_bounds_hold_for_every_number_that_joined(
    clients: int, threshold: int, colluding: int, degree: int, shares: int
) -> None:
    bounds = {
        "exposed": exposed(clients, threshold, colluding, degree, shares),
        "disconnected": disconnected(clients, threshold, colluding, degree),
        "lost": lost(clients, threshold, degree, shares),
    }
    for joined in range(threshold, clients + 1):
        true = truly(joined, threshold, colluding, degree, shares)
        assert all(true[name] <= bounds[name] for name in bounds), joined
    # With all there, no more than a union bound is lost: a factor of places or pairs of places.
    true = truly(clients, threshold, colluding, degree, shares)
    for name in ("disconnected", "lost"):
        assert bounds[name] <= true[name] * comb(clients, 2) or true[name] == 0
    least = truly(threshold, threshold, colluding, degree, shares)["exposed"]
    assert bounds["exposed"] <= least * clients


def test_exposed_and_lost_are_hypergeometric_tails() -> None:
    tail = hypergeom(699, 100, 130).sf(50)
    assert float(exposed(1000, 700, 100, 130, 51)) == pytest.approx(1000 * tail, rel=1e-9)
    tail = hypergeom(999, 700, 130).cdf(50)
    assert float(lost(1000, 700, 130, 51)) == pytest.approx(1000 * tail, rel=1e-9)


@pytest.mark.parametrize(
    ("clients", "threshold", "colluding", "degree", "shares"),
    [
        (1000, 700, 100, 130, 51),
        (1000, 900, 100, 58, 30),
        (300, 210, 30, 84, 31),
        (1000, 1000, 100, 18, 18),
        (10_000, 9000, 1000, 70, 36),
    ],
)
def test_the_smallest_neighbourhoods_that_do(
    clients: int, threshold: int, colluding: int, degree: int, shares: int
) -> None:
    assert choose_neighbours(clients, threshold, colluding) == Neighbours(degree, shares)

    def does(k: int, t: int) -> bool:
        unsafe = exposed(clients, threshold, colluding, k, t)
        unsafe += disconnected(clients, threshold, colluding, k)
        return unsafe <= FAILURE >= lost(clients, threshold, k, t)

    assert does(degree, shares)
    assert not does(degree, shares + 1) or shares == degree
    for smaller in {degree - 2, degree // 4 * 2}:
        assert not any(does(smaller, t) for t in range(2, smaller + 1))


def test_small_sessions_get_the_complete_graph_where_nothing_less_will_do() -> None:
    assert choose_neighbours(4, 2, 1) is None
    assert choose_neighbours(20, 11, 9) is None
    assert choose_neighbours(50, 40, 5) == Neighbours(16, 7)  # whatever the circle
    assert choose_neighbours(200, 190, 10, failure=Fraction(1, 2)) == Neighbours(6, 4)


@pytest.mark.parametrize(("clients", "degree"), [(5, 2), (9, 4), (30, 12), (7, 6), (7, 8), (2, 4)])
def test_everyone_is_among_its_own_k_neighbours(clients: int, degree: int) -> None:
    numbers = [3 * number for number in range(clients)]
    found = circle(numbers, degree, seeded(clients))
    assert sorted(found) == numbers
    for client, neighbours in found.items():
        assert client in neighbours
        assert len(neighbours) == min(degree + 1, clients)
        assert all(client in found[other] for other in neighbours)
    assert circle(numbers, degree, seeded(clients)) == found


def statistic_of_circles(seed: int, draws: int, narrow: int = 0) -> float:
    """Chi-square over the 12 circles of 5 clients; ``narrow`` spoils the shuffle."""
    entropy = seeded(seed)
    seen: Counter[frozenset[tuple[int, frozenset[int]]]] = Counter()
    for _ in range(draws):
        if narrow:
            order = list(range(5))
            for last in range(4, 0, -1):
                other = below(max(last + 1 - narrow, 1), entropy)
                order[last], order[other] = order[other], order[last]
            places = {c: p for p, c in enumerate(order)}
            found = {c: frozenset(order[(places[c] + s) % 5] for s in (-1, 0, 1)) for c in range(5)}
        else:
            found = circle(list(range(5)), 2, entropy)
        seen[frozenset(found.items())] += 1
    mean = draws / 12
    return sum((times - mean) ** 2 / mean for times in seen.values()) + (12 - len(seen)) * mean


def test_every_circle_is_equally_likely() -> None:
    most = chi2.isf(FALSE_ALARM, 11)
    assert statistic_of_circles(7, 4000) < most
    # A shuffle that leaves no client in its place (Sattolo's) would be noticed.
    assert statistic_of_circles(7, 4000, narrow=1) > most


@pytest.mark.parametrize(
    ("degree", "shares", "message"),
    [
        (3, 2, "degree must be even, got 3"),
        (0, 2, "degree must be a whole number from 2"),
        (4, 1, "shares must be a whole number from 2 to 4, got 1"),
        (4, 5, "shares must be a whole number from 2 to 4, got 5"),
        (4.0, 2, "degree must be a whole number"),
    ],
)
def test_neighbours_that_cannot_be(degree: int, shares: int, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Neighbours(degree, shares)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 2, 0), "clients must be"),
        ((10, 11, 0), "threshold must be a whole number from 2 to 10, got 11"),
        ((10, 1, 0), "threshold must be"),
        ((10, 5, 5), "colluding must be a whole number from 0 to 4, got 5"),
        ((10, 5, 2, Fraction(0)), r"failure must be a number in \(0, 1\)"),
    ],
)
def test_choices_that_cannot_be(arguments: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        choose_neighbours(*arguments)
