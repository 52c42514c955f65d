from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk import ParameterError
from client_sdk.rounds.messages import KeyAdvert
from client_sdk.rounds.primitives import Identity
from ldpspatial.release.distributed.sums.secure_aggregation import (
    AbortedError,
    Client,
    Neighbours,
    Outcome,
    ProtocolError,
    Step,
    Terms,
    enrol,
    play,
)
from tests.support.aggregation_rounds import Rounds, seeded, some_vectors, terms

failures = st.dictionaries(st.integers(0, 6), st.sampled_from(Step), max_size=5)


def run(agreed: Terms, failing: dict[int, Step], seed: int = 0) -> tuple[Outcome, np.ndarray]:
    vectors = some_vectors(agreed, seed)
    clients, server = enrol(agreed, seeded(seed))
    return play(clients, server, vectors, failing), vectors


def plain_sum(agreed: Terms, vectors: np.ndarray, included: frozenset[int]) -> list[int]:
    columns = vectors[sorted(included)].T.tolist()  # Python's whole numbers do not wrap
    return [sum(column) % agreed.modulus for column in columns]


@settings(max_examples=40)
@given(st.integers(2, 7), st.integers(2, 7), st.sampled_from([1, 8, 20, 62]), failures)
def test_a_sum_of_exactly_those_whose_vector_arrived_or_nothing(
    clients: int, threshold: int, bits: int, failing: dict[int, Step]
) -> None:
    threshold = min(threshold, clients)
    agreed = terms(clients, threshold, bits, length=3)
    outcome, vectors = run(agreed, failing)
    left = [sum(failing.get(u, 9) > step for u in range(clients)) for step in Step]
    if min(left) >= threshold:
        arrived = frozenset(u for u in range(clients) if failing.get(u, 9) > Step.MASK)
        assert outcome.included == arrived
        assert outcome.total is not None
        assert outcome.total.tolist() == plain_sum(agreed, vectors, arrived)
        assert outcome.aborted == ""
    else:
        assert outcome.total is None
        first = next(step for step in Step if left[step] < threshold)
        assert f"{left[first]} clients are left after round {first}" in outcome.aborted
    assert outcome.refusals == {}


@settings(max_examples=25)
@given(st.integers(2, 4), failures, st.integers(0, 100))
def test_on_a_circle_too(shares: int, failing: dict[int, Step], seed: int) -> None:
    agreed = terms(7, 4, bits=20, length=3, neighbours=Neighbours(4, shares))
    outcome, vectors = run(agreed, failing, seed)
    left = [sum(failing.get(u, 9) > step for u in range(7)) for step in Step]
    if outcome.total is not None:
        arrived = frozenset(u for u in range(7) if failing.get(u, 9) > Step.MASK)
        assert outcome.included == arrived
        assert outcome.total.tolist() == plain_sum(agreed, vectors, arrived)
        assert min(left) >= 4
    else:  # too few in all, or in somebody's neighbourhood of 5
        assert outcome.aborted
        assert min(left) < 4 or 5 - (7 - min(left)) < shares


@pytest.mark.parametrize("step", Step)
@pytest.mark.parametrize("neighbours", [None, Neighbours(4, 2)])
def test_each_step_to_fail_at(step: Step, neighbours: Neighbours | None) -> None:
    agreed = terms(6, 4, bits=20, length=5, neighbours=neighbours)
    outcome, vectors = run(agreed, {1: step, 4: step})
    here = {0, 2, 3, 5} if step <= Step.MASK else set(range(6))
    assert outcome.included == here
    assert outcome.total is not None
    assert outcome.total.tolist() == plain_sum(agreed, vectors, frozenset(here))
    sent_rounds = (outcome.sent > 0).sum(axis=0)
    assert sent_rounds.tolist() == [5, step, 5, 5, step, 5]


def test_sums_wrap_at_the_modulus() -> None:
    for bits in (1, 20, 62):
        agreed = terms(4, 2, bits, length=2)
        clients, server = enrol(agreed, seeded(bits))
        largest = np.full((4, 2), agreed.modulus - 1)
        total = play(clients, server, largest).total
        assert total is not None
        assert total.tolist() == [(agreed.modulus - 4) % agreed.modulus] * 2


def test_clients_with_few_neighbours_left_refuse_and_nothing_is_revealed() -> None:
    agreed = terms(9, 4, neighbours=Neighbours(2, 2))
    rounds = Rounds(agreed).until(Step.SHARE)
    one = 0
    others = [v for v, _ in rounds.inbox[one].keys if v != one]  # type: ignore[attr-defined]
    outcome, _ = run(agreed, dict.fromkeys(others, Step.SHARE))  # the same circle: same seed
    assert one in outcome.refusals
    assert "too few neighbours sent shares: 0" in outcome.refusals[one]


def test_a_lost_neighbourhood_aborts() -> None:
    agreed = terms(9, 4, neighbours=Neighbours(2, 2))
    rounds = Rounds(agreed).until(Step.SHARE)
    others = [v for v, _ in rounds.inbox[0].keys if v != 0]  # type: ignore[attr-defined]
    outcome, _ = run(agreed, dict.fromkeys([0, *others], Step.REVEAL))
    assert outcome.total is None
    assert outcome.aborted == "0 shares of client 0 are left, 2 needed"


def test_a_client_who_forges_is_left_out_and_the_others_go_on() -> None:
    class Forger(Client):
        def advertise(self) -> KeyAdvert:
            advert = super().advertise()
            if self.number == 2:
                return replace(advert, signature=bytes(64))
            return advert

    agreed = terms(5, 3)
    clients, server = enrol(agreed, seeded(0), Forger)
    vectors = some_vectors(agreed)
    outcome = play(clients, server, vectors)
    assert list(outcome.refusals) == [2]
    assert outcome.included == {0, 1, 3, 4}
    assert outcome.total is not None
    assert outcome.total.tolist() == plain_sum(agreed, vectors, outcome.included)


def test_there_is_no_sum_before_the_end_and_nothing_after_it() -> None:
    rounds = Rounds(terms()).until(Step.REVEAL)
    with pytest.raises(AbortedError, match="there is no sum"):
        rounds.server.total()
    late = [rounds.answer(number, Step.REVEAL) for number in range(5)]
    for message in late:
        rounds.server.receive(message)
    assert rounds.server.close_round() == {}
    assert rounds.server.total().shape == (4,)
    with pytest.raises(ProtocolError, match="out of its round"):
        rounds.server.receive(late[0])
    with pytest.raises(AbortedError, match="over"):
        rounds.server.close_round()


def test_an_aborted_session_stays_so() -> None:
    rounds = Rounds(terms()).until(Step.MASK)
    rounds.said = [rounds.answer(number, Step.MASK) for number in range(2)]
    for message in rounds.said:
        rounds.server.receive(message)
    with pytest.raises(AbortedError, match="2 clients are left after round 2, below the threshold"):
        rounds.server.close_round()
    with pytest.raises(AbortedError, match="over"):
        rounds.server.close_round()
    with pytest.raises(AbortedError, match="there is no sum"):
        rounds.server.total()
    with pytest.raises(ProtocolError, match="out of its round"):
        rounds.server.receive(rounds.said[0])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"session": b"short"}, "session must be 16 bytes, got 5"),
        ({"clients": 1}, "clients must be a whole number from 2"),
        ({"threshold": 1}, "threshold must be a whole number from 2 to 5, got 1"),
        ({"threshold": 6}, "threshold must be a whole number from 2 to 5, got 6"),
        ({"bits": 63}, "bits must be a whole number from 1 to 62, got 63"),
        ({"bits": 0}, "bits must be"),
        ({"length": 0}, "length must be"),
        ({"neighbours": Neighbours(6, 4)}, "at most the threshold 3, got 4"),
    ],
)
def test_terms_that_cannot_be(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        terms(**changed)  # type: ignore[arg-type]


def test_the_digest_stands_for_all_terms() -> None:
    different = [
        terms(),
        terms(clients=6),
        terms(threshold=4),
        terms(bits=9),
        terms(length=5),
        terms(session=bytes(16)),
        terms(neighbours=Neighbours(2, 2)),
        terms(neighbours=Neighbours(4, 2)),
        terms(clients=6, neighbours=Neighbours(4, 3)),
        terms(clients=6, neighbours=Neighbours(4, 2)),
    ]
    assert len({each.digest for each in different}) == len(different)
    assert terms(neighbours=Neighbours(4, 3)).digest == terms().digest  # all of all, either way


def test_a_client_needs_its_own_identity_and_the_whole_directory() -> None:
    agreed, identity = terms(), Identity.draw(seeded(1))
    directory = [Identity.draw(seeded(seed)).public for seed in range(5)]
    Client(agreed, 1, identity, directory)
    for number in (0, 5, -4):
        with pytest.raises(ParameterError, match="number must be that of the identity"):
            Client(agreed, number, identity, directory)
    with pytest.raises(ParameterError, match="directory must hold 5 identities, got 4"):
        Client(agreed, 1, identity, directory[:4])
