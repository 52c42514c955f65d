"""When an uploader may try again, kept beside the ledger: all uploaders of a device hold to it.

The file holds two times and a number of failures, nothing of reports. A clock that is turned
forward only ends a pause, and one that is turned back begins it again, once: no budget is at stake.
"""

import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

FILE = "uploads.json"
MOST_FAILURES = 20


class _Pause(NamedTuple):
    failures: int  # in a row
    since: float  # seconds since 1970
    not_before: float


_NONE = _Pause(0, 0.0, 0.0)


class BackOff:
    """Failures in a row, and the time before which nothing is sent.

    Parameters
    ----------
    folder : Path
        Where the file lies. Where it cannot be written, an uploader keeps its failures in memory.
    now : callable
        Seconds since 1970.
    longest_s : float
        The longest pause that is ever asked for.
    """

    def __init__(self, folder: Path, now: Callable[[], float], longest_s: float):
        self._file = folder / FILE
        self._now = now
        self._longest_s = longest_s
        self._unwritten: _Pause | None = None

    @property
    def failures(self) -> int:
        """How many attempts failed since one went well."""
        return self._read().failures

    def left(self) -> float:
        """Return the seconds that are still to wait, 0 if none are."""
        pause = self._read()
        now = self._now()
        length = pause.not_before - pause.since
        # What no uploader here would have written, NaN too, must not silence the device for ever.
        if not 0 < length <= self._longest_s:
            return 0.0
        if now < pause.since:  # the clock was turned back: how long ago it began nobody knows
            self._write(_Pause(pause.failures, now, now + length))
            return length
        return max(pause.not_before - now, 0.0)

    def failed(self, pause_s: float) -> None:
        """Write down one more failure, and wait for so long."""
        now = self._now()
        failures = min(self.failures + 1, MOST_FAILURES)
        self._write(_Pause(failures, now, now + min(pause_s, self._longest_s)))

    def check(self) -> None:
        """Make sure that a failure could be written down.

        Raises
        ------
        OSError
            It could not: a new process would not know of it and try again at once.
        """
        # Beside the file: to write it again could undo what another uploader has just written.
        probe = self._file.with_name(f"{FILE}.{secrets.token_hex(8)}")
        try:
            probe.write_text(json.dumps(self._read()._asdict()), encoding="utf-8")
        finally:
            with suppress(OSError):
                probe.unlink(missing_ok=True)

    def succeeded(self) -> None:
        """Forget the failures."""
        self._unwritten = None
        with suppress(OSError):
            self._file.unlink(missing_ok=True)

    def _read(self) -> _Pause:
        if self._unwritten is not None:
            return self._unwritten
        with suppress(OSError, ValueError, TypeError, KeyError, ArithmeticError, RecursionError):
            held = json.loads(self._file.read_text(encoding="utf-8"))
            pause = _Pause(int(held["failures"]), float(held["since"]), float(held["not_before"]))
            if pause.failures >= 0:
                return pause._replace(failures=min(pause.failures, MOST_FAILURES))
        return _NONE

    def _write(self, pause: _Pause) -> None:
        try:
            self._replace(pause)
            self._unwritten = None
        except OSError:
            self._unwritten = pause

    def _replace(self, pause: _Pause) -> None:
        # A name of its own: another uploader may be writing at this moment.
        unfinished = self._file.with_name(f"{FILE}.{secrets.token_hex(8)}")
        try:
            unfinished.write_text(json.dumps(pause._asdict()), encoding="utf-8")
            unfinished.replace(self._file)
        except OSError:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
