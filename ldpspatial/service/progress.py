"""How far a collection is: two numbers above all, what was received and what counts."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ldpspatial.service.closing import counted_so_far
from ldpspatial.service.store import Held, Store
from ldpspatial.service.uploads import UNKNOWN


@dataclass(frozen=True)
class Progress:
    """Numbers of a collection, for operators.

    Attributes
    ----------
    digest, name, state : str
    minimum : int
        Reports that must count before the collection is released.
    received : int
        Reports that were acknowledged, copies among them.
    refused : dict of str to int
        Reports that were not stored, by reason.
    counted, repeated, conflicting : int or None
        None while the collection is open or being counted: repeated ids are looked for when it is
        closed.
        received = counted + repeated + conflicting.
    """

    digest: str
    name: str
    state: str
    minimum: int
    received: int
    refused: dict[str, int]
    counted: int | None = None
    repeated: int | None = None
    conflicting: int | None = None


async def progress_of(
    store: Store, held: Held, unwritten: Mapping[tuple[int, str], int] | None = None
) -> Progress:
    """Return the progress of a collection; see :func:`progress_of_all`."""
    return (await progress_of_all(store, [held], unwritten))[0]


async def progress_of_all(
    store: Store,
    collections: Sequence[Held],
    unwritten: Mapping[tuple[int, str], int] | None = None,
) -> list[Progress]:
    """Return the progress of some collections.

    Parameters
    ----------
    store : Store
    collections : sequence of Held
    unwritten : mapping, optional
        Refusals that are not in the store yet, as of :meth:`Store.refused`.
    """
    refused: dict[int, Counter[str]] = {held.number: Counter() for held in collections}
    for numbers in (await store.refused(), unwritten or {}):
        for (number, reason), n in numbers.items():
            if number in refused:
                refused[number][reason] += n
    return [await _progress(store, held, dict(refused[held.number])) for held in collections]


async def refused_for_none(
    store: Store, unwritten: Mapping[tuple[int, str], int] | None = None
) -> dict[str, int]:
    """Return how many reports were refused, by reason, that name no collection of the store.

    Parameters
    ----------
    store : Store
    unwritten : mapping, optional
        As of :func:`progress_of_all`.
    """
    refused: Counter[str] = Counter()
    for numbers in (await store.refused(), unwritten or {}):
        for (number, reason), n in numbers.items():
            if number == UNKNOWN:
                refused[reason] += n
    return dict(refused)


async def _progress(store: Store, held: Held, refused: dict[str, int]) -> Progress:
    found = await counted_so_far(store, held)
    return Progress(
        digest=held.digest,
        name=json.loads(held.document)["name"],  # its digest was compared: verified when added
        state=held.state,
        minimum=held.minimum,
        received=held.received,
        refused=refused,
        counted=found.n if found else None,
        repeated=found.repeated if found else None,
        conflicting=found.conflicting if found else None,
    )
