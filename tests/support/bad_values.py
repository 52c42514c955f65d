"""Values of every kind that public functions refuse, for the table of bad input."""

from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np

from client_sdk import Collection, Grid
from ldpspatial.estimation import LikelihoodGain
from ldpspatial.places.regions import Region

Bad = tuple[Any, ...]

# What some of them stand beside.
GRID = Grid.plane(0, 0, 3, 3)
COLLECTION = Collection.create("bad input", GRID, 2.0, radius=1)
TABLE = COLLECTION.table
MAP = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0], [1.0, 1.0, 1.0]])
OTHER = MAP[::-1]
POINTS = np.random.default_rng(1).uniform(0, 3, (40, 2))

# Numbers.
NO_NUMBERS: Bad = ("1", None, True, [1.0], 1j, nan, np.ones(2), Decimal("sNaN"), b"1")
POSITIVE: Bad = (0, -1.0, inf, 10**400, Fraction(1, 10**400), *NO_NUMBERS)
SHARE: Bad = (0, 1, -0.1, 1.1, inf, -(10**400), *NO_NUMBERS)
NOT_NEGATIVE: Bad = (-1e-9, inf, 10**400, *NO_NUMBERS)
FINITE: Bad = (inf, -inf, 10**400, *NO_NUMBERS)


def whole(low: int, high: int | None = None) -> Bad:
    beyond = () if high is None else (high + 1, 10**5000)
    return (low - 1, -(10**5000), *beyond, low + 0.5, float(low), np.bool_(True), *NO_NUMBERS)


def number(*beyond: float) -> Bad:
    return (*beyond, 10**400, *NO_NUMBERS)


def optional(kind: Bad) -> Bad:
    return tuple(value for value in kind if value is not None)


# Names, flags, texts, functions, files.
NAME: Bad = ("nothing", "", 3, None, True, ["em"], np.array(["em", "dam"]))
FLAG: Bad = ("no", "True", 1, 0, None, np.array([1, 0]))
TEXT: Bad = (3, True, ["a"], b"a")
RNG: Bad = (7, None, "rng", np.random, np.random.RandomState(1))
FUNCTION: Bad = (7, None, "f", b"bytes")
CALLBACK: Bad = (7, 0, "f", b"bytes", [print])
ENTROPY: Bad = (
    *FUNCTION,
    *(lambda n: b"", lambda n: b"x", lambda n: bytes(n + 1), lambda n: "a" * n, lambda n: None),
)
PATH: Bad = (None, 3, "", "a\0b", b"bytes", ["x"], object())
WRITTEN: Bad = (*PATH, Path("/no/such/folder/x.csv"))
READ: Bad = (*PATH, Path("/no/such/file.csv"), Path("/"))

# Arrays.
NO_ARRAYS: Bad = (
    *([[1.0], [2.0, 3.0]], "text", [["a", "b"], ["c", "d"]], [[None, 1.0], [1.0, 1.0]]),
    *(np.ones((3, 3), complex), np.full((3, 3), "1"), np.ones((3, 3), "M8[D]"), None, object()),
)
MASSES: Bad = (
    *NO_ARRAYS,
    *(5.0, [1.0, 2.0], np.ones((1, 3, 3)), np.zeros((0, 3)), np.zeros((3, 3))),
    *(np.where(np.eye(3) > 0, bad, 1.0) for bad in (nan, inf, -inf, -1.0)),
    np.ma.masked_array(np.ones((3, 3)), mask=np.eye(3, dtype=bool)),
)
SECOND: Bad = (*MASSES, 2 * OTHER, np.full((2, 2), 2.5))
OF_GRID: Bad = (*MASSES, np.ones((2, 2)), np.ones(9))
NO_PLACES: Bad = (  # no pairs of numbers
    *NO_ARRAYS,
    *(5.0, [1.0, 2.0], np.ones((3, 3)), np.ones((2, 2), bool)),
)
# Nor positions that are none, nor none of them inside.
PLACES: Bad = (*NO_PLACES, [[nan, 1.0]], [[1.0, inf]], np.zeros((0, 2)), [[9.0, 9.0]])
CELLS: Bad = (*NO_ARRAYS[:4], [0.5], [[1]], 3, [True], [-99], [10**9], [2**63], None)
RECTANGLES: Bad = (
    *NO_ARRAYS[:4],
    [],
    [[0, 0, 1]],
    [[0, 0, 1.0, 1]],
    [[0, 0, 9, 1]],
    [[1, 1, 1, 1]],
)
SHAPE: Bad = ((0, 3), (3,), 3, None, "33", (1.0, 2), (True, 2), (3, 3, 3), (-1, 2))
NUMBERS: Bad = (None, 3, "1", [], [0], [nan], ["1"], [1.0, 1.0], [True], [None])
SIDES: Bad = (*NUMBERS, [1.5], [-2])
# Objects, and choices of them.
NO_GRID: Bad = (None, 3, "grid", COLLECTION, Grid)
NO_COLLECTION: Bad = (None, 3, GRID, TABLE, "collection")
NO_TABLE: Bad = (None, 3, COLLECTION, "table")
NO_CHANNEL: Bad = (None, 3, TABLE, "channel")
NO_ESTIMATE: Bad = (None, 3, MAP, "estimate")
NO_REGIONS: Bad = (None, 3, "region", [], [MAP], MAP, [Region("a", MAP), 3], [Region(3, MAP)])  # type: ignore[arg-type]
NO_COLUMNS: Bad = (
    None,
    3,
    [],
    {"n": [1]},
    {"n": [1, nan]},
    {"n": ["a"]},
    {"n": ["a", 1]},
    {"n": 1},
)
NO_USERS: Bad = (None, 3, POINTS, "users", MAP)
CELL: Bad = (0, -1.0, nan, inf, "1", None, True, (1,), (1, 2, 3), (1, 0), (1, "a"), (1, (2, 3)))
COUNTS: Bad = (
    *NO_ARRAYS,
    *([], 3, np.ones((2, 2)), np.zeros((5, 5)), np.full((5, 5), 0.5), np.full((5, 5), -1)),
    *(np.full((5, 5), bad) for bad in (nan, inf, 1e17, True)),
)
DENSITY: Bad = (
    *NO_ARRAYS,
    *(5.0, [1.0, 2.0], np.ones((1, 3, 3)), np.ones((2, 2)), np.ones(9), np.full((3, 3), nan)),
    np.full((3, 3), inf),
)
DENSITIES: Bad = (*MASSES, np.ones((3, 3)))
RULE: Bad = ("nothing", "", 3, None, ["scaled"], LikelihoodGain, "no.such:Thing", ":")
STOP: Bad = ("nothing", "field", 3, None, ["scaled"], LikelihoodGain)
SMOOTHING: Bad = ("gauss", 0.5, ["binomial"], True)
SMOOTHED: Bad = (  # with maps that EM cannot go on with
    *SMOOTHING,
    *(lambda density: None, lambda density: nan * density, lambda density: -density),
    *(lambda density: 0 * density, lambda density: density[:2], lambda density: "map"),
)
RELEASES: Bad = (None, 3, [], "nothing", ["nothing"], [3], ["dam", "dam"], {"a": "b"}, {3: "dam"})
