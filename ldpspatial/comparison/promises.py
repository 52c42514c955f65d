"""What kind of thing each run of a comparison promises, and which promise nothing.

Between notions and units no conversion leads: epsilon per cell, under geo-indistinguishability,
and epsilon per report are other quantities than epsilon per user. Nor is epsilon with a delta the
epsilon without one. What is run at the local privacy of another release claims an epsilon of its
own, not the one that was asked for. So tables and figures hold promises of one kind. Over
"shuffled_epsilon" local reports have a delta that the axis names; epsilon without a delta holds at
each, and is drawn there.
"""

from collections.abc import Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ldpspatial.errors import InputError
from ldpspatial.privacy.claims import SAME_LOCAL_PRIVACY

Against = Literal["epsilon", "replacement_epsilon", "shuffled_epsilon", "users", "cells"]

KIND = ("claim_notion", "claim_distance", "claim_unit")  # what no conversion leads across
RELATION = "claim_neighbours"
CONDITIONS = "claim_conditions"
DELTAS = ("claim_delta", "replacement_delta")
NOTHING = "no privacy"  # a yardstick, which every figure may hold
COMMON = "differential privacy, per user"
WITH_DELTA = "with delta"


def delta_column(against: Against) -> str:
    """Return the column that has the delta of what a curve runs over."""
    return DELTAS[against in ("replacement_epsilon", "shuffled_epsilon")]


def promises(table: pa.Table, against: Against) -> list[str]:
    """Return of each run its kind of promise: its notion, per what distance, per whom.

    With a delta or without, and between which neighbours, unless what the curve runs over is the
    epsilon of one relation. That one is of the claim; else a release that is matched to the local
    privacy of another one is told apart, whose claim is of another epsilon than that of the curve.
    """
    columns = ["model", *KIND, RELATION, DELTAS[0], CONDITIONS]
    _check_told(table, columns)
    of_one_relation = delta_column(against) == DELTAS[1]
    found = []
    for row in table.select(columns).to_pylist():
        notion, distance, unit = (row[name] for name in KIND)
        kind = f"{notion}{f' per {distance}' if distance else ''}, per {unit}"
        kind += f", {WITH_DELTA}" if row[DELTAS[0]] else ""
        if not of_one_relation:
            kind += f", {row[RELATION]}{_matched_to(row[CONDITIONS])}"
        found.append(NOTHING if row["model"] == "none" else kind)
    return found


def _matched_to(conditions: str) -> str:
    """Return whose local privacy is equal by the conditions of a claim, nothing for no one's."""
    _, found, rest = conditions.partition(f"{SAME_LOCAL_PRIVACY} ")
    return f", at the local privacy of {rest.partition(' ')[0]}" if found else ""


def by_promise(
    table: pa.Table, against: Against, releases: Sequence[str] | None = None
) -> dict[str, pa.Table]:
    """Return the runs by kind of promise, in the order of the releases; yardsticks are in each.

    Left out are the runs that :func:`without_promise` names. A release whose claim changes its
    kind with what varies is in several.
    """
    names = list(releases or pc.unique(table["release"]).to_pylist())
    kept = promising(table, against)
    kinds = pa.array(promises(kept, against), pa.string())
    of = {
        name: pc.unique(pc.filter(kinds, pc.equal(kept["release"], name))).to_pylist()
        for name in names
    }
    found = dict.fromkeys(kind for some in of.values() for kind in some)
    wanted = pc.is_in(kept["release"], pa.array(names, pa.string()))
    return {
        kind: kept.filter(pc.and_(wanted, pc.is_in(kinds, pa.array([kind, NOTHING]))))
        for kind in [kind for kind in found if kind != NOTHING] or list(found)
    }


def promising(table: pa.Table, against: Against) -> pa.Table:
    """Return the runs whose delta is below 1, without which nothing is promised; and yardsticks."""
    return table.filter(_promising(table, against))


def without_promise(table: pa.Table, against: Against) -> dict[str, list[float]]:
    """Return the releases that have runs whose delta has come to 1, and their epsilons."""
    found: dict[str, list[float]] = {}
    lost = table.filter(pc.invert(_promising(table, against)))
    for row in lost.select(["release", "epsilon"]).to_pylist():
        found.setdefault(row["release"], []).append(row["epsilon"])
    return {label: sorted(set(epsilons)) for label, epsilons in found.items()}


def _promising(table: pa.Table, against: Against) -> pa.Array:
    column = delta_column(against)
    _check_told(table, ["model", column])
    return pc.or_(pc.less(table[column], 1.0), pc.equal(table["model"], "none"))


def _check_told(table: pa.Table, columns: Sequence[str]) -> None:
    """Refuse a table that does not say what its runs promise: it might be anything."""
    if missing := [name for name in columns if name not in table.column_names]:
        raise InputError(
            "table must say what its runs promise, as that of compare does, but it lacks "
            f"{', '.join(missing)}"
        )
