"""When an uploader may try again, kept beside the ledger: a job begins anew each time.

The file holds a time and a number of failures, nothing of reports. A clock that is turned back
lengthens no pause, and one that is turned forward only ends it: no budget hangs on it.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

FILE = "uploads.json"
MOST_FAILURES = 20


class BackOff:
    """Failures in a row, and the time before which nothing is sent.

    Parameters
    ----------
    folder : Path
        Where the file lies. One that cannot be read or written is as if there were none.
    now : callable
        Seconds since 1970.
    longest_s : float
        The longest pause that is ever asked for.
    """

    def __init__(self, folder: Path, now: Callable[[], float], longest_s: float):
        self._file = folder / FILE
        self._now = now
        self._longest_s = longest_s
        self.failures = 0
        self._not_before = 0.0
        with suppress(OSError, ValueError, TypeError, KeyError, ArithmeticError, RecursionError):
            held = json.loads(self._file.read_text(encoding="utf-8"))
            failures, not_before = int(held["failures"]), float(held["not_before"])
            if failures >= 0:
                self.failures, self._not_before = min(failures, MOST_FAILURES), not_before

    def left(self) -> float:
        """Return the seconds that are still to wait, 0 if none are."""
        left = self._not_before - self._now()
        return left if 0 < left <= self._longest_s else 0.0

    def failed(self, pause_s: float) -> None:
        """Write down one failure more, and wait for so long."""
        self.failures = min(self.failures + 1, MOST_FAILURES)
        self._not_before = self._now() + min(pause_s, self._longest_s)
        unfinished = self._file.with_name(f"{FILE}.{os.getpid()}")
        text = json.dumps({"failures": self.failures, "not_before": self._not_before})
        with suppress(OSError):
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(self._file)

    def succeeded(self) -> None:
        """Forget the failures."""
        if self.failures:
            self.failures, self._not_before = 0, 0.0
            with suppress(OSError):
                self._file.unlink(missing_ok=True)
