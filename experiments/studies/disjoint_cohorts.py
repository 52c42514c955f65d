"""The adaptive histogram over disjoint cohorts beside its paper's form, by place."""

import click

from experiments.means import shown, span
from experiments.papers.distributed.places import Place, chicago_place, manhattan_place, side_option
from experiments.papers.distributed.runs import ALL, Case, Runs, adaptive, play_all
from experiments.setup import COUNT, Setup, experiment
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical

NAME = "disjoint-cohorts"
CALIBRATIONS = (0.1, 1.0)


@experiment(NAME, repeats=4)
@side_option
@click.option(
    "--cells", default=128, type=COUNT, show_default=True, help="Cells of a side for Chicago."
)
@click.option("--users", "sizes", type=COUNT, multiple=True, default=(10_000, 100_000),
              show_default=True)  # fmt: skip
def disjoint_cohorts(setup: Setup, side: int, cells: int, sizes: tuple[int, ...]) -> None:
    """Each person asked once, or in every round: error and the longest vector, at epsilon 1.

    People are drawn from the map, which is the truth, and are the same for both forms.
    """
    rows = []
    for place, unit in (
        (manhattan_place(setup.data, side), -13),
        (chicago_place(setup.data, cells), -7),
    ):
        for users in sizes:
            for c in CALIBRATIONS:
                rows.append(_row(place, unit, users, c, setup))
    header = ["place", "users", "c", "MSE, asked once", "in every round", "a person sends",
              "in every round", "people in the cohorts"]  # fmt: skip
    text = markdown(header, rows)
    click.echo(text)
    if setup.write:
        replace_block(DOCS / "adaptive.md", NAME, text)


def _row(place: Place, unit: int, users: int, c: float, setup: Setup) -> list[str]:
    once = Case(f"once, {c:g}", AdaptiveHierarchical(ALL, c), users)
    paper = Case(f"every round, {c:g}", adaptive(calibration=c), users)
    runs = play_all(place, [once, paper], setup, place.name.lower())
    found = [runs.of(case) for case in (once, paper)]
    errors = [f"{shown(each.values('mse') * 10.0**-unit)}e{unit}" for each in found]
    lengths = [span(each.values("vector_length")) for each in found]
    return [place.name, f"{users:,}", f"{c:g}", *errors, *lengths, _cohorts(found[0])]


def _cohorts(runs: Runs) -> str:
    """Return the sizes of the cohorts of the first run."""
    return ", ".join(f"{int(size):,}" for size in str(runs.rows[0]["asked"]).split())
