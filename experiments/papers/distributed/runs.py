"""Runs of a table or figure: each one a row, kept in a folder as soon as it is finished.

`ldpspatial.compare` measures maps against users. Here people are drawn from a map of tens of
millions, and the map itself is the truth; and the rounds before the last are of interest.
"""

import hashlib
import json
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed
from rich.progress import Progress

from client_sdk import DesignWarning
from experiments.papers.distributed.places import Place
from experiments.setup import Setup
from experiments.sources import Array
from ldpspatial.comparison.folder import RunFolder
from ldpspatial.comparison.runs import Row, versions
from ldpspatial.metrics import (
    l1,
    mean_absolute_percentage_error,
    mean_arctangent_percentage_error,
    mean_squared_error,
    symmetric_absolute_percentage_error,
)
from ldpspatial.places.users import UserCells
from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.adaptive.non_private_tree import NonPrivateTree
from ldpspatial.release.distributed.adaptive.rounds import Round, facts, last_revealed
from ldpspatial.release.distributed.sums.cohort import Cohort
from ldpspatial.release.release import Release

PAPER_FORM = ", shown='positive'", ", asked='every round'"
ALL = Cohort()  # nobody fails

OTHERS: Mapping[str, Callable[[Array, Array], float]] = {
    "l1": l1,
    "mape": mean_absolute_percentage_error,
    "smape": symmetric_absolute_percentage_error,
    "maape": mean_arctangent_percentage_error,
}


def adaptive(
    cohort: Cohort = ALL, calibration: float = 0.1, **choices: Any
) -> AdaptiveHierarchical:
    """Return the histogram in the paper's form: all are asked in every round, and nobody fails."""
    return AdaptiveHierarchical(cohort, calibration, asked="every round", **choices)


class Setting(Protocol):
    """What is played: the same label, users and epsilon are the same setting."""

    @property
    def label(self) -> str:
        """What tables and figures call it."""

    @property
    def users(self) -> int | None:
        """How many users are drawn for each repeat; None takes everybody."""

    @property
    def epsilon(self) -> float:
        """Privacy loss that is asked for."""

    @abstractmethod
    def play(self, place: Place, people: UserCells, rng: np.random.Generator) -> Row:
        """Run once and measure."""


@dataclass(frozen=True)
class Case:
    """A release; a row holds errors, and of interactive releases those of each round.

    Attributes
    ----------
    label : str
    release : Release
    users : int or None
    epsilon : float
    others : names in OTHERS
        What is measured beside the squared error: on a million pixels each takes half a second.
    """

    label: str
    release: Release
    users: int | None
    epsilon: float = 1.0
    others: tuple[str, ...] = ()

    def play(self, place: Place, people: UserCells, rng: np.random.Generator) -> Row:
        """Run and compare with the place.

        The row's ``best`` are the errors of the round with the least squared error, which only
        somebody who knows the truth can tell.
        """
        trace = trace_of(self.release, people, self.epsilon, rng)
        if trace is None:
            released = self.release.release(people, self.epsilon, rng)
            claim = released.claim
            known = dict(released.facts)
            rounds = [released.density]
        else:
            claim = self.release.claim(self.epsilon)
            known = dict(facts(trace))
            known["depth"] = depth_of(trace[-1])
            rounds = [density_of(step) for step in trace]
        squared = [mean_squared_error(place.density, density) for density in rounds]
        best = int(np.argmin(squared))
        last = len(rounds) - 1 if trace is None else trace.index(last_revealed(trace))
        chosen = {
            n: {"mse": squared[n]} | {o: OTHERS[o](place.density, rounds[n]) for o in self.others}
            for n in {best, last}
        }
        return {
            **chosen[last],
            "best": chosen[best],
            "mse_by_round": squared,
            "by_round": [] if trace is None else [_seen(step) for step in trace],
            **known,
            "claim": str(claim),
            "claim_conditions": "; ".join(claim.conditions),
        }


def trace_of(
    release: Release, people: UserCells, epsilon: float, rng: np.random.Generator
) -> tuple[Round, ...] | None:
    """Return the rounds of a run; None where a release has no rounds to show."""
    if isinstance(release, AdaptiveHierarchical):
        return release.rounds_of(people, epsilon, rng)
    if isinstance(release, NonPrivateTree):
        return release.rounds_of(people, rng)
    return None


def density_of(step: Round) -> Array:
    """Return the map that a round shows."""
    return step.tree.density(step.counts)


def depth_of(step: Round) -> int:
    """Return the depth of the smallest squares that a round asks for."""
    return max((node[0] for node in step.tree.nodes), default=0)


def _seen(step: Round) -> Row:
    return {
        "epsilon": step.spent,
        "length": len(step.tree),
        "depth": depth_of(step),
        "threshold": step.threshold,
        "survivors": step.survivors,
    }


@dataclass(frozen=True)
class Runs:
    """Rows of finished runs.

    Attributes
    ----------
    rows : sequence of rows
    """

    rows: Sequence[Row] = field(repr=False)

    def of(self, setting: Setting) -> "Runs":
        """Return the runs of a setting."""
        wanted = setting.label, setting.users, setting.epsilon
        return Runs([r for r in self.rows if (r["label"], r["users"], r["epsilon"]) == wanted])

    def values(self, name: str) -> Array:
        """Return a column; a dot leads into a row's part: ``best.mse``."""
        found: list[object] = []
        for row in self.rows:
            value: object = row
            for part in name.split("."):
                value = value[part]  # type: ignore[index]
            found.append(value)
        return np.array(found, dtype=np.float64)


def play_all(place: Place, settings: Sequence[Setting], setup: Setup, folder: str) -> Runs:
    """Play each setting as often as asked for, or take it from the folder; rows in order.

    The people of a repeat are the same for all settings with as many users, so that differences
    of errors can be taken run by run.
    """
    root = np.random.default_rng(setup.seed).bytes(16).hex()
    kept = {"place": place.name, "digest": place.digest}
    store = RunFolder(setup.out / folder, kept, root)
    with store.held():
        rows = store.rows()
        wanted = [(s, repeat) for s in settings for repeat in range(setup.repeats)]
        missing = [(s, repeat) for s, repeat in wanted if _key(s, repeat) not in rows]
        calls = [delayed(_played)(place, s, repeat, store.root) for s, repeat in missing]
        with Progress() as bar:
            task = bar.add_task(place.name, total=len(calls))
            for key, row in Parallel(setup.jobs, return_as="generator_unordered", batch_size=1)(
                calls
            ):
                rows[key] = row
                store.add(key, row)
                bar.advance(task)
    return Runs([rows[_key(s, repeat)] for s, repeat in wanted])


def generator(root: str, *what: object) -> np.random.Generator:
    """Return the random numbers of a purpose: of nothing but the seed and the purpose."""
    text = json.dumps([root, *what])
    return np.random.default_rng(int(hashlib.sha256(text.encode()).hexdigest()[:32], 16))


def drawn(place: Place, setting: Setting, root: str, repeat: int = 0) -> UserCells:
    """Return the people of a run."""
    return place.draw(setting.users, generator(root, "people", setting.users, repeat))


def randomness(setting: Setting, root: str, repeat: int = 0) -> np.random.Generator:
    """Return the random numbers of a run, its people apart."""
    return generator(root, _phrase(setting), repeat)


def _key(setting: Setting, repeat: int) -> str:
    return json.dumps([_phrase(setting), repeat])


def _phrase(setting: Setting) -> str:
    """Return what a setting is kept under: the paper's form had no names when tables were made."""
    phrase = repr(setting)
    for name in PAPER_FORM:
        phrase = phrase.replace(name, "")
    return phrase


def _played(place: Place, setting: Setting, repeat: int, root: str) -> tuple[str, Row]:
    people = drawn(place, setting, root, repeat)
    began = time.perf_counter()
    with warnings.catch_warnings():  # a modulus that is too small is measured, not warned of
        warnings.simplefilter("ignore", DesignWarning)
        measured = setting.play(place, people, randomness(setting, root, repeat))
    row = {
        "place": place.name,
        "label": setting.label,
        "users": setting.users,
        "epsilon": setting.epsilon,
        "repeat": repeat,
        **measured,
        "setting": repr(setting),
        "seconds": time.perf_counter() - began,
        "root": root,
        "versions": versions(),
    }
    return _key(setting, repeat), row
