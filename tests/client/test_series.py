"""Series: the document, the windows that a device answers, and what a clock cannot do."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations
from math import comb, log
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk import (
    AlreadyGivenError,
    BudgetError,
    Collection,
    CollectionError,
    Device,
    Grid,
    NotAskedError,
    ParameterError,
    Report,
    Series,
)
from client_sdk.testing import FixedEntropy, StreamEntropy

GRID = Grid.from_center(52.52, 13.405, 20_000, 5)
START, HOUR = 1_800_000_000, 3600
HERE = (52.5163, 13.3777)
FALSE_ALARM = 1e-6


def series(**changes: Any) -> Series:
    design = {"first_start": START, "window_seconds": HOUR, "windows": 7, "answers": 2}
    return Series.create("a day", GRID, 2, **{**design, **changes})


WEEK = series()
TEXT = WEEK.to_json()


# The document


def test_a_document_says_all_and_is_read_back() -> None:
    assert Series.from_json(TEXT, WEEK.digest, max_epsilon=2) == WEEK
    document = json.loads(TEXT)
    assert sorted(document) == [
        "answers", "collection", "first_start", "name", "schema", "window_seconds", "windows"
    ]  # fmt: skip
    common = json.loads(WEEK.collection(1).to_json())
    for field in ("schema", "name", "max_reports"):
        del common[field]
    assert document["collection"] == common
    assert (WEEK.epsilon, WEEK.micro_epsilon) == (2, 2_000_000)


def test_each_window_has_a_collection_of_its_own_that_devices_would_accept() -> None:
    made = [WEEK.collection(k) for k in range(1, 8)]
    assert len({each.digest for each in made}) == 7
    for k, each in enumerate(made, 1):
        assert each.name == f"a day - window {k} of 7 - series {WEEK.digest}"
        assert Collection.from_json(each.to_json(), each.digest, max_epsilon=2) == each
        assert (each.max_reports, each.table) == (1, WEEK.template.table)
    for bad in (0, 8, -1, 1.0, True, None):
        with pytest.raises(ParameterError, match="window must be a whole number from 1 to 7"):
            WEEK.collection(bad)  # type: ignore[arg-type]


def test_any_change_makes_another_series_with_other_windows() -> None:
    changed = [
        series(first_start=START + 1), series(window_seconds=HOUR + 1), series(windows=8),
        series(answers=3), Series.create("a dax", GRID, 2, first_start=START, window_seconds=HOUR,
                                         windows=7, answers=2),
    ]  # fmt: skip
    everything = [WEEK, *changed]
    assert len({each.digest for each in everything}) == len(everything)
    assert len({each.collection(1).digest for each in everything}) == len(everything)
    for each in changed:
        with pytest.raises(CollectionError, match="the series document was altered"):
            Series.from_json(each.to_json(), WEEK.digest)


def test_the_longest_names_of_windows_are_names() -> None:
    longest = Series.create(
        "x" * 100, GRID, 2, first_start=0, window_seconds=1, windows=100_000, answers=1
    )
    assert len(longest.collection(100_000).name) == 200
    longest.collection(100_000).verify()
    with pytest.raises(ParameterError, match="name must be a text of 1 to 100"):
        Series.create("x" * 101, GRID, 2, first_start=0, window_seconds=1, windows=1)


def test_windows_follow_each_other() -> None:
    assert [WEEK.start(k) for k in (1, 2, 7)] == [START, START + HOUR, START + 6 * HOUR]
    for time, window in (
        (START - 0.001, None), (START, 1), (START + HOUR - 0.001, 1), (START + HOUR, 2),
        (START + 7 * HOUR - 1, 7), (START + 7 * HOUR, None), (0, None), (1e300, None),
    ):  # fmt: skip
        assert WEEK.window_at(time) == window
    with pytest.raises(ParameterError, match="seconds must be finite"):
        WEEK.window_at(float("nan"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first_start": -1}, "first_start must be a whole number from 0"),
        ({"first_start": 1.5}, "first_start must be a whole number"),
        ({"first_start": 253_402_300_800}, "first_start must be a whole number"),
        ({"window_seconds": 0}, "window_seconds must be a whole number from 1"),
        ({"windows": 0}, "windows must be a whole number from 1 to 100000"),
        ({"windows": 100_001}, "windows must be a whole number"),
        ({"answers": 0}, "answers must be a whole number from 1"),
        ({"answers": 8}, "answers must be at most windows = 7, got 8"),
        ({"answers": True}, "answers must be a whole number"),
    ],
)
def test_bad_designs_and_documents_name_field_rule_and_value(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        series(**change)
    with pytest.raises(CollectionError):
        Series.from_json(json.dumps({**json.loads(TEXT), **change}))


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "ldpspatial/series/2"}, {"schema": "ldpspatial/collection/1"}, {"name": ""},
        {"name": "a\u200bb"}, {"collection": None}, {"collection": []}, {"collection": {}},
        {"collection": json.loads(WEEK.collection(1).to_json())}, {"more": 1},
        {"first_start": str(START)}, {"first_start": None},
    ],
)  # fmt: skip
def test_bad_documents_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CollectionError):
        Series.from_json(json.dumps({**json.loads(TEXT), **change}))


def test_a_series_that_is_not_private_is_refused() -> None:
    document = json.loads(TEXT)
    document["collection"]["micro_epsilon"] -= 1
    with pytest.raises(CollectionError, match="not epsilon-LDP"):
        Series.from_json(json.dumps(document))
    with pytest.raises(CollectionError, match="exceeds this device's cap"):
        Series.from_json(TEXT, max_epsilon=1.9)


# Which windows


def draws(windows: int, answers: int) -> Iterator[list[int]]:
    """Every choice, once for each sequence of numbers that the algorithm may draw."""

    def sequences(j: int) -> Iterator[list[int]]:
        if j > windows:
            yield []
            return
        for first in range(j):
            for rest in sequences(j + 1):
                yield [first, *rest]

    one = series(windows=windows, answers=answers)
    for numbers in sequences(windows - answers + 1):
        yield one.choose(FixedEntropy(b"".join(n.to_bytes(7, "big") for n in numbers)))


@pytest.mark.parametrize(("windows", "answers"), [(1, 1), (5, 1), (5, 2), (6, 3), (4, 4), (7, 4)])
def test_every_set_of_windows_is_exactly_as_likely(windows: int, answers: int) -> None:
    """The whole law: all sequences of the uniform numbers are as likely, and all are tried."""
    found = Counter(tuple(chosen) for chosen in draws(windows, answers))
    assert set(found) == set(combinations(range(1, windows + 1), answers))
    assert len(set(found.values())) == 1


def test_a_choice_of_independent_windows_would_be_seen() -> None:
    """The check has the power to see the usual mistake: each window with probability 2 in 5."""
    found = Counter(tuple(sorted({1 + i, 1 + j})) for i in range(5) for j in range(5))
    assert set(found) != set(combinations(range(1, 6), 2))


@settings(max_examples=60)
@given(st.integers(1, 300), st.data())
def test_a_choice_is_ascending_and_of_the_right_size(windows: int, data: st.DataObject) -> None:
    answers = data.draw(st.integers(1, windows))
    chosen = series(windows=windows, answers=answers).choose(StreamEntropy(f"{windows} {answers}"))
    assert len(chosen) == answers
    assert chosen == sorted(set(chosen))
    assert 1 <= chosen[0] <= chosen[-1] <= windows


# A device in a series


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.now = float(START)
        monkeypatch.setattr("time.time", lambda: self.now)

    def set_to(self, window: int) -> None:
        self.now = START + (window - 1) * HOUR + 1.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "device"


@pytest.fixture
def device(folder: Path) -> Device:
    device = Device.install(folder, cap_epsilon=100)
    device.join(TEXT, digest=WEEK.digest, max_epsilon=2)
    return device


def answer(device: Device) -> Report | None:
    return device.report(WEEK, *HERE) if device.is_asked(WEEK) else None


def test_a_device_answers_its_windows_and_no_other(device: Device, clock: Clock) -> None:
    given = {}
    for k in range(1, 8):
        clock.set_to(k)
        asked = device.is_asked(WEEK.digest)
        if asked:
            given[k] = device.report(WEEK.digest, *HERE)
        else:
            with pytest.raises(NotAskedError, match="nothing was drawn"):
                device.report(WEEK, *HERE)
        assert not device.is_asked(WEEK)
    assert tuple(given) == device.windows(WEEK)
    assert len(given) == 2
    for k, report in given.items():
        report.check(WEEK.collection(k))
    assert (device.spent(), device.spent(WEEK)) == (4_000_000, 4_000_000)


def test_a_window_is_answered_once(device: Device, folder: Path, clock: Clock) -> None:
    clock.set_to(device.windows(WEEK)[0])
    report = device.report(WEEK, *HERE)
    assert Device.open(folder).report(WEEK, -33.9, 18.4) == report
    device.acknowledge(report.id)
    with pytest.raises(AlreadyGivenError):
        device.report(WEEK, *HERE)
    with pytest.raises(ParameterError, match="event must be left out"):
        device.report(WEEK, *HERE, event="again")
    assert device.spent() == 2_000_000


def test_outside_of_the_series_nobody_is_asked(device: Device, clock: Clock) -> None:
    for now in (0.0, START - 1.0, START + 7.0 * HOUR, 1e12):
        clock.now = now
        assert not device.is_asked(WEEK)
        with pytest.raises(NotAskedError):
            device.report(WEEK, *HERE)
    with pytest.raises(CollectionError, match="not joined"):
        device.is_asked(series(answers=1))


def test_nobody_is_asked_for_what_the_budget_does_not_pay(folder: Path, clock: Clock) -> None:
    asked_for = series(answers=3)
    device = Device.install(folder, cap_epsilon=5)  # two answers of the three
    device.join(asked_for.to_json(), digest=asked_for.digest, max_epsilon=2)
    asked = []
    for window in device.windows(asked_for):
        clock.set_to(window)
        asked.append(device.is_asked(asked_for))
        if asked[-1]:
            device.report(asked_for, *HERE)
        else:
            with pytest.raises(BudgetError):
                device.report(asked_for, *HERE)
    assert asked == [True, True, False]


def test_no_turn_of_the_clock_gives_more_answers(device: Device, folder: Path) -> None:
    """Clock back and forward, restarts, joining again, acknowledging: never more than two."""
    rng = StreamEntropy("clock")
    given: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock(patch)
        for _ in range(150):
            clock.now = START - HOUR + int.from_bytes(rng(3), "big") % (9 * HOUR)
            act = rng(1)[0] % 4
            if act == 0:
                device = Device.open(folder)
            elif act == 1:
                device.join(TEXT, digest=WEEK.digest, max_epsilon=2)
            elif act == 2:
                device.acknowledge(given)
            with suppress(NotAskedError, AlreadyGivenError):
                given.add(device.report(WEEK, *HERE).id)
    assert len(given) == 2
    assert device.spent() == 4_000_000


def test_joining_again_or_at_once_never_draws_windows_anew(folder: Path) -> None:
    long = series(windows=1000, answers=5)
    device = Device.install(folder, 100)
    script = (
        "import sys; from client_sdk import Device\n"
        "d = Device.open(sys.argv[1]); s = d.join(sys.argv[2], digest=sys.argv[3], max_epsilon=2)\n"
        "print(d.windows(s))"
    )
    command = [sys.executable, "-c", script, str(folder), long.to_json(), long.digest]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    told = {child.communicate(timeout=60)[0] for child in children}
    assert len(told) == 1
    assert told == {f"{device.windows(long)}\n"}
    device.join(long.to_json(), digest=long.digest, max_epsilon=2)
    assert told == {f"{Device.open(folder).windows(long.digest)}\n"}


def test_the_windows_are_written_down_before_the_first_report(device: Device, folder: Path) -> None:
    assert Device.open(folder).windows(WEEK) == device.windows(WEEK)
    assert device.spent() == 0


def test_joining_late_skips_windows_and_makes_up_for_none(folder: Path, clock: Clock) -> None:
    clock.set_to(7)
    device = Device.install(folder, 100)
    device.join(TEXT, digest=WEEK.digest, max_epsilon=2)
    given = answer(device)
    assert (given is not None) == (7 in device.windows(WEEK))
    assert device.spent() == (0 if given is None else 2_000_000)


def test_when_a_device_joins_has_no_say_in_what_it_draws(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither clock, budget nor collection of positions: entropy alone."""
    chosen = set()
    for k, (now, cap) in enumerate(((0, 100), (START, 100), (START + 1e9, 0.1))):
        clock.now = float(now)
        device = Device.install(tmp_path / str(k), cap)
        monkeypatch.setattr("client_sdk.entropy.system", StreamEntropy("join"))
        device.join(TEXT, digest=WEEK.digest, max_epsilon=2)
        chosen.add(device.windows(WEEK))
    assert len(chosen) == 1


def test_windows_of_devices_are_drawn_by_the_operating_system(tmp_path: Path) -> None:
    """60 devices answer 5 of 1000 windows: two agree with probability below 1e-9."""
    long = series(windows=1000, answers=5)
    chosen = []
    for k in range(60):
        device = Device.install(tmp_path / str(k), 1)
        device.join(long.to_json(), digest=long.digest, max_epsilon=2)
        chosen.append(device.windows(long))
    assert 60 * 59 / 2 / comb(1000, 5) < 1e-9
    assert len(set(chosen)) == 60
    # Hoeffding: the mean of 300 windows is off by 140 or more with probability below 1e-6.
    mean = sum(sum(each) for each in chosen) / 300
    assert 1000 * (log(2 / FALSE_ALARM) / (2 * 300)) ** 0.5 < 160
    assert abs(mean - 500.5) < 160


def test_the_cap_of_the_device_ends_a_series_early(folder: Path, clock: Clock) -> None:
    device = Device.install(folder, cap_epsilon=3)
    device.join(TEXT, digest=WEEK.digest, max_epsilon=2)
    first, second = device.windows(WEEK)
    clock.set_to(first)
    device.report(WEEK, *HERE)
    clock.set_to(second)
    with pytest.raises(BudgetError):
        device.report(WEEK, *HERE)
    assert device.windows(WEEK) == (first, second)


def test_a_series_changed_by_one_second_is_another_account(device: Device, clock: Clock) -> None:
    """It has to be pinned by the app; the cap of the device holds over both."""
    other = series(first_start=START + 1)
    with pytest.raises(CollectionError, match="altered"):
        device.join(other.to_json(), digest=WEEK.digest, max_epsilon=2)
    device.join(other.to_json(), digest=other.digest, max_epsilon=2)
    clock.set_to(device.windows(other)[0])
    clock.now += 1
    device.report(other, *HERE)
    assert (device.spent(other), device.spent(WEEK)) == (2_000_000, 0)


def test_collections_have_no_windows(device: Device) -> None:
    made = WEEK.collection(1)
    device.join(made.to_json(), digest=made.digest, max_epsilon=2)
    for ask in (device.windows, device.is_asked):
        with pytest.raises(ParameterError, match="series must be a series, got a collection"):
            ask(made.digest)
