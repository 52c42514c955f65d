"""Sessions of secure aggregation for tests: seeded, and stopped where a test wants to look."""

import numpy as np

from client_sdk.entropy import Entropy
from client_sdk.rounds.messages import Revealed
from client_sdk.rounds.primitives import seal
from client_sdk.rounds.wire import Message
from ldpspatial.release.distributed.sums.secure_aggregation import (
    Client,
    Neighbours,
    Step,
    Terms,
    enrol,
)


def seeded(seed: int) -> Entropy:
    return np.random.default_rng(seed).bytes


def terms(
    clients: int = 5,
    threshold: int = 3,
    bits: int = 8,
    length: int = 4,
    neighbours: Neighbours | None = None,
    session: bytes = b"a test's session",
    honest_server: bool = False,
) -> Terms:
    shares = threshold if neighbours is None else neighbours.shares
    is_circle = neighbours is not None and neighbours.degree < clients - 1
    trusted = honest_server or is_circle or 2 * shares <= clients
    return Terms(session, clients, threshold, bits, length, neighbours, honest_server=trusted)


def some_vectors(agreed: Terms, seed: int = 0) -> np.ndarray:
    shape = agreed.clients, agreed.length
    return np.random.default_rng(seed).integers(0, agreed.modulus, shape)


class Rounds:
    """A session played round by round; ``inbox`` is what each client gets next.

    Attributes
    ----------
    said : every message that the server got
    """

    def __init__(
        self,
        agreed: Terms,
        vectors: np.ndarray | None = None,
        seed: int = 0,
        client: type[Client] = Client,
    ) -> None:
        self.clients, self.server = enrol(agreed, seeded(seed), client)
        self.vectors = some_vectors(agreed) if vectors is None else vectors
        self.inbox: dict[int, Message] = {}
        self.said: list[Message] = []

    def until(self, step: Step, *silent: int) -> "Rounds":
        """Play the rounds before ``step`` that are left; the silent fail before their vector."""
        if silent:
            self.until(min(step, Step.MASK))
        due = self.server._step
        assert due is not None
        for each in Step:
            if due <= each < step:
                self.play(each, *silent)
        return self

    def play(self, step: Step, *silent: int) -> None:
        for client in self.clients:
            due = step is Step.ADVERTISE or client.number in self.inbox
            if due and client.number not in silent:
                self.said.append(self.answer(client.number, step))
                self.server.receive(self.said[-1])
        self.inbox = self.server.close_round()

    def answer(self, number: int, step: Step) -> Message:
        client, message = self.clients[number], self.inbox.get(number)
        if step is Step.ADVERTISE:
            return client.advertise()
        if step is Step.SHARE:
            return client.share(message)  # type: ignore[arg-type]
        if step is Step.MASK:
            return client.mask(message, self.vectors[number])  # type: ignore[arg-type]
        if step is Step.CONFIRM:
            return client.confirm(message)  # type: ignore[arg-type]
        return client.reveal(message)  # type: ignore[arg-type]


def revealed_of(
    message: Revealed, clients: int, survivors: frozenset[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return shares of seeds and of mask keys by their owners, where all share with all."""
    failed = [v for v in range(clients) if v not in survivors and v != message.client]
    seeds = dict(zip(sorted(survivors), message.seeds, strict=True))
    return seeds, dict(zip(failed, message.keys, strict=True))


def sealing(plaintext: bytes) -> type[Client]:
    """Clients who seal this in the place of their shares."""

    class Cheat(Client):
        def _seal(self, receiver: int, seed_share: int, key_share: int) -> bytes:
            passage = self.terms.label("shares", self.number, receiver)
            return seal(self._pairs[receiver].seals, plaintext, passage)

    return Cheat
