"""The pause after a failure, over a fake clock: how long, who keeps to it, what ends it."""

from pathlib import Path

import pytest

from client_sdk import Answer, Device, LedgerUnavailableError, uploader
from client_sdk.back_off import FILE, BackOff
from client_sdk.sending import DELIVERED, LATER
from tests.support.uploads import COLLECTION, Clock, fill, make, sender


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def device(tmp_path: Path) -> Device:
    device = Device.install(tmp_path / "device", cap_epsilon=10_000)
    device.join(COLLECTION.to_json(), digest=COLLECTION.digest, max_epsilon=4)
    return device


def test_a_pass_that_is_not_due_sends_nothing(device: Device, clock: Clock) -> None:
    fill(device, 2)
    bodies: list[bytes] = []
    upload = make(device, sender([Answer(retry_after_s=500)], bodies), clock, max_delay_s=0)
    first = upload.run_once()
    assert (first.is_complete, len(bodies)) == (False, 1)  # the other report is not tried
    assert 500 <= first.wait_s <= 530
    clock.now += 499
    early = upload.run_once()
    assert (early.delivered, early.is_complete, len(bodies)) == (0, False, 1)
    assert early.wait_s == pytest.approx(first.wait_s - 499)


def test_the_back_off_doubles_up_to_six_hours_and_starts_anew(
    device: Device, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []

    class Most:
        def uniform(self, low: float, high: float) -> float:
            drawn.append(high)
            return high

        def shuffle(self, texts: list[str]) -> None:
            pass

    monkeypatch.setattr(uploader, "_chance", Most())
    fill(device, 1)
    answers = [*[LATER] * 12, DELIVERED, LATER]
    upload = make(device, sender(answers), clock, max_delay_s=0)
    longest = []
    for _ in range(12):
        clock.now += upload.run_once().wait_s
        longest.append(drawn[-1])
    assert longest == [min(30.0 * 2**k, 6 * 3600.0) for k in range(12)]
    assert upload.run_once().delivered == 1
    device.report(COLLECTION, 52.5, 13.4, event="new")
    upload.run_once()
    assert drawn[-1] == 30.0


def test_a_job_that_makes_an_uploader_each_time_keeps_to_its_time(
    device: Device, clock: Clock
) -> None:
    fill(device, 1)
    bodies: list[bytes] = []
    send = sender([Answer(retry_after_s=3600)], bodies)
    done = make(device, send, clock, max_delay_s=0).run_once()
    assert 3600 <= done.wait_s <= 3630
    longest = []
    for _ in range(4):
        clock.now += 3599
        early = make(device, send, clock, max_delay_s=0).run_once()
        assert (early.is_complete, early.delivered) == (False, 0)
        sent = len(bodies)
        clock.now += early.wait_s
        longest.append(make(device, send, clock, max_delay_s=0).run_once().wait_s)
        assert len(bodies) == sent + 1
    assert all(3600 <= each <= 3600 + 30 * 2 ** (k + 1) for k, each in enumerate(longest))
    clock.now += 1e5
    assert make(device, sender([DELIVERED]), clock).run_once().delivered == 1
    assert not (device.folder / "uploads.json").exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"failures": 1}', '{"failures": "x", "not_before": 5}',
             '{"failures": -3, "not_before": 5}', '{"failures": 1e400, "not_before": 5}',
             '{"failures": 2, "not_before": NaN}', '{"failures": 2, "not_before": 1e300}',
             "[" * 50_000, "\udcff"],
)  # fmt: skip
def test_a_damaged_note_of_the_pause_keeps_nothing_back(
    device: Device, clock: Clock, text: str
) -> None:
    fill(device, 1)
    (device.folder / "uploads.json").write_text(text, errors="surrogateescape")
    assert make(device, sender([DELIVERED]), clock).run_once().delivered == 1


def test_a_clock_that_is_turned_back_begins_a_pause_again_once(
    device: Device, clock: Clock
) -> None:
    fill(device, 1)
    clock.now = 1e9
    asked = make(device, sender([Answer(retry_after_s=100)]), clock, max_delay_s=0).run_once()
    for back in (1e5, 1e4):  # by more than the longest pause, and by less
        clock.now -= back
        held = make(device, sender([DELIVERED]), clock).run_once()
        assert (held.delivered, held.wait_s) == (0, pytest.approx(asked.wait_s))
        clock.now += asked.wait_s / 2
        assert make(device, sender([DELIVERED]), clock).run_once().wait_s < asked.wait_s
    clock.now += asked.wait_s / 2 + 0.001  # which rounding may not undo
    assert make(device, sender([DELIVERED]), clock).run_once().delivered == 1


def test_all_uploaders_of_a_device_hold_to_one_pause(device: Device, clock: Clock) -> None:
    fill(device, 2)
    bodies: list[bytes] = []
    first = make(device, sender([Answer(retry_after_s=3600)]), clock, max_delay_s=0)
    second = make(device, sender([DELIVERED], bodies), clock, max_delay_s=0)
    first.run_once()
    assert not second.run_once().is_complete
    assert bodies == []
    clock.now += 3700
    assert second.run_once().delivered == 2
    assert first.run_once().is_complete  # which had failed itself, and need not wait any more


def test_a_folder_that_cannot_be_written_keeps_the_pause_in_mind(
    device: Device, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(device, 1)
    upload = make(device, sender([Answer(retry_after_s=100), DELIVERED]), clock, max_delay_s=0)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    # What arrives could not be written down: nothing is sent, by this job and by others.
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", refuse)
        with pytest.raises(LedgerUnavailableError, match="Permission denied; make room"):
            upload.run_once()
        assert upload.run_once().wait_s > 0
        with pytest.raises(LedgerUnavailableError):
            make(device, sender([]), clock).run_once()
    assert sorted(file.name for file in device.folder.iterdir() if "uploads" in file.name) == []
    clock.now += 200
    assert upload.run_once().wait_s >= 100  # the first answer
    clock.now += 200
    assert upload.run_once().delivered == 1


def test_a_ledger_that_cannot_be_used_asks_for_a_pause_too(
    device: Device, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(device, 1)

    def refuse(*_: object) -> None:
        raise LedgerUnavailableError("the disk is full")

    bodies: list[bytes] = []
    with monkeypatch.context() as patch:
        patch.setattr(Device, "acknowledge", refuse)
        with pytest.raises(LedgerUnavailableError):
            make(device, sender([DELIVERED] * 9, bodies), clock, max_delay_s=0).run_once()
        for _ in range(3):  # jobs, each with an uploader of its own
            assert not make(device, sender([]), clock).run_once().is_complete
    clock.now += 60
    assert make(device, sender([DELIVERED], bodies), clock, max_delay_s=0).run_once().delivered == 1
    assert len(bodies) == 2
    assert bodies[0] == bodies[1]


def test_the_longest_pause_that_is_asked_for_is_a_day(device: Device, clock: Clock) -> None:
    fill(device, 1)
    upload = make(device, sender([Answer(retry_after_s=float("inf"))]), clock, max_delay_s=0)
    assert 86_400 <= upload.run_once().wait_s <= 86_430


def test_looking_whether_a_pause_can_be_written_undoes_no_other_uploaders_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one fails after this one has read the pause, before it has written its probe."""
    clock = Clock()
    one = BackOff(tmp_path, clock.time, 3600)
    other = BackOff(tmp_path, clock.time, 3600)
    write_text = Path.write_text

    def late(path: Path, text: str, encoding: str | None = None) -> int:
        monkeypatch.setattr(Path, "write_text", write_text)
        other.failed(100)
        return write_text(path, text, encoding=encoding)

    monkeypatch.setattr(Path, "write_text", late)
    one.check()
    assert (one.failures, one.left()) == (1, 100)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_pass_that_went_well_ends_a_pause_that_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    pauses = BackOff(tmp_path, lambda: 0.0, 100.0)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", refuse)
        pauses.failed(10.0)
    assert pauses.failures == 1
    pauses.succeeded()
    assert (pauses.failures, pauses.left()) == (0, 0.0)
