"""The round document: all that one round asks for and promises, in whole numbers.

Its id is the SHA-256 of its canonical text and enters the terms that all clients of a session sign
under, so that clients of one session agree on tree, epsilon, noise and threshold. A device trusts
none of it: :meth:`RoundDocument.verify` holds it to the campaign that the app has pinned, and
computes from the numbers that the claim is true (docs/rounds.md, section 3).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from client_sdk import canonical
from client_sdk.errors import CollectionError, ParameterError
from client_sdk.rounds.asked import Asked
from client_sdk.rounds.campaign import (
    MAX_DELTA_E15,
    MAX_ROUNDS,
    RELATION,
    SERVERS,
    Campaign,
    check_campaign,
    check_digest,
)
from client_sdk.rounds.graph import FAILURE, MAX_CLIENTS, Neighbours, disconnected, exposed
from client_sdk.rounds.noise import MAX_BITS, MAX_SENSITIVITY, NoiseShare
from client_sdk.rounds.terms import SESSION_BYTES, Terms
from client_sdk.validate import MAX_EPSILON, MICRO, shown

SCHEMA = "ldpspatial/round/3"
WRAP_BITS = 40  # a total wraps with a probability of at most 2^-39 an element

_NUMBERS = (
    ("round", 1, MAX_ROUNDS),
    ("cohorts", 1, MAX_ROUNDS),
    ("micro_epsilon", 1, MAX_EPSILON * MICRO),
    ("sensitivity", 1, MAX_SENSITIVITY),
    ("delta_e15", 0, MAX_DELTA_E15),
    ("clients", 2, MAX_CLIENTS),
    ("threshold", 2, MAX_CLIENTS),
    ("colluding", 0, MAX_CLIENTS - 1),
    ("honest", 1, MAX_CLIENTS),
    ("bits", 1, MAX_BITS),
    ("degree", 1, MAX_CLIENTS - 1),
    ("shares", 2, MAX_CLIENTS),
)
_FIELDS = {"schema", "campaign", "asked", "server", "relation", *(f for f, _, _ in _NUMBERS)}


@dataclass(frozen=True)
class RoundDocument:
    """One round of a campaign; :meth:`from_json` reads one and holds it to its campaign.

    Attributes
    ----------
    campaign : str
        Digest of the campaign.
    round : int
        Which of its rounds, from 1.
    cohorts : int
        How many disjoint cohorts there are: as many as rounds.
    asked : Asked
        The elements of a vector: levels or nodes of the quadtree.
    micro_epsilon : int
        What the round costs a person, in millionths.
    sensitivity : int
        Largest L1 norm of a client's vector, Delta.
    clients : int
        Most clients of one secure sum, n.
    threshold : int
        Fewest clients whose sum is revealed, T: up to n - T may fail.
    colluding : int
        How many may collude with the server, or leave out their noise, c.
    honest : int
        Fewest honest survivors that noise shares are made for, h, at most T - c.
    bits : int
        Sums are modulo 2^bits.
    degree, shares : int
        How many neighbours a client shares its secrets with, and how many shares give one back;
        n - 1 and T on the complete graph.
    server : {"any", "honest"}
        Against any server, or one that follows the protocol.
    delta_e15 : int
        In units of 1e-15; 0 where all clients draw exactly.
    relation : {"zero"}

    Raises
    ------
    CollectionError
        A field breaks its rule.
    """

    campaign: str
    round: int
    cohorts: int
    asked: Asked
    micro_epsilon: int
    sensitivity: int
    clients: int
    threshold: int
    colluding: int
    honest: int
    bits: int
    degree: int
    shares: int
    server: str = "any"
    delta_e15: int = 0
    relation: str = RELATION

    def __post_init__(self) -> None:
        if not isinstance(self.campaign, str) or not _is_digest(self.campaign):
            raise CollectionError("campaign must be a digest of 64 hexadecimal digits")
        if not isinstance(self.asked, Asked):
            raise CollectionError(f"asked must be an Asked, got {type(self.asked).__name__}")
        for field, low, high in _NUMBERS:
            canonical.integer(getattr(self, field), field, low, high)
        if self.server not in SERVERS:
            raise CollectionError(f"server must be 'any' or 'honest', got {shown(self.server)}")
        if self.relation != RELATION:
            raise CollectionError(f"relation must be {RELATION!r}, got {shown(self.relation)}")
        self._check_claim()

    @classmethod
    def create(
        cls,
        campaign: Campaign,
        number: int,
        asked: Asked,
        *,
        clients: int,
        threshold: int,
        colluding: int = 0,
        neighbours: Neighbours | None = None,
        server: str = "any",
        sensitivity: int | None = None,
    ) -> "RoundDocument":
        """Return the document of a round that uses all that its campaign allows.

        All of epsilon, noise for T - c honest survivors, the smallest modulus that holds the sums.

        Parameters
        ----------
        campaign : Campaign
        number : int
            Which round.
        asked, clients, threshold, colluding, server
            As the attributes.
        neighbours : Neighbours, optional
            From :func:`choose_neighbours`, where the server is trusted to follow the protocol.
        sensitivity : int, optional
            By default what one position needs.

        Raises
        ------
        CollectionError
            The round breaks a rule, or a limit of its campaign.
        """
        campaign = check_campaign(campaign)
        delta = asked.norm if sensitivity is None else sensitivity
        graph = (clients - 1, threshold)
        if neighbours is not None and neighbours.degree < clients - 1:
            graph = neighbours.degree, neighbours.shares
        honest = threshold - colluding
        bits = least_bits(clients, max(honest, 1), delta, campaign.micro_epsilon)
        made = cls(
            campaign.digest, number, campaign.rounds, asked, campaign.micro_epsilon, delta,
            clients, threshold, colluding, honest, bits, *graph, server,
        )  # fmt: skip
        made.verify(campaign)
        return made

    @property
    def neighbours(self) -> Neighbours | None:
        """The circle of neighbours; None on the complete graph."""
        if (self.degree, self.shares) == (self.clients - 1, self.threshold):
            return None
        return Neighbours(self.degree, self.shares)

    @property
    def length(self) -> int:
        """How many elements a vector has."""
        return self.asked.length

    @property
    def noise(self) -> NoiseShare:
        """The law of the noise that a client adds to each element."""
        return NoiseShare(Fraction(self.micro_epsilon, MICRO), self.sensitivity, self.honest)

    @cached_property
    def _text(self) -> str:
        return canonical.dumps({
            "schema": SCHEMA, "campaign": self.campaign, "asked": self.asked.document(),
            "server": self.server, "relation": self.relation,
            **{field: getattr(self, field) for field, _, _ in _NUMBERS},
        })  # fmt: skip

    def to_json(self) -> str:
        """Return the canonical text."""
        return self._text

    @cached_property
    def digest(self) -> str:
        """Id of the round: SHA-256 of the canonical text, in hexadecimal."""
        return canonical.digest(self._text)

    def terms(self, session: bytes) -> Terms:
        """Return the terms of one session: those of the round, its digest included.

        Parameters
        ----------
        session : bytes, 16
            Drawn afresh by the server.

        Raises
        ------
        ParameterError
            Another size.
        """
        return Terms(
            session=session,
            clients=self.clients,
            threshold=self.threshold,
            bits=self.bits,
            length=self.length,
            neighbours=self.neighbours,
            colluding=self.colluding,
            honest_server=self.server == "honest",
            document=bytes.fromhex(self.digest),
        )

    def claim(self) -> str:
        """Return in words what taking part promises, and what that rests on."""
        server = (
            "whatever the server does"
            if self.server == "any"
            else "if the server follows the protocol"
        )
        # No sum is wrong where a circle was unlucky, but its terms may show.
        circle = "" if self.neighbours is None else " and but for a circle that is unlucky, 2^-40"
        delta = f", delta {self.delta_e15}e-15" if self.delta_e15 else ""
        return (
            f"distributed differential privacy, epsilon {self.micro_epsilon / MICRO:g}{delta}, "
            "per user, one user's report replaced by zeros, the number of users public; "
            f"{server}{circle}, if at least {self.honest} honest clients are in a sum, which holds "
            f"if at most {self.colluding} of the at most {self.clients} clients of its session, "
            "whom the server seats, collude, and nobody breaks X25519, HKDF-SHA256, HMAC-SHA256, "
            "ChaCha20-Poly1305 or Ed25519"
        )

    @classmethod
    def from_json(cls, text: str, campaign: Campaign, digest: str | None = None) -> "RoundDocument":
        """Read a document and hold it to its campaign.

        Parameters
        ----------
        text : str
        campaign : Campaign
            The one that the app has pinned.
        digest : str, optional
            The id that is expected.

        Raises
        ------
        CollectionError
            The document is malformed, another one, not private as it claims, or beyond the
            campaign's limits.
        """
        document = canonical.loads(text, "the round document", canonical.LONGEST_JOINED)
        if document.get("schema") != SCHEMA:
            raise CollectionError(f"schema must be {SCHEMA!r}, got {shown(document.get('schema'))}")
        canonical.fields(document, _FIELDS, "the round document")
        values: dict[str, Any] = {name: document[name] for name in _FIELDS - {"schema", "asked"}}
        # First: what a circle claims is computed in exact fractions, which takes long for many.
        pinned = check_campaign(campaign)
        canonical.integer(values["clients"], "clients", 2, pinned.most_clients)
        _check_server(values["server"], pinned)
        found = cls(asked=Asked.parse(document["asked"]), **values)
        check_digest("round", found.digest, digest)
        found.verify(campaign)
        return found

    def verify(self, campaign: Campaign) -> None:
        """Hold this round to the limits of its campaign; what it claims was checked when made.

        Raises
        ------
        CollectionError
            A limit is not kept; the message names it.
        """
        pinned = check_campaign(campaign)
        if self.campaign != pinned.digest:
            raise CollectionError("campaign must be the digest of the campaign that was pinned")
        if self.cohorts != pinned.rounds:
            raise CollectionError(f"cohorts must be {pinned.rounds}, got {self.cohorts}")
        for field, found, most in (
            ("round", self.round, pinned.rounds),
            ("micro_epsilon", self.micro_epsilon, pinned.micro_epsilon),
            ("sensitivity", self.sensitivity, pinned.sensitivity),
            ("delta_e15", self.delta_e15, pinned.delta_e15),
            ("the length of a vector", self.length, pinned.most_length),
            ("the depth of what is asked", self.asked.depth, pinned.depth),
            ("clients", self.clients, pinned.most_clients),
        ):
            if found > most:
                raise CollectionError(
                    f"{field} must be at most {most} in its campaign, got {found}"
                )
        if self.honest < pinned.least_honest:
            raise CollectionError(
                f"honest must be at least {pinned.least_honest} in its campaign, got {self.honest}"
            )
        if self.colluding * MICRO < pinned.colluding_ppm * self.clients:
            least = -(-pinned.colluding_ppm * self.clients // MICRO)
            raise CollectionError(
                f"colluding must be at least {least} in its campaign, got {self.colluding}"
            )
        _check_server(self.server, pinned)

    def _check_claim(self) -> None:
        """Check that the numbers keep what they claim, whoever chose them."""
        if self.sensitivity < self.asked.norm:
            raise CollectionError(
                f"sensitivity must be at least {self.asked.norm} for what is asked, "
                f"got {self.sensitivity}"
            )
        if self.honest > self.threshold - self.colluding:
            # Noise shares made for more than survive leave too little noise in the sum.
            raise CollectionError(
                f"honest must be at most threshold - colluding = "
                f"{self.threshold - self.colluding}, got {self.honest}"
            )
        complete = self.clients - 1, self.threshold
        if self.degree >= self.clients - 1 and (self.degree, self.shares) != complete:
            raise CollectionError(
                f"degree and shares must be {self.clients - 1} and {self.threshold} where all are "
                f"neighbours, or degree less, got {self.degree} and {self.shares}"
            )
        least = least_bits(self.clients, self.honest, self.sensitivity, self.micro_epsilon)
        if self.bits < least:
            raise CollectionError(f"bits must be at least {least}, or sums wrap, got {self.bits}")
        try:
            terms = self.terms(bytes(SESSION_BYTES))  # 2 T > n + c, or an honest server by name
        except ParameterError as error:
            raise CollectionError(str(error)) from None
        if not terms.complete:
            numbers = self.clients, self.threshold, self.colluding, self.degree
            unsafe = exposed(*numbers, self.shares)
            if unsafe <= FAILURE:
                unsafe += disconnected(*numbers)
            if unsafe > FAILURE:
                raise CollectionError(
                    "degree and shares must hide a client among its neighbours but for a "
                    f"probability of 2^-40, got {self.degree} and {self.shares}"
                )


def least_bits(clients: int, honest: int, sensitivity: int, micro_epsilon: int) -> int:
    """Return the fewest bits with which the total of n clients hardly ever wraps.

    Contributions add up to n Delta at most. The noise of all n shares is X - Y, both Polya(r, a)
    with r = n / h. By Markov's inequality for a^(-X/2), whose mean is (1 + a^(1/2))^r <= 2^r, X
    reaches m with a probability of at most 2^r a^(m/2) = 2^r e^(-m eps / (2 Delta)), which is
    2^-40 or less from m = 2 (r + 40) Delta / eps on.
    """
    most = clients * sensitivity
    ratio = -(-clients // honest)
    noise = -(-2 * (ratio + WRAP_BITS) * sensitivity * MICRO // micro_epsilon)
    return (most + noise).bit_length() + 1  # one more for the sign


def _check_server(server: object, campaign: Campaign) -> None:
    """Refuse a round that trusts its server where the campaign trusts none."""
    if server == "honest" and campaign.server != "honest":
        raise CollectionError("server must be 'any': the campaign trusts no server")


def _is_digest(text: str) -> bool:
    return len(text) == 64 and all(c in "0123456789abcdef" for c in text)
