"""Data to measure on: synthetic maps and walks, and readers of the publishers' own formats."""

from ldpspatial.datasets.publishers import (
    READERS,
    read_chicago_crimes,
    read_foursquare_tsmc2014,
    read_nyc_taxi,
    read_snap_checkins,
)
from ldpspatial.datasets.synthetic import (
    CITY_CENTER,
    CITY_SIDE_M,
    SyntheticMap,
    city,
    city_map,
    multi_normal,
    normal,
    skew_zipf,
    synthetic_maps,
)
from ldpspatial.datasets.walks import density_walks

__all__ = [
    "CITY_CENTER",
    "CITY_SIDE_M",
    "READERS",
    "SyntheticMap",
    "city",
    "city_map",
    "density_walks",
    "multi_normal",
    "normal",
    "read_chicago_crimes",
    "read_foursquare_tsmc2014",
    "read_nyc_taxi",
    "read_snap_checkins",
    "skew_zipf",
    "synthetic_maps",
]
