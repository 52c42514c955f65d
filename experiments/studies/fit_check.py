"""How often the check of the fit alarms: on genuine counts, and where reports were forged."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType

import click
import numpy as np
from numpy.typing import NDArray
from scipy.stats import kstest

from client_sdk import Grid, ResponseTable, response_table
from client_sdk.kernels import cells_of
from experiments.generated import write_page
from experiments.places import Place, places
from experiments.progress import tracked
from experiments.sources import CABS, data_option, gowalla, table, tokyo
from experiments.tables import DOCS, markdown
from ldpspatial import StampChannel
from ldpspatial.errors import LdpSpatialError
from ldpspatial.estimation import EM, LikelihoodGain, best_power, goodness_of_fit
from ldpspatial.places.cell_maps import people_map
from ldpspatial.release.local.disks.disk_radius import disk_squared_radius

Array = NDArray[np.float64]

EPSILONS = (0.5, 1.0, 2.0, 3.5, 5.0, 7.0)
MECHANISMS = ("dam", "huem", "recommended")
SIZES = ((15, 1_000), (15, 100_000), (15, 1_000_000), (8, 100_000))
# Where a check takes up to seconds: the recommended disk alone.
FINE = ((32, 100_000), (64, 100_000))
LEVEL = 0.05
DEFAULT_LEVEL = 1e-4
POINTS = 400_000  # from which a map is made
SQUARES = {  # south, west, side in degrees
    "tokyo": (35.55, 139.55, 0.25),
    "austin": (30.1, -97.95, 0.4),
    "san francisco": (37.70, -122.52, 0.15),
}
QUICK = EM(LikelihoodGain(1e15))  # the check does not look at the map
POWER_USERS = 100_000
RATES = ["d", "n", "eps", "runs", "p of uniform", "mean", "< .05", "< .01", "least"]
# By cells of a side: the tables, and the maps; none for all.
Power = Mapping[int, tuple[tuple[str, ...], tuple[str, ...]]]
POWER: Power = MappingProxyType({15: (("dam", "recommended"), ())})
POWER_FINE: Power = MappingProxyType(
    {32: (("recommended",), ("chicago", "tokyo")), 64: (("recommended",), ("chicago",))}
)


@dataclass(frozen=True)
class Checks:
    """P-values of repeated collections."""

    p_values: Array

    def below(self, level: float) -> str:
        """Return the share below a level."""
        return f"{(self.p_values < level).mean():.3f}"


@click.command("fit-check")
@data_option
@click.option("--repeats", default=2, show_default=True, type=click.IntRange(1),
              help="Genuine collections on each map, at each setting.")  # fmt: skip
@click.option("--forged-repeats", default=2, show_default=True, type=click.IntRange(1),
              help="The same with forged reports.")  # fmt: skip
@click.option("--seed", default=1, show_default=True)
@click.option("--fine", is_flag=True, help="Fine grids alone: 32 and 64 cells.")
@click.option("--write", is_flag=True, help="Write a page in docs/generated.")
def fit_check(
    data: Path, repeats: int, forged_repeats: int, seed: int, fine: bool, write: bool
) -> None:
    """Show false alarms and power of the check of the fit.

    Ten maps, epsilon .5 to 7, DAM, HUEM and the recommended disk; power against 2 % unrandomised
    and 5 % shaped reports, beside the most that any test can have.
    """
    rng = np.random.default_rng(seed)
    try:
        rates = fine_rates(data, repeats, rng) if fine else rates_of(data, repeats, rng)
        powers = powers_of(POWER_FINE if fine else POWER, data, forged_repeats, rng)
    except LdpSpatialError as error:
        raise click.ClickException(str(error)) from error
    page = f"## False alarms\n\n{rates}\n\n## Power\n\n{powers}"
    click.echo(page)
    if write:
        write_page(DOCS, "fit-check-fine" if fine else "fit-check", page)


def maps_of(cells: int, data: Path) -> dict[str, Array]:
    """Return ten densities by name: synthetic, from data, and extreme ones."""
    rng = np.random.default_rng(0)
    found = {name: _density(place, cells, rng) for name, place in places(cells, data).items()}
    cabs = table(data, CABS)
    points = {
        "tokyo": tokyo(data).coordinates,
        "austin": gowalla(data).coordinates,
        "san francisco": np.column_stack([cabs["lat"], cabs["lon"]]),
    }
    for name, square in SQUARES.items():
        found[name] = _inside(points[name], Grid.from_bounds(*square, cells), square)
    found["uniform"] = np.full((cells, cells), 1 / cells**2)
    spot = np.zeros((cells, cells))
    spot[cells // 2, cells // 3] = 1
    found["one cell"] = spot
    return found


def _density(place: Place, cells: int, rng: np.random.Generator) -> Array:
    return _counted(place.draw(POINTS, rng), place.grid, cells)


def _inside(points: Array, grid: Grid, square: tuple[float, float, float]) -> Array:
    south, west, side = square
    up = points[:, 0] - south
    right = points[:, 1] - west
    within = (up >= 0) & (up < side) & (right >= 0) & (right < side)
    return _counted(points[within], grid, grid.cells)


def _counted(points: Array, grid: Grid, cells: int) -> Array:
    rows, cols, _ = cells_of(grid, points[:, 0], points[:, 1])
    people = people_map(rows, cols, cells)
    return np.asarray(people / people.sum())


def table_of(mechanism: str, epsilon: float, cells: int, users: int) -> ResponseTable:
    """Return the table of a mechanism with its default radius, or of the recommended disk."""
    if mechanism != "recommended":
        return response_table(mechanism, epsilon, cells)
    squared_radius = disk_squared_radius(cells, epsilon, users)
    return response_table("disk", epsilon, cells, squared_radius=squared_radius)


def checked(
    channel: StampChannel, law: Array, users: int, repeats: int, rng: np.random.Generator
) -> Array:
    """Return p-values of collections whose reports follow a law."""
    found = []
    for _ in range(repeats):
        counts = rng.multinomial(users, law.ravel() / law.sum()).reshape(law.shape)
        found.append(goodness_of_fit(QUICK.fit(channel, counts)).p_value)
    return np.array(found)


def rates_of(data: Path, repeats: int, rng: np.random.Generator) -> str:
    """Return the table of false alarms: all maps and mechanisms together."""
    rows = []
    settings = [(size, epsilon) for size in SIZES for epsilon in EPSILONS]
    for (cells, users), epsilon in tracked(settings, "settings without forgeries"):
        some: list[Array] = []
        for mechanism in MECHANISMS:
            channel = StampChannel(table_of(mechanism, epsilon, cells, users))
            if channel.support.sum() == cells**2:
                continue
            for density in maps_of(cells, data).values():
                some.append(checked(channel, channel.forward(density), users, repeats, rng))
        rows.append([cells, f"{users:,}", f"{epsilon:g}", *_told(some)])
    return markdown(RATES, rows)


def fine_rates(data: Path, repeats: int, rng: np.random.Generator) -> str:
    """Return the table of false alarms on fine grids, by the recommended disk on all maps."""
    rows = []
    maps = {cells: maps_of(cells, data).values() for cells, _ in FINE}
    for (cells, users), epsilon in tracked(list(product(FINE, EPSILONS)), "fine grids"):
        channel = StampChannel(table_of("recommended", epsilon, cells, users))
        laws = [channel.forward(density) for density in maps[cells]]
        found = [checked(channel, law, users, repeats, rng) for law in laws]
        rows.append([cells, f"{users:,}", f"{epsilon:g}", *_told(found)])
    return markdown(RATES, rows)


def _told(found: list[Array]) -> list[str]:
    if not found:
        return ["0", *["-"] * 5]
    checks = Checks(np.concatenate(found))
    p = checks.p_values
    uniform = f"{kstest(p, 'uniform').pvalue:.2g}"
    return [str(len(p)), uniform, f"{p.mean():.2f}", checks.below(0.05), checks.below(0.01),
            f"{p.min():.1g}"]  # fmt: skip


def forgeries(channel: StampChannel, density: Array) -> Iterator[tuple[str, float, Array]]:
    """Yield names, shares and shapes of forged reports."""
    support = channel.support
    radius = channel.table.radius
    cells = len(density)
    rows, cols = np.indices(support.shape)
    centre = len(support) // 2
    far = np.maximum(abs(rows - centre), abs(cols - centre))
    start = radius + cells // 3
    spots: Mapping[str, Callable[[], NDArray[np.bool_]]] = {
        "one output": lambda: (rows == start) & (cols == start + 4),
        "block of 4 x 4": lambda: (abs(rows - start - 1.5) < 2) & (abs(cols - start - 2.5) < 2),
        "ring": lambda: far == cells // 3,
        "margin": lambda: ~np.pad(np.ones((cells, cells), bool), radius),
        "checkerboard": lambda: (rows + cols) % 2 == 0,
    }
    unrandomised = np.pad(density, radius)
    yield "unrandomised", 0.02, unrandomised
    yield "copy of the map", 0.05, unrandomised
    for name, where in spots.items():
        shape = support & where()
        if shape.any():
            yield name, 0.05, shape / shape.sum()


def powers_of(asked: Power, data: Path, repeats: int, rng: np.random.Generator) -> str:
    """Return the table of power: the share of runs with an alarm, and the most there can be."""
    rows = []
    maps = {cells: maps_of(cells, data) for cells in asked}
    settings = [
        (cells, mechanism, epsilon)
        for cells, (mechanisms, _) in asked.items()
        for mechanism, epsilon in product(mechanisms, EPSILONS)
    ]
    for cells, mechanism, epsilon in tracked(settings, "settings with forgeries"):
        names = asked[cells][1] or tuple(maps[cells])
        channel = StampChannel(table_of(mechanism, epsilon, cells, POWER_USERS))
        found = _powers_on(channel, [maps[cells][name] for name in names], repeats, rng)
        for name, maps_seen in found.items():
            rows.append([cells, mechanism, f"{epsilon:g}", name, *_powers(maps_seen)])
    header = ["d", "table", "eps", "forged", "maps where .8 is possible",
              "power there, mean (least)", "at 1e-4", "power elsewhere", "at most"]  # fmt: skip
    return markdown(header, rows)


def _powers_on(
    channel: StampChannel, maps: list[Array], repeats: int, rng: np.random.Generator
) -> dict[str, list[tuple[float, float, float]]]:
    """Return, by forgery and map, the most power there can be, and the share of alarms."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for density in maps:
        for name, share, shape in forgeries(channel, density):
            law = (1 - share) * channel.forward(density) + share * shape
            p = checked(channel, law, POWER_USERS, repeats, rng)
            most = best_power(channel, density, shape, share, POWER_USERS, LEVEL)
            seen = float((p < LEVEL).mean())
            loud = float((p < DEFAULT_LEVEL).mean())
            found.setdefault(name, []).append((most, seen, loud))
    return found


def _powers(maps: list[tuple[float, float, float]]) -> list[str]:
    """Return the columns of one forgery: where theory allows a power of .8, and elsewhere."""
    able = np.array([each for each in maps if each[0] >= 0.8])
    other = np.array([each for each in maps if each[0] < 0.8])
    there = ["-", "-"]
    elsewhere = ["-", "-"]
    if len(able):
        there = [f"{able[:, 1].mean():.2f} ({able[:, 1].min():.2f})", f"{able[:, 2].mean():.2f}"]
    if len(other):
        elsewhere = [f"{other[:, 1].mean():.2f}", f"{other[:, 0].mean():.2f}"]
    return [f"{len(able)} of {len(maps)}", *there, *elsewhere]
