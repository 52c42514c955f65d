"""Runs of all mechanisms on all data sets, kept as they finish; errors of a data set by repeat."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from experiments.papers.dam.published_sinkhorn import WithSinkhorn
from experiments.papers.dam.settings import DataSet, Setting
from experiments.progress import tracked
from experiments.setup import Setup
from experiments.sources import Array
from ldpspatial.comparison.compare import compare_people
from ldpspatial.comparison.runs import Row
from ldpspatial.release.release import Release

Releases = Callable[[Setting], Mapping[str, Release]]
Key = tuple[str, str, Setting]  # data set, release, setting


@dataclass(frozen=True)
class Errors:
    """Runs by data set, release and setting, with how a data set's parts become one number.

    Attributes
    ----------
    rows : mapping of keys to runs of all parts
        Each run with ``w2`` in sides and with facts.
    """

    rows: Mapping[Key, list[Row]] = field(repr=False)

    @property
    def names(self) -> list[str]:
        """Data sets."""
        return list(dict.fromkeys(name for name, _, _ in self.rows))

    def labels(self, settings: Iterable[Setting]) -> list[str]:
        """Return the releases that some of these settings have."""
        wanted = set(settings)
        return list(dict.fromkeys(label for _, label, at in self.rows if at in wanted))

    def has(self, name: str, label: str, setting: Setting) -> bool:
        """Tell whether a release ran in this setting."""
        return (name, label, setting) in self.rows

    def of(self, name: str, label: str, setting: Setting, metric: str = "w2") -> Array:
        """Return errors in cells, by repeat, each the mean over the data set's parts.

        Parameters
        ----------
        metric : {"w2", "sinkhorn", "sinkhorn_self"}
        """
        by_repeat: dict[int, list[float]] = defaultdict(list)
        for row in self.rows[name, label, setting]:
            value = row["w2"] * row["cells"] if metric == "w2" else row["facts"][metric]
            by_repeat[row["repeat"]].append(value)
        return np.array([np.mean(by_repeat[repeat]) for repeat in sorted(by_repeat)])

    def users(self, name: str) -> list[int]:
        """Return how many people the parts of a data set have."""
        parts = {row["data"]: row["users"] for key, rows in self.rows.items() if key[0] == name
                 for row in rows}  # fmt: skip
        return list(parts.values())


def play(
    setup: Setup, sets: Iterable[DataSet], settings: Iterable[Setting], releases: Releases
) -> Errors:
    """Play the releases of every setting on every part of every data set.

    All releases of a repeat see the same people. Runs that ``setup.out`` holds are not repeated.
    """
    distinct = list(dict.fromkeys(settings))
    wanted = [(each, part, setting) for each in sets for part in each.parts for setting in distinct]
    rows: dict[Key, list[Row]] = defaultdict(list)
    for each, part, setting in tracked(wanted, setup.name):
        place = f"{each.name}-{part}".lower()
        table = compare_people(
            {setting.cells: each.parts[part](setting.cells)},
            [setting.epsilon],
            {label: WithSinkhorn(release) for label, release in releases(setting).items()},
            setup.repeats,
            np.random.default_rng(setup.seed),
            users=None if each.users is None else [each.users],
            metrics=["w2"],
            folder=setup.out / "runs" / place,
            jobs=setup.jobs,
            data=place,
        )
        for row in _plain(table):
            rows[each.name, row["release"], setting].append(row)
    return Errors(dict(rows))


def _plain(table: pa.Table) -> list[Row]:
    kept = table.select(["data", "release", "users", "cells", "repeat", "w2", "facts"])
    return [{**row, "facts": json.loads(row["facts"])} for row in kept.to_pylist()]
