"""Figure 8 of Bagdasaryan et al. 2022: shard size, drop-outs and the modulus of the secure sum."""

from collections.abc import Mapping, Sequence

import click
import numpy as np
from matplotlib.figure import Figure

from experiments.means import shown
from experiments.papers.distributed.places import Place, manhattan_place, side_option
from experiments.papers.distributed.report import MSE_UNIT, draw_curve, log_errors
from experiments.papers.distributed.runs import Case, Runs, adaptive, play_all
from experiments.setup import COUNT, Setup, experiment
from experiments.tables import markdown
from ldpspatial.release.distributed.adaptive.prefix_tree import PrefixTree
from ldpspatial.release.distributed.sums.cohort import Cohort

DEPTH, EPSILON = 3, 0.1  # a tree that does not grow, as the paper has it
SHARDS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
RATES = (0.0, 0.1, 0.2, 0.3)
TOLERATED = (0.0, 0.02, 0.1, 0.12, 0.2, 0.22, 0.3, 0.32, 0.5, 0.7, 0.9)
BITS = (8, 10, 12, 13, 14, 15, 16, 18, 20, 24, 32)
Lines = Mapping[str, Mapping[float, Case]]  # by label, then by x


@experiment("distributed-figure8", repeats=10)
@side_option
@click.option(
    "--few", default=10_000, type=COUNT, show_default=True, help="Users, and clients of a shard."
)
@click.option(
    "--many", default=100_000, type=COUNT, show_default=True, help="Users of the other line."
)
def figure8(setup: Setup, side: int, few: int, many: int) -> None:
    """Shard size, drop-outs, modulus (Bagdasaryan et al. 2022, Figure 8, appendix A.3).

    Left: squares of depth 3 that do not grow, at epsilon 0.1, over the size of a shard. Centre: the
    same over t, the number of survivors that noise shares are made for: the paper's DP shard size.
    Where fewer than t survive nothing is shown, so that the claim holds. Right: over the bits of
    the modulus, the same and the adaptive histogram at epsilon 1. Manhattan, the paper's map
    reduced to 216 x 216 pixels that are repeated to 1024 x 1024.
    """
    place = manhattan_place(setup.data, side)
    parts = shard_lines(place, few, many), drop_out_lines(place, few), bits_lines(place, few)
    cases = list(
        dict.fromkeys(case for part in parts for line in part.values() for case in line.values())
    )
    runs = play_all(place, cases, setup, "runs")
    tables = [
        table(parts[0], runs, "shard size"),
        drop_out_table(parts[1], runs),
        table(parts[2], runs, "bits"),
    ]
    setup.publish("\n\n".join(tables), {"": draw(parts, runs)}, {})


def shard_lines(place: Place, few: int, many: int) -> Lines:
    """Return cases over the size of a shard."""
    return {
        f"{users:,} users": {
            size: _fixed(place, Cohort(shard_size=size), users) for size in SHARDS if size <= users
        }
        for users in (few, many)
    }


def drop_out_lines(place: Place, users: int) -> Lines:
    """Return cases over the threshold t of one shard, up to the number that survives."""
    return {
        f"{100 * rate:g} % drop out": {
            Cohort(shard_size=users, tolerated=part).threshold(users): _fixed(
                place, Cohort(shard_size=users, drop_out=rate, tolerated=part), users
            )
            for part in TOLERATED
            if part >= rate
        }
        for rate in RATES
    }


def bits_lines(place: Place, users: int) -> Lines:
    """Return cases over the bits of the modulus."""
    cohorts = {bits: Cohort(shard_size=users, bits=bits) for bits in BITS}
    return {
        "depth 3, epsilon 0.1": {b: _fixed(place, cohort, users) for b, cohort in cohorts.items()},
        "adaptive, epsilon 1": {
            b: Case(f"{b} bits", adaptive(cohort), users) for b, cohort in cohorts.items()
        },
    }


def table(lines: Lines, runs: Runs, name: str) -> str:
    """Return errors over x, a column for each line."""
    every = sorted({x for line in lines.values() for x in line})
    rows = [
        [f"{x:,}", *(shown(_errors(runs, line[x])) if x in line else "" for line in lines.values())]
        for x in every
    ]
    return markdown([f"MSE (1e-13), {name}", *lines], rows)


def drop_out_table(lines: Lines, runs: Runs) -> str:
    """Return errors by t and rate, and how many runs showed a sum where some did not."""
    every = sorted({t for line in lines.values() for t in line}, reverse=True)
    rows = []
    for t in every:
        row = [f"{t:,}"]
        for line in lines.values():
            own = runs.of(line[t]) if t in line else Runs([])
            seen = sum(row["survivors"] > 0 for row in own.rows)
            withheld = f" ({len(own.rows) - seen} of {len(own.rows)} withheld)"
            text = shown(_errors(runs, line[t])) if own.rows else ""
            row.append(text + (withheld if seen < len(own.rows) else ""))
        rows.append(row)
    return markdown(["MSE (1e-13), t", *lines], rows)


def draw(parts: Sequence[Lines], runs: Runs) -> Figure:
    """Draw the three panels; points of which a run showed nothing are left out."""
    figure = Figure(figsize=(13, 3.8), layout="constrained")
    labels = ("clients of a shard", "t, survivors that noise is made for", "bits of the modulus")
    for axes, lines, label in zip(figure.subplots(1, 3), parts, labels, strict=True):
        for name, line in lines.items():
            whole = {
                x: case
                for x, case in sorted(line.items())
                if all(row["survivors"] for row in runs.of(case).rows)
            }
            if whole:
                draw_curve(axes, runs, list(whole.values()), list(whole), name)
        axes.set(xlabel=label)
        axes.legend()
    axes_left, _, axes_right = figure.axes
    axes_left.set(xscale="log")
    for axes in (axes_left, axes_right):
        log_errors(axes)
    return figure


def _fixed(place: Place, cohort: Cohort, users: int) -> Case:
    """Return one round over all squares of a depth."""
    share = 0.5 / 4**DEPTH  # a uniform map has more than that in each square
    rows, columns = place.density.shape
    tree = PrefixTree.from_density(np.ones((rows, columns)), share, DEPTH)
    release = adaptive(cohort, rounds=1, start=tree)
    return Case(f"depth {DEPTH}, {cohort}", release, users, EPSILON)


def _errors(runs: Runs, case: Case) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    return MSE_UNIT * runs.of(case).values("mse")
