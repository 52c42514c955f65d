"""A collection that repeats: windows of time, of which a device answers some.

A series is pinned and verified once. Window k has a collection document of its own, which follows
from the series, so the reports of different windows never mix. A device answers ``answers`` of
the ``windows``. It draws which ones when it joins and writes them down; so what it loses over the
whole series is ``answers`` times epsilon, whatever its position, its budget or its clock do.

Why sample windows? Splitting epsilon over all of them costs more in error than it gives in
reports, and repeating an old answer at an old place tells a device that moves from one that does
not (docs/privacy.md, section 4).
"""

from dataclasses import dataclass
from functools import cached_property
from math import floor

from client_sdk import canonical
from client_sdk.collection import Collection, body_of, parse_body
from client_sdk.entropy import Entropy, below
from client_sdk.errors import CollectionError, ParameterError
from client_sdk.grid import Grid
from client_sdk.validate import finite_number, shown, whole_number

SCHEMA = "ldpspatial/series/1"
LONGEST = canonical.LONGEST - 300  # so that the documents of its windows can be read, too
LONGEST_NAME = 100  # code points; the names of the windows' collections have up to 200
LAST_SECOND = 253_402_300_799  # of the year 9999
MAX_WINDOW_SECONDS = 10**9  # some 30 years
MAX_WINDOWS = 100_000

_FIELDS = {
    "schema", "name", "collection", "first_start", "window_seconds", "windows", "answers",
}  # fmt: skip


@dataclass(frozen=True)
class Series:
    """A collection in windows of time; make one with :meth:`create` or :meth:`from_json`.

    Attributes
    ----------
    name : str
        What people call it, 1 to 100 visible characters.
    template : Collection
        What the collections of the windows have in common; one report per device.
    first_start : int
        When the first window opens, in seconds since 1970-01-01 00:00 UTC, leap seconds not
        counted.
    window_seconds : int
        Length of a window; the next one opens when it ends.
    windows : int
        How many there are.
    answers : int
        In how many of them one device answers.

    Examples
    --------
    >>> from client_sdk import Grid
    >>> grid = Grid.from_center(lat=52.52, lon=13.405, side_m=20_000, cells=15)
    >>> week = Series.create("a week", grid, 3.5, first_start=1_800_000_000, window_seconds=86_400,
    ...                      windows=7, answers=1)
    >>> week.window_at(1_800_100_000), week.collection(2).name[:24]
    (2, 'a week - window 2 of 7 -')
    """

    name: str
    template: Collection
    first_start: int
    window_seconds: int
    windows: int
    answers: int

    @classmethod
    def create(
        cls,
        name: str,
        grid: Grid,
        epsilon: object,
        *,
        first_start: int,
        window_seconds: int,
        windows: int,
        answers: int = 1,
        mechanism: str = "dam",
        radius: int | None = None,
        squared_radius: int | None = None,
    ) -> "Series":
        """Design a series; grid, epsilon and mechanism are those of :meth:`Collection.create`.

        Raises
        ------
        ParameterError
            A parameter breaks its rule.
        """
        template = Collection.create(
            "window", grid, epsilon, mechanism, radius, squared_radius=squared_radius
        )
        numbers = [
            whole_number(field, value, low, high)
            for (field, low, high), value in zip(
                _RANGES, (first_start, window_seconds, windows, answers), strict=True
            )
        ]
        series = cls(name, template, *numbers)
        try:
            series._check()
        except CollectionError as error:
            raise ParameterError(str(error)) from None
        return series

    @property
    def epsilon(self) -> float:
        """Privacy loss of one report, as a float for display."""
        return self.template.epsilon

    @property
    def micro_epsilon(self) -> int:
        """Privacy loss of one report in millionths; a device loses ``answers`` times this."""
        return self.template.micro_epsilon

    @cached_property
    def _text(self) -> str:
        return canonical.dumps({
            "schema": SCHEMA, "name": self.name, "collection": body_of(self.template),
            **{field: getattr(self, field) for field, _, _ in _RANGES},
        })  # fmt: skip

    def to_json(self) -> str:
        """Return the canonical text."""
        return self._text

    @cached_property
    def digest(self) -> str:
        """Id of the series: SHA-256 of the canonical text, in hexadecimal."""
        return canonical.digest(self._text)

    def collection(self, window: int) -> Collection:
        """Return the collection of a window, counted from 1.

        Raises
        ------
        ParameterError
            The series has no such window.
        """
        k = whole_number("window", window, 1, self.windows)
        name = f"{self.name} - window {k} of {self.windows} - series {self.digest}"
        # One object for the table, so it is verified once for all windows.
        return Collection(name, self.template.grid, self.template.table, self.micro_epsilon)

    def start(self, window: int) -> int:
        """Return when a window opens, in seconds since 1970; the one before closes then."""
        k = whole_number("window", window, 1, self.windows)
        return self.first_start + (k - 1) * self.window_seconds

    def window_at(self, seconds: float) -> int | None:
        """Return the window that is open at a time in seconds since 1970, or None."""
        passed = finite_number("seconds", seconds) - self.first_start
        k = floor(passed / self.window_seconds) + 1
        return k if 1 <= k <= self.windows else None

    def choose(self, entropy: Entropy) -> list[int]:
        """Draw which windows a device answers: all sets of ``answers`` windows are equally likely.

        Floyd's algorithm (Bentley and Floyd, CACM 1987): for j = windows - answers + 1 .. windows
        take a uniform number of 1..j, or j itself where that number was taken before.
        """
        chosen: set[int] = set()
        for j in range(self.windows - self.answers + 1, self.windows + 1):
            k = 1 + below(j, entropy)
            # After each step chosen is a uniform set of its size in 1..j.
            chosen.add(j if k in chosen else k)
        return sorted(chosen)

    @classmethod
    def from_json(
        cls, text: str, digest: str | None = None, max_epsilon: object | None = None
    ) -> "Series":
        """Read and verify a document; arguments and errors as in :meth:`Collection.from_json`."""
        document = canonical.loads(text, "the series document", canonical.LONGEST)
        if document.get("schema") != SCHEMA:
            raise CollectionError(f"schema must be {SCHEMA!r}, got {shown(document.get('schema'))}")
        canonical.fields(document, _FIELDS, "the series document")
        name = canonical.label(document["name"], "name", LONGEST_NAME)
        template = parse_body(document["collection"])
        numbers = [
            canonical.integer(document[field], field, low, high) for field, low, high in _RANGES
        ]
        series = cls(name, template, *numbers)
        series.verify(digest, max_epsilon)
        return series

    def verify(self, digest: str | None = None, max_epsilon: object | None = None) -> None:
        """Check the claim of the series from its weights; CollectionError if it fails."""
        self._check()
        self.template.verify(max_epsilon=max_epsilon)
        canonical.check_expected(digest)
        if digest is not None and digest != self.digest:
            raise CollectionError(
                f"the series document was altered: its id is {self.digest}, expected {digest}"
            )

    def _check(self) -> None:
        canonical.label(self.name, "name", LONGEST_NAME)
        for field, low, high in _RANGES:
            canonical.integer(getattr(self, field), field, low, high)
        if self.answers > self.windows:
            raise CollectionError(
                f"answers must be at most windows = {self.windows}, got {self.answers}"
            )
        if len(self._text) > LONGEST:
            raise CollectionError(f"the series document must have at most {LONGEST} characters")


_RANGES = (
    ("first_start", 0, LAST_SECOND),
    ("window_seconds", 1, MAX_WINDOW_SECONDS),
    ("windows", 1, MAX_WINDOWS),
    ("answers", 1, MAX_WINDOWS),
)
