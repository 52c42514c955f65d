"""A session between client objects and a server object in one process, with failing clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from client_sdk.rounds.shared import (
    Client,
    Confirmations,
    Identity,
    Ints,
    KeyList,
    Message,
    ProtocolError,
    SharesIn,
    Step,
    Survivors,
    Terms,
)
from client_sdk.shared import Entropy, system_entropy
from ldpspatial.release.distributed.sums.secure_aggregation.errors import AbortedError
from ldpspatial.release.distributed.sums.secure_aggregation.server import Server


@dataclass(frozen=True)
class Outcome:
    """What a session gave.

    Attributes
    ----------
    total : (length,) int64 array in [0, modulus), or None
        The sum of exactly the vectors of ``included``; None where the session was aborted.
    included : frozenset of int
        Whose masked vectors arrived.
    aborted : str
        Why there is no sum; empty where there is one.
    refusals : mapping of client to str
        Who left because of a message that it could not accept, or sent one, and why.
    sent, received : (rounds, clients) int64 arrays
        Bytes of each client's messages to the server, those that it took, and from it.
    """

    total: Ints | None
    included: frozenset[int]
    aborted: str
    refusals: Mapping[int, str]
    sent: Ints = field(repr=False)
    received: Ints = field(repr=False)


def enrol(
    terms: Terms, entropy: Entropy = system_entropy, client: type[Client] = Client
) -> tuple[list[Client], Server]:
    """Return the clients and the server of a session, with identities enrolled for the occasion.

    Parameters
    ----------
    terms : Terms
    entropy : callable, optional
        Takes n, returns n random bytes; the operating system's, but for tests.
    client : type, optional
        Class of the clients.
    """
    identities = [Identity.draw(entropy) for _ in range(terms.clients)]
    directory = [identity.public for identity in identities]
    clients = [
        client(terms, number, identity, directory, entropy)
        for number, identity in enumerate(identities)
    ]
    return clients, Server(terms, directory, entropy)


def play(
    clients: Sequence[Client],
    server: Server,
    vectors: Ints,
    failing: Mapping[int, Step] | None = None,
) -> Outcome:
    """Play all rounds.

    Parameters
    ----------
    clients : sequence of Client
    server : Server
    vectors : (clients, length) int64 array in [0, modulus)
    failing : mapping of client to Step, optional
        The first round in which that client sends nothing. A vector is in the sum if it arrived:
        whoever fails at CONFIRM or REVEAL is still counted.

    Raises
    ------
    InputError
        A vector breaks its rule.
    """
    fails = failing or {}
    sent, received = np.zeros((2, len(Step), len(clients)), dtype=np.int64)
    refusals: dict[int, str] = {}
    inbox: dict[int, Message] = {}
    aborted, total = "", None
    try:
        for step in Step:
            for client in clients:
                number = client.number
                turn = step is Step.ADVERTISE or number in inbox
                if not turn or number in refusals or fails.get(number, len(Step)) <= step:
                    continue
                try:
                    message = _answer(client, step, inbox.get(number), vectors[number])
                    server.receive(message)
                    sent[step, number] = len(message.to_bytes())
                except ProtocolError as error:
                    refusals[number] = str(error)
            inbox = server.close_round()
            for number, message in inbox.items():
                received[step, number] = len(message.to_bytes())
        total = server.total()
    except AbortedError as error:
        aborted = str(error)
    return Outcome(total, server.survivors, aborted, refusals, sent, received)


def _answer(client: Client, step: Step, message: Message | None, vector: Ints) -> Message:
    match step, message:
        case Step.ADVERTISE, None:
            return client.advertise()
        case Step.SHARE, KeyList():
            return client.share(message)
        case Step.MASK, SharesIn():
            return client.mask(message, vector)
        case Step.CONFIRM, Survivors():
            return client.confirm(message)
        case Step.REVEAL, Confirmations():
            return client.reveal(message)
    raise ProtocolError("a message that the server does not send in this round")
