"""A ledger in memory, for simulated devices of which there are too many to give each a disk.

:class:`client_sdk.device.Device` and :class:`client_sdk.Uploader` run on it as they are. It keeps
the same account and outbox as :class:`client_sdk.ledger.Ledger`, and none of its promises: nothing
survives the process, and no other process may share it. No app may use such a ledger.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from client_sdk import AlreadyGivenError, BudgetError

Draw = Callable[[], tuple[str, str]]
Joined = tuple[str, list[int] | None]


class MemoryLedger:
    """What a device and its uploader ask of a ledger.

    Parameters
    ----------
    folder : Path
        Where the uploader keeps its pauses.
    cap : int
        Micro-epsilons that the device may spend.
    """

    def __init__(self, folder: Path, cap: int):
        self.folder = folder
        self._cap = cap
        self._spent: dict[str, int] = {}
        self._joined: dict[str, Joined] = {}
        self._events: dict[tuple[str, str], str] = {}
        self._pending: dict[str, str] = {}

    def join(self, digest: str, document: str, choose: Callable[[], list[int]] | None) -> None:
        """Keep a document, with the windows that are answered."""
        if digest not in self._joined:
            self._joined[digest] = document, None if choose is None else choose()

    def joined(self, digest: str) -> Joined | None:
        """Return what was joined."""
        return self._joined.get(digest)

    def spend_once(
        self, event: str, collection: str, micro_epsilon: int, limit: int, draw: Draw
    ) -> str:
        """Debit and draw one report, once for an event."""
        if (given := self._events.get((collection, event))) is not None:
            if given not in self._pending:
                raise AlreadyGivenError("the report of this event was given; nothing was drawn")
            return self._pending[given]
        here = self._spent.get(collection, 0) + micro_epsilon
        if here > limit or sum(self._spent.values()) + micro_epsilon > self._cap:
            raise BudgetError("the budget is spent; nothing was drawn")
        report_id, text = draw()
        self._spent[collection] = here
        self._events[collection, event] = report_id
        self._pending[report_id] = text
        return text

    def outbox(self) -> list[tuple[str, str]]:
        """Return ids and texts of what waits."""
        return sorted(self._pending.items())

    def is_pending(self, report_id: str) -> bool:
        """Tell whether a report waits."""
        return report_id in self._pending

    def waiting(self) -> int:
        """Return how many reports wait."""
        return len(self._pending)

    def acknowledge(self, report_ids: str | Iterable[str]) -> None:
        """Forget reports that have arrived."""
        for each in [report_ids] if isinstance(report_ids, str) else report_ids:
            self._pending.pop(each, None)

    discard = acknowledge

    def discard_newest(self, keep: int) -> int:
        """Discard what waits beyond ``keep`` reports."""
        surplus = list(self._pending)[keep:]
        self.acknowledge(surplus)
        return len(surplus)
