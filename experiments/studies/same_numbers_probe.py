"""Prints numbers of the checkout that is on the path, by name, as one line of JSON."""

import hashlib
import io
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

import client_sdk.entropy
import ldpspatial as lp
from client_sdk import Collection, Grid, response_table
from client_sdk.testing import StreamEntropy
from ldpspatial.cli import main

warnings.simplefilter("ignore")
SIDE = 8
SECONDS = re.compile(r"^.*seconds.*$", re.MULTILINE)


def bits(value: Any) -> str:
    """Return a number or array as it is in memory, or anything else as a text."""
    if isinstance(value, np.ndarray):
        return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
    return value.hex() if isinstance(value, float) else repr(value)


def people(number: int = 3_000) -> tuple[Any, Any]:
    """Return users and positions on the plane, some visits each."""
    rng = np.random.default_rng(1)
    spread = rng.normal((3, 5), (0.8, 1.2), (number, 2))
    return np.sort(rng.integers(0, number // 3, number)), np.clip(spread, 0, 7.99)


def estimates() -> Iterator[tuple[str, Any]]:
    """Yield what each rule makes of the same counts, with intervals."""
    for mechanism, side in (("dam", 6), ("huem", 8), ("disk", 9)):
        table = response_table(mechanism, 2.0, side)
        channel = lp.StampChannel(table)
        law = channel.forward(
            np.outer(np.arange(1, side + 1), np.ones(side)) / (side**2 * (side + 1) / 2)
        )
        rng = np.random.default_rng(2)
        counts = np.zeros(law.shape)
        flat = law[channel.support]
        counts[channel.support] = rng.multinomial(5_000, flat / flat.sum())
        for rule in ("scaled", "likelihood", "published"):
            for smoothing in (None, "binomial", "five-point"):
                name = f"estimate {mechanism} {rule} {smoothing}"
                found = lp.estimate(channel, counts, rule, smoothing)
                yield f"{name} density", found.density
                yield f"{name} path", (found.log_likelihood, found.iterations, found.converged)
                if smoothing is None:
                    yield from intervals(name, found)


def intervals(name: str, found: Any) -> Iterator[tuple[str, Any]]:
    """Yield intervals of cells and of one region, and the check of the fit."""
    cells, share, fit = interval_functions()
    of_cells = cells(found, 0.9, "fisher")
    yield f"{name} fisher lower", of_cells.lower
    yield f"{name} fisher upper", of_cells.upper
    weights = np.zeros(found.density.shape)
    weights[2:5, 1:4] = 1
    yield f"{name} share fisher", share(found, weights, 0.95, "fisher")
    checked = fit(found)
    yield f"{name} fit", (checked.statistic, checked.expected, checked.p_value)


def interval_functions() -> tuple[Callable[..., Any], ...]:
    """Return how intervals are asked for: functions, or methods of the estimate before."""
    if hasattr(lp, "cell_intervals"):
        return lp.cell_intervals, lp.region_share, lp.goodness_of_fit
    return (
        lambda found, *rest: found.uncertainty(*rest),
        lambda found, *rest: found.share(*rest),
        lambda found: found.goodness_of_fit(),
    )


def distances() -> Iterator[tuple[str, Any]]:
    """Yield distances of all kinds between two maps."""
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(100), 2).reshape(2, 10, 10)
    for order in (1, 2):
        for ground in ("euclidean", "cityblock"):
            yield f"wasserstein {order} {ground}", lp.wasserstein(p, q, order, ground)
    plan = lp.transport(p, q)
    yield "transport", (plan.value, plan.lower, plan.upper, float(plan.mass.sum()))
    yield "sinkhorn", lp.sinkhorn_divergence(p, q, 0.5)
    yield "sliced", lp.sliced_wasserstein(p, q)


def compared() -> Iterator[tuple[str, Any]]:
    """Yield the errors and claims of every release."""
    grid = Grid.plane(0, 0, SIDE, SIDE)
    for name, release in lp.releases().items():
        table = lp.compare(
            people(), grid, [1.0, 4.0], {name: release}, 2, np.random.default_rng(6), jobs=1
        )
        for column in table.column_names:
            if column in ("seconds", "versions", "seed") or "version" in column:
                continue
            yield f"compare {name} {column}", repr(table[column].to_pylist())


def played() -> Iterator[tuple[str, Any]]:
    """Yield a simulation whose devices draw from a stream in place of the operating system."""
    client_sdk.entropy.system = StreamEntropy("same numbers")
    collection = Collection.create("same", Grid.plane(0, 0, SIDE, 16), 3.5)
    found = lp.simulate(collection, people()[1], rule="scaled")
    yield "simulate reports", np.stack(found.reports)
    yield "simulate density", found.estimate.density
    yield "simulate w2", found.w2_cells
    yield "digest", collection.digest
    yield "recommended", repr([lp.recommended(15, eps, 10_000) for eps in (1.0, 3.5, 7.0)])


def commands() -> Iterator[tuple[str, Any]]:
    """Yield what the command line prints for a plan and a distance."""
    rng = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as folder:
        maps = [str(Path(folder) / f"{k}.npy") for k in range(2)]
        for path in maps:
            np.save(path, rng.dirichlet(np.ones(64)).reshape(8, 8))
        size = ("--side-km", "12", "--epsilon", "3.5", "--devices", "500", "--repeats", "2")
        for arguments in (
            ("plan", *size, "--seed", "1", "--cells", "5", "--cells", "8"),
            ("plan", *size, "--seed", "2", "--cells", "6", "--windows", "4", "--answers", "2"),
            ("distance", *maps),
        ):
            said = io.StringIO()
            with redirect_stdout(said):
                main(list(arguments), standalone_mode=False)
            text = SECONDS.sub("", said.getvalue()).replace(folder, "")
            yield " ".join(arguments).replace(folder, ""), hashlib.sha256(text.encode()).hexdigest()


def vectors(tree: Path) -> Iterator[tuple[str, Any]]:
    """Yield the vectors as they lie there."""
    for file in sorted((tree / "client_sdk" / "vectors").glob("*.json")):
        yield f"vectors {file.name}", hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    parts = estimates, distances, compared, played, commands
    found = {name: bits(value) for part in parts for name, value in part()}
    found |= {name: bits(value) for name, value in vectors(Path(sys.argv[1]))}
    print(json.dumps(found))
