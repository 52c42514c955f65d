"""Figure 5 of Bagdasaryan et al. 2022: how the map of the adaptive histogram grows by rounds."""

import click
import numpy as np
from matplotlib.figure import Figure

from experiments.means import shown, span
from experiments.papers.distributed.places import Place, chicago_place, manhattan_place, side_option
from experiments.papers.distributed.report import draw_map
from experiments.papers.distributed.runs import (
    Case,
    Runs,
    adaptive,
    density_of,
    drawn,
    play_all,
    randomness,
    trace_of,
)
from experiments.papers.distributed.table1 import DROP_OUTS
from experiments.setup import COUNT, Setup, experiment
from experiments.tables import markdown

PANELS = 4  # in a row


@experiment("distributed-figure5", repeats=5)
@side_option
@click.option(
    "--cells", default=128, type=COUNT, show_default=True, help="Cells of a side for Chicago."
)
@click.option("--users", default=100_000, type=COUNT, show_default=True)
def figure5(setup: Setup, side: int, cells: int, users: int) -> None:
    """Draw the maps of all rounds of the adaptive histogram (Bagdasaryan et al. 2022, Figure 5).

    Epsilon 1, 100,000 users of whom 10 % drop out in each round, shards of 10,000. Manhattan, the
    paper's map reduced to 216 x 216 pixels that are repeated, goes to --out only: its licence
    forbids to pass it on. The documents show the same for users drawn from assaults in Chicago, on
    128 x 128 cells with c = 0.5. Tables are of all repeats, figures of the first.
    """
    texts = []
    figures = {}
    for place, c, unit in (
        (manhattan_place(setup.data, side), 0.1, -13),
        (chicago_place(setup.data, cells), 0.5, -9),
    ):
        case = Case("rounds", adaptive(DROP_OUTS, c), users)
        runs = play_all(place, [case], setup, place.name.lower())
        texts.append(table(place, runs, unit))
        figures[place.name] = draw(place, case, runs)
    forbidden = {"-manhattan": figures["Manhattan"]}
    setup.publish("\n\n".join(texts), {"-chicago": figures["Chicago"]}, forbidden)


def table(place: Place, runs: Runs, exponent: int) -> str:
    """Return what each round was and how far its map is from the truth, in powers of ten."""
    rows = []
    for number in range(max(row["rounds"] for row in runs.rows)):
        own = [row for row in runs.rows if row["rounds"] > number]
        steps = [row["by_round"][number] for row in own]
        lengths, depths = (span([step[name] for step in steps]) for name in ("length", "depth"))
        spent, threshold = (
            np.mean([step[name] for step in steps]) for name in ("epsilon", "threshold")
        )
        errors = [row["mse_by_round"][number] / 10.0**exponent for row in own]
        rows.append([str(number + 1), f"{spent:.4f}", lengths, depths, f"{threshold:.1f}",
                     shown(errors)])  # fmt: skip
    header = [f"{place.name}, round", "epsilon", "vector length", "depth", "threshold",
              f"MSE (1e{exponent})"]  # fmt: skip
    return markdown(header, rows)


def draw(place: Place, case: Case, runs: Runs) -> Figure:
    """Draw the truth and the map of each round of the first run."""
    root = runs.rows[0]["root"]
    people = drawn(place, case, root)
    trace = trace_of(case.release, people, case.epsilon, randomness(case, root)) or ()
    maps = {"original": place.density}
    for number, step in enumerate(trace, start=1):
        maps[f"round {number}: {len(step.tree):,} squares"] = density_of(step)
    rows = -(-len(maps) // PANELS)
    figure = Figure(figsize=(2.2 * PANELS, 2.35 * rows), layout="constrained")
    panels = figure.subplots(rows, PANELS, squeeze=False).ravel()
    top = np.quantile(place.density[place.density > 0], 0.995)
    for axes, (title, density) in zip(panels, maps.items(), strict=False):
        draw_map(axes, density, title, float(top))
    for axes in panels[len(maps) :]:
        axes.set_axis_off()
    return figure
