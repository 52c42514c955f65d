"""From the counts of a released collection to the folder of its map.

Besides what ``ldpspatial estimate`` writes, the summary says which error was to be expected: on the
map that plans are made on, and on the map that came out.

Run as ``python -m ldpspatial.service.map_making FOLDER`` it takes the order from standard input:
the service makes maps in a process of their own, so that devices do not wait for them.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from client_sdk import Collection
from client_sdk.shared import UNIT
from ldpspatial.collecting.mapping import Stage, write_map
from ldpspatial.collecting.results import read_estimate, write_json
from ldpspatial.errors import LdpSpatialError
from ldpspatial.estimation.estimate import Rule
from ldpspatial.estimation.field import Field
from ldpspatial.planning.foretold import foretell, synthetic_densities
from ldpspatial.service.closing import Counted
from ldpspatial.service.maps import REFUSED, Order

REPEATS = 2
PLAYED_ONCE_ABOVE = 32  # cells a side: a field takes some ten seconds there
SEED = 0  # of the reports that are played: the same map has the same expected error
SHARE = 1e-7  # of all people: what 1 stands for in map.json
THIS_MAP = "this map"
Advance = Callable[[int, int], None]

NICENESS = 10  # reports come first


def make_map(
    folder: Path,
    collection: Collection,
    counted: Counted,
    rule: Rule | None = None,
    smoothing: str | None = None,
    intervals: str = "auto",
    stage: Stage = lambda name: None,
    advance: Advance = lambda done, total: None,
) -> dict[str, Any]:
    """Write all that ``ldpspatial estimate`` writes, and return the summary.

    Parameters
    ----------
    folder : Path
        Exists.
    collection : Collection
    counted : Counted
    rule, smoothing, intervals
        As of :func:`ldpspatial.collecting.mapping.write_map`.
    stage, advance : functions
        Are told what is being done, and how far it is.
    """
    facts = counted.facts()
    summary = write_map(
        folder, collection, counted.counts, facts, rule, smoothing, intervals, stage
    )
    stage("expected error")
    if isinstance(rule, Field):  # the map that plans are made on lies elsewhere
        rule = Field(rule.point)
    summary["expected_error"] = _expected_error(folder, rule, advance)
    write_json(folder / "summary.json", summary)
    (folder / "map.json").write_bytes(_for_pages(folder, collection))
    return summary


def _for_pages(folder: Path, collection: Collection) -> bytes:
    """Return the map as the pages draw it: whole ten-millionths of all people, by row, then column.

    A tenth of what the CSV takes; row 0 is the south.
    """
    with np.load(folder / "estimate.npz", allow_pickle=False) as found:
        shares = {
            name: np.rint(found[name].ravel() / SHARE).astype(int).tolist()
            for name in ("density", "lower", "upper")
            if name in found
        }
    height, width = collection.grid.cell_size
    grid = collection.grid
    return msgspec.json.encode(
        {
            "cells": grid.cells,
            "kind": grid.kind,
            "south": grid.south / UNIT,
            "west": grid.west / UNIT,
            "height": grid.height / UNIT,
            "width": grid.width / UNIT,
            "cell_m": [height, width],
            "share": SHARE,
            **shares,
        }
    )


def _expected_error(folder: Path, rule: Rule | None, advance: Advance) -> dict[str, Any]:
    """Return W2 to expect on the map of plans, and on the map in the folder."""
    collection, estimate = read_estimate(folder)
    rng = np.random.default_rng(SEED)
    densities = {**synthetic_densities(collection.grid.cells, rng), THIS_MAP: estimate.density}
    repeats = REPEATS if collection.grid.cells <= PLAYED_ONCE_ABOVE else 1
    tell = _counter(advance, len(densities) * repeats)
    found = foretell(collection, estimate.n, densities, rng, repeats, rule, tell)
    mean = dict(found.w2)
    highest = dict(found.highest)
    here = {"mean": mean.pop(THIS_MAP), "highest": highest.pop(THIS_MAP)}
    return {
        "distance": "W2 between map and estimate",
        "unit": "m" if collection.grid.kind == "geographic" else "plane units",
        "collections_played": repeats,
        "foretold": {name: {"mean": mean[name], "highest": highest[name]} for name in mean},
        "this_map": here,
    }


def _counter(advance: Advance, total: int) -> Callable[[], None]:
    done = 0

    def tell() -> None:
        nonlocal done
        done += 1
        advance(done, total)

    return tell


def main() -> int:
    """Make the map that standard input orders; 0, or REFUSED where the order cannot be met."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    counts = np.array(order.counts, np.int64)
    counted = Counted(counts, order.received, order.repeated, order.conflicting)
    collection = Collection.from_json(order.document)
    try:
        make_map(
            Path(sys.argv[1]), collection, counted, order.rule, order.smoothing, order.intervals
        )
    except LdpSpatialError as error:
        print(error, file=sys.stderr)  # noqa: T201  (whoever started this reads it)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
