"""Options that several commands share: the square and the mechanism."""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from client_sdk import Grid, ParameterError
from client_sdk.shared import MECHANISMS, metres_per_degree
from ldpspatial.errors import InputError
from ldpspatial.planning.grid_size import recommended_cells
from ldpspatial.release.local.disks.disk_radius import MAX_USERS, disk_squared_radius
from ldpspatial.validate import MAX_CELLS

Command = Callable[..., Any]
SQUARED_RADIUS_HELP = (
    "With disk, in place of --radius: the square of the radius in cells, which then need not be "
    "whole; 5 is a radius of 2.24."
)
MECHANISM_HELP = (
    "Likelier reports: dam, a disk around the true cell; dam-ns, the same without partial cells "
    "at its edge; huem, a cone; disk, the cells whose centres lie in a circle."
)


class Finite(click.FloatRange):
    """A finite number in a range: click's own ranges let nan pass."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Refuse nan and infinity, too."""
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


SIDE_KM = Finite(0, 20_000, min_open=True)


class Numbers(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """Comma-separated numbers, as in 48.0,11.0.

    The last may be a side, which is above 0 and has a most.
    """

    def __init__(self, names: str, most_side: float | None = None):
        self.name = names
        self.count = names.count(",") + 1
        self.most_side = most_side

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Split and convert."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(float(part) for part in str(value).split(","))
        except ValueError:
            numbers = ()
        if len(numbers) != self.count:
            self.fail(
                f"must be {self.count} numbers {self.name} without spaces, got {value!r}",
                param,
                ctx,
            )
        if self.most_side is not None and not 0 < numbers[-1] <= self.most_side:
            rule = f"SIDE must be above 0 and at most {self.most_side:g}, got {numbers[-1]:g}"
            self.fail(rule, param, ctx)
        return numbers


def grid_options(command: Command) -> Command:
    """Add the options that give a square: --center with --side-km, --bounds, or --plane."""
    for option in reversed(
        (
            click.option(
                "--center",
                type=Numbers("LAT,LON"),
                help="Centre of the square in degrees; needs --side-km.",
            ),
            click.option("--side-km", type=SIDE_KM, help="Side of the square in km."),
            click.option(
                "--bounds",
                type=Numbers("SOUTH,WEST,SIDE", 180),
                help="South-west corner and side, all in degrees.",
            ),
            click.option(
                "--plane",
                type=Numbers("Y0,X0,SIDE"),
                help="Corner and side on a plane, for maps without latitude and longitude.",
            ),
        )
    ):
        command = option(command)
    return command


CHOICES = (  # what a collection document holds, as the functions below add it
    "cells", "epsilon", "mechanism", "radius", "squared_radius", "for_users",
    "center", "side_km", "bounds", "plane",
)  # fmt: skip


def mechanism_options(command: Command) -> Command:
    """Add --cells, --epsilon, --mechanism, --radius, --squared-radius and --for-users."""
    for option in reversed(
        (
            click.option(
                "--cells",
                type=click.IntRange(1, MAX_CELLS),
                help="Cells along a side; by default 64, and 128 from a million users on.",
            ),
            click.option("--epsilon", type=float, help="Privacy loss of one report."),
            click.option(
                "--mechanism",
                type=click.Choice(MECHANISMS),
                default="disk",
                show_default=True,
                help=MECHANISM_HELP,
            ),
            click.option(
                "--radius", type=int, help="Disk radius in whole cells, in place of the best one."
            ),
            click.option("--squared-radius", type=int, help=SQUARED_RADIUS_HELP),
            click.option(
                "--for-users",
                type=click.IntRange(1, MAX_USERS),
                help="Reports that will arrive, about, for which cells and a disk are recommended; "
                "by default those of POINTS or 100,000.",
            ),
        )
    ):
        command = option(command)
    return command


def wanted_epsilon(options: Mapping[str, Any]) -> float:
    """Return --epsilon, which nobody chooses for its users."""
    epsilon: float | None = options["epsilon"]
    if epsilon is None:
        raise click.UsageError("Missing option '--epsilon': the privacy loss of one report.")
    return epsilon


def wanted_cells(options: Mapping[str, Any], users: int, side_m: float | None) -> int:
    """Return --cells, or what is recommended for --for-users or, without it, so many users."""
    cells: int | None = options["cells"]
    return cells or recommended_cells(options["for_users"] or users, side_m)


def wanted_squared_radius(options: Mapping[str, Any], cells: int, users: int) -> int | None:
    """Return --squared-radius, or the one that is recommended for --for-users or so many users.

    None where another mechanism or --radius is asked for.
    """
    squared: int | None = options["squared_radius"]
    check_squared_radius(options["mechanism"], squared)
    if options["for_users"] is not None and (options["radius"] is not None or squared is not None):
        raise click.UsageError("--for-users takes the place of --radius and --squared-radius.")
    if options["mechanism"] != "disk" or options["radius"] is not None or squared is not None:
        return squared
    return disk_squared_radius(cells, wanted_epsilon(options), options["for_users"] or users)


def square_side(options: Mapping[str, Any]) -> float | None:
    """Return the side of the square in metres where the options give it."""
    if options["side_km"] is not None:
        return float(options["side_km"]) * 1000
    if options["bounds"] is not None:
        south, _, side = options["bounds"]
        per_lat, per_lon = metres_per_degree(south + side / 2)
        return float(side) * min(per_lat, per_lon)
    return None


def check_squared_radius(mechanism: str, squared_radius: int | None) -> None:
    """Refuse a squared radius of a mechanism that has none."""
    if squared_radius is not None and mechanism != "disk":
        raise click.UsageError(f"--squared-radius is for mechanism disk alone, not {mechanism}.")


COLUMNS = {"lat": "--lat", "lon": "--lon", "user": "--user"}


def column_options(command: Command) -> Command:
    """Add --lat, --lon and --on-missing, for files of positions."""
    for option in reversed(
        (
            click.option("--lat", help="Column of latitude (y); guessed by default."),
            click.option("--lon", help="Column of longitude (x); guessed by default."),
            click.option(
                "--on-missing",
                type=click.Choice(["error", "drop"]),
                default="error",
                show_default=True,
                help="Rows with an empty coordinate.",
            ),
        )
    ):
        command = option(command)
    return command


def make_grid(
    cells: int,
    center: tuple[float, float] | None,
    side_km: float | None,
    bounds: tuple[float, float, float] | None,
    plane: tuple[float, float, float] | None,
) -> Grid | None:
    """Return the grid that the options describe, or None where none was given."""
    given = [
        name
        for name, value in (("--center", center), ("--bounds", bounds), ("--plane", plane))
        if value is not None
    ]
    if len(given) > 1:
        raise click.UsageError(f"Give one of {' and '.join(given)}.")
    if (center is None) != (side_km is None):
        raise click.UsageError("--center and --side-km go together.")
    if center is not None and side_km is not None:
        return centred_grid(center, side_km * 1000, cells)
    if bounds is not None:
        return Grid.from_bounds(*bounds, cells)
    return Grid.plane(*plane, cells) if plane is not None else None


def centred_grid(center: tuple[float, float], side_m: float, cells: int) -> Grid:
    """Return the square of --center and --side-km, which errors name."""
    try:
        return Grid.from_center(*center, side_m, cells)
    except ParameterError as error:
        raise InputError(f"--center and --side-km: {error}") from None


def fit_grid(coordinates: NDArray[np.float64], cells: int) -> Grid:
    """Return the smallest square in metres that holds all positions.

    It is made from true positions, so it serves simulation only: the square of a real
    collection is public and chosen beforehand.
    """
    (south, west), (north, east) = coordinates.min(axis=0), coordinates.max(axis=0)
    lat = (south + north) / 2
    lon = (west + east) / 2
    per_lat, per_lon = metres_per_degree(lat)
    # A little room, so that rounding to grid units loses nobody at the edge.
    side = 1.001 * max((north - south) * per_lat, (east - west) * per_lon, cells)
    try:
        return Grid.from_center(float(lat), float(lon), float(side), cells)
    except ParameterError:  # its message tells where people are
        raise InputError(
            "positions must fit into a square of at most 180 degrees within 85 degrees of the "
            "equator, and these do not: give --center and --side-km, or --bounds"
        ) from None
