"""Uploader: from the device's ledger to the server, one report a request.

What the network and the server see must not depend on a position, and should not tie the reports
of a device together. So the stored bytes are sent and nothing else, in the order of their random
ids, shuffled; each after a random delay, in a request of its own; all of one length. The waiting
times are drawn before anything of a report is looked at.

A report leaves the outbox when the server has it, or when the server says that it will never
count it. Anything else passes: the same bytes are sent again later, after a time that doubles
with every failure and is drawn at random below that, and never before the server's Retry-After.
"""

import http.client
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from client_sdk.device import Device
from client_sdk.errors import LedgerBusyError, ParameterError
from client_sdk.report import BODY_BYTES, Report
from client_sdk.sending import LATER, Answer, Send
from client_sdk.validate import finite_number, whole_number

FIRST_BACK_OFF_S = 30.0
LONGEST_BACK_OFF_S = 6 * 3600.0
IDLE_S = 900.0  # how often to look for new reports
MAX_OUTBOX = 10**6

_chance = random.SystemRandom()


@dataclass
class Pass:
    """What one pass over the outbox did.

    Attributes
    ----------
    delivered : int
        Reports that the server has.
    refused : dict of str to int
        Reports that it will never count, by reason; they were discarded.
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
    An uploader knows in memory alone how long it has to wait: a job that makes one each time
    should come back after ``run_once().wait_s`` seconds.

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
        How to wait a number of seconds; ``time.sleep`` by default.
    now : callable, optional
        A clock in seconds that never goes back; ``time.monotonic`` by default.

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
        now: Callable[[], float] = time.monotonic,
    ):
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
        self._now = now
        self._failures = 0
        self._not_before = now()

    def run_once(self) -> Pass:
        """Make one pass and return what it did; nothing is sent before its time has come.

        What was delivered or refused is written down at once. A report that was delivered and
        not written down, because the process died in between, is sent again, and the server
        counts it once.

        Raises
        ------
        LedgerError
            The outbox cannot be read or written.
        Exception
            What ``send`` raises, other than the errors of a connection.
        """
        return self._pass(self._wait, lambda: False)

    def run(self, stop: threading.Event | None = None) -> None:
        """Make passes for ever, or until ``stop`` is set; meant for a thread of its own.

        A ledger that others use just now is a failure that passes; any other error ends it.
        """
        stop = stop or threading.Event()
        while not stop.is_set():
            try:
                done = self._pass(stop.wait, stop.is_set)
            except LedgerBusyError:
                done = Pass(is_complete=False)
                done.wait_s = self._next(done, LATER, waiting=0)
            stop.wait(done.wait_s)

    def _pass(self, wait: Callable[[float], object], is_over: Callable[[], bool]) -> Pass:
        done = Pass(wait_s=self._not_before - self._now())
        if done.wait_s > 0:
            done.is_complete = False
            return done
        done.dropped = self._device.discard_newest(self._outbox)
        texts = self._device.pending()
        _chance.shuffle(texts)
        answer = LATER
        for text in texts[: self._batch]:
            report_id = Report.from_json(text).id
            wait(_chance.uniform(0.0, self._max_delay_s))
            if is_over():
                break
            answer = self._attempt(text)
            if answer.is_delivered:
                self._device.acknowledge(report_id)
                done.delivered += 1
            elif answer.refusal:
                self._device.discard(report_id)
                done.refused[answer.refusal] = done.refused.get(answer.refusal, 0) + 1
            else:
                done.is_complete = False
                break
        done.wait_s = self._next(done, answer, len(texts))
        return done

    def _attempt(self, text: str) -> Answer:
        try:
            return self._send(text.encode().ljust(BODY_BYTES))
        except (OSError, http.client.HTTPException):
            return LATER

    def _next(self, done: Pass, last: Answer, waiting: int) -> float:
        """Return the time until the next pass, and hold to it."""
        if done.is_complete:
            self._failures = 0
            pause = 0.0 if waiting > self._batch else _chance.uniform(IDLE_S / 2, IDLE_S)
        else:
            longest = min(FIRST_BACK_OFF_S * 2**self._failures, LONGEST_BACK_OFF_S)
            self._failures = min(self._failures + 1, 20)
            pause = last.retry_after_s + _chance.uniform(0.0, longest)
        self._not_before = self._now() + (0.0 if done.is_complete else pause)
        return pause
