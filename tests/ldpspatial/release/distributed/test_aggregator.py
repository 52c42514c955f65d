"""Shares, the check of a report, two aggregators and a collector: what each of them sees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.shared import system_entropy
from ldpspatial.errors import InputError
from ldpspatial.privacy.discrete_laplace import sample
from ldpspatial.release.distributed.sums.two_servers.aggregator import (
    ELEMENT_BYTES,
    PRIME,
    Aggregator,
    collect,
    is_valid,
    split,
)

VECTORS = st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=6)


def fixed(*elements: int) -> "list[bytes]":
    """Bytes of elements as the entropy would give them, the last one first."""
    return [element.to_bytes(ELEMENT_BYTES, "little") for element in reversed(elements)]


@given(VECTORS)
def test_shares_add_up_and_the_signs_come_back(vector: list[int]) -> None:
    leader, helper = split(vector, system_entropy)
    assert all(0 <= number < PRIME for number in leader + helper)
    assert collect(leader, helper) == vector


def test_a_share_is_uniform_whatever_the_report() -> None:
    """Exactly: to each share of one report leads just one draw, and so it does of any other."""
    for vector in ([0, 1, 0], [0, 0, 0], [PRIME - 1, 5, 2**80]):
        draws = [3, PRIME - 1, 2**127]
        bytes_ = fixed(*draws)
        leader, helper = split(vector, lambda size, left=bytes_: left.pop()[:size])
        assert helper == draws
        # The draw that gives this very share of the leader's to a report of zeros.
        other = [(0 - one) % PRIME for one in leader]
        bytes_ = fixed(*other)
        assert split([0, 0, 0], lambda size, left=bytes_: left.pop()[:size])[0] == leader


def test_draws_at_or_above_the_prime_are_drawn_again() -> None:
    left = fixed(PRIME, 2**128 - 1, PRIME - 1)
    assert split([0], lambda size: left.pop()[:size])[1] == [PRIME - 1]
    assert not left


def summed(vectors: list[list[int]], most: int, seed: int) -> tuple[list[int], list[int]]:
    """Return what the collector gets of reports, and the noise of both servers."""
    length = len(vectors[0])
    entropy = np.random.default_rng(seed).bytes
    servers = [Aggregator(length, 10, 7, entropy) for _ in range(2)]
    for vector in vectors:
        shares = split(vector, system_entropy)
        if is_valid(*shares, most):
            for server, share in zip(servers, shares, strict=True):
                server.add(share)
    sums = collect(*(server.noisy_sum() for server in servers))
    again = np.random.default_rng(seed).bytes
    noise = sample(length, 10, 7, again) + sample(length, 10, 7, again)
    return sums, noise.tolist()


def test_forged_reports_do_not_count() -> None:
    """Too much in one place or in all, below zero, and sums that only wrap around to one."""
    honest = [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    forged = [
        *([1000, 0, 0], [1, 1, 0], [2, 0, 0], [0, 0, -1], [1, 1, -1]),
        *([PRIME // 2, PRIME // 2 + 1, 0], [PRIME - 1, 2, 0]),
    ]
    sums, noise = summed(honest + forged, 1, 5)
    assert np.subtract(sums, noise).tolist() == [1, 1, 0]
    for report in forged:
        alone, drawn = summed([honest[0], report], 1, 6)
        assert np.subtract(alone, drawn).tolist() == [1, 0, 0]
    sums, noise = summed([[2, 1, 0], [0, 4, 0]], 3, 7)
    assert np.subtract(sums, noise).tolist() == [2, 1, 0]


def test_one_server_alone_is_left_with_the_noise_of_the_other() -> None:
    """A server that takes its own noise away sees the sum and the other's noise, no less."""
    noises = [sample(4, 10, 7, np.random.default_rng(seed).bytes).tolist() for seed in (1, 2)]
    servers = [Aggregator(4, 10, 7, np.random.default_rng(seed).bytes) for seed in (1, 2)]
    for vector in ([1, 0, 0, 0], [0, 0, 1, 0]):
        for server, share in zip(servers, split(vector, system_entropy), strict=True):
            server.add(share)
    seen = collect(*(server.noisy_sum() for server in servers))
    for own, other in (noises, noises[::-1]):
        assert np.subtract(seen, own).tolist() == np.add([1, 0, 1, 0], other).tolist()


def test_a_batch_is_collected_once() -> None:
    server = Aggregator(2, 1, 1, system_entropy)
    server.add([1, 0])
    server.noisy_sum()
    with pytest.raises(InputError, match="collected once, got a second request"):
        server.noisy_sum()
    with pytest.raises(InputError, match="share must come before its batch is collected"):
        server.add([1, 0])


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="length must"):
        Aggregator(0, 1, 1, system_entropy)
    with pytest.raises(InputError, match="entropy must"):
        Aggregator(1, 1, 1, 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="entropy must"):
        split([1], 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="share must have 2 numbers, got 3"):
        Aggregator(2, 1, 1, system_entropy).add([1, 2, 3])


@pytest.mark.parametrize("share", [[0.5], [True], ["1"], [np.int64(1)], [None], [0, 0], []])
def test_shares_of_anything_but_whole_numbers_or_of_unlike_length_are_refused(share: list) -> None:
    for leader, helper in ((share, [0]), ([0], share)):
        with pytest.raises(InputError, match=r"whole numbers alone|as long as leader"):
            is_valid(leader, helper, 1)


def test_half_of_the_prime_is_positive() -> None:
    assert collect([PRIME // 2, PRIME // 2], [0, 1]) == [PRIME // 2, -(PRIME // 2)]
