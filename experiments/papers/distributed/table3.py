"""Table 3 of Bagdasaryan et al. 2022: what schedule and threshold contribute, on Manhattan."""

import click
import numpy as np

from experiments.means import shown, span
from experiments.papers.distributed.places import manhattan_place, side_option
from experiments.papers.distributed.report import MSE_UNIT
from experiments.papers.distributed.runs import OTHERS, Case, Runs, adaptive, play_all
from experiments.setup import COUNT, Setup, experiment
from experiments.tables import markdown
from ldpspatial.release.distributed.adaptive.non_private_tree import NonPrivateTree
from ldpspatial.release.release import Release

TEN = 10.0
RELEASES: dict[str, Release] = {
    "no noise, threshold 10": NonPrivateTree(threshold=TEN),
    "even, threshold 10": adaptive(schedule="even", threshold=TEN),
    "even, adaptive threshold": adaptive(schedule="even"),
    "scheduled, threshold 10": adaptive(threshold=TEN),
    "scheduled, adaptive threshold": adaptive(),
}
PAPER = {  # MSE (1e-13), L1 (1e-3), MAPE, sMAPE, MAAPE, vector length
    "no noise, threshold 10": ["7.75", "1.02", "3.10", "0.92", "0.79", "12,734"],
    "even, threshold 10": ["8.81", "1.10", "3.94", "1.12", "0.80", "43,450"],
    "scheduled, threshold 10": ["7.95", "1.05", "3.46", "1.09", "0.79", "340"],
    "scheduled, adaptive threshold": ["7.88", "1.05", "3.43", "1.00", "0.79", "340"],
}


@experiment("distributed-table3", repeats=10)
@side_option
@click.option("--users", default=10_000, type=COUNT, show_default=True)
def table3(setup: Setup, side: int, users: int) -> None:
    """Ablations of the adaptive histogram (Bagdasaryan et al. 2022, Table 3 and appendix A.1).

    No noise; the same epsilon for each of ten rounds; the schedule; each with a fixed threshold of
    10 people or the adaptive one. 10,000 users of Manhattan, epsilon 1. Five errors of the last
    round, which is what a run publishes, and of the round with the least squared error, which only
    somebody who knows the truth can name. The map is the paper's, reduced to 216 x 216 pixels that
    are repeated to 1024 x 1024.
    """
    place = manhattan_place(setup.data, side)
    others = tuple(OTHERS)
    cases = [Case(label, release, users, others=others) for label, release in RELEASES.items()]
    setup.publish(table(cases, play_all(place, cases, setup, "runs")), {}, {})


def table(cases: list[Case], runs: Runs) -> str:
    """Return three rows a release: last round, best round where it is another, the paper's."""
    rows = []
    for case in cases:
        own = runs.of(case)
        lengths = span(own.values("vector_length"))
        rows.append([case.label, "last", *_errors(own, ""), lengths])
        best = [int(np.argmin(row["mse_by_round"])) for row in own.rows]
        if any(chosen + 1 < row["rounds"] for chosen, row in zip(best, own.rows, strict=True)):
            number = span([chosen + 1 for chosen in best])
            rows.append(["", f"best (oracle): {number}", *_errors(own, "best."), ""])
        if case.label in PAPER:
            rows.append(["", "paper", *PAPER[case.label]])
    header = ["", "round", "MSE (1e-13)", "L1", "MAPE", "sMAPE", "MAAPE", "vector length"]
    return markdown(header, rows)


def _errors(own: Runs, part: str) -> list[str]:
    squared = shown(MSE_UNIT * own.values(f"{part}mse"))
    return [squared, *(shown(own.values(part + name)) for name in OTHERS)]
