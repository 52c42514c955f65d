"""One run: a release at one epsilon on one draw of the people; and the row that it becomes.

Every run has random numbers of its own, made of the comparison's seed and of what the run is.
So a run gives the same row whoever plays it, in whatever order and however often.
"""

import hashlib
import json
import platform
import time
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ldpspatial.comparison.scores import METRICS, score
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.release.release import Release, run_release

TRUTHS = ("users", "all", "visits")
LIBRARIES = ("ldpspatial", "ldpspatial-client", "numpy", "scipy", "numba")

Row = dict[str, Any]
Array = NDArray[np.float64]

_TEXT = pa.string()
_NUMBER = pa.float64()
_WHOLE = pa.int64()
SCHEMA = pa.schema(
    [
        ("data", _TEXT),
        ("release", _TEXT),
        ("model", _TEXT),
        ("epsilon", _NUMBER),
        ("users", _WHOLE),
        ("outside", _WHOLE),
        ("users_outside", _WHOLE),
        ("cells", _WHOLE),
        ("repeat", _WHOLE),
        *((name, _NUMBER) for name in METRICS),
        ("sigma", _NUMBER),
        ("truth", _TEXT),
        ("blocks", _WHOLE),
        ("claim", _TEXT),
        ("claim_epsilon", _NUMBER),
        ("claim_delta", _NUMBER),
        ("claim_unit", _TEXT),
        ("claim_neighbours", _TEXT),
        ("claim_notion", _TEXT),
        ("claim_distance", _TEXT),
        ("claim_conditions", _TEXT),
        ("replacement_epsilon", _NUMBER),
        ("replacement_delta", _NUMBER),
        ("seconds", _NUMBER),
        ("parameters", _TEXT),
        ("facts", _TEXT),
        ("seed", _TEXT),
        ("people_seed", _TEXT),
        ("versions", _TEXT),
    ]
)


@dataclass(frozen=True)
class Run:
    """What is played.

    Attributes
    ----------
    label : str
        What tables call the release.
    candidate : Release
        What is compared.
    epsilon : float
    users : int or None
        Users drawn anew for each repeat; None takes all.
    cells, repeat : int
    data : str
        Name of the data.
    root : str
        Seed of the comparison, hexadecimal.
    """

    label: str
    candidate: Release
    epsilon: float
    users: int | None
    cells: int
    repeat: int
    data: str
    root: str

    @property
    def key(self) -> str:
        """What tells this run from all others of its comparison."""
        what = [self.label, repr(self.candidate), self.epsilon, self.users, self.cells, self.repeat]
        return json.dumps(what)

    @property
    def seed(self) -> str:
        """128 bits for the release."""
        return _derived(self.root, self.data, self.key)

    @property
    def people_seed(self) -> str:
        """128 bits for the draw of the people: the same people whatever the release and epsilon."""
        return _derived(self.root, self.data, json.dumps([self.users, self.repeat]))


@dataclass(frozen=True)
class Scoring:
    """What is measured.

    Attributes
    ----------
    metrics : names in METRICS
    sigma : float >= 0
        Standard deviation of the Gaussian filter through which both maps are seen, in cells.
    truth : name in TRUTHS
        The map of the users who were drawn, or of all users: then drawing them is an error too;
        or of the visits of those who were drawn, each of which weighs the same.
    blocks : int or None
        Measure W1 and W2 between blocks x blocks parts of the map.
    """

    metrics: tuple[str, ...]
    sigma: float
    truth: str
    blocks: int | None


def play(run: Run, people: UserCells, scoring: Scoring) -> Row:
    """Draw the users, run the release, compare its map with the truth; return the row."""
    chosen = people
    if run.users is not None:
        # Common random numbers: releases differ by what they do, not by whom they were given.
        chosen = people.sample(run.users, np.random.default_rng(int(run.people_seed, 16)))
    began = time.perf_counter()
    rng = np.random.default_rng(int(run.seed, 16))
    released = run_release(run.candidate, chosen, run.epsilon, rng)
    seconds = time.perf_counter() - began
    truth = _truth(chosen, people, scoring.truth)
    return {
        "data": run.data,
        "release": run.label,
        "model": released.claim.model,
        "epsilon": run.epsilon,
        "users": len(chosen),
        "outside": people.outside,
        "users_outside": people.users_outside,
        "cells": run.cells,
        "repeat": run.repeat,
        **dict.fromkeys(METRICS),
        **score(truth, released.density, scoring.metrics, scoring.sigma, scoring.blocks),
        "sigma": scoring.sigma,
        "truth": scoring.truth,
        "blocks": scoring.blocks,
        **_claim_columns(released.claim),
        "seconds": seconds,
        "parameters": repr(run.candidate),
        "facts": json.dumps(dict(released.facts), default=_plain),
        "seed": run.seed,
        "people_seed": run.people_seed,
        "versions": versions(),
    }


def _truth(chosen: UserCells, people: UserCells, name: str) -> Array:
    """Return the map that a run is compared with."""
    if name == "visits":
        return chosen.visit_density
    return (people if name == "all" else chosen).density


@cache
def versions() -> str:
    """Return what ran, as JSON: Python and the libraries that numbers depend on."""
    found = {name: version(name) for name in LIBRARIES}
    return json.dumps({"python": platform.python_version(), **found})


def _claim_columns(claim: PrivacyClaim) -> Row:
    replaced = claim.under_replacement()
    return {
        "claim": str(claim),
        "claim_epsilon": claim.epsilon,
        "claim_delta": claim.delta,
        "claim_unit": claim.unit,
        "claim_neighbours": claim.neighbours,
        "claim_notion": claim.notion,
        "claim_distance": claim.distance,
        "claim_conditions": "; ".join(claim.conditions),
        "replacement_epsilon": replaced.epsilon,
        "replacement_delta": replaced.delta,
    }


def _plain(value: object) -> object:
    """Return a number of NumPy as one of Python, which JSON knows."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _derived(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
