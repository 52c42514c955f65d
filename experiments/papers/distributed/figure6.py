"""Figure 6 of Bagdasaryan et al. 2022: original beside private map on two other places."""

from dataclasses import replace

import click
import numpy as np
from matplotlib.figure import Figure

from experiments.means import shown, span
from experiments.papers.distributed.places import Place, chicago_place, tokyo_place
from experiments.papers.distributed.report import draw_map
from experiments.papers.distributed.runs import (
    ALL,
    Case,
    Runs,
    adaptive,
    density_of,
    drawn,
    play_all,
    randomness,
    trace_of,
)
from experiments.setup import COUNT, Setup, experiment
from experiments.tables import markdown
from ldpspatial.release.distributed.adaptive.rounds import last_revealed
from ldpspatial.release.distributed.levels.hierarchical import NonPrivateBestLevel

CASES = {
    "adaptive, c = 0.1": adaptive(),
    "adaptive, c = 1": adaptive(calibration=1.0),
    "even, threshold 10": adaptive(schedule="even", threshold=10.0),
}
DRAWN = tuple(CASES)[:2]
NON_PRIVATE = NonPrivateBestLevel(ALL)


@experiment("distributed-figure6", repeats=10)
@click.option("--cells", default=128, type=COUNT, show_default=True, help="Cells of a side.")
@click.option("--users", default=100_000, type=COUNT, show_default=True)
def figure6(setup: Setup, cells: int, users: int) -> None:
    """Original beside private maps (Bagdasaryan et al. 2022, Figure 6).

    Epsilon 1, 100,000 users drawn from a map, shards of 10,000. The paper's maps are the population
    of Mayotte and of Lagos. Here they are check-ins in Tokyo and assaults in Chicago: points and
    not population, so that most of 1024 x 1024 pixels would be empty; on 128 x 128 cells.
    """
    places = [tokyo_place(setup.data, cells), chicago_place(setup.data, cells)]
    found = []
    for place in places:
        clear = replace(NON_PRIVATE, truth=place.density)
        played = {"non-private, best level (oracle)": clear, **CASES}
        cases = [Case(label, release, users, others=("l1",)) for label, release in played.items()]
        found.append((place, cases, play_all(place, cases, setup, place.name.lower())))
    rows = [row for place, cases, runs in found for row in rows_of(place, cases, runs)]
    header = ["place", "", "MSE (1e-9)", "best round (oracle)", "L1", "vector length"]
    setup.publish(markdown(header, rows), {"": draw(found)}, {})


def rows_of(place: Place, cases: list[Case], runs: Runs) -> list[list[str]]:
    """Return the rows of a place."""
    rows = []
    for case in cases:
        own = runs.of(case)
        errors = [shown(1e9 * own.values(name)) for name in ("mse", "best.mse")]
        length = span(own.values("vector_length"))
        rows.append([place.name, case.label, *errors, shown(own.values("l1")), length])
    return rows


def draw(found: list[tuple[Place, list[Case], Runs]]) -> Figure:
    """Draw a row for each place: its map, and the first run of two cases."""
    columns = len(DRAWN) + 1
    figure = Figure(figsize=(1.9 * columns, 2.05 * len(found)), layout="constrained")
    for panels, (place, cases, runs) in zip(
        figure.subplots(len(found), columns), found, strict=True
    ):
        top = float(np.quantile(place.density[place.density > 0], 0.995))
        draw_map(panels[0], place.density, f"{place.name}, original", top)
        root = runs.rows[0]["root"]
        pictured = [case for case in cases if case.label in DRAWN]
        for axes, case in zip(panels[1:], pictured, strict=True):
            people = drawn(place, case, root)
            trace = trace_of(case.release, people, case.epsilon, randomness(case, root)) or ()
            draw_map(axes, density_of(last_revealed(trace)), case.label, top)
    return figure
