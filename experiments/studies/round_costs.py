"""What a round costs a device at 10,000 clients: time and bytes, with noise and ledger.

A device on a circle talks to no more than its neighbours, so one device is measured at a time,
among neighbours who are played honestly towards it: their keys, confirmations and sealed shares are
real, and what they would say to each other is left out. Their identities come as certificates,
whose checks are a figure of their own: an app may have them from its own directory otherwise.
"""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import click
import numpy as np

from client_sdk import Device, Grid
from client_sdk.rounds import (
    Asked,
    Campaign,
    Client,
    Neighbours,
    Participant,
    RoundDocument,
    choose_neighbours,
    client_vector,
)
from client_sdk.rounds.shared import (
    KEY_BYTES,
    SHARE_BYTES,
    Certificate,
    Confirmations,
    Identity,
    KeyAdvert,
    KeyList,
    KeyPair,
    Seats,
    SharesIn,
    SigningKey,
    Survivors,
    Terms,
    code,
    pair_keys,
    seal,
    survivor_statement,
)
from client_sdk.shared import system_entropy
from experiments.progress import tracked
from experiments.tables import DOCS, markdown, replace_block

SIDE = 1024
PLACE = (0.3, 0.6)
Identities = Callable[[list[int]], dict[int, bytes]]
TOLERATED = ((0.95, 0.05), (0.9, 0.1), (0.8, 0.1), (0.7, 0.1))  # least to go on, and colluding
OF_LEVELS = (0.8, 0.1)  # that of distributed-levels
LEVELS = (5, 6)
STEPS = ("keys", "shares", "vector", "survivors", "opening")


@dataclass
class Cost:
    """Processor time and bytes of one device, by round; and what checking certificates takes."""

    certificates: float = 0.0
    seconds: list[float] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)

    def of(self, received: bytes, answer: Callable[[], bytes]) -> bytes:
        """Let the device answer one message."""
        begin = time.process_time()
        sent = answer()
        self.seconds.append(time.process_time() - begin)
        self.sent.append(len(sent))
        self.received.append(len(received))
        return sent


class Neighbour:
    """A client as one of its neighbours sees it."""

    def __init__(self, terms: Terms, number: int) -> None:
        self.terms, self.number = terms, number
        self.identity = Identity.draw(system_entropy)
        self.mask_key = KeyPair(system_entropy(KEY_BYTES)).public

    def meet(self, identity: bytes, other: KeyAdvert) -> None:
        """Agree with the device that is measured."""
        identities = {self.number: self.identity.public, other.client: identity}
        keys = {self.number: self.mask_key, other.client: other.mask_key}
        seats = Seats(self.terms, identities, keys)
        agreement = self.identity.agreement
        self._keys = pair_keys(self.terms, agreement, self.number, other.client, seats)
        self._passage = self.terms.label("shares", self.number, other.client)

    def sealed(self) -> tuple[int, bytes]:
        """Seal two numbers of the field for the device."""
        shares = b"".join(b"\0" + system_entropy(SHARE_BYTES - 1) for _ in range(2))
        return self.number, seal(self._keys.seals, shares, self._passage)

    def confirmed(self, statement: bytes) -> tuple[int, bytes]:
        """Confirm survivors to the device."""
        return self.number, code(self._keys.confirms, statement)


class Bare:
    """A device without a ledger: the client and its noise alone, called as a participant is."""

    def __init__(self, document: RoundDocument, campaign: Campaign) -> None:
        self._document, self._grid = document, campaign.grid
        self._depth = campaign.depth
        self._own = Identity.draw(system_entropy)
        self.identity = self._own.public
        self._directory: dict[int, bytes] = {}

    def begin(self, text: str, session: bytes, number: int) -> bytes:
        """Round 0."""
        self._terms = self._document.terms(session)
        self._directory[number] = self.identity
        self._client = Client(self._terms, number, self._own, self._directory)
        return self._client.advertise().to_bytes()

    def share(self, data: bytes, identities: Identities) -> bytes:
        """Round 1."""
        message = KeyList.from_bytes(data, self._terms)
        own = self._client.number
        others = [owner for owner, _ in message.keys if owner != own]
        self._directory.update(identities(others))
        return self._client.share(message).to_bytes()

    def mask(self, data: bytes, lat: float, lon: float) -> bytes:
        """Round 2."""
        own = self._document.asked.vector(self._depth, *self._grid.cell(lat, lon))
        noise = self._document.noise
        vector = client_vector(own, noise, self._terms.modulus, system_entropy)
        shares = SharesIn.from_bytes(data, self._terms)
        return self._client.mask(shares, np.array(vector, dtype=np.int64)).to_bytes()

    def confirm(self, data: bytes) -> bytes:
        """Round 3."""
        return self._client.confirm(Survivors.from_bytes(data, self._terms)).to_bytes()

    def reveal(self, data: bytes) -> bytes:
        """Round 4."""
        return self._client.reveal(Confirmations.from_bytes(data, self._terms)).to_bytes()


def measured(document: RoundDocument, campaign: Campaign, one: Participant | Bare) -> Cost:
    """Take one device through a session of which only its neighbours are played."""
    session = os.urandom(16)
    terms = document.terms(session)
    own, *others = np.random.default_rng().permutation(terms.clients).tolist()
    near = {k: Neighbour(terms, k) for k in sorted(others[: terms.degree])}
    identities = {k: each.identity.public for k, each in near.items()}
    cost = Cost()
    text = document.to_json()

    said = cost.of(text.encode(), lambda: one.begin(text, session, own))
    advert = KeyAdvert.from_bytes(said, terms)
    identity = one.identity
    for each in near.values():
        each.meet(identity, advert)
    listed = {own: advert.mask_key, **{k: each.mask_key for k, each in near.items()}}
    keys = KeyList(terms.digest, own, tuple(sorted(listed.items()))).to_bytes()
    cost.of(keys, lambda: one.share(keys, lambda numbers: {k: identities[k] for k in numbers}))
    sealed = tuple(each.sealed() for each in near.values())
    shares = SharesIn(terms.digest, own, sealed).to_bytes()
    cost.of(shares, lambda: one.mask(shares, *PLACE))
    # As many survive as may: those who fail are not among its neighbours, who all confirm.
    gone = set(others[terms.degree :][: terms.clients - document.threshold])
    told = frozenset(range(terms.clients)) - gone
    survivors = Survivors(terms.digest, own, told, terms.clients).to_bytes()
    cost.of(survivors, lambda: one.confirm(survivors))
    statement = survivor_statement(terms, told)
    codes = tuple(each.confirmed(statement) for each in near.values())
    confirmed = Confirmations(terms.digest, own, codes).to_bytes()
    cost.of(confirmed, lambda: one.reveal(confirmed))
    directory = SigningKey(system_entropy)
    certificates = [
        Certificate.issue(directory, campaign.digest, k, each).to_bytes()
        for k, each in identities.items()
    ]
    begin = time.process_time()
    for certificate in certificates:
        Certificate.from_bytes(certificate, directory.public, campaign.digest)
    cost.certificates = time.process_time() - begin
    cost.received[1] += sum(map(len, certificates))
    return cost


def row(clients: int, threshold: int, colluding: int, asked: Asked, devices: int) -> list[object]:
    """Measure some devices in a round; return a row of the table."""
    grid = Grid.plane(0, 0, 1, SIDE)
    start = int(time.time()) - 1000
    campaign = Campaign(
        "costs", grid, rounds=1, first_start=start, round_seconds=10**6, micro_epsilon=10**6,
        sensitivity=1, most_length=asked.length, most_clients=clients, least_honest=1,
        colluding_ppm=0, server="honest",
    )  # fmt: skip
    chosen: Neighbours | None = choose_neighbours(clients, threshold, colluding)
    document = RoundDocument.create(
        campaign, 1, asked, clients=clients, threshold=threshold,
        colluding=colluding, neighbours=chosen, server="honest",
    )  # fmt: skip
    whole, bare = [], []
    for _ in range(devices):
        bare.append(measured(document, campaign, Bare(document, campaign)))
        with tempfile.TemporaryDirectory() as folder:
            device = Device.install(f"{folder}/device", cap_epsilon=8)
            text, digest = campaign.to_json(), campaign.digest
            one = Participant.join(device, text, digest=digest, max_epsilon=20)
            whole.append(measured(document, campaign, one))
    seconds = np.median([cost.seconds for cost in bare], axis=0) * 1000
    ledger = np.median([sum(cost.seconds) for cost in whole]) * 1000
    certificates = np.median([cost.certificates for cost in bare]) * 1000
    return [
        f"{clients:,}", f"{threshold:,}", f"{colluding:,}", document.degree, document.shares,
        f"{asked.length:,} x {document.bits}",
        " + ".join(f"{ms:.1f}" for ms in seconds), f"{seconds.sum():.1f}",
        f"{ledger:.1f}", f"{certificates:.1f}", f"{sum(whole[0].sent):,}",
        f"{sum(whole[0].received):,}",
    ]  # fmt: skip


@click.command("round-costs")
@click.option("--clients", default=10_000, show_default=True)
@click.option("--devices", default=15, show_default=True, help="How many are measured a row.")
@click.option("--length", default=340, show_default=True, help="Squares of a histogram's round.")
@click.option("--level", "levels", default=LEVELS, show_default=True, multiple=True,
              help="Level of a round of distributed-levels.")  # fmt: skip
@click.option("--write", is_flag=True, help="Put the table into docs/rounds.md.")
def round_costs(
    clients: int, devices: int, length: int, levels: tuple[int, ...], write: bool
) -> None:
    """Time and bytes of a device in a round, its noise and its ledger included.

    Rounds of an adaptive histogram, by how many clients may fail and collude, and of levels.
    """
    squares = Asked(nodes=tuple((9, k // 512, k % 512) for k in range(length)))
    cases = [(squares, *each) for each in TOLERATED]
    cases += [(Asked(levels=(level,)), *OF_LEVELS) for level in levels]
    rows = [
        row(clients, round(least * clients), round(colluding * clients), asked, devices)
        for asked, least, colluding in tracked(cases, "rounds")
    ]
    header = ["clients", "threshold", "colluding", "neighbours", "shares needed", "vector"]
    header += ["CPU ms: " + " + ".join(STEPS), "sum", "with ledger"]
    header += ["certificates", "bytes sent", "received"]
    table = markdown(header, rows)
    click.echo(table)
    if write:
        replace_block(DOCS / "rounds.md", "round-costs", table)
