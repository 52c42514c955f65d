"""The uploader over a fake clock: what it sends, when, and what it makes of the answers."""

import asyncio
import http.client
import re
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import kstest

from client_sdk import Answer, Device, Ledger, Report, Uploader, uploader
from client_sdk.errors import LedgerBusyError, LedgerUnavailableError, ParameterError
from client_sdk.report import BODY_BYTES
from client_sdk.sending import DELIVERED, LATER, Send
from tests.support.uploads import COLLECTION, Clock, fill, make, sender

FALSE_ALARM = 1e-6


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def device(tmp_path: Path) -> Device:
    device = Device.install(tmp_path / "device", cap_epsilon=10_000)
    device.join(COLLECTION.to_json(), digest=COLLECTION.digest, max_epsilon=4)
    return device


# What is sent


def test_each_report_goes_out_alone_as_it_is_stored(device: Device, clock: Clock) -> None:
    reports = fill(device, 5)
    stored = device.pending()
    bodies: list[bytes] = []
    done = make(device, sender([DELIVERED], bodies), clock).run_once()
    assert sorted(body.decode() for body in bodies) == sorted(stored)
    assert {Report.from_json(body.decode()) for body in bodies} == set(reports)
    assert {len(body) for body in bodies} == {BODY_BYTES}
    assert (done.delivered, done.refused, done.dropped, done.is_complete) == (5, {}, 0, True)
    assert (device.waiting(), device.discarded()) == (0, 0)


def test_the_order_of_sending_is_neither_that_of_drawing_nor_that_of_ids(
    device: Device, clock: Clock
) -> None:
    drawn = [report.id for report in fill(device, 20)]
    bodies: list[bytes] = []
    make(device, sender([DELIVERED], bodies), clock).run_once()
    sent = [Report.from_json(body.decode()).id for body in bodies]
    assert sorted(sent) == sorted(drawn)
    assert sent not in (drawn, sorted(drawn))  # equal once in 20! runs


def test_a_retry_sends_the_same_bytes(device: Device, clock: Clock) -> None:
    fill(device, 1)
    bodies: list[bytes] = []
    upload = make(device, sender([LATER, LATER, DELIVERED], bodies), clock)
    passes = []
    for _ in range(3):
        passes.append(upload.run_once())
        clock.now += passes[-1].wait_s
    assert [done.delivered for done in passes] == [0, 0, 1]
    assert len(bodies) == 3
    assert len(set(bodies)) == 1


# When


def test_delays_are_uniform(device: Device, clock: Clock) -> None:
    """Kolmogorov-Smirnov at 1e-6; a fixed or a halved delay is far beyond it."""
    fill(device, 200)
    upload = make(device, sender([DELIVERED]), clock, max_delay_s=40.0)
    for _ in range(2):
        upload.run_once()
    assert len(clock.waits) == 200
    assert kstest(clock.waits, "uniform", args=(0, 40)).pvalue > FALSE_ALARM
    assert kstest([w / 2 for w in clock.waits], "uniform", args=(0, 40)).pvalue < FALSE_ALARM


def timed(answers: list[Answer], clock: Clock, moments: list[float]) -> Send:
    left = iter(answers)

    def send(_: bytes) -> Answer:
        moments.append(clock.now)
        return next(left)

    return send


def test_delays_and_retries_do_not_depend_on_the_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two devices far from each other, the same chance and the same answers: one pattern."""

    class Counted:
        """Numbers that repeat; a shuffle that takes no number of the reports'."""

        def __init__(self) -> None:
            self.k = 0

        def uniform(self, low: float, high: float) -> float:
            self.k += 1
            return low + (high - low) * (self.k * 0.618 % 1)

        def shuffle(self, texts: list[str]) -> None:
            texts.reverse()

    patterns = []
    answers = [DELIVERED, LATER, Answer(refusal="malformed"), Answer(retry_after_s=77), DELIVERED]
    for name, place in (("west", (52.45, 13.25)), ("east", (52.60, 13.55))):
        monkeypatch.setattr(uploader, "_chance", Counted())
        device = Device.install(tmp_path / name, cap_epsilon=10_000)
        device.join(COLLECTION.to_json(), digest=COLLECTION.digest, max_epsilon=4)
        for k in range(9):
            device.report(COLLECTION, *place, event=str(k))
        clock = Clock()
        moments: list[float] = []
        upload = make(device, timed(answers * 9, clock, moments), clock)
        pattern = []
        for _ in range(8):
            done = upload.run_once()
            clock.now += done.wait_s
            pattern.append((done, device.waiting()))
        patterns.append((pattern, moments, clock.waits))
    assert patterns[0] == patterns[1]
    assert len(patterns[0][1]) > 9


# What becomes of a report


@pytest.mark.parametrize("reason", ["closed", "foreign", "malformed", "conflict"])
def test_a_report_that_is_refused_for_good_leaves_and_stays_spent(
    device: Device, clock: Clock, reason: str
) -> None:
    fill(device, 3)
    answers = [DELIVERED, Answer(refusal=reason), DELIVERED]
    done = make(device, sender(answers), clock).run_once()
    assert (done.delivered, done.refused, done.is_complete) == (2, {reason: 1}, True)
    assert (device.waiting(), device.discarded(), device.spent()) == (0, 1, 3 * 3_500_000)


def test_one_bad_report_does_not_block_the_others(device: Device, clock: Clock) -> None:
    """A server that fails at one report for ever still gets all the others."""
    poison = fill(device, 6)[0].id
    upload = make(
        device,
        lambda body: LATER if poison.encode() in body else DELIVERED,
        clock,
        max_delay_s=0,
    )
    for _ in range(60):  # each pass is stopped by the bad one at a random place
        clock.now += upload.run_once().wait_s
        if device.waiting() == 1:
            break
    assert [Report.from_json(text).id for text in device.pending()] == [poison]


@pytest.mark.parametrize(
    "error", [OSError("unreachable"), TimeoutError(), http.client.RemoteDisconnected()]
)
def test_a_connection_that_fails_is_tried_again_later(
    device: Device, clock: Clock, error: Exception
) -> None:
    fill(device, 2)

    def send(_: bytes) -> Answer:
        raise error

    done = make(device, send, clock).run_once()
    assert (done.delivered, done.is_complete, device.waiting()) == (0, False, 2)
    assert 0 <= done.wait_s <= 30


def test_an_error_of_the_app_passes_and_what_was_delivered_is_kept_in_mind(
    device: Device, clock: Clock
) -> None:
    fill(device, 3)
    bodies: list[bytes] = []

    def send(body: bytes) -> Answer:
        bodies.append(body)
        if len(bodies) == 3:
            raise ZeroDivisionError
        return DELIVERED

    with pytest.raises(ZeroDivisionError):
        make(device, send, clock).run_once()
    assert [text.encode() for text in device.pending()] == bodies[2:]


def test_the_outbox_is_bounded_and_the_oldest_stay_the_longest(
    device: Device, clock: Clock
) -> None:
    reports = fill(device, 12)
    done = make(device, sender([LATER]), clock, outbox=7).run_once()
    assert (done.dropped, device.discarded(), device.waiting()) == (5, 5, 7)
    kept = {Report.from_json(text) for text in device.pending()}
    assert kept == set(reports[:7])


def test_a_pass_has_a_limit_and_the_next_follows_at_once(device: Device, clock: Clock) -> None:
    fill(device, 5)
    upload = make(device, sender([DELIVERED]), clock, batch=2)
    passes = [upload.run_once() for _ in range(3)]
    assert [done.delivered for done in passes] == [2, 2, 1]
    assert [done.wait_s == 0 for done in passes] == [True, True, False]
    assert 450 <= passes[2].wait_s <= 900
    assert upload.run_once().delivered == 0  # nothing keeps a job from looking earlier


def test_the_outbox_is_bounded_while_nothing_may_be_sent(device: Device, clock: Clock) -> None:
    upload = make(device, sender([Answer(retry_after_s=80_000)]), clock, outbox=5)
    fill(device, 1)
    upload.run_once()
    fill(device, 12)
    done = upload.run_once()
    assert (done.is_complete, done.dropped, device.waiting()) == (False, 7, 5)


def test_what_is_no_report_is_discarded_unsent_and_stops_nobody(
    device: Device, clock: Clock
) -> None:
    fill(device, 3)
    for number, text in enumerate(("hello", "{}", "x" * 1000)):
        Ledger(device.folder / "ledger.db").spend(
            "c", 1, None, lambda n=number, t=text: (f"{n}", t)
        )
    bodies: list[bytes] = []
    done = make(device, sender([DELIVERED], bodies), clock).run_once()
    assert (done.delivered, done.refused, done.is_complete) == (3, {"unreadable": 3}, True)
    assert {len(body) for body in bodies} == {BODY_BYTES}
    assert device.waiting() == 0


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "send must return an Answer, got None"),
        (True, "send must return an Answer, got True"),
        (201, "send must return an Answer, got 201"),
        (Answer(refusal="whatever"), "refusal must be one of closed, foreign"),
        (Answer(retry_after_s=float("nan")), "retry_after_s must be finite, got nan"),
        (Answer(retry_after_s=-1000.0), "retry_after_s must be a number from 0, got -1000"),
        (Answer(is_delivered=503), "is_delivered must be True or False, got 503"),  # type: ignore[arg-type]
        (Answer(is_delivered="no"), "is_delivered must be True or False, got 'no'"),  # type: ignore[arg-type]
        (Answer(is_delivered=True, refusal="closed"), "refusal must be None where delivered"),
        (Answer(retry_after_s=Decimal("sNaN")), "retry_after_s must be finite"),  # type: ignore[arg-type]
        (Answer(retry_after_s="5"), "retry_after_s must be a number, got '5'"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_answer_loses_nothing(
    device: Device, clock: Clock, answer: Any, message: str
) -> None:
    fill(device, 2)
    bodies: list[bytes] = []
    upload = make(device, sender([answer], bodies), clock, max_delay_s=0)
    with pytest.raises(ParameterError, match=re.escape(message)):
        upload.run_once()
    assert (device.waiting(), len(bodies)) == (2, 1)
    assert not upload.run_once().is_complete  # and does not come back at once
    assert len(bodies) == 1


def test_a_pass_can_be_stopped_while_it_waits(device: Device) -> None:
    fill(device, 3)
    stop = threading.Event()
    bodies: list[bytes] = []
    upload = Uploader(device, sender([DELIVERED], bodies), max_delay_s=86_400)
    thread = threading.Thread(target=upload.run_once, args=(stop,))
    thread.start()
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
    assert (bodies, device.waiting()) == ([], 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"send": None}, "send must be a function, got NoneType"),
        ({"max_delay_s": -1}, "max_delay_s must be from 0 to 86400, got -1"),
        ({"max_delay_s": "1"}, "max_delay_s must be a number"),
        ({"batch": 0}, "batch must be a whole number from 1"),
        ({"outbox": 10**7}, "outbox must be a whole number from 1"),
    ],
)
def test_bad_arguments_are_named(device: Device, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Uploader(device, **{"send": sender([DELIVERED]), **change})


def test_what_was_delivered_is_known_at_once(device: Device, clock: Clock) -> None:
    """A process that dies in the middle of a pass does not send the same reports for ever."""
    fill(device, 4)
    waiting = []

    def send(_: bytes) -> Answer:
        waiting.append(device.waiting())
        return DELIVERED

    make(device, send, clock).run_once()
    assert waiting == [4, 3, 2, 1]


def test_a_thread_outlives_a_busy_ledger_and_stops_within_a_delay(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(device, 2)
    outbox, busy = Device.outbox, [LedgerBusyError("locked")]

    def sometimes_busy(self: Device) -> list[tuple[str, str]]:
        if busy:
            raise busy.pop()
        return outbox(self)

    monkeypatch.setattr(Device, "outbox", sometimes_busy)
    monkeypatch.setattr(uploader, "FIRST_BACK_OFF_S", 0.0)
    stop, sent = threading.Event(), threading.Event()

    def send(_: bytes) -> Answer:
        sent.set()
        monkeypatch.setattr(upload, "_max_delay_s", 1e9)  # the next report would take years
        return DELIVERED

    upload = Uploader(device, send, max_delay_s=0)
    thread = threading.Thread(target=upload.run, args=(stop,))
    thread.start()
    assert sent.wait(60)
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
    assert (device.waiting(), busy) == (1, [])


# In a thread, a job, asyncio: one line


def in_a_thread(upload: Uploader) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=upload.run, args=(stop,))
    thread.start()
    while upload._device.waiting():
        pass
    stop.set()
    thread.join()


def in_a_job(upload: Uploader) -> None:
    upload.run_once()


def in_asyncio(upload: Uploader) -> None:
    async def main() -> None:
        await asyncio.to_thread(upload.run_once)

    asyncio.run(main())


@pytest.mark.parametrize("way", [in_a_thread, in_a_job, in_asyncio])
def test_it_runs_anywhere(device: Device, way: Callable[[Uploader], None]) -> None:
    fill(device, 3)
    bodies: list[bytes] = []
    way(Uploader(device, sender([DELIVERED], bodies), max_delay_s=0))
    assert (len(bodies), device.waiting()) == (3, 0)


def test_what_left_the_outbox_during_a_pass_is_not_sent(device: Device, clock: Clock) -> None:
    """Another uploader, or the app, may have dealt with it meanwhile."""
    first, *rest = fill(device, 4)
    bodies: list[bytes] = []

    def send(body: bytes) -> Answer:
        bodies.append(body)
        sent = Report.from_json(body.decode()).id
        for report in (first, *rest):
            if report.id != sent:
                device.discard(report.id)
        return DELIVERED

    done = make(device, send, clock).run_once()
    assert (len(bodies), done.delivered, device.discarded()) == (1, 1, 3)


def test_a_thread_outlives_a_disk_that_was_full(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(device, 1)
    stop, delivered = threading.Event(), threading.Event()
    acknowledge = Ledger.acknowledge
    failures = [True]

    def fail_once(*arguments: Any) -> None:
        if failures:
            failures.pop()
            raise LedgerUnavailableError("database or disk is full")
        acknowledge(*arguments)
        delivered.set()

    monkeypatch.setattr(Ledger, "acknowledge", fail_once)
    monkeypatch.setattr(uploader, "FIRST_BACK_OFF_S", 0.01)
    upload = Uploader(device, sender([DELIVERED]), max_delay_s=0)
    thread = threading.Thread(target=upload.run, args=(stop,))
    thread.start()
    assert delivered.wait(30)
    stop.set()
    thread.join(30)
    assert device.waiting() == 0
