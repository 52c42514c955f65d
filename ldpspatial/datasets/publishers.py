"""Readers of location data in the very files that their publishers hand out.

Such files are never clean, and where they are not is known: rows without position, zeros in place
of a position, a few broken rows. These readers leave such rows out and count them in
``Points.dropped``; :func:`ldpspatial.files.points.read_points` is strict instead.
"""

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ldpspatial.errors import InputError
from ldpspatial.files.columns import as_codes, as_numbers, is_missing, read_columns
from ldpspatial.files.points import GEOGRAPHIC_LIMITS
from ldpspatial.files.table_layout import Layout, find_column, fold, headless_layout, table_layout
from ldpspatial.places.points import Points
from ldpspatial.validate import one_of

FilePath = str | os.PathLike[str]

SNAP_FIELDS = ("user", "time", "latitude", "longitude", "location")
FOURSQUARE_FIELDS = (
    *("user", "venue", "category", "category name"),
    *("latitude", "longitude", "offset", "time"),
)
TAXI_ENDS: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {  # the second pair is that of the yellow cabs of 2009
        "pickup": (("pickup_latitude", "pickup_longitude"), ("start_lat", "start_lon")),
        "dropoff": (("dropoff_latitude", "dropoff_longitude"), ("end_lat", "end_lon")),
    }
)
# Crimes whose place is withheld or unknown may carry the origin of the state's plane coordinates,
# which lies in Missouri.
CHICAGO_ORIGIN = (36.619446, -91.686566)


def read_chicago_crimes(path: FilePath) -> Points:
    """Read the City of Chicago's CSV export of reported crimes, one position a crime.

    Of its 22 columns Latitude and Longitude are read.

    Parameters
    ----------
    path : .csv, .csv.gz, .tsv, .tsv.gz or .parquet file

    Returns
    -------
    Points
        Rows without position are dropped, and those at the origin of the state's plane coordinates,
        which stands for a place that is unknown or withheld.

    Notes
    -----
    Source: https://data.cityofchicago.org/d/ijzp-q8t2 (2001 to present) and its yearly extracts.

    Raises
    ------
    InputError
        The file cannot be read, is not of this format or holds no position.
    """
    layout = table_layout(path)
    lat = find_column(layout, "latitude", "Latitude")
    lon = find_column(layout, "longitude", "Longitude")

    def void(at: NDArray[np.float64]) -> NDArray[np.bool_]:
        near = np.abs(at - CHICAGO_ORIGIN) < 1e-4
        return near[:, 0] & near[:, 1]

    return _usable(layout, lat, lon, None, void)


def read_nyc_taxi(path: FilePath, end: str = "pickup") -> Points:
    """Read trip records of New York's yellow or green cabs, 2009 to June 2016, one point a trip.

    Parameters
    ----------
    path : .csv, .csv.gz or .parquet file
        The header's capitals and spaces differ from year to year, and green files of some years
        end every row with spare commas; both are handled.
    end : {"pickup", "dropoff"}
        Which end of the trip.

    Returns
    -------
    Points
        Rows where a coordinate is zero, which stands for unknown, are dropped.

    Notes
    -----
    Source: https://www.nyc.gov/site/tlc/about/tlc-trip-record-data.page. The Parquet files that
    the commission now offers for these years hold taxi zones from 2011 on; the CSV files of the
    time hold positions.

    Raises
    ------
    InputError
        ``end`` is unknown; the file cannot be read, holds taxi zones in place of positions, is
        not of this format or holds no position.
    """
    one_of("end", end, TAXI_ENDS)
    layout = table_layout(path)
    folded = [fold(name) for name in layout.names]
    if "pulocationid" in folded:
        raise InputError(
            f"path must hold positions, but {layout.path.name!r} holds taxi zones (PULocationID): "
            "trips since July 2016 have no coordinates; take a CSV file of June 2016 or before"
        )
    usual, early = TAXI_ENDS[end]
    names = early if early[0] in folded else usual
    lat, lon = (find_column(layout, end, name) for name in names)
    return _usable(layout, lat, lon, None, lambda at: (at[:, 0] == 0) | (at[:, 1] == 0))


def read_snap_checkins(path: FilePath) -> Points:
    """Read the check-ins of Gowalla or Brightkite, ``loc-*_totalCheckins.txt`` (also ``.gz``).

    Rows hold user, time, latitude, longitude and location, separated by tabs, without header.

    Parameters
    ----------
    path : text file, also gzipped

    Returns
    -------
    Points
        With users. Rows without position or user, or at latitude and longitude 0, are dropped.

    Notes
    -----
    Source: https://snap.stanford.edu/data/loc-gowalla.html and loc-brightkite.html (Cho, Myers,
    Leskovec, KDD 2011).

    Raises
    ------
    InputError
        The file cannot be read, is not of this format or holds no position.
    """
    return _usable(
        headless_layout(path, SNAP_FIELDS), 2, 3, 0, lambda at: (at[:, 0] == 0) & (at[:, 1] == 0)
    )


def read_foursquare_tsmc2014(path: FilePath) -> Points:
    """Read Foursquare check-ins of New York or Tokyo, ``dataset_TSMC2014_NYC.txt`` or ``_TKY``.

    Rows hold user, venue, category, category name, latitude, longitude, offset from UTC in
    minutes and time, separated by tabs, in Latin-1, without header.

    Parameters
    ----------
    path : text file, also gzipped

    Returns
    -------
    Points
        With users. Rows without position or user, or at latitude and longitude 0, are dropped.

    Notes
    -----
    Source: Yang, Zhang, Zheng, Yu, IEEE Trans. SMC: Systems 45(1), 2015.

    Raises
    ------
    InputError
        The file cannot be read, is not of this format or holds no position.
    """
    layout = headless_layout(path, FOURSQUARE_FIELDS)
    return _usable(layout, 4, 5, 0, lambda at: (at[:, 0] == 0) & (at[:, 1] == 0))


READERS: Mapping[str, Callable[..., Points]] = MappingProxyType(
    {
        "chicago-crimes": read_chicago_crimes,
        "nyc-taxi": read_nyc_taxi,
        "snap": read_snap_checkins,
        "foursquare": read_foursquare_tsmc2014,
    }
)


def _usable(
    layout: Layout,
    lat: int,
    lon: int,
    user: int | None,
    void: Callable[[NDArray[np.float64]], NDArray[np.bool_]],
) -> Points:
    """Return the rows that hold a position; ``void`` tells which coordinates stand for none."""
    columns = read_columns(layout, (lat, lon), () if user is None else (user,))
    fields = ("latitude", "longitude")
    pairs = zip(columns.arrays[:2], fields, strict=True)
    coordinates = np.column_stack([as_numbers(array, field)[0] for array, field in pairs])
    keep = np.all(np.abs(coordinates) <= GEOGRAPHIC_LIMITS, axis=1)  # NaN fails
    keep &= ~void(coordinates)
    for array in columns.arrays[2:]:
        keep &= ~is_missing(array)
    dropped = len(keep) - int(keep.sum()) + columns.ragged
    if not keep.any():
        raise InputError(
            f"path must hold positions, but none of the {dropped} rows of {layout.path.name!r} does"
        )
    users = None if user is None else as_codes(columns.arrays[2].filter(keep), "user")
    return Points(coordinates[keep], users, dropped)
