"""The whole way of a collection by its documented command, and what that command would notice."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from client_sdk import AlreadyGivenError, BudgetError, Device, response_table
from client_sdk.sending import DELIVERED
from client_sdk.uploader import Uploader
from experiments.__main__ import main
from experiments.end_to_end import browsers
from experiments.end_to_end.command import CELLS, COLLECTION, EPSILON, Outcome, end_to_end
from experiments.end_to_end.devices import ARRIVED
from experiments.end_to_end.foretold import Foretold, foretold
from experiments.end_to_end.memory_ledger import MemoryLedger
from experiments.end_to_end.people import CITY
from ldpspatial import StampChannel, estimate
from ldpspatial.channels.playing import play
from ldpspatial.planning.rehearsal import People

# A small part of what the command takes by itself: minutes less.
DEVICES = 1_200
BROWSERS = 2
WITH_FILES = 30
SERIES = 500
DIGEST = COLLECTION.digest


@pytest.mark.slow
def test_a_service_a_city_of_devices_browsers_a_map_and_a_series(tmp_path: Path) -> None:
    """The command, with fewer people; W2 is not as foretold with probability 1e-6."""
    out = tmp_path / "out"
    given = [
        "end-to-end", "--out", str(out), "--devices", str(DEVICES), "--browsers", str(BROWSERS),
        "--with-files", str(WITH_FILES), "--series-devices", str(SERIES),
    ]  # fmt: skip
    result = CliRunner().invoke(main, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    why = browsers.missing()
    assert (f"{why}: no browser takes part" in result.output) == bool(why)
    reports = DEVICES + (0 if why else BROWSERS)

    told = json.loads((out / "end-to-end.json").read_text())
    assert told["reports"] == {ARRIVED: reports}
    assert told["received"] == told["counted"] == reports
    assert told["foretold"]["lowest"] <= told["w2"] <= told["foretold"]["highest"]
    summary = json.loads((out / "map" / "summary.json").read_text())
    assert summary["n"] == reports
    assert (out / "map" / "heatmap.png").read_bytes()[:4] == b"\x89PNG"

    # A device draws one of seven windows: fewer than 31 or more than 119 of 500 draw the same
    # with a probability below 1e-7 (binomial law, seven windows).
    series = told["series"]
    assert [each["window"] for each in series] == [1, 2, 3, 4, 5, 6, 7]
    assert sum(each["chosen"] for each in series) == SERIES
    for each in series:
        assert 31 <= each["chosen"] <= 119
        assert each["chosen"] >= each["answered"] == each["counted"] > 0
        window = json.loads((out / f"window-{each['window']}" / "summary.json").read_text())
        assert window["n"] == each["counted"]
    if why:
        pytest.skip(f"{why}: no browser took part in the collection from end to end")


def test_faults_of_devices_lie_outside_what_was_foretold() -> None:
    """What is foretold would be of no use if it held for maps that are wrong."""
    rng = np.random.default_rng(2)
    n = 50_200
    said = foretold(CELLS, EPSILON, n, rng)
    people = People.on_grid(CITY, CITY.draw(n, rng), CELLS)
    table = COLLECTION.table

    def w2(rows: np.ndarray, cols: np.ndarray, drawn_from: float = EPSILON) -> float:
        sent_by = response_table("dam", drawn_from, CELLS, table.radius)
        counts = play(sent_by, rows, cols, rng)
        return CITY.side * people.misfit(estimate(StampChannel(table), counts, "em").density).w2

    assert said.holds(w2(people.rows, people.cols))  # outside: 1e-6
    assert not said.holds(w2(people.cols, people.rows))  # latitude and longitude exchanged
    assert not said.holds(w2(np.minimum(people.rows + 1, CELLS - 1), people.cols))  # a cell off
    assert not said.holds(w2(people.rows, people.cols, EPSILON / 2))  # drawn from another table
    forged = np.arange(n) < n // 20
    corner = np.where(forged, CELLS - 1, people.rows), np.where(forged, CELLS - 1, people.cols)
    assert not said.holds(w2(*corner))  # a report in twenty from a corner


def test_every_fault_of_a_run_is_told() -> None:
    right = Outcome({ARRIVED: 9}, 9, 9, 400.0, Foretold(390.0, 300.0, 480.0))
    assert right.faults(9) == []
    assert len(replace(right, reports={ARRIVED: 8, "closed": 1}).faults(9)) == 1
    assert len(replace(right, received=10).faults(9)) == 1
    assert len(replace(right, counted=8).faults(9)) == 1
    assert len(replace(right, w2=481.0).faults(9)) == 1
    assert len(replace(right, w2=299.0).faults(9)) == 1


def test_a_folder_that_exists_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(end_to_end, ["--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "--out must be a new folder" in result.output


def test_a_ledger_in_memory_keeps_account_and_outbox_as_one_in_files(tmp_path: Path) -> None:
    """The same walk on both: what is given, refused, waits and was spent."""
    places = tmp_path / "memory", tmp_path / "files"
    places[0].mkdir()
    in_memory = Device(MemoryLedger(places[0], 3_500_000))
    in_files = Device.install(places[1], cap_epsilon=3.5)
    walks = []
    for device in (in_memory, in_files):
        device.join(COLLECTION.to_json(), digest=DIGEST, max_epsilon=3.5)
        first = device.report(DIGEST, 48.0, 11.0, event="visit 1")
        again = device.report(DIGEST, 48.01, 11.01, event="visit 1")
        with pytest.raises(BudgetError):
            device.report(DIGEST, 48.0, 11.0, event="visit 2")
        sent: list[bytes] = []
        waited: list[float] = []

        def send(body: bytes, sent: list[bytes] = sent) -> object:
            sent.append(body)
            return DELIVERED

        done = Uploader(device, send, wait=waited.append).run_once()
        with pytest.raises(AlreadyGivenError):
            device.report(DIGEST, 48.0, 11.0, event="visit 1")
        is_sent = [body.decode() for body in sent] == [first.to_body()]
        walks.append((first == again, is_sent, len(waited), done.delivered, device.waiting()))
    assert walks == [(True, True, 1, 1, 0)] * 2
