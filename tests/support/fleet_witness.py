"""What a network sees of a fleet and its server: the truth that a store is compared with."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from client_sdk import CollectionError, Report

STORED = "stored"
SPOILT = "spoilt "
_ID = re.compile(rb'"id":"([0-9a-f]{32})"')


class Exchange(NamedTuple):
    """A copy of a body that reached the server, and what that said; times are ticks."""

    body: bytes
    began: int
    ended: int
    verdict: str


@dataclass
class Life:
    """When a collection takes reports, in ticks; None: never so far.

    It does so for sure from ``opened`` to ``closing``, and for sure not before ``opening`` and
    after ``closed``.
    """

    opening: int | None = None
    opened: int | None = None
    closing: int | None = None
    closed: int | None = None


@dataclass
class Witness:
    """What was seen.

    Attributes
    ----------
    exchanges : list of Exchange
    heard : dict of str to set of str
        The verdicts of the server that were passed on, at least in part, by the id of the report.
    sent : dict of str to set of bytes
        The bodies that devices sent, by id.
    lives : dict of str to Life
        By digest of the collection.
    fates : Counter of str
        How many requests met each.
    """

    exchanges: list[Exchange] = field(default_factory=list)
    heard: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    sent: dict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    lives: dict[str, Life] = field(default_factory=lambda: defaultdict(Life))
    fates: Counter[str] = field(default_factory=Counter)
    _now: int = 0

    def tick(self) -> int:
        """Return the next time."""
        self._now += 1
        return self._now

    def story(self, name: str) -> str:
        """Tell what happened to a report, for whom a check fails."""
        copies = [each for each in self.exchanges if name_of(each.body) == name]
        said = ", ".join(f"{each.verdict} at {each.began}-{each.ended}" for each in copies)
        return f"the server said: {said or 'nothing'}; passed on: {sorted(self.heard[name])}"


def report_of(body: bytes) -> Report | None:
    """Return the report of a body, or None if it is none."""
    try:
        return Report.from_json(body.decode())
    except (CollectionError, UnicodeDecodeError):
        return None


def name_of(body: bytes) -> str:
    """Return the id of a report; of what was one and is spoilt, the id after a word."""
    report = report_of(body)
    if report is not None:
        return report.id
    found = _ID.search(body)
    return SPOILT + (found[1].decode() if found else repr(body))
