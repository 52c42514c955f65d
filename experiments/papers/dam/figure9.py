"""Figure 9: DAM and its rivals over d and over epsilon."""

import click

from experiments.papers.dam.claims import FIGURE_9, claims_table
from experiments.papers.dam.hidden import floor_table, order_table, turned_table
from experiments.papers.dam.mechanisms import DAM, ESTIMATORS, SEM, releases, titled
from experiments.papers.dam.options import users_option
from experiments.papers.dam.plays import Errors, play
from experiments.papers.dam.report import draw_rows, matches_table, means_table
from experiments.papers.dam.settings import ROWS, Row, data_sets
from experiments.setup import Setup, experiment
from experiments.tables import markdown

ALL = "all"
MOST_TURNED = 8
COLUMNS = 3


@experiment("dam-figure9", repeats=10)
@users_option
@click.option("--panel", type=click.Choice([*ROWS, ALL]), default=ALL, show_default=True,
              help="Row of panels; the docs have all of them.")  # fmt: skip
def figure9(setup: Setup, users: int, panel: str) -> None:
    """Exact W2 of nine mechanisms on six data sets (Du et al., Figure 9)."""
    if setup.write and panel != ALL:
        raise click.UsageError("--write needs all panels")
    rows = [row for row in ROWS.values() if panel in (row.panels, ALL)]
    settings = [setting for row in rows for setting in row.settings]
    errors = play(setup, data_sets(setup.data, users), settings, releases)
    figures = {
        f"-{row.panels}": draw_rows(errors, [(name, row) for name in errors.names], COLUMNS)
        for row in rows
    }
    parts = [
        claims_table(errors, FIGURE_9, rows),
        "What each mechanism is decoded by:\n\n"
        + markdown(["mechanism", "estimator"],
                   [(titled(label), estimator) for label, estimator in ESTIMATORS.items()]),
        f"{titled(SEM)} at DAM's local privacy:\n\n" + matches_table(errors, settings, SEM),
        *(sinkhorn_text(errors, row) for row in rows if row.published_sinkhorn),
        *(f"**{row.panels}**, exact W2 in cells:\n\n" + folded(means_table(errors, row), row)
          for row in rows),
    ]  # fmt: skip
    setup.publish("\n\n".join(parts), figures, {})


def sinkhorn_text(errors: Errors, row: Row) -> str:
    """Return what the published distance says in a row of panels, and what it hides."""
    return "\n\n".join(
        [
            f"**{row.panels}**, published Sinkhorn (lambda 5), cells, of the truth from itself:",
            floor_table(errors, row, DAM),
            "Pairs of mechanisms, over all data sets:",
            order_table(errors, row),
            "Pairs whose means it turns round, those farthest apart by exact W2 first:",
            turned_table(errors, row, MOST_TURNED),
            folded(means_table(errors, row, "sinkhorn"), row, "published Sinkhorn, "),
        ]
    )


def folded(table: str, row: Row, what: str = "") -> str:
    """Return a table that opens on a click."""
    summary = f"{what}{row.panels}: all data sets and mechanisms"
    return f"<details><summary>{summary}</summary>\n\n{table}\n\n</details>"
