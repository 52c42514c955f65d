"""``end-to-end``: a service, a city of devices, browsers, the map, and a series of windows."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from client_sdk import Collection, Grid
from experiments.end_to_end import browsers, windows
from experiments.end_to_end.devices import ARRIVED, report_all, scratch
from experiments.end_to_end.foretold import FALSE_ALARM, Foretold, foretold
from experiments.end_to_end.people import truth_of
from experiments.end_to_end.service import Operator, serving
from experiments.end_to_end.windows import WINDOW_S, WINDOWS, Window
from ldpspatial import wasserstein
from ldpspatial.cli.output import progress
from ldpspatial.datasets import CITY_CENTER, CITY_SIDE_M, city

Array = NDArray[np.float64]

CELLS = 15
EPSILON = 3.5
MINIMUM = 1000
GRID = Grid.from_center(*CITY_CENTER, CITY_SIDE_M, CELLS)
COLLECTION = Collection.create("synthetic city, end to end", GRID, EPSILON)


@dataclass(frozen=True)
class Outcome:
    """How the map of a collection came out; lengths in metres.

    Attributes
    ----------
    reports : dict of str to int
        What became of the reports of all devices and browsers.
    received, counted : int
        By the service.
    w2 : float
        Between the true and the estimated map.
    foretold : Foretold
    """

    reports: dict[str, int]
    received: int
    counted: int
    w2: float
    foretold: Foretold

    def faults(self, devices: int) -> list[str]:
        """Return what is not as it must be."""
        faults = []
        if self.reports != {ARRIVED: devices}:
            faults.append(f"of {devices} reports there are {_words(self.reports)}")
        if not self.received == self.counted == devices:
            faults.append(f"{self.received} were received and {self.counted} count")
        if not self.foretold.holds(self.w2):
            faults.append("W2 is not as foretold")
        return faults


@click.command("end-to-end")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("end-to-end-output"), show_default=True,
    help="New folder of results.",
)  # fmt: skip
@click.option("--devices", type=click.IntRange(1000), default=50_000, show_default=True)
@click.option(
    "--with-files", type=click.IntRange(0), default=50_000, show_default=True,
    help="Devices whose ledger lies in files, as in an app; those of the others are in memory.",
)  # fmt: skip
@click.option(
    "--browsers", "pages", type=click.IntRange(0), default=200, show_default=True,
    help="People who take part in Chromium.",
)  # fmt: skip
@click.option(
    "--series-devices", type=click.IntRange(500), default=1400, show_default=True,
    help="Devices of the series.",
)  # fmt: skip
def end_to_end(out: Path, devices: int, with_files: int, pages: int, series_devices: int) -> None:
    """Run a service, let a city report to it, map it, and then a series of 7 windows.

    The error of the map must be as the table of "ldpspatial plan" foretells it. All of it is real
    but the clock of uploaders, which need not wait, and the ledgers in memory.
    """
    if out.exists():
        raise click.UsageError(f"--out must be a new folder, and {out} exists.")
    if pages and (why := browsers.missing()):
        click.echo(f"{why}: no browser takes part")
        pages = 0
    rng = np.random.default_rng(1)  # of people and plan; devices draw from the system's entropy
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place, serving(Path(place)) as operator:
        outcome = _collect(operator, out, devices, min(with_files, devices), pages, rng)
        found = _repeat(operator, out, series_devices, rng)
    _write(out / "end-to-end.json", outcome, found)
    faults = [*outcome.faults(devices + pages), *_faults_of_series(found)]
    if faults:
        raise click.ClickException("; ".join(faults))
    click.echo(f"All as foretold. Written to {out}: see {out / 'map' / 'heatmap.png'}")


def _collect(
    operator: Operator, out: Path, devices: int, with_files: int, pages: int,
    rng: np.random.Generator,
) -> Outcome:  # fmt: skip
    """Play the collection: plan, reports, closing, release, map."""
    n = devices + pages
    click.echo(f"Plan: {n} reports, epsilon {EPSILON:g}, {CELLS} x {CELLS} cells")
    with progress("collections played") as (_, advance):
        said = foretold(CELLS, EPSILON, n, rng, advance)
    click.echo(
        f"  W2 of {said.mean:.0f} m; outside {said.lowest:.0f} to {said.highest:.0f} m with "
        f"probability {FALSE_ALARM:g}"
    )
    operator.add(COLLECTION, MINIMUM)
    click.echo(f"Open: {COLLECTION.digest} at {operator.origin}")
    people = city(n, rng)
    url = f"{operator.origin}/reports"
    reports = report_all(COLLECTION, people[:devices], with_files, url, "devices report")
    click.echo(f"  {devices} devices, {with_files} with ledger files: {_words(reports)}")
    if pages:
        arrived = browsers.take_part(operator.origin, COLLECTION.digest, people[devices:])
        reports += arrived
        click.echo(f"  {pages} people in Chromium: {_words(arrived)}")
    told = operator.close(COLLECTION.digest)
    click.echo(f"Closed: {told['received']} received, {told['counted']} counted")
    operator.release(COLLECTION.digest)
    summary = operator.save_map(COLLECTION, out / "map")
    w2 = _error(out / "map", people)
    click.echo(
        f"Released and mapped: W2 to the truth {w2:.0f} m; the plan foretold {said.mean:.0f} m, "
        f"and the service expects {_expected(summary):.0f} m of this map"
    )
    return Outcome(dict(reports), told["received"], told["counted"], w2, said)


def _repeat(operator: Operator, out: Path, devices: int, rng: np.random.Generator) -> list[Window]:
    """Play the series."""
    series = windows.make_series(COLLECTION, "synthetic city, again and again")
    operator.add_series(series, windows.MINIMUM, windows.LEEWAY_S)
    click.echo(f"Series: {WINDOWS} windows of {WINDOW_S} s, {devices} devices answer one each")
    with scratch() as folder:
        installed = windows.install(series, devices, folder)
        found = windows.play(series, installed, city(devices, rng), operator, out)
    for each in found:
        w2 = _error(out / f"window-{each.place}", each.answered)
        click.echo(
            f"  window {each.place}: {each.chosen} had drawn it, {len(each.answered)} answered in "
            f"time, {each.counted} counted, W2 {w2:.0f} m (the service expects "
            f"{_expected(each.summary):.0f} m)"
        )
    answered = sum(len(each.answered) for each in found)
    counted = sum(each.counted for each in found)
    click.echo(f"  all windows: {answered} of {devices} devices answered, {counted} counted")
    return found


def _faults_of_series(found: list[Window]) -> Iterator[str]:
    for each in found:
        if each.reports != {ARRIVED: len(each.answered)}:
            yield f"window {each.place} has {_words(each.reports)}"
        if each.counted != len(each.answered):
            yield f"window {each.place} counts {each.counted} of {len(each.answered)}"


def _error(folder: Path, people: Array) -> float:
    """Return exact W2 in metres between the people's map and the one in a folder."""
    with np.load(folder / "estimate.npz", allow_pickle=False) as held:
        return wasserstein(truth_of(GRID, people), held["density"], cell=GRID.cell_size)


def _expected(summary: dict[str, Any]) -> float:
    """Return the W2 that the service itself expects of a map."""
    return summary["expected_error"]["this_map"]["mean"]


def _words(reports: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {what}" for what, n in reports.items() if n) or "none"


def _write(path: Path, outcome: Outcome, found: list[Window]) -> None:
    """Write the figures."""
    series = [
        {
            "window": each.place,
            "chosen": each.chosen,
            "answered": len(each.answered),
            "counted": each.counted,
        }
        for each in found
    ]
    text = json.dumps({**asdict(outcome), "series": series}, indent=1)
    path.write_text(f"{text}\n", encoding="utf-8")
