"""Figure 14 of Du et al.: DAM beside LDPTrace and PivotTrace, at equal epsilon per trajectory."""

import click

from experiments.papers.trajectories.places import places
from experiments.papers.trajectories.report import (
    draw,
    errors_table,
    orderings_table,
    reports_table,
    trends_table,
)
from experiments.papers.trajectories.runs import play
from experiments.setup import COUNT, Setup, experiment

POOL = 5  # walks that are made, as a multiple of those drawn for a repeat


@experiment("dam-figure14", repeats=10)
@click.option("--walks", default=1_000, show_default=True, type=COUNT,
              help="Trajectories drawn for each repeat.")  # fmt: skip
def figure14(setup: Setup, walks: int) -> None:
    """Error of maps of trajectories over d and epsilon (Du et al., Figure 14, appendix D).

    Density-weighted walks of 2 to 200 points on 300 x 300 maps of New York and Chicago, and trips
    of taxis in San Francisco. Every repeat draws its trajectories anew from a pool that is made
    once from the seed.
    """
    found = places(setup.data, POOL * walks, setup.seed)
    table = play(setup, found, walks)
    parts = (
        "Every trajectory weighs the same in the truth.",
        errors_table(table, "users"),
        "Every point weighs the same in the truth, as in the paper; so it does in LDPTrace's map.",
        errors_table(table, "visits"),
        "In how many of the 8 settings with d from 5 on the error is lower / level / higher, by "
        "95 % intervals of paired differences.",
        orderings_table(table),
        "Mean W2 at the ends of both sweeps, every trajectory of the same weight.",
        trends_table(table),
        "Reports a user at d = 15 and epsilon 1.5: least, median and most over users where these "
        "differ; a span, as 25-184, where it is the same for all users of a run and runs differ.",
        reports_table(table, found),
    )
    setup.publish("\n\n".join(parts), {"": draw(table)}, {})
