"""Uploader: from the device's ledger to the server, one report per request.

What the network and the server see must not depend on a position, and should not tie the reports
of a device together. So the stored bytes are sent and nothing else, in the order of their random
ids, shuffled; each after a random delay, in a request of its own; all of one length. The waiting
times are drawn before anything of a report is looked at.

A report leaves the outbox when the server has it, or when the server says that it will never
count it. Anything else is temporary: the same bytes are sent again later, after a time that doubles
with every failure and is drawn at random below that, and never before the server's Retry-After.
"""

import http.client
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from client_sdk.back_off import BackOff
from client_sdk.device import Device
from client_sdk.errors import CollectionError, LedgerUnavailableError, ParameterError
from client_sdk.report import Report
from client_sdk.sending import LATER, LONGEST_WAIT, REFUSALS, Answer, Send
from client_sdk.validate import finite_number, shown, whole_number

FIRST_BACK_OFF_S = 30.0
LONGEST_BACK_OFF_S = 6 * 3600.0
IDLE_S = 900.0  # how often to look for new reports
MAX_OUTBOX = 10**6
UNREADABLE = "unreadable"  # what is not a report, so that no server would take it

_chance = random.SystemRandom()


@dataclass
class Pass:
    """What one pass over the outbox did.

    Attributes
    ----------
    delivered : int
        Reports that the server has.
    refused : dict of str to int
        Reports that it will never count, by reason; they were discarded. Under "unreadable" what
        was put into the ledger and is not a report, which was discarded unsent.
    dropped : int
        Reports for which the outbox had no room; they were discarded.
    is_complete : bool
        Whether no attempt failed.
    wait_s : float
        Seconds after which the next pass is due.
    """

    delivered: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    is_complete: bool = True
    wait_s: float = 0.0


class Uploader:
    """Sends what waits in a device's outbox.

    One line each: ``threading.Thread(target=uploader.run, daemon=True).start()`` in a thread,
    ``uploader.run_once()`` in a job, ``await asyncio.to_thread(uploader.run_once)`` in asyncio.
    How long it has to wait lies beside the ledger, so a job may make one each time: before that
    time it sends nothing.

    Parameters
    ----------
    device : Device
    send : callable
        Takes the body of one report (192 bytes), returns an :class:`Answer`. An OSError of it, or
        one of http.client, is a failure that passes.
    max_delay_s : float in [0, 86400]
        Each report is sent after a time between 0 and this, drawn uniformly. The longer, the less
        its arrival tells when it was drawn.
    batch : int in [1, 10,000]
        Reports in one pass at most.
    outbox : int in [1, 1,000,000]
        Reports that may wait. Beyond it the newest are discarded first, and the oldest last; the
        device counts them.
    wait : callable, optional
        How :meth:`run_once` waits a number of seconds; ``time.sleep`` by default.
    now : callable, optional
        A clock in seconds since 1970; ``time.time`` by default.

    Raises
    ------
    ParameterError
        An argument breaks its rule.
    """

    def __init__(
        self,
        device: Device,
        send: Send,
        max_delay_s: float = 60.0,
        batch: int = 100,
        outbox: int = 1000,
        wait: Callable[[float], object] = time.sleep,
        now: Callable[[], float] = time.time,
    ):
        if not isinstance(device, Device):
            raise ParameterError(f"device must be a Device, got {type(device).__name__}")
        if not callable(send):
            raise ParameterError(f"send must be a function, got {type(send).__name__}")
        self._device = device
        self._send = send
        self._max_delay_s = finite_number("max_delay_s", max_delay_s)
        if not 0 <= self._max_delay_s <= 86_400:
            raise ParameterError(f"max_delay_s must be from 0 to 86400, got {max_delay_s}")
        self._batch = whole_number("batch", batch, 1, 10_000)
        self._outbox = whole_number("outbox", outbox, 1, MAX_OUTBOX)
        self._wait = wait
        self._back_off = BackOff(device.folder, now, LONGEST_WAIT + LONGEST_BACK_OFF_S)

    def run_once(self, stop: threading.Event | None = None) -> Pass:
        """Make one pass and return what it did; nothing is sent before its time has come.

        ``stop`` ends it, at once where it waits, and after the report that is being sent.

        What was delivered or refused is written down at once. A report that was delivered and
        not written down, because the process died in between, is sent again, and the server
        counts it once.

        Raises
        ------
        LedgerError
            The outbox cannot be read or written.
        ParameterError
            ``send`` did not return an :class:`Answer`.
        Exception
            What ``send`` raises, other than the errors of a connection.
        """
        _check_event(stop)
        if stop is None:
            return self._pass(self._wait, lambda: False)
        return self._pass(stop.wait, stop.is_set)

    def run(self, stop: threading.Event | None = None) -> None:
        """Make passes for ever, or until ``stop`` is set; meant for a thread of its own.

        A ledger that cannot be used just now (others use it, the disk is full) is a failure that
        passes; any other error ends it.
        """
        _check_event(stop)
        stop = stop or threading.Event()
        while not stop.is_set():
            try:
                wait_s = self._pass(stop.wait, stop.is_set).wait_s
            except LedgerUnavailableError:
                wait_s = self._back_off.left()
            stop.wait(wait_s)

    def _pass(self, wait: Callable[[float], object], is_over: Callable[[], bool]) -> Pass:
        """Make one pass; where the ledger cannot be used, pause as after any failure."""
        try:
            return self._send_waiting(wait, is_over)
        except LedgerUnavailableError:
            if not self._back_off.left():
                self._failed(LATER)
            raise

    def _send_waiting(self, wait: Callable[[float], object], is_over: Callable[[], bool]) -> Pass:
        done = Pass(dropped=self._device.discard_newest(self._outbox))
        if (left := self._back_off.left()) > 0:
            done.is_complete, done.wait_s = False, left
            return done
        waiting = self._device.outbox()
        if waiting:
            self._check_room()
        _chance.shuffle(waiting)
        for report_id, text in waiting[: self._batch]:
            # Before the report is looked at, so that nothing in it can move the delay.
            wait(_chance.uniform(0.0, self._max_delay_s))
            if is_over():
                return done
            if not self._device.is_pending(report_id):  # another uploader, or the app, was quicker
                continue
            answer = self._attempt(text)
            if answer is None or answer.refusal:
                reason = UNREADABLE if answer is None else str(answer.refusal)
                self._device.discard(report_id)
                done.refused[reason] = done.refused.get(reason, 0) + 1
            elif answer.is_delivered:
                self._device.acknowledge(report_id)
                done.delivered += 1
            else:
                done.is_complete, done.wait_s = False, self._failed(answer)
                return done
        self._back_off.succeeded()
        if len(waiting) <= self._batch:
            done.wait_s = _chance.uniform(IDLE_S / 2, IDLE_S)
        return done

    def _check_room(self) -> None:
        """Refuse to send where nothing can be written: what arrived would be sent for ever."""
        try:
            self._back_off.check()
        except OSError as error:
            raise LedgerUnavailableError(
                f"folder {self._device.folder} cannot be written: {error.strerror}; make room; no "
                "report was sent"
            ) from error

    def _attempt(self, text: str) -> Answer | None:
        """Send one report; None if it is not one."""
        try:
            # Its stored bytes; those of the first version were stored without the spaces.
            body = Report.from_json(text).to_body().encode()
        except CollectionError:
            return None
        try:
            return _checked(self._send(body))
        except (OSError, http.client.HTTPException):
            return LATER
        except Exception:
            self._failed(LATER)  # or an app that catches it would come back at once
            raise

    def _failed(self, last: Answer) -> float:
        """Return the time until the next pass, and hold to it."""
        # Drawn below the bound, or devices that failed together would come back together.
        longest = min(FIRST_BACK_OFF_S * 2**self._back_off.failures, LONGEST_BACK_OFF_S)
        pause = last.retry_after_s + _chance.uniform(0.0, longest)
        self._back_off.failed(pause)
        return pause


def _check_event(stop: object) -> None:
    if stop is not None and not (hasattr(stop, "wait") and hasattr(stop, "is_set")):
        raise ParameterError(f"stop must be a threading.Event, got {type(stop).__name__}")


def _checked(answer: object) -> Answer:
    """Return a valid answer: with an invalid one a report could be lost."""
    if not isinstance(answer, Answer):
        raise ParameterError(f"send must return an Answer, got {shown(answer)}")
    if not isinstance(answer.is_delivered, bool):
        raise ParameterError(
            f"is_delivered must be True or False, got {shown(answer.is_delivered)}"
        )
    if answer.refusal is not None and answer.refusal not in REFUSALS:
        known = ", ".join(REFUSALS)
        raise ParameterError(f"refusal must be one of {known}, got {shown(answer.refusal)}")
    if answer.is_delivered and answer.refusal is not None:
        raise ParameterError(f"refusal must be None where delivered, got {answer.refusal!r}")
    asked = answer.retry_after_s
    endless = isinstance(asked, float) and asked == math.inf
    pause = LONGEST_WAIT if endless else finite_number("retry_after_s", asked)
    if pause < 0:
        raise ParameterError(f"retry_after_s must be a number from 0, got {shown(asked)}")
    return replace(answer, retry_after_s=min(pause, LONGEST_WAIT))
