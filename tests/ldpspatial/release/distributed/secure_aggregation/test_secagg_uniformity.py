"""What the server sees of a vector is uniform: statistics at a false-alarm rate of 1e-6 each.

The streams are seeded, so the tests are repeatable; each is shown to notice a mask left out, one
that repeats itself and one that never takes the largest value.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from client_sdk.rounds import client as client_module
from client_sdk.rounds import keys as keys_module
from client_sdk.rounds.masks import expand
from client_sdk.rounds.messages import MaskedVector
from client_sdk.rounds.wire import Message
from ldpspatial.release.distributed.sums.secure_aggregation import Client, Step
from tests.support.aggregation_rounds import Rounds, terms

Ints = NDArray[np.int64]
FALSE_ALARM = 1e-6
SESSIONS, LENGTH = 150, 256
VECTOR = np.arange(LENGTH) % 7  # fixed, small: what a one-hot count with noise looks like


def views(bits: int) -> dict[str, Ints]:
    """Client 0's vector as the server sees it in each session, shape (sessions, LENGTH).

    "sent" is the masked vector. "survived" is what is left when the server takes away the own mask,
    as it may for survivors. "failed" is what is left when it takes away the masks of all pairs, as
    it may for a client that is declared failed and whose vector comes late.
    """
    found: dict[str, list[Ints]] = {"sent": [], "survived": [], "failed": []}
    vectors = np.tile(VECTOR, (3, 1))
    for seed in range(SESSIONS):
        agreed = terms(3, 2, bits, LENGTH, session=seed.to_bytes(16, "big"))
        rounds = Rounds(agreed, vectors, seed).until(Step.MASK)
        client = rounds.clients[0]
        seed_of_own, pair, keys = client._seed, client._mask_pair, client._mask_keys
        message = rounds.answer(0, Step.MASK)  # after which the client has forgotten them
        assert isinstance(message, MaskedVector)
        own = keys_module.own_mask(agreed, 0, seed_of_own)
        pairs = [keys_module.pair_mask(agreed, pair, 0, v, keys[v]) for v in (1, 2)]
        found["sent"].append(message.residues)
        found["survived"].append((message.residues - own) % agreed.modulus)
        found["failed"].append((message.residues - pairs[0] - pairs[1]) % agreed.modulus)
    return {name: np.array(seen) for name, seen in found.items()}


def too_large(observed: Ints, cells: int) -> bool:
    """Chi-square of the values in [0, cells) of each column against equal chances."""
    counts = np.array([np.bincount(column, minlength=cells) for column in observed.T])
    mean = len(observed) / cells
    statistic = float(((counts - mean) ** 2).sum() / mean)
    return statistic > float(chi2.isf(FALSE_ALARM, observed.shape[1] * (cells - 1)))


def suspicious(seen: Ints, bits: int) -> set[str]:
    """Names of the statistics by which residues do not look uniform and independent."""
    high, low = seen >> (bits - 3), seen & 7
    pairs = (seen[:, ::2] >> (bits - 2)) * 4 + (seen[:, 1::2] & 3)
    neighbours = (seen[:, ::2] >> (bits - 2)) * 4 + (seen[:, 1::2] >> (bits - 2))
    pooled = (seen - VECTOR) % (1 << bits) >> (bits - 8)
    statistics: dict[str, tuple[Ints, int]] = {
        "high bits": (high, 8),
        "low bits": (low, 8),
        "high and low bits of neighbours": (pairs, 16),
        "high bits of neighbours": (neighbours, 16),
        "all values": (pooled.reshape(-1, 1), 256),
    }
    return {name for name, (cells, of) in statistics.items() if too_large(cells, of)}


@pytest.mark.parametrize("bits", [8, 20])
def test_all_that_is_seen_of_a_vector_is_uniform(bits: int) -> None:
    for name, seen in views(bits).items():
        assert suspicious(seen, bits) == set(), name


def no_mask(*_: Any) -> Ints:
    return np.zeros(LENGTH, dtype=np.int64)


def same_mask(*_: Any) -> Ints:
    return np.random.default_rng(3).integers(0, 256, LENGTH)


@pytest.mark.parametrize("broken", [no_mask, same_mask])
@pytest.mark.parametrize(("mask", "view"), [("own_mask", "failed"), ("pair_mask", "survived")])
def test_a_mask_left_out_or_repeated_would_be_noticed(
    mask: str, view: str, broken: Callable[..., Ints], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, mask, broken)
    seen = views(8)
    assert len(suspicious(seen[view], 8)) >= 4
    assert suspicious(seen["sent"], 8) == set()  # the other mask still hides it, until it is known


def test_a_mask_that_never_is_the_largest_value_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keys_module, "expand", lambda *given: expand(*given) % 255)
    assert "all values" in suspicious(views(8)["failed"], 8)


# -- the server holds no vector


def arrays_in(thing: Any, seen: set[int] | None = None) -> Iterator[Ints]:
    """Every array that can be reached from an object's attributes."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        yield thing
        return
    parts: list[Any] = []
    if isinstance(thing, dict):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, (list, tuple, set, frozenset)):
        parts = list(thing)
    elif is_dataclass(thing):
        parts = [getattr(thing, f.name) for f in fields(thing)]
    if hasattr(thing, "__dict__"):
        parts += list(vars(thing).values())
    for part in parts:
        yield from arrays_in(part, seen)


class Blunt(Client):
    """Sends its vector as it is."""

    def mask(self, message: Any, vector: Ints) -> MaskedVector:
        masked = super().mask(message, vector)
        return MaskedVector(masked.session, masked.client, vector.copy(), masked.bits)


def vectors_at_the_server(client: type[Client]) -> int:
    """How many arrays that the server holds or was sent equal some client's vector."""
    agreed = terms(5, 3, bits=20, length=LENGTH)
    vectors = np.random.default_rng(2).integers(0, agreed.modulus, (5, LENGTH))
    rounds = Rounds(agreed, vectors, client=client).until(Step.REVEAL, 4)
    everything: list[Any] = [rounds.server, rounds.said]
    rounds.play(Step.REVEAL)
    found = list(arrays_in(everything))
    assert any(np.array_equal(array, rounds.server.total()) for array in found)
    return sum(np.array_equal(array, vector) for array in found for vector in vectors)


def test_the_server_is_sent_no_vector_and_holds_none() -> None:
    assert vectors_at_the_server(Client) == 0
    assert vectors_at_the_server(Blunt) >= 4  # and would be found out


def test_messages_are_no_function_of_the_vector_but_for_the_masked_one() -> None:
    agreed = terms(4, 3, bits=20)

    def transcript(vectors: Ints) -> list[tuple[Message, bytes]]:
        rounds = Rounds(agreed, vectors, seed=5).until(Step.REVEAL)
        rounds.play(Step.REVEAL)
        return [(message, message.to_bytes()) for message in rounds.said]

    ones, twos = (transcript(np.full((4, 4), value)) for value in (1, 2))
    assert len(ones) == len(twos) == 20
    for (message, first), (_, second) in zip(ones, twos, strict=True):
        assert (first != second) == isinstance(message, MaskedVector)
        if isinstance(message, MaskedVector):  # the same entropy, so the same masks
            assert first[:37] == second[:37]


def test_a_client_does_not_keep_its_vector() -> None:
    rounds = Rounds(terms(4, 3, bits=20)).until(Step.CONFIRM)
    client = rounds.clients[1]
    assert not any(np.array_equal(array, rounds.vectors[1]) for array in arrays_in(client))
