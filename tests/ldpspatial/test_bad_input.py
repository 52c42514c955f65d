"""Every public function refuses what it cannot work with: InputError, with field and value.

One table. A row is a public callable with arguments that work, and for each of its parameters the
kinds of values that do not. What is public and has no row fails the test, as does a parameter that
has no kind: a new function gets its row here.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import cache
from math import inf, nan
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import ldpspatial as lp
from client_sdk import Grid, Series
from client_sdk.validate import shown
from ldpspatial import comparison, datasets, estimation, metrics
from ldpspatial.channels import playing
from ldpspatial.channels.dense import MatrixChannel, ProductChannel
from ldpspatial.collecting import (
    partial_counts,
    region_changes,
    region_shares,
    region_tables,
    report_files,
    results,
    warehouse,
    window_counts,
)
from ldpspatial.comparison import range_queries
from ldpspatial.estimation.estimate import RULES, find_estimator
from ldpspatial.estimation.intervals import changes, trust
from ldpspatial.estimation.levels import NoisyLevel, combined
from ldpspatial.files import maps, plans
from ldpspatial.files import regions as region_files
from ldpspatial.places import regions, users, within
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.planning import foretold, plan
from ldpspatial.plotting import heat_map, transport_plot
from ldpspatial.privacy import (
    audit,
    discrete_laplace,
    distinguish,
    local_privacy,
    shuffling,
    still_device,
    whole_draws,
)
from ldpspatial.release import attack, central, distributed, local
from ldpspatial.release.attack_inputs import Inputs
from ldpspatial.release.central.central_release import CentralRelease
from ldpspatial.release.distributed.noise.polya import privacy_loss
from ldpspatial.release.distributed.sums.two_servers import report_size
from ldpspatial.release.distributed.sums.two_servers.report_size import (
    histogram_report,
    multihot_report,
)
from ldpspatial.release.local.disks import disk_radius
from ldpspatial.release.local.sets.set_reports import SetChannel, SetReports
from tests.support.bad_values import (
    CALLBACK,
    CELL,
    CELLS,
    COLLECTION,
    COUNTS,
    DENSITIES,
    DENSITY,
    ENTROPY,
    FINITE,
    FLAG,
    FUNCTION,
    GRID,
    MAP,
    MASSES,
    NAME,
    NO_ARRAYS,
    NO_CHANNEL,
    NO_COLLECTION,
    NO_COLUMNS,
    NO_ESTIMATE,
    NO_GRID,
    NO_NUMBERS,
    NO_PLACES,
    NO_REGIONS,
    NO_TABLE,
    NO_USERS,
    NOT_NEGATIVE,
    NUMBERS,
    OF_GRID,
    OTHER,
    PATH,
    PLACES,
    POINTS,
    POSITIVE,
    READ,
    RECTANGLES,
    RELEASES,
    RNG,
    RULE,
    SECOND,
    SHAPE,
    SHARE,
    SIDES,
    SMOOTHED,
    SMOOTHING,
    STOP,
    TABLE,
    TEXT,
    WRITTEN,
    Bad,
    number,
    optional,
    whole,
)

# What the rows take.


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@cache
def channel() -> lp.StampChannel:
    return lp.StampChannel(TABLE)


@cache
def counts() -> Any:
    return np.round(1e3 * channel().forward(MAP / MAP.sum()))


@cache
def estimate() -> lp.Estimate:
    return lp.EM().fit(channel(), counts())


FINER = np.arange(81.0).reshape(9, 9)
NO_WITHIN = (None, 3, FINER, within.Within(Grid.plane(0, 0, 2, 2), FINER[:6, :6]))


@cache
def windows() -> tuple[lp.Estimate, ...]:
    return lp.Field().fit_windows(channel(), [counts(), counts()[::-1]])


WEEK = Series.create(
    "bad input", GRID, 2.0, first_start=0, window_seconds=60, windows=7, radius=1
)  # fmt: skip


def week_reports(place: Path) -> Path:
    return file_with(place, "week.csv", f"row,col,collection\n0,0,{WEEK.collection(2).digest}\n")


@cache
def squares() -> list[regions.Region]:
    whole = regions.Region("whole", np.ones((3, 3)))
    return [whole, regions.Region("corner", regions.rectangle(GRID, 0, 0, 1, 1))]


@cache
def shares() -> region_shares.RegionShares:
    return region_shares.region_shares(estimate(), squares())


@cache
def people() -> lp.UserCells:
    cells = rng().integers(0, 16, 40)
    return users.cells_by_user(np.repeat(np.arange(20), 2), cells, (4, 4))


@cache
def row_of_people() -> lp.UserCells:
    return users.cells_by_user(np.arange(8), np.arange(8) % 4, (1, 4))


@cache
def table_of_runs() -> Any:
    return lp.compare(POINTS, GRID, [1.0], ["laplace"], 1, rng(), metrics=["l1"])


@cache
def transported() -> lp.Transport:
    return lp.transport(MAP, OTHER)


@cache
def known_map() -> datasets.SyntheticMap:
    return datasets.synthetic_maps()["szipf"]


def file_with(place: Path, name: str, text: str) -> Path:
    path = place / name
    path.write_text(text, encoding="utf-8")
    return path


def reports(place: Path) -> Path:
    return file_with(place, "reports.csv", "row,col\n0,0\n1,2\n")


def counts_file(place: Path) -> Path:
    path = place / "counts.json"
    partial_counts.write_counts(path, COLLECTION, lp.count_reports(reports(place), COLLECTION))
    return path


def ibis_table() -> Any:
    return ibis.memtable(pa.table({"row": [0, 1], "col": [0, 2]}))


def npz(place: Path) -> Path:
    path = place / "estimate.npz"
    results.write_npz(path, COLLECTION, estimate())
    return path


@dataclass(frozen=True)
class Row:
    """A public callable, arguments that work, and by parameter what does not.

    ``terms`` is what messages call a parameter where it is not its name; what is ``secret`` they
    do not tell.
    """

    call: Callable[..., object]
    good: Callable[[Path], dict[str, Any]]
    bad: dict[str, Bad]
    terms: dict[str, str] = field(default_factory=dict)
    secret: tuple[str, ...] = ()


def given(**arguments: Any) -> Callable[[Path], dict[str, Any]]:
    return lambda _: arguments


def pair(function: Callable[..., object]) -> Row:
    return Row(
        function,
        given(p=MAP, q=OTHER),
        {"p": MASSES, "q": (*MASSES, 2 * OTHER, np.full((2, 2), 2.5))},
    )


def distance(function: Callable[..., object], good: dict[str, Any], **bad: Bad) -> Row:
    more = {"order": whole(1, 2), "cell": CELL, **bad}
    both = {"p": MASSES, "q": SECOND}
    return Row(function, given(p=MAP, q=OTHER, **good), {**both, **more})


def drawn(function: Callable[..., object]) -> Row:
    return Row(function, lambda _: {"n": 3, "rng": rng()}, {"n": whole(1), "rng": RNG})


def channels() -> dict[str, Any]:
    third = np.full((3, 3), 1 / 3)
    sets = SetReports(
        np.array([0, 1, 3]), np.array([4, 0, 8], np.uint8), 9, whole_draws.two_weights(1.0), 0.5
    )
    return {
        "StampChannel(direct)": lp.StampChannel(TABLE, "direct"),
        "StampChannel(fft)": lp.StampChannel(TABLE, "fft"),
        "MatrixChannel": MatrixChannel(np.full((4, 9), 0.25), (3, 3)),
        "ProductChannel": ProductChannel(third, third, 1.0),
        "SetChannel": SetChannel(sets, (3, 3)),
    }


def methods_of(name: str, operator: Any) -> Iterable[tuple[str, Row]]:
    support = operator.support
    yield f"{name}.forward", Row(operator.forward, given(density=MAP), {"density": DENSITY})
    # Outside the support anything is taken: counts / forward(density) is 0 / 0 there.
    good = np.where(support, 1.0, nan)
    bad = (*NO_ARRAYS, 5.0, np.ones(99), np.where(support, nan, 1.0), np.where(support, inf, 1.0))
    yield f"{name}.adjoint", Row(operator.adjoint, given(ratio=good), {"ratio": bad})


MATRICES = (*NO_ARRAYS, 5.0, [1.0], np.full((3, 3), nan), np.ones((3, 3)), -np.eye(3))
CHANNELS = {
    **dict(row for each in channels().items() for row in methods_of(*each)),
    "MatrixChannel": Row(
        MatrixChannel,
        given(matrix=np.eye(9), input_shape=(3, 3), epsilon=1.0),
        {
            "matrix": (*MATRICES, np.eye(3)),
            "input_shape": SHAPE,
            "epsilon": optional(number(0, -1)),
        },
    ),
    "ProductChannel": Row(
        ProductChannel,
        given(down=np.eye(3), across=np.eye(2), epsilon=1.0),
        {"down": MATRICES, "across": MATRICES, "epsilon": number(0, -1)},
    ),
    "playing.count_outputs": Row(
        playing.count_outputs,
        given(table=TABLE, rows=[0, -1], cols=[1, 2]),
        {"table": NO_TABLE, "rows": (*CELLS, [1]), "cols": (*CELLS, [1])},
    ),
    **{
        f"playing.{play.__name__}": Row(
            play,
            lambda _: {"table": TABLE, "rows": [0, 1], "cols": [1, 2], "rng": rng()},
            {
                "table": NO_TABLE,
                **dict.fromkeys(("rows", "cols"), (*CELLS, [1], [-1, 0])),
                "rng": optional(RNG),
            },
        )
        for play in (playing.draw_reports, playing.play)
    },
}

METRICS = {
    **{
        f"metrics.{one.__name__}": pair(one)
        for one in (
            *(metrics.l1, metrics.mean_squared_error, metrics.total_variation),
            *(metrics.similarity, metrics.pearson, metrics.kl_divergence),
            metrics.mean_absolute_percentage_error,
            metrics.mean_arctangent_percentage_error,
            metrics.symmetric_absolute_percentage_error,
        )
    },
    "metrics.block_sums": Row(
        metrics.block_sums, given(p=MAP, blocks=3), {"p": MASSES, "blocks": (*whole(1, 3), 2)}
    ),
    "metrics.heat_map": Row(
        metrics.heat_map, given(p=MAP, sigma=1.0), {"p": MASSES, "sigma": NOT_NEGATIVE}
    ),
    "metrics.earth_movers_distance": Row(
        metrics.earth_movers_distance,
        given(p=MAP, q=OTHER, blocks=3),
        {"p": MASSES, "q": MASSES, "blocks": optional((*whole(1, 3), 2))},
    ),
    "metrics.wasserstein": distance(
        metrics.wasserstein, {"cell": (1.0, 2.0)}, ground=NAME, certify=FLAG
    ),
    "metrics.transport": distance(metrics.transport, {"order": 1}, ground=NAME, certify=FLAG),
    "metrics.sinkhorn_divergence": distance(
        metrics.sinkhorn_divergence, {"regularisation": 1.0}, regularisation=POSITIVE
    ),
    "metrics.sliced_wasserstein": distance(
        metrics.sliced_wasserstein, {"directions": 4}, directions=whole(2, (1 << 27) // 9)
    ),
    "metrics.SeparableCost": Row(
        metrics.SeparableCost,
        given(rows=[0, 1, 2], columns=[0, 1]),
        dict.fromkeys(("rows", "columns"), ([], [1, 2], [0, 2, 1], [0, 1.5], *NO_ARRAYS, [[0]])),
    ),
}

LEVELS = combined(Quadtree((1, 1)), [NoisyLevel(0, np.array([0]), np.array([3.0]), 1.0)])
CLAIM = lp.PrivacyClaim("central", 1.0)
RECORDS = {
    "Points": Row(
        lp.Points,
        given(coordinates=POINTS, users=np.arange(40), dropped=1),
        {
            "coordinates": PLACES[:-1],
            "users": optional(
                (*CELLS[:7], [2.5], np.arange(39), np.full(40, 0.5), -np.ones(40, int))
            ),
            "dropped": whole(0),
        },
    ),
    "UserCells": Row(
        lp.UserCells,
        given(shape=(2, 2), visits=sparse.csr_array(np.eye(3, 4, dtype=np.int64))),
        {
            "shape": (*SHAPE, (2, 3)),
            "visits": (
                *(None, 3, "visits", np.eye(3, 4, dtype=int)),
                *map(sparse.csr_array, (np.eye(3, 4), -np.eye(3, 4, dtype=int))),
                *map(sparse.csr_array, (np.eye(4, 3, dtype=int), np.eye(5, 4, dtype=int))),
            ),
            "outside": whole(0),
            "users_outside": whole(0),
            "trails": (3, "trails", people().trails),
        },
        {"shape": "shape visits"},
    ),
    "PrivacyClaim": Row(
        lp.PrivacyClaim,
        given(model="central", epsilon=1.0),
        {
            **dict.fromkeys(("model", "unit", "neighbours"), NAME),
            "epsilon": (-1, *NO_NUMBERS),
            "delta": number(-0.1, 1.1, inf),
            **dict.fromkeys(("notion", "distance"), (*TEXT, None)),
            "conditions": (None, 3, "text", ["a"], (3,)),
        },
    ),
    "Released": Row(
        lp.Released,
        given(density=MAP / MAP.sum(), claim=CLAIM, facts={}),
        {
            "density": DENSITIES,
            "claim": (None, 3, "central", lp.PrivacyClaim),
            "facts": (None, 3, "text", [], {3: 1.0}),
            "estimate": optional(NO_ESTIMATE),
            "levels": ("levels", 3, MAP),
        },
    ),
    "level_intervals": Row(
        lp.level_intervals,
        given(found=LEVELS),
        {
            "found": (None, "levels", 3, MAP),
            "level": number(0, 1, -1, 95),
            "open_parts": NAME,
            "several_positions": FLAG,
        },
    ),
    "Estimate": Row(
        lp.Estimate,
        lambda _: {each.name: getattr(estimate(), each.name) for each in fields(lp.Estimate)},
        {
            "density": (*DENSITIES, np.full((2, 2), 0.25)),
            "log_likelihood": NO_NUMBERS,
            "iterations": whole(0),
            "converged": FLAG,
            "trace": (None, 3, "text", [1.0], (), ("a",), (nan,), (None,)),
            "channel": NO_CHANNEL,
            "counts": COUNTS,
            "estimator": (None, 3, "em", lp.EM),
            "details": (3, "text", {"a": 1}, lp.EM),
            "samples": (3, "text", [], [0.5], np.full((2, 2), 0.25), np.full((2, 5, 5), 1.5)),
            "of_all": number(0, -0.1, 1.1, nan),
        },
    ),
}

ESTIMATION = {
    "estimation.EM": Row(
        estimation.EM,
        given(stop="likelihood", smoothing="binomial", max_iterations=3),
        {"stop": STOP, "smoothing": SMOOTHING, "max_iterations": whole(1)},
    ),
    **{
        f"estimation.{rule}.fit": Row(
            find_estimator(rule, max_iterations=5).fit,
            lambda _: {"channel": channel(), "counts": counts()},
            {"channel": NO_CHANNEL, "counts": COUNTS, "progress": CALLBACK},
        )
        for rule in RULES
    },
    "estimation.Field": Row(
        estimation.Field,
        given(point="mean", support=np.eye(3), prior=MAP),
        {
            "point": ("middle", "Mean", 3, None),
            "support": (*optional(MASSES), np.full((3, 3), 1.1), np.ones((3, 2))),
            "prior": (*optional(MASSES), np.ones((3, 2)), np.eye(3)[::-1] - np.diag([0, 1, 0])),
            "map_alone": (None, 0, 1, "yes"),
        },
    ),
    "estimation.Robust": Row(
        estimation.Robust,
        given(point="mean", support=np.eye(3), prior=MAP),
        {
            "point": ("middle", "Mean", 3, None),
            "support": (*optional(MASSES), np.full((3, 3), 1.1), np.ones((3, 2))),
            "prior": (*optional(MASSES), np.ones((3, 2)), np.eye(3)[::-1] - np.diag([0, 1, 0])),
            "map_alone": (None, 0, 1, "yes"),
        },
    ),
    "estimation.Field.fit_windows": Row(
        estimation.Field().fit_windows,
        lambda _: {"channel": channel(), "windows": [counts(), counts()]},
        {
            "channel": NO_CHANNEL,
            "windows": (None, 3, [], {}, "counts", *([counts(), bad] for bad in COUNTS)),
            "progress": CALLBACK,
        },
    ),
    "estimation.LikelihoodGain": Row(
        estimation.LikelihoodGain,
        given(tolerance=0.1, name="mine"),
        {"tolerance": NOT_NEGATIVE, "name": (*TEXT, None)},
    ),
    "estimation.Published": Row(
        estimation.Published,
        given(tolerance=0.1, name="mine"),
        {"tolerance": NOT_NEGATIVE, "name": (*TEXT, None)},
    ),
    "estimation.binomial": Row(
        estimation.binomial, given(density=MAP), {"density": (*NO_ARRAYS, 5.0, [1.0, 2.0])}
    ),
    "estimation.five_point": Row(estimation.five_point, given(k=0.5), {"k": POSITIVE}),
    "estimation.check_counts": Row(
        estimation.check_counts,
        lambda _: {"channel": channel(), "counts": counts()},
        {"channel": NO_CHANNEL, "counts": COUNTS},
    ),
    "estimation.estimate": Row(
        estimation.estimate,
        lambda _: {"channel": channel(), "counts": counts(), "smoothing": "binomial"},
        {
            "channel": NO_CHANNEL,
            "counts": COUNTS,
            "rule": optional(RULE),
            "smoothing": SMOOTHED,
            "max_iterations": optional(whole(1)),
            "progress": CALLBACK,
        },
    ),
    "estimation.goodness_of_fit": Row(
        estimation.goodness_of_fit, lambda _: {"estimate": estimate()}, {"estimate": NO_ESTIMATE}
    ),
    "estimation.best_power": Row(
        estimation.best_power,
        lambda _: {
            "channel": channel(),
            "density": MAP / MAP.sum(),
            "forged": channel().forward(MAP / MAP.sum()),
            "share": 0.1,
            "n": 100,
            "false_alarm": 0.01,
        },
        {
            "channel": NO_CHANNEL,
            "density": DENSITY,
            "forged": DENSITY,
            "share": SHARE[2:],
            "n": whole(1, 1 << 53),
            "false_alarm": SHARE,
        },
    ),
    "estimation.influence": Row(
        estimation.influence,
        given(channel=channel(), density=MAP / MAP.sum(), share=0.05),
        {"channel": NO_CHANNEL, "density": (*DENSITY, MAP, -MAP), "share": number(-0.1, 1, nan)},
    ),
    "estimation.influence(...).region": Row(
        lambda weights: estimation.influence(channel(), MAP / MAP.sum(), 0.05).region(weights),
        given(weights=MAP > 1),
        {"weights": (*DENSITY, -MAP, 2 + MAP)},
    ),
    "estimation.cell_intervals": Row(
        estimation.cell_intervals,
        lambda _: {
            "estimate": estimate(),
        },
        {
            "estimate": NO_ESTIMATE,
            "level": SHARE,
            "method": NAME,
        },
    ),
    "estimation.cell_intervals(...).region": Row(
        lambda mask: estimation.cell_intervals(estimate()).region(mask),
        given(mask=MAP > 1),
        {"mask": (*NO_ARRAYS, MAP, np.ones((2, 2), bool), [True])},
    ),
    "estimation.share_change": Row(
        estimation.share_change,
        lambda _: {
            **dict(zip(("earlier", "later"), windows(), strict=True)),
            "region_weights": MAP / 3,
        },
        {
            "earlier": (*NO_ESTIMATE, windows()[1]),
            "later": (*NO_ESTIMATE, windows()[0]),
            "region_weights": (*NO_ARRAYS, 5.0, 2 * MAP, -MAP, nan * MAP, np.ones((2, 2))),
            "level": SHARE,
        },
        {"later": "later earlier"},
    ),
    "people_in_area": Row(
        lp.people_in_area,
        lambda _: {"estimate": estimate(), "area": MAP / 3},
        {
            "estimate": NO_ESTIMATE,
            "area": (*NO_ARRAYS, 5.0, 2 * MAP, -MAP, nan * MAP, 0 * MAP, np.ones((2, 2))),
        },
    ),
    "estimation.region_share": Row(
        estimation.region_share,
        lambda _: {
            "estimate": estimate(),
            "region_weights": MAP / 3,
        },
        {
            "estimate": NO_ESTIMATE,
            "region_weights": (*NO_ARRAYS, 5.0, 2 * MAP, -MAP, nan * MAP, np.ones((2, 2))),
            "level": SHARE,
            "method": NAME,
        },
    ),
}

DATASETS = {
    **{
        f"datasets.{one.__name__}": drawn(one)
        for one in (datasets.normal, datasets.skew_zipf, datasets.multi_normal, datasets.city)
    },
    "datasets.synthetic_maps": Row(datasets.synthetic_maps, given(), {}),
    "datasets.city_map": Row(datasets.city_map, given(), {}),
    "datasets.density_walks": Row(
        datasets.density_walks,
        lambda _: {
            **{"density": MAP, "walks": 2, "rng": rng(), "shortest": 1, "longest": 3},
            **{"corner": (1.0, 2.0), "side": 3.0},
        },
        {
            "density": (*MASSES, np.ones((2, 3))),
            "walks": whole(1, 1 << 24),
            "rng": RNG,
            "shortest": whole(1, 1 << 20),
            "longest": whole(1, 1 << 20),
            "corner": (None, 3, "ab", (1, nan), (1, 2, 3), (1,), ("a", "b")),
            "side": POSITIVE,
        },
    ),
    "datasets.read_chicago_crimes": Row(
        datasets.read_chicago_crimes,
        lambda place: {"path": file_with(place, "a.csv", "Latitude,Longitude\n41,-87\n")},
        {"path": READ},
    ),
    "datasets.read_nyc_taxi": Row(
        datasets.read_nyc_taxi,
        lambda place: {
            "path": file_with(place, "a.csv", "pickup_latitude,pickup_longitude\n41,-87\n"),
            "end": "pickup",
        },
        {"path": READ, "end": NAME},
    ),
    "datasets.read_snap_checkins": Row(
        datasets.read_snap_checkins,
        lambda place: {"path": file_with(place, "a.txt", "7\tnow\t41\t-87\t3\n")},
        {"path": READ},
    ),
    "datasets.read_foursquare_tsmc2014": Row(
        datasets.read_foursquare_tsmc2014,
        lambda place: {"path": file_with(place, "a.txt", "7\tv\tc\tn\t41\t-87\t0\tnow\n")},
        {"path": READ},
    ),
}

CURVE = {
    "table": (None, 3, "table", {"release": ["laplace"]}),
    "metric": NAME,
    "against": NAME,
    "shuffle_delta": SHARE,
}
COMPARISON = {
    "comparison.compare": Row(
        comparison.compare,
        lambda place: {
            **{"points": POINTS, "grid": GRID, "epsilons": [1.0], "releases": ["laplace"]},
            **{"repeats": 1, "rng": rng(), "users": [10], "cells": [2], "metrics": ["l1"]},
            **{"blocks": 2, "folder": place / "runs"},
        },
        {
            "points": PLACES,
            "grid": NO_GRID,
            "epsilons": NUMBERS,
            "releases": RELEASES,
            "repeats": whole(1),
            "rng": RNG,
            "users": optional((*SIDES, [10**6])),
            "cells": optional((*SIDES, [10**6])),
            "metrics": ([], ["nothing"], None, 3, [3], [["l1"]]),
            "sigma": NOT_NEGATIVE,
            "truth": NAME,
            "blocks": optional((*whole(1), 3)),
            "folder": optional((*PATH, Path("/dev/null/runs"))),
            "jobs": optional((0, -2, 1.5, "1", True, [1])),
            "progress": CALLBACK,
        },
    ),
    "comparison.error_curve": Row(
        comparison.error_curve,
        lambda _: {"table": table_of_runs(), "release": "laplace", "metric": "l1"},
        {**CURVE, "release": NAME},
    ),
    "comparison.plot_error_curves": Row(
        comparison.plot_error_curves,
        lambda _: {"table": table_of_runs(), "metric": "l1", "title": "t"},
        {**CURVE, "title": TEXT, "releases": (3, ["nothing"], [3], "nothing"), "mixed": FLAG},
        {"releases": "release"},
    ),
    "comparison.random_rectangles": Row(
        range_queries.random_rectangles,
        lambda _: {"shape": (4, 4), "count": 2, "rng": rng(), "shares": (0.2, 0.5)},
        {
            "shape": SHAPE,
            "count": whole(1),
            "rng": RNG,
            "shares": (None, 0.5, (0.5, 0.2), (0, 1), (0.5, 1.5), (nan, 1), ("a", "b")),
        },
    ),
    "comparison.range_error": Row(
        range_queries.range_error,
        given(truth=MAP, density=OTHER, rectangles=[[0, 0, 1, 1]]),
        {"truth": MASSES, "density": MASSES, "rectangles": RECTANGLES},
        {"truth": "p", "density": "q"},
    ),
}

TOP = {
    "StampChannel": Row(
        lp.StampChannel, given(table=TABLE, method="fft"), {"table": NO_TABLE, "method": NAME}
    ),
    "count_cells": Row(
        lp.count_cells,
        given(collection=COLLECTION, rows=[0, 1], cols=[2, -1]),
        {"collection": NO_COLLECTION, "rows": (*CELLS, [1]), "cols": (*CELLS, [1])},
    ),
    "count_reports": Row(
        lp.count_reports,
        lambda place: {"paths": reports(place), "collection": COLLECTION, "on_invalid": "drop"},
        {"paths": (*READ, [], [3]), "collection": NO_COLLECTION, "on_invalid": NAME},
        {"paths": "reports"},
    ),
    "read_points": Row(
        lp.read_points,
        lambda place: {
            "path": file_with(place, "a.csv", "lat,lon,who\n1,2,ann\n"),
            **{"lat": "lat", "lon": "lon", "user": "who", "plane": True, "on_missing": "drop"},
        },
        {
            "path": READ,
            **dict.fromkeys(("lat", "lon", "user"), (*TEXT, "nothing", "")),
            "plane": FLAG,
            "on_missing": NAME,
        },
    ),
    "recommended": Row(
        lp.recommended,
        given(cells=3, epsilon=2.0, n_users=100),
        {
            "cells": whole(1, 4096),
            "epsilon": (21, *POSITIVE),
            "n_users": whole(1, 10**12),
            "model": NAME,
            "aim": NAME,
        },
    ),
    "recommended_collection": Row(
        lp.recommended_collection,
        given(name="noon", lat=48.0, lon=11.0, side_m=100.0, epsilon=2.0, n_users=100),
        {
            "name": (None, 3),
            "lat": number(91, -91),
            "lon": number(),
            "side_m": (1e9, *POSITIVE),
            "epsilon": (21, *POSITIVE),
            "n_users": whole(1, 10**12),
            "max_reports": whole(1),
        },
    ),
    "releases": Row(lp.releases, given(), {}),
    "simulate": Row(
        lp.simulate,
        lambda _: {"collection": COLLECTION, "coordinates": POINTS, "smoothing": "binomial"},
        {
            "collection": NO_COLLECTION,
            "coordinates": PLACES,
            "outsiders": NAME,
            "rule": optional(RULE),
            "smoothing": SMOOTHED,
            "exact_error": FLAG,
            "on_stage": CALLBACK,
        },
        {"coordinates": "coordinates positions"},
    ),
    "user_cells": Row(
        lp.user_cells,
        given(points=POINTS, grid=GRID),
        {
            "points": (
                *PLACES,
                (["a"], POINTS),
                (np.array(["a", 1], object), POINTS[:2]),
            ),
            "grid": NO_GRID,
            "may_be_empty": FLAG,
        },
        {"points": "points user ids"},
    ),
    "UserCells.sample": Row(
        people().sample, lambda _: {"users": 2, "rng": rng()}, {"users": whole(1, 20), "rng": RNG}
    ),
}

LAPLACE = {"numerator": whole(1, 2**53 - 1), "denominator": whole(1, 2**53 - 1)}
SHUFFLED = {"epsilon0": (21, *POSITIVE), "n": whole(1, 10**9), "blanket": optional(SHARE)}
DELTA = number(-0.1, 1.1, inf)
DOCUMENTED = {
    "planning.plan.plan": Row(
        plan.plan,
        lambda _: {
            **{
                "side_m": 1e3,
                "epsilon": 3,
                "devices": 60,
                "rng": rng(),
                "cells": [2],
                "repeats": 2,
            },
            **{"maps": {"one": known_map()}, "windows": 2, "answers": 1},
        },
        {
            "side_m": (2e7 + 1, *POSITIVE),
            "epsilon": (21, 1 / 3, *POSITIVE),
            "devices": whole(1, 10**7),
            "rng": RNG,
            "cells": optional((*whole(1), [], [0], [129], [1.5], "58", ["5"])),
            "mechanism": NAME,
            "maps": optional(({}, [known_map()], {"here": 3}, 3)),
            "repeats": whole(2, 1000),
            "windows": optional(whole(1, 100_000)),
            "answers": optional((*whole(1, 100_000), 3)),
            "progress": CALLBACK,
            "on_stage": CALLBACK,
        },
    ),
    "planning.foretold.synthetic_densities": Row(
        foretold.synthetic_densities,
        lambda _: {"cells": 2, "rng": rng()},
        {"cells": whole(1, 1024), "rng": RNG},
    ),
    "planning.foretold.foretell": Row(
        foretold.foretell,
        lambda _: {
            "collection": COLLECTION,
            "reports": 50,
            "densities": {"flat": np.full((COLLECTION.grid.cells,) * 2, COLLECTION.grid.cells**-2)},
            "rng": rng(),
            "repeats": 1,
        },
        {
            "collection": NO_COLLECTION,
            "reports": whole(1, 10**12),
            "densities": (3, None, [MAP], {"it": 3}, {"it": MAP}, {"it": np.zeros((3, 3))}),
            "rng": RNG,
            "repeats": whole(1, 1000),
            "rule": optional(RULE),
            "tell": CALLBACK,
        },
    ),
    "release.local.disks.disk_radius.disk_squared_radius": Row(
        disk_radius.disk_squared_radius,
        given(cells=3, epsilon=2.0, n_users=100),
        {"cells": whole(1, 4096), "epsilon": (21, *POSITIVE), "n_users": whole(1, 10**12)},
    ),
    "privacy.audit.audit": Row(
        audit.audit,
        given(source=TABLE, draws=1000),
        {"source": (None, 3, GRID, "table"), "draws": whole(1000, 10**8)},
    ),
    "privacy.distinguish.lower_bound_epsilon": Row(
        distinguish.lower_bound_epsilon,
        given(samples_p=[1, 2], samples_q=[2, 3]),
        {
            **dict.fromkeys(("samples_p", "samples_q"), (*NO_ARRAYS, 5.0, [1.0], [nan, 1.0])),
            "confidence": SHARE,
            "delta": DELTA,
        },
    ),
    "privacy.distinguish.lower_bound_product": Row(
        distinguish.lower_bound_product,
        given(hits_p=[3, 2], hits_q=[2, 2], runs=9),
        {
            **dict.fromkeys(("hits_p", "hits_q"), (*NO_ARRAYS, 5.0, [1], [], [-1, 2], [1, 10])),
            "runs": whole(1),
            "confidence": SHARE,
        },
    ),
    "release.attack.attack": Row(
        attack.attack,
        lambda _: {
            **{"release": central.Laplace(), "epsilon": 1.0, "cells": 2, "runs": 4},
            "rng": rng(),
        },
        {
            "release": (None, 3, "laplace", central.Laplace),
            "epsilon": POSITIVE,
            "cells": whole(2, 1024),
            "runs": whole(4, 10**7),
            "rng": RNG,
            "progress": CALLBACK,
            "facts": FLAG,
        },
    ),
    "release.attack.best_inputs": Row(
        attack.best_inputs,
        lambda _: {
            **{"release": central.Laplace(), "epsilon": 1.0, "runs": 4, "rng": rng()},
            "candidates": [Inputs(), Inputs((1, 2))],
        },
        {
            "release": (None, 3, "laplace", central.Laplace),
            "epsilon": POSITIVE,
            "rng": RNG,
            "runs": whole(4, 10_000),
            "candidates": (3, "inputs", [], [Inputs(), 3], Inputs()),
            "facts": FLAG,
        },
    ),
    "release.attack_inputs.Inputs": Row(
        Inputs,
        lambda _: {"shape": (1, 2)},
        {
            "shape": (*SHAPE, (1, 1)),
            "beside": whole(0, 10**6),
            "opposite": whole(0, 10**6),
            "elsewhere": whole(0, 10**6),
        },
    ),
    "release.attack.attack_reports": Row(
        attack.attack_reports,
        lambda _: {
            **{"release": local.Oue(), "epsilon": 1.0, "cells": 2, "runs": 4},
            "rng": rng(),
        },
        {
            "release": (None, 3, "oue", central.Laplace()),
            "epsilon": POSITIVE,
            "cells": whole(2, 1024),
            "runs": whole(4, 10**7),
            "rng": RNG,
        },
    ),
    "privacy.still_device.still_device_risk": Row(
        still_device.still_device_risk,
        lambda _: {"table": TABLE, "reports": 2, "trials": 3, "rng": rng()},
        {
            "table": NO_TABLE,
            "reports": whole(1, 100_000),
            "trials": whole(2, 10**8),
            "rng": RNG,
        },
    ),
    "privacy.still_device.one_report_risk": Row(
        still_device.one_report_risk, given(table=TABLE), {"table": NO_TABLE}
    ),
    "privacy.local_privacy.cell_distances": Row(
        local_privacy.cell_distances, given(shape=(2, 3)), {"shape": SHAPE}
    ),
    "privacy.local_privacy.local_privacy": Row(
        local_privacy.local_privacy,
        lambda _: {"channel": channel(), "prior": MAP},
        {"channel": NO_CHANNEL, "prior": optional(OF_GRID)},
    ),
    "privacy.local_privacy.calibrate": Row(
        local_privacy.calibrate,
        given(privacy=lambda epsilon: 1 / epsilon, target=0.5, low=0.1, high=10),
        {
            "privacy": (*FUNCTION, lambda epsilon: None, lambda epsilon: nan),
            "target": (20, 0.01, *FINITE),
            "low": (11, *POSITIVE),
            "high": POSITIVE,
        },
    ),
    "privacy.shuffling.amplified_delta": Row(
        shuffling.amplified_delta,
        given(epsilon0=1.0, n=10, epsilon=0.5, blanket=0.5),
        {**SHUFFLED, "epsilon": NOT_NEGATIVE},
    ),
    "privacy.shuffling.amplified_epsilon": Row(
        shuffling.amplified_epsilon,
        given(epsilon0=1.0, n=10, delta=0.1, blanket=0.5),
        {**SHUFFLED, "delta": DELTA},
    ),
    "privacy.shuffling.local_epsilon_for": Row(
        shuffling.local_epsilon_for,
        given(epsilon=20, delta=0.5, n=1),
        {"epsilon": (21, *POSITIVE), "delta": DELTA, "n": whole(1, 10**9)},
    ),
    "privacy.discrete_laplace.sample": Row(
        discrete_laplace.sample,
        lambda _: {"size": 2, "numerator": 7, "denominator": 2, "entropy": rng().bytes},
        {**LAPLACE, "size": whole(0, 2**53 - 1), "entropy": ENTROPY},
    ),
    "privacy.discrete_laplace.probability": Row(
        discrete_laplace.probability,
        given(k=[0, 1], numerator=1, denominator=1),
        {**LAPLACE, "k": (*NO_ARRAYS, [nan], inf, [True])},
    ),
    "privacy.discrete_laplace.noise_deviation": Row(
        discrete_laplace.noise_deviation,
        given(epsilon=1.0, sensitivity=1),
        {"epsilon": (5e-324, *POSITIVE), "sensitivity": POSITIVE},
    ),
    "privacy.discrete_laplace.epsilon_for": Row(
        discrete_laplace.epsilon_for,
        given(deviation=1.0, sensitivity=1),
        {"deviation": POSITIVE, "sensitivity": POSITIVE},
    ),
    "plotting.heat_map.heat_map_figure": Row(
        heat_map.heat_map_figure,
        lambda _: {"grid": GRID, "estimate": estimate(), "truth": MAP, "title": "t"},
        {
            "grid": NO_GRID,
            "estimate": NO_ESTIMATE,
            "truth": optional(OF_GRID),
            "uncertainty": (3, MAP, "wide"),
            "title": TEXT,
        },
    ),
    "plotting.heat_map.window_maps_figure": Row(
        heat_map.window_maps_figure,
        given(grid=GRID, maps={"Monday": MAP, "Tuesday": OTHER}, title="t"),
        {
            "grid": NO_GRID,
            "maps": (None, 3, {}, [MAP], {3: MAP}, *({"Monday": bad} for bad in OF_GRID)),
            "title": TEXT,
        },
    ),
    "plotting.heat_map.save_figure": Row(
        heat_map.save_figure,
        lambda place: {"figure": figure(), "path": place / "a.svg", "dpi": 9},
        {
            "figure": (None, 3, "figure"),
            "path": (*PATH, "a.gif", Path("/no/such/folder/a.svg")),
            "dpi": whole(1),
        },
    ),
    "plotting.transport_plot.plot_transport": Row(
        transport_plot.plot_transport,
        lambda _: {"p": MAP, "q": OTHER, "plan": transported(), "unit": "m", "title": "t"},
        {
            "p": MASSES,
            "q": MASSES,
            "plan": (None, 3, "plan", lp.transport(MAP, MAP.T)),
            "unit": (*TEXT, None),
            "arrows": whole(0),
            "title": TEXT,
        },
    ),
    "places.regions.rectangle": Row(
        regions.rectangle,
        given(grid=GRID, south=0, west=0, north=1, east=1),
        {
            "grid": NO_GRID,
            "south": (*FINITE, 2e12, 2),
            "west": (*FINITE, 2e12, 2),
            "north": (*FINITE, 2e12),
            "east": (*FINITE, 2e12),
        },
    ),
    "places.regions.polygon": Row(
        regions.polygon,
        given(grid=GRID, geometry=[(0, 0), (0, 2), (2, 0)]),
        {
            "grid": NO_GRID,
            "geometry": (None, 3, "x", [], [(0, 0)], {}, [(0, 0), (1, nan), (2, 0)], *NO_ARRAYS),
        },
    ),
    "places.regions.polygon_window": Row(
        regions.polygon_window,
        given(grid=GRID, geometry=[(0, 0), (0, 2), (2, 0)]),
        {
            "grid": NO_GRID,
            "geometry": (None, 3, "x", [], [(0, 0)], {}, [(0, 0), (1, nan), (2, 0)], *NO_ARRAYS),
        },
    ),
    "places.regions.united": Row(
        regions.united,
        given(
            grid=GRID, regions=[regions.Region.rectangle(name, GRID, 0, 0, 1, 1) for name in "ab"]
        ),
        {"grid": NO_GRID, "regions": NO_REGIONS},
    ),
    "places.regions.clipped": Row(
        regions.clipped,
        given(
            grid=GRID,
            region=regions.Region.rectangle("a", GRID, 0, 0, 1, 1),
            area=regions.Region.rectangle("b", GRID, 0, 0, 1, 1),
        ),
        {
            "grid": NO_GRID,
            **dict.fromkeys(
                ("region", "area"),
                (
                    None,
                    3,
                    "x",
                    regions.Region("small", np.ones((2, 2))),
                    regions.Region("half", np.full((GRID.cells, GRID.cells), 1.5)),
                ),
            ),
        },
    ),
    "places.regions.holds": Row(
        regions.holds,
        given(grid=GRID, geometry=[(0, 0), (0, 2), (2, 0)], rows=[0.5, 9], columns=[0.5, 9]),
        {
            "grid": NO_GRID,
            "geometry": (None, 3, "x", [], [(0, 0)], {}, [(0, 0), (1, nan), (2, 0)], *NO_ARRAYS),
            **dict.fromkeys(("rows", "columns"), (*NO_ARRAYS, 5.0, [nan, 1.0], [1.0, inf], [[1]])),
        },
    ),
    "places.within.Within": Row(
        within.Within,
        given(grid=GRID, people=FINER),
        {
            "grid": NO_GRID,
            "people": (*NO_ARRAYS, 5.0, -FINER, nan * FINER, FINER[:4, :4], MAP, 0 * FINER),
        },
    ),
    "places.within.Within(...).parts": Row(
        within.Within(GRID, FINER).parts,
        given(region=regions.Region("corner", MAP / 3)),
        {"region": (None, 3, MAP, regions.Region("a", np.ones((2, 2))))},
    ),
    "places.within.finer_grid": Row(
        within.finer_grid,
        given(grid=GRID),
        {"grid": (*NO_GRID, Grid("plane", 0, 0, 9, 9, 3))},
    ),
    "estimation.intervals.trust.learned_trust": Row(
        trust.learned_trust,
        lambda _: {"estimate": estimate(), "within": within.Within(GRID, FINER)},
        {"estimate": NO_ESTIMATE, "within": NO_WITHIN},
    ),
    "places.regions.cells": Row(
        regions.cells,
        given(grid=GRID, rows=range(1), columns=range(2)),
        {
            "grid": NO_GRID,
            **dict.fromkeys(("rows", "columns"), (range(0), range(4), range(-1, 1), 3, None, [0])),
        },
    ),
    "places.regions.cut_cells": Row(
        regions.cut_cells,
        given(weights=MAP / 3),
        {"weights": (*NO_ARRAYS, 5.0, 2 * MAP, -MAP, nan * MAP, [0.5])},
    ),
    "places.regions.check_regions": Row(
        regions.check_regions, lambda _: {"regions": squares()}, {"regions": NO_REGIONS}
    ),
    "places.users.cells_by_user": Row(
        users.cells_by_user,
        given(users=["a", "b"], cells=[0, 1], shape=(2, 2)),
        {
            "users": (5, None, ["a"], [1.0, nan], np.array(["a", 1], object), [["a"], ["b", "c"]]),
            "cells": (*CELLS[:9], [4, 0]),
            "shape": SHAPE,
        },
        {"users": "user ids"},
    ),
    "collecting.report_files.write_reports": Row(
        report_files.write_reports,
        lambda place: {
            **{"path": place / "a.csv", "collection": COLLECTION},
            **{"rows": [0], "cols": [1], "ids": np.zeros((1, 16), np.uint8)},
        },
        {
            "path": (*WRITTEN, "a.txt"),
            "collection": NO_COLLECTION,
            "rows": (*CELLS, []),
            "cols": (*CELLS, []),
            "ids": (*NO_ARRAYS, np.zeros((2, 16), np.uint8), np.zeros((1, 16))),
        },
        {"rows": "rows reports", "cols": "cols reports"},
    ),
    "collecting.region_shares.region_shares": Row(
        region_shares.region_shares,
        lambda _: {
            **{"estimate": estimate(), "regions": squares()},
        },
        {
            "estimate": NO_ESTIMATE,
            "regions": (*NO_REGIONS, [regions.Region("other grid", np.ones((2, 2)))]),
            "level": SHARE,
            "method": NAME,
            "progress": CALLBACK,
            "area": optional(
                (*NO_ARRAYS, MAP[:2], np.full((5, 5), 2.0), np.zeros((5, 5)), [squares()[0], 3])
            ),
            "within": optional(NO_WITHIN),
            "forged": optional(SHARE),
        },
        {"regions": "regions region_weights", "area": "area regions"},
    ),
    "collecting.region_shares.level_region_shares": Row(
        region_shares.level_region_shares,
        lambda _: {
            "found": LEVELS,
            "regions": [regions.Region("south", np.ones(LEVELS.density.shape) / 2)],
        },
        {
            "found": (None, "levels", 3, MAP),
            "regions": (*NO_REGIONS, [regions.Region("other grid", np.ones((7, 7)))]),
            "level": number(0, 1, -1, 95),
            "open_parts": NAME,
        },
        {"regions": "regions region_weights"},
    ),
    "collecting.region_changes.region_changes": Row(
        region_changes.region_changes,
        lambda _: {
            **dict(zip(("earlier", "later"), windows(), strict=True)),
            "regions": squares(),
        },
        {
            "earlier": NO_ESTIMATE,
            "later": NO_ESTIMATE,
            "regions": (*NO_REGIONS, [regions.Region("other grid", np.ones((2, 2)))]),
            "level": SHARE,
            "progress": CALLBACK,
            "area": optional((*NO_ARRAYS, MAP[:2], np.full((5, 5), 2.0), np.zeros((3, 3)))),
        },
        {"regions": "regions region_weights"},
    ),
    "collecting.window_counts.count_windows": Row(
        window_counts.count_windows,
        lambda place: {
            **{"paths": [week_reports(place)], "series": WEEK},
            **{"on_invalid": "drop", "windows": range(1, 4)},
        },
        {
            "paths": (None, 3, [], [3], "x"),
            "series": (None, 3, "week", COLLECTION),
            "on_invalid": NAME,
            "windows": (3, "1-3", range(0), range(3), range(8, 9), [1]),
        },
        {"paths": "reports"},
    ),
    "collecting.region_tables.write_csv": Row(
        region_tables.write_csv,
        lambda place: {"path": place / "a.csv", "shares": shares()},
        {"path": WRITTEN, "shares": (None, 3, squares())},
    ),
    "collecting.partial_counts.write_counts": Row(
        partial_counts.write_counts,
        lambda place: {
            **{"path": place / "c.json", "collection": COLLECTION},
            "counted": lp.count_reports(reports(place), COLLECTION),
        },
        {"path": WRITTEN, "collection": NO_COLLECTION, "counted": (None, 3, MAP)},
    ),
    "collecting.partial_counts.read_counts": Row(
        partial_counts.read_counts,
        lambda place: {"path": counts_file(place), "collection": COLLECTION},
        {"path": READ, "collection": NO_COLLECTION},
    ),
    "collecting.partial_counts.collection_of": Row(
        partial_counts.collection_of, lambda place: {"path": counts_file(place)}, {"path": READ}
    ),
    "collecting.partial_counts.add_counts": Row(
        partial_counts.add_counts,
        lambda place: {"parts": [lp.count_reports(reports(place), COLLECTION)]},
        {"parts": (None, 3, [], [3], [None])},
    ),
    "collecting.partial_counts.count_files": Row(
        partial_counts.count_files,
        lambda place: {"paths": [reports(place)], "collection": COLLECTION, "on_invalid": "drop"},
        {"paths": (None, 3, [], [3], "x"), "collection": NO_COLLECTION, "on_invalid": NAME},
        {"paths": "reports"},
    ),
    "collecting.warehouse.count_table": Row(
        warehouse.count_table,
        lambda _: {"table": ibis_table(), "collection": COLLECTION, "on_invalid": "drop"},
        {
            "table": (None, 3, "reports", MAP, ibis_table().row, ibis_table().mutate(row=0.5)),
            "collection": NO_COLLECTION,
            "on_invalid": NAME,
        },
    ),
    "collecting.region_tables.write_geojson": Row(
        region_tables.write_geojson,
        lambda place: {"path": place / "a.geojson", "grid": GRID, "shares": shares()},
        {"path": WRITTEN, "grid": NO_GRID, "shares": (None, 3, squares())},
    ),
    "collecting.region_tables.write_geopackage": Row(
        region_tables.write_geopackage,
        lambda place: {"path": place / "a.gpkg", "grid": GRID, "shares": shares()},
        {"path": WRITTEN, "grid": NO_GRID, "shares": (None, 3, squares())},
    ),
    "collecting.results.write_estimate": Row(
        results.write_estimate,
        lambda place: {
            **{"folder": place, "collection": COLLECTION, "estimate": estimate()},
            **{"uncertainty": None, "summary": {}, "truth": MAP},
        },
        {
            "folder": (*PATH, Path("/no/such/folder")),
            "collection": NO_COLLECTION,
            "estimate": NO_ESTIMATE,
            "uncertainty": (3, MAP),
            "summary": (None, 3, "text"),
            "truth": optional(OF_GRID),
        },
    ),
    "collecting.results.write_npz": Row(
        results.write_npz,
        lambda place: {
            **{"path": place / "a.npz", "collection": COLLECTION, "estimate": estimate()},
        },
        {
            "path": WRITTEN,
            "collection": NO_COLLECTION,
            "estimate": NO_ESTIMATE,
            "uncertainty": (3, MAP),
        },
    ),
    **{
        f"collecting.results.{write.__name__}": Row(
            write,
            lambda place: {"path": place / "a", "grid": GRID, "estimate": estimate()},
            {
                "path": WRITTEN,
                "grid": NO_GRID,
                "estimate": NO_ESTIMATE,
                "uncertainty": (3, MAP),
            },
        )
        for write in (results.write_csv, results.write_geojson)
    },
    "collecting.results.write_json": Row(
        results.write_json,
        lambda place: {"path": place / "a.json", "document": {"a": 1}},
        {"path": WRITTEN, "document": (None, 3, "text", {"a": nan}, {"a": {1}}, {"a": b"x"})},
    ),
    "collecting.results.read_estimate": Row(
        results.read_estimate,
        lambda place: {"path": npz(place)},
        {"path": READ[:-1]},
        {"path": "path ESTIMATE"},
    ),
    "collecting.results.estimate_summary": Row(
        results.estimate_summary,
        lambda _: {"collection": COLLECTION, "estimate": estimate()},
        {"collection": NO_COLLECTION, "estimate": NO_ESTIMATE},
    ),
    "files.maps.read_map": Row(
        maps.read_map,
        lambda place: {"path": file_with(place, "a.csv", "row,col,n\n0,0,1\n"), "column": "n"},
        {"path": READ, "column": (*TEXT, None, "nothing")},
    ),
    "files.regions.read_regions": Row(
        region_files.read_regions,
        lambda place: {
            "path": file_with(place, "r.csv", "name,south,west,north,east\na,0,0,1,1\n"),
            **{"grid": GRID, "layer": None, "name_column": "name", "named": True},
        },
        {
            **{"path": READ, "grid": NO_GRID, "named": FLAG},
            **{"layer": (*TEXT, "nothing"), "name_column": (*TEXT, "nothing")},
        },
    ),
    "files.regions.read_area": Row(
        region_files.read_area,
        lambda place: {
            "path": file_with(place, "r.csv", "name,south,west,north,east\na,0,0,1,1\n"),
            **{"grid": GRID, "layer": None},
        },
        {"path": READ, "grid": NO_GRID, "layer": (*TEXT, "nothing")},
    ),
    "files.regions.write_regions_geopackage": Row(
        region_files.write_regions_geopackage,
        lambda place: {
            **{"path": place / "a.gpkg", "regions": squares(), "properties": {"n": [1, 2.5]}},
            "in_degrees": False,
        },
        {
            "path": WRITTEN,
            "regions": (*NO_REGIONS, [regions.Region("a", MAP, {"type": nan})] * 2),
            **{"properties": NO_COLUMNS, "in_degrees": FLAG},
        },
    ),
    "files.regions.write_regions_csv": Row(
        region_files.write_regions_csv,
        lambda place: {"path": place / "a.csv", "regions": squares(), "columns": {"n": [1, 2.5]}},
        {"path": WRITTEN, "regions": NO_REGIONS, "columns": NO_COLUMNS},
    ),
    "files.regions.write_regions_geojson": Row(
        region_files.write_regions_geojson,
        lambda place: {
            **{"path": place / "a.geojson", "regions": squares(), "properties": {"n": [1, 2.5]}},
            "members": {"plane": True},
        },
        {
            "path": WRITTEN,
            "regions": (*NO_REGIONS, [regions.Region("a", MAP, {"type": nan})] * 2),
            "properties": NO_COLUMNS,
            "members": (None, 3, [], {"a": nan}, {"a": object()}),
        },
    ),
    "files.plans.write_plan": Row(
        plans.write_plan,
        lambda place: {"path": place / "a.csv", "plan": transported()},
        {"path": (*WRITTEN, "a.txt"), "plan": (None, 3, "plan")},
    ),
}

NO_CONTRIBUTIONS: Bad = (
    *(None, 3, "text", np.ones(2), np.ones((2, 2)), -np.ones((2, 2), int), np.zeros((0, 2), int)),
    np.full((2, 2), 9),
)
DISTRIBUTED = {
    "distributed.Cohort": Row(
        distributed.Cohort,
        given(shard_size=10, drop_out=0.1, tolerated=0.1, colluding=0.1, bits=20),
        {
            "shard_size": whole(1, 1 << 32),
            **dict.fromkeys(("drop_out", "tolerated", "colluding"), number(-0.1, 1, inf)),
            "bits": whole(1, 62),
        },
    ),
    "distributed.Cohort.sum": Row(
        distributed.Cohort().sum,
        lambda _: {
            **{"contributions": sparse.csr_array(np.ones((3, 2), int)), "epsilon": 1.0},
            **{"sensitivity": 2, "rng": rng()},
        },
        {
            "contributions": NO_CONTRIBUTIONS,
            "epsilon": POSITIVE,
            "sensitivity": (1, *whole(1, 1 << 32)),
            "rng": RNG,
        },
        {"sensitivity": "sensitivity contributions"},
    ),
    "distributed.ClientCohort": Row(
        distributed.ClientCohort,
        given(shard_size=10, secure_sum=distributed.ModularSum),
        {
            "shard_size": whole(1, 1 << 32),
            **dict.fromkeys(("drop_out", "tolerated", "colluding"), number(-0.1, 1, inf)),
            "bits": whole(1, 62),
            "secure_sum": (*FUNCTION, lambda modulus, threshold: None),
        },
    ),
    **{
        f"distributed.{kind.__name__}": Row(
            kind, given(drop_out=0.1), {"drop_out": number(-0.1, 1, inf)}
        )
        for kind in (distributed.Batch, distributed.SharedBatch)
    },
    "distributed.Batch.sum": Row(
        distributed.Batch().sum,
        lambda _: {
            **{"contributions": sparse.csr_array(np.ones((3, 2), int)), "epsilon": 1.0},
            **{"sensitivity": 2, "rng": rng()},
        },
        {
            "contributions": NO_CONTRIBUTIONS,
            "epsilon": (21, *POSITIVE),
            "sensitivity": (1, *whole(1, 1 << 32)),
            "rng": RNG,
        },
        {"sensitivity": "sensitivity contributions"},
    ),
    "distributed.Batch.claim": Row(
        distributed.Batch().claim,
        given(epsilon=1.0, clients=3),
        {"epsilon": (21, *POSITIVE), "clients": ()},
    ),
    "two_servers.multihot_report": Row(
        multihot_report,
        given(length=9, most=2, chunk_length=3),
        {
            "length": whole(1, 1 << 32),
            "most": (10, *whole(1)),
            "chunk_length": optional(whole(1, 1 << 32)),
        },
        {"length": "length most"},
    ),
    "two_servers.histogram_report": Row(
        histogram_report,
        given(length=9, chunk_length=3),
        {"length": whole(1, 1 << 32), "chunk_length": optional(whole(1, 1 << 32))},
    ),
    "distributed.ManyLocations": Row(
        distributed.ManyLocations,
        given(scale=10, rounding="stochastic", most_places=3),
        {
            "scale": whole(1, 1 << 31),
            "rounding": NAME,
            "most_places": optional(whole(1, 1 << 31)),
        },
    ),
    "distributed.ModularSum": Row(
        distributed.ModularSum,
        given(modulus=8, threshold=2),
        {"modulus": (3, *whole(2, 1 << 62)), "threshold": whole(1, 1 << 32)},
    ),
    "distributed.NoiseShare": Row(
        distributed.NoiseShare,
        given(epsilon=1, sensitivity=1, least_survivors=9),
        {
            "epsilon": (21, *POSITIVE),
            "sensitivity": whole(1, 1 << 32),
            "least_survivors": whole(1, 1 << 32),
        },
    ),
    "distributed.OneLocation": Row(distributed.OneLocation, given(pick="drawn"), {"pick": NAME}),
    "distributed.PrefixTree": Row(
        distributed.PrefixTree,
        given(shape=(4, 4), nodes=frozenset({(1, 0, 0)})),
        {"shape": (*SHAPE, (1 << 15, 1)), "nodes": (None, 3, {(0, 0, 0)}, {(9, 0, 0)}, {"a"}, [3])},
    ),
    "distributed.PrefixTree.from_density": Row(
        distributed.PrefixTree.from_density,
        given(density=MAP, share=0.2, depth=2),
        {"density": MASSES, "share": SHARE, "depth": optional(whole(1))},
    ),
    "distributed.SideData": Row(
        distributed.SideData,
        given(width=0.2, confidence=0.9),
        {
            "histogram": (None, 3, distributed.Flat()),
            "width": SHARE,
            "confidence": SHARE,
        },
    ),
    "distributed.SideData.run": Row(
        distributed.SideData().run,
        lambda _: {
            **{"users": people(), "positive": np.arange(20) < 9, "epsilon": 1.0, "rng": rng()},
        },
        {
            "users": NO_USERS,
            "positive": (*NO_ARRAYS, [True], np.ones(20)),
            "epsilon": POSITIVE,
            "rng": RNG,
        },
    ),
    "distributed.client_vector": Row(
        distributed.client_vector,
        lambda _: {
            **{"contribution": [1, 0], "modulus": 8, "entropy": rng().bytes},
            "share": distributed.NoiseShare(1, 1, 9),
        },
        {
            "contribution": (None, 3, [1, 1], [-1], [0.5], ["a"]),
            "share": (None, 3),
            "modulus": (3, *whole(2, 1 << 62)),
            "entropy": ENTROPY,
        },
        secret=("contribution",),
    ),
    "distributed.sum_clients": Row(
        distributed.sum_clients,
        lambda _: {
            **{"cohort": distributed.Cohort(), "epsilon": 1.0, "sensitivity": 2, "rng": rng()},
            "contributions": sparse.csr_array(np.ones((3, 2), int)),
        },
        {
            "cohort": (None, 3),
            "contributions": NO_CONTRIBUTIONS,
            "epsilon": (21, *POSITIVE),
            "sensitivity": (1, *whole(1, 1 << 32)),
            "rng": RNG,
            "entropy": optional(ENTROPY),
            "secure_sum": FUNCTION,
        },
        {"sensitivity": "sensitivity contributions"},
    ),
    "distributed.noise.polya.privacy_loss": Row(
        privacy_loss,
        given(survivors=9, honest=10, epsilon=1.0, sensitivity=1),
        {
            "survivors": whole(0, 1 << 32),
            "honest": whole(1, 1 << 32),
            "epsilon": POSITIVE,
            "sensitivity": whole(1, 1 << 32),
        },
    ),
}

# Releases: the fields of all of them by name, and the methods that each has.

ADAPTIVE = number(-0.1, 0)
FIELDS: dict[str, Bad] = {
    "rule": RULE,
    "radius": optional(whole(0)),
    "squared_radius": optional(whole(0)),
    "share": number(0, -0.1, 1.1, inf),
    "sets": NAME,
    "estimator": NAME[1:],
    "smoothing": FLAG,
    "fine": FLAG,
    "stays": FLAG,
    "usual_users": whole(1, 10**12),
    "n_users": optional(whole(1, 10**12)),
    "size": optional(whole(1)),
    "unit": NAME,
    "slots": ("nothing", "", 0, 1.5, 4097, None, True, ["all"]),
    "weigh": NAME,
    "most_points": optional(whole(1, 65536)),
    "pivots": whole(2, 256),
    "sectors": whole(2, 64),
    "cohort": (None, 3, "cohort", distributed.Cohort),
    "alpha": SHARE,
    "c2": POSITIVE,
    "blocks": whole(1, 4096),
    "consistent": FLAG,
    "c": POSITIVE,
    "parts": optional(whole(1, 4096)),
    "people": optional(whole(0)),
    "growth": number(0, -1, 17, inf),
    "basis": NAME,
    "aim": NAME,
    "negatives": NAME,
    "rounding": NAME,
    "width": whole(2),
    "depth": (0, -1, 1.5, *NO_NUMBERS),
    "per_level": FLAG,
    "truth": optional(MASSES),
    "asked": ("twice", 1, None),
    "shown": ("all", 1, None),
    "calibration": ADAPTIVE,
    "expansion": number(-0.1, 0.5),
    "rounds": whole(1, 1000),
    "start": (3, "tree", (4, 4)),
    "schedule": NAME,
    "threshold": (0, -1.0, "nothing", None, True, [1.0], nan),
    "locations": (None, 3, "all"),
    "top": number(0, -1, 101, inf),
    "keep": whole(1, 1 << 16),
    "decay": number(0, -0.1, 1.1, inf),
    "inner": (None, 3, "dam", local.SquareWave(), local.LdpTrace()),
    "to": (None, 3, "dam", local.SquareWave(), local.LdpTrace()),
    "cells": whole(1),
}


def every_release() -> dict[str, lp.Release]:
    matched = local.Matched(local.PlanarLaplace(), local.KRr(), cells=4)
    others = {"sw-ems": local.SquareWave(), "matched": matched}
    return {**lp.releases(), **others, "disk-and-sets": local.DiskAndSets(0.5, 1)}


def rows_of(name: str, release: lp.Release) -> Iterable[tuple[str, Row]]:
    settings = {each.name: getattr(release, each.name) for each in fields(release)}  # type: ignore[arg-type]
    kinds = {each: FIELDS[each] for each in settings if each in FIELDS}
    yield name, Row(type(release), given(**settings), kinds)
    yield f"{name}.claim", Row(release.claim, given(epsilon=1.0), {"epsilon": POSITIVE})
    crowd = row_of_people if name == "sw-ems" else people
    yield (
        f"{name}.release",
        Row(
            release.release,
            lambda _: {"users": crowd(), "epsilon": 1.0, "rng": rng()},
            {"users": NO_USERS, "epsilon": POSITIVE, "rng": RNG},
        ),
    )
    grid = Grid.plane(0, 0, 4, 4)
    if name != "sw-ems":  # which takes maps of one row, and no grid makes one
        yield (
            f"{name}.run",
            Row(
                release.run,
                lambda _: {"points": POINTS, "grid": grid, "epsilon": 1.0, "rng": rng()},
                {
                    # Any positions are an input where the number of users is private.
                    "points": NO_PLACES if release.model == "central" else PLACES,
                    **{"grid": NO_GRID, "epsilon": POSITIVE, "rng": RNG},
                },
            ),
        )
    if isinstance(release, local.LocalRelease):
        yield (
            f"{name}.local_privacy",
            Row(
                release.local_privacy,
                given(cells=4, epsilon=1.0),
                {"cells": whole(1, 4096), "epsilon": POSITIVE},
            ),
        )
    if isinstance(release, CentralRelease):
        yield (
            f"{name}.publish",
            Row(
                release.publish,
                lambda _: {"users": people(), "epsilon": 1.0},
                {"users": NO_USERS, "epsilon": POSITIVE},
            ),
        )


def figure() -> Any:
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure((1, 1))


RELEASE_ROWS = {
    f"releases.{name}": row
    for one, release in every_release().items()
    for name, row in rows_of(one, release)
}
TABLE_OF_ROWS: dict[str, Row] = {
    **{**CHANNELS, **METRICS, **RECORDS, **ESTIMATION, **DATASETS, **COMPARISON, **TOP},
    **{**DOCUMENTED, **DISTRIBUTED, **RELEASE_ROWS},
}

# What has to have a row: what these rooms name, and the functions of these modules.
ROOMS = (lp, estimation, metrics, datasets, comparison, local, distributed, central)
MODULES = (
    *(plan, foretold, disk_radius, audit, discrete_laplace, local_privacy, shuffling, still_device),
    *(
        distinguish,
        attack,
        report_size,
        playing,
        users,
        regions,
        within,
        trust,
        region_files,
        region_changes,
        region_shares,
        region_tables,
        changes,
        window_counts,
        heat_map,
        transport_plot,
        partial_counts,
        report_files,
        results,
        warehouse,
        maps,
        plans,
    ),
)
ERROR = "an error"
BASE = "a class to inherit from, or a protocol"
RECORD = "a record that only functions of this package make"
INNER = "called by public functions, with what they have checked"
WITHOUT_ROW = {
    **dict.fromkeys(("InputError", "LdpSpatialError", "SolverError"), ERROR),
    **dict.fromkeys(("Channel", "Estimator", "Release", "StoppingRule", "LocalRelease"), BASE),
    **dict.fromkeys(("SecureSum", "SecureSums"), BASE),
    **dict.fromkeys(("Influence", "RegionInfluence"), RECORD),
    **dict.fromkeys(("GoodnessOfFit", "ReportCounts", "Simulation", "SyntheticMap"), RECORD),
    **dict.fromkeys(("Transport", "NoisySum", "ProportionMap", "Round"), RECORD),
    **dict.fromkeys(("counts_within", "is_plan", "best_bound", "report_paths"), INNER),
    "holds_counts": INNER,
    **dict.fromkeys(("common_place", "disk_risk", "gathered"), INNER),
    **dict.fromkeys(("real_radius", "squared_radius"), INNER),
    **dict.fromkeys(("change_intervals", "part_of"), INNER),
}
WITHOUT_KIND = {
    "data": "any object: the table holds its text",
}


def test_every_public_callable_has_a_row() -> None:
    known = {row.call for row in TABLE_OF_ROWS.values()}
    public = {name: getattr(room, name) for room in ROOMS for name in room.__all__}
    for module in MODULES:
        for name, found in inspect.getmembers(module, inspect.isfunction):
            if found.__module__ == module.__name__ and not name.startswith("_"):
                public[name] = found
    without = [name for name, found in public.items() if callable(found) and found not in known]
    assert sorted(without) == sorted(WITHOUT_ROW)


def check_kinds(name: str, row: Row) -> None:
    """Check that each parameter has a kind of bad values, or say where one has to be added."""
    parameters = set(inspect.signature(row.call).parameters)
    without = sorted(parameters - set(WITHOUT_KIND) - set(row.bad))
    where = "FIELDS" if name.startswith("releases.") else f"the row {name!r}"
    assert not without, f"{where} lacks {', '.join(without)}: add the kind of values it refuses"
    assert set(row.bad) <= parameters


@pytest.mark.parametrize("name", TABLE_OF_ROWS)
def test_every_parameter_has_a_kind_and_the_good_call_works(name: str, tmp_path: Path) -> None:
    row = TABLE_OF_ROWS[name]
    check_kinds(name, row)
    row.call(**row.good(tmp_path))


@dataclass(frozen=True)
class Novel(central.Laplace):
    """A release with a parameter that no other has."""

    novelty: float = 1.0


def test_a_parameter_of_a_new_name_fails_in_one_place_which_says_what_to_add() -> None:
    lacking = []
    for name, row in rows_of("novel", Novel()):
        try:
            check_kinds(f"releases.{name}", row)
        except AssertionError as error:
            lacking.append(str(error).partition("\n")[0])
    assert lacking == ["FIELDS lacks novelty: add the kind of values it refuses"]


MOST_TEXT = 100 + len(", ".join(lp.releases()))  # the longest names all releases


def complaints(row: Row, parameter: str, place: Path) -> Iterable[str]:
    """Say what is wrong with each refusal of a bad value, if anything is."""
    words = row.terms.get(parameter, parameter).split()
    for bad in row.bad[parameter]:
        arguments = {**row.good(place), parameter: bad}
        try:
            row.call(**arguments)
        except lp.InputError as error:
            text = str(error)
            if not any(word in text for word in words):
                yield f"{shown(bad)}: names no {' or '.join(words)}: {text}"
            scalar = isinstance(bad, str | int | float | complex | None)
            told = (shown(bad), type(bad).__name__, "()", "none")
            if scalar and parameter not in row.secret and not any(each in text for each in told):
                yield f"{shown(bad)}: is not told: {text}"
            if len(text) > MOST_TEXT:
                yield f"{shown(bad)}: too long: {text}"
        except Exception as error:
            yield f"{shown(bad)}: {type(error).__name__}: {str(error)[:100]}"
        else:
            yield f"{shown(bad)} of type {type(bad).__name__}: taken"


PARAMETERS = [(name, parameter) for name, row in TABLE_OF_ROWS.items() for parameter in row.bad]


@pytest.mark.parametrize(
    ("name", "parameter"), PARAMETERS, ids=[f"{name}-{parameter}" for name, parameter in PARAMETERS]
)
def test_bad_values_are_refused_by_field_and_value(
    name: str, parameter: str, tmp_path: Path
) -> None:
    wrong = list(complaints(TABLE_OF_ROWS[name], parameter, tmp_path))
    assert not wrong, "\n".join(wrong)
