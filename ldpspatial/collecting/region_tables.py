"""Files of what is told of many regions: a table, GeoJSON, a GeoPackage."""

import os
from abc import ABC, abstractmethod
from typing import Any

from client_sdk import Grid
from ldpspatial.files.regions import (
    Values,
    write_regions_csv,
    write_regions_geojson,
    write_regions_geopackage,
)
from ldpspatial.places.regions import Region
from ldpspatial.validate import instance

Path_ = str | os.PathLike[str]

OF_ANY = ("on_map", "trust", "forged")  # numbers that files have of regions off the map as well


class RegionTable(ABC):
    """What files of regions hold: numbers for each region, and facts on all of them."""

    @property
    @abstractmethod
    def regions(self) -> list[Region]:
        """The regions, in the order given."""

    @property
    @abstractmethod
    def numbers(self) -> dict[str, list[float]]:
        """Numbers of each region by name, in every file."""

    @property
    def texts(self) -> dict[str, list[str]]:
        """Words on each region by name, in every file: none."""
        return {}

    @property
    @abstractmethod
    def details(self) -> dict[str, list[float]]:
        """Further numbers, in tables."""

    @property
    @abstractmethod
    def members(self) -> dict[str, Any]:
        """Facts on all regions, in GeoJSON."""


def write_csv(path: Path_, shares: RegionTable) -> None:
    """Write a table with a line for each region.

    Columns of shares: name, share, lower, upper, people, in_cut_cells, wholly_inside and touched,
    as in :class:`ldpspatial.collecting.region_shares.RegionShare`, and on_map, as in
    :class:`ldpspatial.places.regions.Region`. With public weights inside cells also
    by_public_weights, and trust, the same in every line. Where forgers were asked for, forged, the
    same in every line, reached_down, reached_up, proven_down and proven_up: by how much attacks
    move the share, and what no forgery passes. Last method: which one tells the share.
    Of changes: name, change, lower, upper, share and share_before, as in
    :class:`ldpspatial.collecting.region_changes.RegionChange`, and on_map. Of a region that misses
    the map nothing is known but that: its other numbers are empty.

    Parameters
    ----------
    path : path
    shares : RegionShares or RegionChanges

    Raises
    ------
    InputError
        The file cannot be written.
    """
    held = _table(shares)
    write_regions_csv(path, held.regions, _columns(held))


def write_geojson(path: Path_, grid: Grid, shares: RegionTable) -> None:
    """Write the regions with their shares, or changes (GeoJSON, RFC 7946), one to a line.

    Parameters
    ----------
    path : path
    grid : client_sdk.Grid
        Of the map. A plane is marked by the member ``"plane": true``: GeoJSON knows degrees only.
    shares : RegionShares or RegionChanges

    Notes
    -----
    Features have the columns of :func:`write_csv` as properties. The collection has ``reports``
    (their number), ``level`` and ``method`` of the intervals.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    instance("grid", grid, Grid)
    held = _table(shares)
    members = held.members
    if grid.kind == "plane":
        members["plane"] = True
    write_regions_geojson(path, held.regions, _columns(held), members)


def write_geopackage(path: Path_, grid: Grid, shares: RegionTable) -> None:
    """Write the regions with their shares, or changes, as layer ``regions`` of a GeoPackage.

    Its columns are those of :func:`write_csv`. Coordinates of a geographic grid are WGS 84,
    and those of a plane have no named system.

    Parameters
    ----------
    path : path
    grid : client_sdk.Grid
        Of the map.
    shares : RegionShares or RegionChanges

    Raises
    ------
    InputError
        The file cannot be written, or the extra ``gis`` is missing.
    """
    is_geographic = instance("grid", grid, Grid).kind == "geographic"
    held = _table(shares)
    write_regions_geopackage(path, held.regions, _columns(held), is_geographic)


def _table(shares: object) -> RegionTable:
    return instance("shares", shares, RegionTable)  # type: ignore[type-abstract]


def _columns(held: RegionTable) -> dict[str, Values]:
    """Return what a file says of each region, whatever its format: nothing of one off the map."""
    columns: dict[str, Values] = {}
    for name, values in (held.numbers | held.details).items():
        known = (region.on_map > 0 or name in OF_ANY for region in held.regions)
        columns[name] = [each if told else None for each, told in zip(values, known, strict=True)]
    columns.update(held.texts)
    return columns
