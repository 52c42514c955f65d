"""Figure 9 of Bagdasaryan et al. 2022: which share of a place's people is infected."""

from dataclasses import dataclass, field

import click
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.means import shown, span
from experiments.papers.distributed.places import Place, chicago_place, manhattan_place, side_option
from experiments.papers.distributed.runs import Runs, adaptive, drawn, play_all, randomness
from experiments.setup import COUNT, Setup, experiment
from experiments.sources import Array
from experiments.tables import markdown
from ldpspatial.comparison.runs import Row
from ldpspatial.places.users import UserCells
from ldpspatial.release.distributed.adaptive.side_data import ProportionMap, SideData

WIDTHS = (0.1, 0.2, 0.3)
DRAWN = 1  # of the widths
SPREAD = 0.125  # standard deviation of the kernel, in sides


@dataclass(frozen=True)
class Survey:
    """Side data of people who are infected with a chance that falls with the distance to a focus.

    Attributes
    ----------
    label : str
    survey : SideData
    users : int or None
    focus : (row, column)
        In sides of the map, from its south-west corner.
    epsilon : float
    """

    label: str
    survey: SideData
    users: int | None
    focus: tuple[float, float] = field(default=(0.5, 0.5))
    epsilon: float = 1.0

    def chance(self, shape: tuple[int, int]) -> Array:
        """Return the chance of being infected by pixel."""
        down, across = (
            (np.arange(side) + 0.5) / side - at for side, at in zip(shape, self.focus, strict=True)
        )
        square = down[:, None] ** 2 + across**2
        chance: Array = np.exp(-square / (2 * SPREAD**2))
        return chance

    def run(self, place: Place, people: UserCells, rng: np.random.Generator) -> ProportionMap:
        """Infect people and ask."""
        cells = people.one_cell_each(rng)
        positive = rng.random(len(cells)) < self.chance(place.density.shape).ravel()[cells]
        return self.survey.run(people, positive, self.epsilon, rng)

    def play(self, place: Place, people: UserCells, rng: np.random.Generator) -> Row:
        """Run and hold the map against the chances, weighted by where people are."""
        found = self.run(place, people, rng)
        chance = self.chance(place.density.shape)
        weight = place.density
        known = ~np.isnan(found.proportion)
        squared = np.where(known, found.proportion - chance, 0.5) ** 2
        labels = found.tree.labels.ravel()
        length = len(found.tree)
        people_in = np.bincount(labels, weight.ravel(), length)
        inhabited = people_in > 0
        truth = np.bincount(labels, (weight * chance).ravel(), length)[inhabited]
        mean = truth / people_in[inhabited]
        _, first = np.unique(labels, return_index=True)
        lower, upper = (bound.ravel()[first][inhabited] for bound in (found.lower, found.upper))
        wide = found.upper - found.lower > self.survey.width
        return {
            "error": float(np.sqrt((weight * squared).sum())),
            "covered": float(((lower <= mean) & (mean <= upper)).mean()),
            "people_within_width": float(weight[~wide].sum()),
            "claim": str(found.claim),
            **found.facts,
        }


@experiment("distributed-figure9", repeats=10)
@side_option
@click.option(
    "--cells", default=128, type=COUNT, show_default=True, help="Cells of a side for Chicago."
)
@click.option("--users", default=100_000, type=COUNT, show_default=True)
def figure9(setup: Setup, side: int, cells: int, users: int) -> None:
    """Proportions with confidence intervals (Bagdasaryan et al. 2022, Figure 9, appendix B).

    Users are infected with a chance that falls with the distance from a focus as a Gaussian kernel
    does, of standard deviation an eighth of the side. Epsilon 1, 95 % intervals, widths 0.1, 0.2
    and 0.3 wanted. Manhattan has the paper's focus, pixel (200, 900) of 1024 from the north-west,
    and its picture goes to --out only: the map's licence forbids to pass it on. The documents show
    Chicago's assaults, with the focus where most of them are. The paper does not give its spread.
    """
    manhattan = manhattan_place(setup.data, side)
    chicago = chicago_place(setup.data, cells)
    densest = np.unravel_index(int(chicago.density.argmax()), chicago.density.shape)
    centre = float(densest[0] + 0.5) / cells, float(densest[1] + 0.5) / cells
    rows = []
    figures = {}
    for place, c, focus in ((manhattan, 0.1, (1 - 900 / 1024, 200 / 1024)), (chicago, 0.5, centre)):
        histogram = adaptive(calibration=c)
        surveys = [Survey(f"{w:g}", SideData(histogram, w), users, focus) for w in WIDTHS]
        runs = play_all(place, surveys, setup, place.name.lower())
        rows += rows_of(place, surveys, runs)
        figures[place.name] = draw(place, surveys[DRAWN], runs)
    header = ["place", "width wanted", "error of proportions", "intervals with the truth",
              "people within the width", "rounds", "squares", "vector length"]  # fmt: skip
    forbidden = {"-manhattan": figures["Manhattan"]}
    setup.publish(markdown(header, rows), {"-chicago": figures["Chicago"]}, forbidden)


def rows_of(place: Place, surveys: list[Survey], runs: Runs) -> list[list[str]]:
    """Return the rows of a place."""
    rows = []
    for survey in surveys:
        own = runs.of(survey)
        numbers = [shown(own.values(name), 3) for name in ("error", "covered")]
        spans = [span(own.values(name)) for name in ("rounds", "leaves", "vector_length")]
        within = shown(own.values("people_within_width"))
        rows.append([place.name, survey.label, *numbers, within, *spans])
    return rows


def draw(place: Place, survey: Survey, runs: Runs) -> Figure:
    """Draw the chances, the proportions of the first run, and the widths of their intervals."""
    root = runs.rows[0]["root"]
    found = survey.run(place, drawn(place, survey, root), randomness(survey, root))
    figure = Figure(figsize=(10.2, 3.2), layout="constrained")
    panels = figure.subplots(1, 3)
    chance = survey.chance(place.density.shape)
    _draw(panels[0], chance, f"{place.name}: chance of infection", "viridis")
    _draw(panels[1], found.proportion, f"proportion, {len(found.tree):,} squares", "viridis")
    _draw(panels[2], found.upper - found.lower, "width of its 95 % interval", "cividis", 0.5)
    return figure


def _draw(axes: Axes, values: Array, title: str, colours: str, top: float = 1.0) -> None:
    image = axes.imshow(values, cmap=colours, vmin=0, vmax=top, origin="lower",
                        interpolation="nearest")  # fmt: skip
    axes.set_title(title, fontsize=9)
    axes.set_axis_off()
    extend = "neither" if top == 1 else "max"
    axes.figure.colorbar(image, ax=axes, shrink=0.85, extend=extend)
