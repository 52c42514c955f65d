"""What a map with intervals costs: the field, the map alone, and EM fitted again and again."""

import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from client_sdk import response_table
from experiments.benchmarks.timing import Table
from experiments.towns import Town
from ldpspatial import EM, Estimate, Field, StampChannel, recommended

HEADER = [
    "cells a side", "field: CPU, median and most", "map alone", "converged",
    "EM on 128 redrawn counts", "EM over field",
]  # fmt: skip
SIDES = (15, 32, 64, 128, 256)
USERS = (10_000, 1_000_000, 100_000_000)
EPSILONS = (1.0, 3.5, 6.0)
FIRST_TOWN = 2801
PEOPLE = 200_000  # whose places are the law of a town
REDRAWN, MEASURED = 128, 4  # as many as the field has samples


class Case(NamedTuple):
    """What was measured of one collection; CPU in seconds."""

    field: float
    alone: float
    redrawn: float
    converged: bool


def field() -> Table:
    """Count the CPU time of one thread, for a town each; the first fit of all is left out."""
    _case(SIDES[0], USERS[0], EPSILONS[0], FIRST_TOWN)
    rows: list[list[object]] = []
    town = FIRST_TOWN
    for cells in SIDES:
        cases = []
        for users in USERS:
            for epsilon in EPSILONS:
                cases.append(_case(cells, users, epsilon, town))
                town += 1
        rows.append(
            [
                cells,
                _median_and_most([case.field for case in cases]),
                _median_and_most([case.alone for case in cases]),
                f"{sum(case.converged for case in cases)} of {len(cases)}",
                _median_and_most([case.redrawn for case in cases]),
                _shown(median(case.redrawn / case.field for case in cases)),
            ]
        )
    return HEADER, rows


def _case(cells: int, users: int, epsilon: float, town: int) -> Case:
    rng = np.random.default_rng(town)
    channel, counts = _collected(cells, users, epsilon, Town(town), rng)
    whole, found = _timed(lambda: Field().fit(channel, counts))
    alone, _ = _timed(lambda: Field(map_alone=True).fit(channel, counts))
    plain = EM().fit(channel, counts)
    law = channel.forward(plain.density)
    law = (law / law.sum()).ravel()
    redrawn = [
        _timed(lambda: EM().fit(channel, rng.multinomial(users, law).reshape(counts.shape)))[0]
        for _ in range(MEASURED)
    ]
    return Case(whole, alone, REDRAWN * sum(redrawn) / MEASURED, found.converged)


def _collected(
    cells: int, users: int, epsilon: float, town: Town, rng: np.random.Generator
) -> tuple[StampChannel, NDArray[np.int64]]:
    """Return what so many people of a town report by the recommended disk."""
    at = (town.people(PEOPLE, rng) * cells).astype(np.int64)
    people = np.zeros((cells, cells))
    np.add.at(people, (at[:, 0], at[:, 1]), 1 / PEOPLE)
    square = recommended(cells, epsilon, users).squared_radius
    channel = StampChannel(response_table("disk", epsilon, cells, squared_radius=square))
    law = channel.forward(people)
    return channel, rng.multinomial(users, (law / law.sum()).ravel()).reshape(law.shape)


def _timed(call: Callable[[], Estimate]) -> tuple[float, Estimate]:
    began = time.process_time()
    found = call()
    return time.process_time() - began, found


def _median_and_most(values: list[float]) -> str:
    return f"{_shown(median(values))} and {_shown(max(values))} s"


def _shown(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"
