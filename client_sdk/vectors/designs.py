"""The collections and series that the vectors are made of."""

import warnings
from fractions import Fraction
from typing import Any

from client_sdk import Collection, DesignWarning, Grid, ResponseTable, Series
from client_sdk.series import LAST_SECOND, MAX_WINDOW_SECONDS, MAX_WINDOWS
from client_sdk.validate import MICRO

CHICAGO = Grid.from_bounds(41.64, -87.90, 0.36, 2)
BERLIN = Grid.from_bounds(52.43, 13.25, 0.18, 5)
FIJI = Grid.from_bounds(-18.05, 179.75, 0.5, 15)  # across the antimeridian


def collection(name: str, grid: Grid, *design: Any, **more: Any) -> Collection:
    """Return a collection, radius 0 included."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DesignWarning)
        return Collection.create(name, grid, *design, **more)


def hand_made(name: str, cells: int, base: int, *octant: tuple[int, ...]) -> Collection:
    """Return a collection with weights of no mechanism; devices accept it at epsilon 1."""
    table = ResponseTable("hand-made", 1.0, cells, base, octant)
    made = Collection(name, Grid.plane(0, 0, 1, cells), table, MICRO)
    made.verify()
    return made


ONE_REPORT = hand_made("one report", 1, 1, (1,))
COLLECTIONS = [
    collection("worked example", CHICAGO, Fraction(7, 5)),
    collection("noon in Berlin", BERLIN, 2, max_reports=7),
    collection("15 cells", FIJI, Fraction(7, 2)),
    collection("randomised response", Grid.plane(-4.44, -4.87, 9.45, 3), Fraction(7, 2)),
    collection("no shrinking", Grid.plane(0, 0, 1, 4), 2, "dam-ns"),
    collection("exponential", Grid.plane(0, 0, 1, 5), 2, "huem", radius=3),
    hand_made("a ring", 3, 4, (5,), (9, 4), (7, 9)),
    hand_made("flat: the total is a power of two", 2, 8, (8,), (8, 8)),
    ONE_REPORT,
    collection("Zürich – 正午 \U0001f6b2 \"quoted\" \\ /", CHICAGO, Fraction(123, 100)),
    collection("a real radius", Grid.plane(0, 0, 1, 4), 2, "disk", squared_radius=5),
]  # fmt: skip

EDGES = [  # documents at the limits of section 6; no draws are made from them
    Collection(name, grid, ResponseTable("hand-made", 1.0, grid.cells, 1, ((1,),)), MICRO)
    for name, grid in (
        ("\U0001f6b2" * 200, Grid("plane", -(10**15), 10**15, 2, 2 * 10**15, 1)),
        # What stands just inside the table of visible characters, at holes and at its end.
        (
            "~\u00a1 \u00ac\u00ae \u034e\u0350 \u2010\u2027 \u2030\u205e \u2070 \u27ff\u2801 "
            "\ufe10 \uffee \U0001d158\U0001d15a \U0001fad6 \U0001fbf9 \U0003134a",
            Grid("plane", 0, 0, 4, 4, 2),
        ),
        ("\u00e9", Grid("geographic", -850000000, -1800000000, 1700000000, 1800000000, 1)),
        ("e\u0301", Grid("geographic", 849999998, 1799999999, 2, 2, 1)),  # not the same name
    )
]

SERIES = [
    Series.create("worked example", CHICAGO, Fraction(7, 5), first_start=1_800_000_000,
                  window_seconds=86_400, windows=28, answers=4),
    Series("one window", ONE_REPORT, 0, 1, 1, 1),
    # The largest numbers and the longest name: those of its windows have up to 200 code points.
    Series("\U0001f6b2" * 100, ONE_REPORT, LAST_SECOND, MAX_WINDOW_SECONDS, MAX_WINDOWS,
           MAX_WINDOWS),
    Series("Zürich – 正午 \U0001f6b2 \"quoted\" \\ /", COLLECTIONS[6], 1, 7, 1000, 999),
]  # fmt: skip
