"""Figure 13: whole cities in place of parts of them."""

from experiments.papers.dam.claims import FIGURE_13, claims_table
from experiments.papers.dam.figure9 import folded
from experiments.papers.dam.mechanisms import releases
from experiments.papers.dam.plays import play
from experiments.papers.dam.report import draw_rows, means_table
from experiments.papers.dam.settings import ROWS, whole_cities
from experiments.setup import Setup, experiment


@experiment("dam-figure13", repeats=10)
def figure13(setup: Setup) -> None:
    """Exact W2 of nine mechanisms on three whole cities (Du et al., Figure 13)."""
    settings = [setting for row in ROWS.values() for setting in row.settings]
    errors = play(setup, whole_cities(setup.data), settings, releases)
    panels = [(name, row) for name in errors.names for row in ROWS.values()]
    text = "\n\n".join(
        [
            claims_table(errors, FIGURE_13, list(ROWS.values())),
            *(folded(means_table(errors, row), row, "exact W2 in cells, ")
              for row in ROWS.values()),
        ]
    )  # fmt: skip
    setup.publish(text, {"": draw_rows(errors, panels, len(ROWS))}, {})
