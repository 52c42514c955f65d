"""The campaign document: what an app pins before any round of it is known.

What a round asks for may depend on the noisy sums of the rounds before, so no app can ship it. It
ships the campaign: the grid, how many rounds there are and when, what a person loses at most, and
limits that every round keeps. A device draws by itself, once, which one round it takes part in:
the cohorts of the rounds are disjoint, and each person's loss is that of one round
(docs/rounds.md).
"""

from dataclasses import dataclass
from functools import cached_property
from math import floor
from typing import Any

from client_sdk import canonical
from client_sdk.collection import grid_document, parse_grid
from client_sdk.entropy import Entropy, below
from client_sdk.errors import CollectionError, ParameterError
from client_sdk.grid import Grid
from client_sdk.rounds.asked import MAX_LENGTH
from client_sdk.rounds.graph import MAX_CLIENTS
from client_sdk.rounds.noise import MAX_SENSITIVITY
from client_sdk.series import LAST_SECOND, MAX_WINDOW_SECONDS
from client_sdk.validate import MAX_EPSILON, MICRO, finite_number, shown, written_epsilon

SCHEMA = "ldpspatial/campaign/1"
LONGEST_NAME = 100
MAX_ROUNDS = 10_000
MAX_DELTA_E15 = 10**9  # 1e-6
SERVERS = ("any", "honest")
RELATION = "zero"  # the only one: one user's report replaced by zeros, the number of users public

_NUMBERS = (
    ("rounds", 1, MAX_ROUNDS),
    ("first_start", 0, LAST_SECOND),
    ("round_seconds", 1, MAX_WINDOW_SECONDS),
    ("micro_epsilon", 1, MAX_EPSILON * MICRO),
    ("sensitivity", 1, MAX_SENSITIVITY),
    ("delta_e15", 0, MAX_DELTA_E15),
    ("most_length", 1, MAX_LENGTH),
    ("most_clients", 2, MAX_CLIENTS),
    ("least_honest", 1, MAX_CLIENTS),
    ("colluding_ppm", 0, MICRO - 1),
)
_FIELDS = {"schema", "name", "grid", "server", "relation", *(field for field, _, _ in _NUMBERS)}


@dataclass(frozen=True)
class Campaign:
    """Rounds of one collection, and what each of them has to keep; :meth:`from_json` reads one.

    Attributes
    ----------
    name : str
        What people call it, 1 to 100 visible characters.
    grid : Grid
        Of 2^depth cells on a side.
    rounds : int
        How many rounds there are, and as many disjoint cohorts.
    first_start, round_seconds : int
        When the first round opens, in seconds since 1970-01-01 00:00 UTC, and how long each is
        open; the next one opens when it closes.
    micro_epsilon : int
        What one person loses at most, in millionths: all of it in the one round of its cohort.
    sensitivity : int
        Largest L1 norm of a client's vector that a round may have noise for.
    delta_e15 : int
        Largest delta by which a client's sampler of noise may miss the law, in units of 1e-15. This
        client draws exactly: its own is 0.
    most_length : int
        Longest vector that a round may ask for.
    most_clients : int
        Largest cohort of one secure sum.
    least_honest : int
        Fewest honest survivors that a round may make its noise for.
    colluding_ppm : int
        Least share of the clients, in millionths, that every round takes for colluding.
    server : {"any", "honest"}
        Whether rounds hold against any server, or may trust it to follow the protocol.
    relation : {"zero"}
        Which two inputs are hard to tell apart: a report and zeros in its place.

    Raises
    ------
    CollectionError
        A field breaks its rule.
    """

    name: str
    grid: Grid
    rounds: int
    first_start: int
    round_seconds: int
    micro_epsilon: int
    sensitivity: int
    most_length: int
    most_clients: int
    least_honest: int
    colluding_ppm: int
    server: str = "any"
    delta_e15: int = 0
    relation: str = RELATION

    def __post_init__(self) -> None:
        canonical.label(self.name, "name", LONGEST_NAME)
        if not isinstance(self.grid, Grid):
            raise CollectionError(f"grid must be a Grid, got {type(self.grid).__name__}")
        if self.grid.cells & (self.grid.cells - 1):
            raise CollectionError(f"grid.cells must be a power of two, got {self.grid.cells}")
        for field, low, high in _NUMBERS:
            canonical.integer(getattr(self, field), field, low, high)
        if self.server not in SERVERS:
            raise CollectionError(f"server must be 'any' or 'honest', got {shown(self.server)}")
        if self.relation != RELATION:
            raise CollectionError(f"relation must be {RELATION!r}, got {shown(self.relation)}")
        if self.least_honest > self.most_clients:
            raise CollectionError(
                f"least_honest must be at most most_clients = {self.most_clients}, "
                f"got {self.least_honest}"
            )

    @property
    def depth(self) -> int:
        """The deepest level of the quadtree: the cells of the grid."""
        return self.grid.cells.bit_length() - 1

    @cached_property
    def _text(self) -> str:
        return canonical.dumps({
            "schema": SCHEMA, "name": self.name, "grid": grid_document(self.grid),
            "server": self.server, "relation": self.relation,
            **{field: getattr(self, field) for field, _, _ in _NUMBERS},
        })  # fmt: skip

    def to_json(self) -> str:
        """Return the canonical text."""
        return self._text

    @cached_property
    def digest(self) -> str:
        """Id of the campaign: SHA-256 of the canonical text, in hexadecimal."""
        return canonical.digest(self._text)

    def choose(self, entropy: Entropy) -> list[int]:
        """Draw which round a device takes part in: each is equally likely."""
        return [1 + below(self.rounds, entropy)]

    def start(self, number: int) -> int:
        """Return when a round opens, in seconds since 1970; the one before closes then."""
        return self.first_start + (number - 1) * self.round_seconds

    def round_at(self, seconds: float) -> int | None:
        """Return the round that is open at a time in seconds since 1970, or None."""
        passed = finite_number("seconds", seconds) - self.first_start
        number = floor(passed / self.round_seconds) + 1
        return number if 1 <= number <= self.rounds else None

    @classmethod
    def from_json(
        cls, text: str, digest: str | None = None, max_epsilon: object | None = None
    ) -> "Campaign":
        """Read and verify a document.

        Parameters
        ----------
        text : str
        digest : str, optional
            The id that is expected; another document is refused.
        max_epsilon : number, optional
            The most that a person may lose; without it, 20.

        Raises
        ------
        CollectionError
            The document is malformed, another one, or beyond ``max_epsilon``.
        """
        document = canonical.loads(text, "the campaign document", canonical.LONGEST_JOINED)
        if document.get("schema") != SCHEMA:
            raise CollectionError(f"schema must be {SCHEMA!r}, got {shown(document.get('schema'))}")
        canonical.fields(document, _FIELDS, "the campaign document")
        values: dict[str, Any] = {name: document[name] for name in _FIELDS - {"schema", "grid"}}
        campaign = cls(grid=parse_grid(document["grid"]), **values)
        check_digest("campaign", campaign.digest, digest)
        if max_epsilon is not None:
            cap = written_epsilon("max_epsilon", max_epsilon) * MICRO
            if campaign.micro_epsilon > cap:
                raise CollectionError(
                    f"the campaign's epsilon {campaign.micro_epsilon / MICRO:g} exceeds this "
                    f"device's cap {max_epsilon}"
                )
        return campaign


def check_digest(what: str, found: str, expected: str | None) -> None:
    """Refuse a document other than the one that is expected."""
    canonical.check_expected(expected)
    if expected is not None and expected != found:
        raise CollectionError(
            f"the {what} document was altered: its id is {found}, expected {expected}"
        )


def check_campaign(value: object) -> Campaign:
    """Return a campaign, or refuse what is none."""
    if not isinstance(value, Campaign):
        raise ParameterError(f"campaign must be a Campaign, got {type(value).__name__}")
    return value
