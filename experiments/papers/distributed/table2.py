"""Table 2 of Bagdasaryan et al. 2022: many positions a user, on Tokyo's check-ins."""

from collections.abc import Sequence
from dataclasses import dataclass

import click
import numpy as np

from experiments.means import shown, span
from experiments.papers.distributed.branches import planned_for_one
from experiments.papers.distributed.places import Place, tokyo_place, tokyo_users
from experiments.papers.distributed.runs import Case, Runs, adaptive, play_all
from experiments.setup import COUNT, Setup, experiment
from experiments.tables import markdown
from ldpspatial.metrics import l1, mean_squared_error
from ldpspatial.release.distributed.adaptive.many_locations import ManyLocations
from ldpspatial.release.distributed.adaptive.rounds import Locations, OneLocation
from ldpspatial.release.distributed.levels.hierarchical import NonPrivateBestLevel
from ldpspatial.release.distributed.sums.cohort import Cohort

SWEEP = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0)
CHOSEN = 2.0
MSE_UNIT = 1e7
Paper = tuple[float, float, int]  # MSE (1e-7), L1 (1e-2), vector length


@dataclass(frozen=True)
class Variant:
    """How users answer, and the paper's numbers for it where it has them."""

    label: str
    locations: Locations
    bits: int = 32
    paper: Paper | None = None
    planned_for_one: bool = False

    def at(self, calibration: float) -> Case:
        """Return the case at a calibration c."""
        kind = planned_for_one if self.planned_for_one else adaptive
        release = kind(Cohort(bits=self.bits), calibration, locations=self.locations)
        return Case(
            f"{self.label}, {self.bits} bits, c = {calibration:g}", release, None, others=("l1",)
        )


VARIANTS = (
    Variant("one position, most visited", OneLocation("most visited"), 16, (13.0, 9.7, 293)),
    Variant("one position, drawn", OneLocation("drawn"), 16),
    Variant("gamma 1, stochastic", ManyLocations(1, "stochastic"), 16, (18.3, 11.6, 1108)),
    Variant("gamma 100, stochastic", ManyLocations(100, "stochastic"), 16, (19.2, 10.8, 1523)),
    Variant("gamma 100, stochastic", ManyLocations(100, "stochastic"), 32, (16.9, 10.8, 1331)),
    Variant("gamma 1e4, stochastic", ManyLocations(10**4, "stochastic"), 32, (7.7, 6.8, 1746)),
    Variant("gamma 1e6, stochastic", ManyLocations(10**6, "stochastic"), 32, (8.3, 7.9, 1218)),
    *(
        Variant(
            f"gamma {name}, authors' settings",
            ManyLocations(scale, "stochastic"),
            paper=paper,
            planned_for_one=True,
        )
        for name, scale, paper in (
            ("1", 1, (18.3, 11.6, 1108)),
            ("100", 100, (16.9, 10.8, 1331)),
            ("1e4", 10**4, (7.7, 6.8, 1746)),
            ("1e6", 10**6, (8.3, 7.9, 1218)),
        )
    ),
    Variant("gamma 1, systematic", ManyLocations(1), 16),
    Variant("gamma 100, systematic", ManyLocations(100), 16),
    Variant("gamma 100, systematic", ManyLocations(100), 32),
    Variant("gamma 1e4, systematic", ManyLocations(10**4), 32),
    Variant("gamma 1e6, systematic", ManyLocations(10**6), 32),
)


@experiment("distributed-table2", repeats=20)
@click.option("--side", default=64, type=COUNT, show_default=True, help="Cells of a side.")
def table2(setup: Setup, side: int) -> None:
    """Many positions a user, on Tokyo (Bagdasaryan et al. 2022, Table 2), with c swept.

    Epsilon 1 for each user with all positions, 64 x 64 cells over the bounding box of the
    check-ins, all users in every round. The truth is the mean of the users' own maps. The data
    are those of the paper after a filter: 311,124 check-ins of 2,173 users, not 573,695 of 2,293.
    The paper does not say which c it took, so each of its rows is played at seven. Rows of the
    authors' settings plan rounds as their branch multi_loc does.
    """
    place = tokyo_users(setup.data, side)
    clear = Case(
        "one position, drawn, no noise",
        NonPrivateBestLevel(Cohort(), truth=place.density),
        None,
        others=("l1",),
    )
    cases = [variant.at(c) for variant in VARIANTS for c in SWEEP]
    runs = play_all(place, [clear, *cases], setup, "runs")
    first = all_in_the_clear(place, tokyo_place(setup.data, side))
    setup.publish(f"{rows_of_paper(runs, clear, first)}\n\n{sweep(runs)}", {}, {})


def all_in_the_clear(users: Place, checkins: Place) -> list[str]:
    """Return the row of no noise: users of equal mass against check-ins of equal mass.

    The paper's error without noise is not 0 on all cells and all users, so its truth is not the
    mean of the users' maps. Check-ins of equal mass are the other candidate.
    """
    pair = checkins.density, users.density
    mse = f"{MSE_UNIT * mean_squared_error(*pair):.2f}"
    error = f"{l1(*pair):.2f}"
    levels = users.density.shape[0].bit_length()
    length = sum(4**level for level in range(1, levels))
    paper = "1.2", "2.64", "5,460"
    return ["no noise, against the map of check-ins", "", mse, mse, paper[0], error, paper[1],
            f"{length:,}", paper[2], ""]  # fmt: skip


def rows_of_paper(runs: Runs, clear: Case, first: list[str]) -> str:
    """Return the paper's table at one c, its numbers beside ours."""
    rows = [first, _row(clear.label, runs.of(clear), "", None)]
    for variant in VARIANTS:
        rows.append(
            _row(variant.label, runs.of(variant.at(CHOSEN)), str(variant.bits), variant.paper)
        )
    header = [f"c = {CHOSEN:g}", "bits", "MSE (1e-7)", "median", "paper", "L1", "paper (1e-2)",
              "vector length", "paper", "may wrap"]  # fmt: skip
    return markdown(header, rows)


def sweep(runs: Runs) -> str:
    """Return errors and lengths over c."""
    rows: list[Sequence[str]] = []
    for variant in VARIANTS:
        row = [variant.label, str(variant.bits)]
        for c in SWEEP:
            own = runs.of(variant.at(c))
            mse = MSE_UNIT * own.values("mse")
            length = own.values("vector_length").mean()
            row.append(f"{shown(mse, 1)} ({length:,.0f})")
        rows.append(row)
    return markdown(["MSE (1e-7) (length)", "bits", *(f"c = {c:g}" for c in SWEEP)], rows)


def _row(label: str, own: Runs, bits: str, paper: Paper | None) -> list[str]:
    mse = ""
    error = ""
    length = ""
    if paper is not None:
        mse = str(paper[0])
        error = str(paper[1])
        length = f"{paper[2]:,}"
    errors = MSE_UNIT * own.values("mse")
    wraps = [row.get("rounds_that_may_wrap", 0) > 0 for row in own.rows]
    return [
        label, bits,
        shown(errors), f"{np.median(errors):.2f}", mse,
        shown(own.values("l1")), error,
        span(own.values("vector_length")), length,
        "yes" if any(wraps) else "",
    ]  # fmt: skip
