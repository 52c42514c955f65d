"""Figure 7 of Bagdasaryan et al. 2022: more users, and more or less noise than rounds can bear."""

from collections.abc import Sequence

import click
from matplotlib.figure import Figure

from experiments.means import shown, span
from experiments.papers.distributed.places import manhattan_place, side_option
from experiments.papers.distributed.report import MSE_UNIT, draw_curve, log_errors
from experiments.papers.distributed.runs import Case, Runs, adaptive, play_all
from experiments.setup import COUNT, Setup, experiment
from experiments.tables import markdown

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
EPSILONS = (0.1, 1.0)
CALIBRATIONS = (0.01, 0.03, 0.1, 0.3, 1.0)


@experiment("distributed-figure7", repeats=5)
@side_option
@click.option("--users", multiple=True, type=COUNT, default=SIZES, show_default=True,
              help="Sample sizes; c is swept at the third and the fifth.")  # fmt: skip
def figure7(setup: Setup, side: int, users: tuple[int, ...]) -> None:
    """Error over sample size and over c (Bagdasaryan et al. 2022, Figure 7, appendix A.2).

    The adaptive histogram on Manhattan, shards of 10,000; sample sizes at epsilon 0.1 and 1, and
    the calibration c at epsilon 1. The map is the paper's, reduced to 216 x 216 pixels that are
    repeated to 1024 x 1024.
    """
    place = manhattan_place(setup.data, side)
    by_size = {e: [_case(number, e, 0.1) for number in users] for e in EPSILONS}
    by_c = {
        number: [_case(number, 1.0, c) for c in CALIBRATIONS]
        for number in users[2:5:2] or users[:1]
    }
    cases = list(
        dict.fromkeys(case for line in (*by_size.values(), *by_c.values()) for case in line)
    )
    runs = play_all(place, cases, setup, "runs")
    sizes = [[f"{e:g}", *_row(case, runs)] for e, line in by_size.items() for case in line]
    constants = [
        [f"{c:g}", *_row(case, runs)]
        for line in by_c.values()
        for c, case in zip(CALIBRATIONS, line, strict=True)
    ]
    rest = ["users", "MSE (1e-13)", "rounds", "depth", "vector length"]
    text = f"{markdown(['epsilon', *rest], sizes)}\n\n{markdown(['c', *rest], constants)}"
    setup.publish(text, {"": draw(runs, users, by_size, by_c)}, {})


def draw(
    runs: Runs,
    users: Sequence[int],
    by_size: dict[float, list[Case]],
    by_c: dict[int, list[Case]],
) -> Figure:
    """Draw error over users at the left and over c at the right."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for epsilon, line in by_size.items():
        draw_curve(left, runs, line, users, f"epsilon {epsilon:g}")
    left.set(xscale="log", xlabel="users", title="Manhattan, c = 0.1")
    for number, line in by_c.items():
        draw_curve(right, runs, line, CALIBRATIONS, f"{number:,} users")
    right.set(xscale="log", xlabel="c", title="Manhattan, epsilon 1")
    for axes in (left, right):
        axes.legend()
        log_errors(axes)
    return figure


def _case(users: int, epsilon: float, c: float) -> Case:
    return Case(f"c = {c:g}", adaptive(calibration=c), users, epsilon)


def _row(case: Case, runs: Runs) -> list[str]:
    own = runs.of(case)
    spans = [span(own.values(name)) for name in ("rounds", "depth", "vector_length")]
    return [f"{case.users:,}", shown(MSE_UNIT * own.values("mse")), *spans]
