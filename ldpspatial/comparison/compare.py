"""Releases x epsilons x people -> a tidy table: a row for every run."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from joblib.parallel import get_active_backend

from client_sdk import Grid
from ldpspatial.comparison.folder import RunFolder, table_of
from ldpspatial.comparison.runs import SCHEMA, TRUTHS, Row, Run, Scoring, play, versions
from ldpspatial.comparison.scores import DEFAULT_METRICS, METRICS, check_metrics
from ldpspatial.comparison.workers import end_with, keep_loaded
from ldpspatial.errors import InputError, LdpSpatialError
from ldpspatial.one_thread import in_one_thread
from ldpspatial.places.users import Positions, UserCells, user_cells
from ldpspatial.release.local import Matched
from ldpspatial.release.registry import find_releases
from ldpspatial.release.release import Release
from ldpspatial.validate import (
    MAX_CELLS,
    callback,
    check_generator,
    instance,
    number_in,
    one_of,
    positive,
    processes,
    shown,
    whole_number,
)

Progress = Callable[[int, int], None]
Keyed = tuple[str, Row]
FilePath = str | os.PathLike[str]
FINE = 1024  # cells along a side on which data are told from other data
ROUND = 64  # runs handed out at a time where a backend returns them all at once


def compare(
    points: Positions,
    grid: Grid,
    epsilons: Iterable[float],
    releases: "Iterable[str | Release] | Mapping[str, Release]",
    repeats: int,
    rng: np.random.Generator,
    *,
    users: Iterable[int] | None = None,
    cells: Iterable[int] | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    sigma: float = 0.0,
    truth: str = "users",
    blocks: int | None = None,
    folder: FilePath | None = None,
    jobs: int | None = None,
    data: str = "points",
    progress: Progress | None = None,
) -> pa.Table:
    """Play every release at every epsilon on the same people, and measure the errors.

    Parameters
    ----------
    points : (n, 2) array, pair (user ids, (n, 2) array), or Points
        Latitude and longitude (y and x on a plane grid). Without ids every row is a user.
    grid : client_sdk.Grid
    epsilons : numbers > 0
    releases : names, releases, or mapping of labels to releases
        Names are those of :func:`ldpspatial.releases`; with parameters ``sparse-emd:keep=200``.
    repeats : int >= 1
        Runs of each setting, each with its own randomness.
    rng : numpy.random.Generator
        Gives the one seed that all runs derive theirs from.
    users : numbers of users, optional
        Draw this many anew in every repeat, the same for all releases; all users by default.
    cells : sides of grids, optional
        Resolutions over the same square; that of ``grid`` by default.
    metrics : names in METRICS
        W1 and W2 are exact and take seconds a run on 256 x 256 cells.
    sigma : float >= 0
        Compare both maps through a Gaussian filter of so many cells.
    truth : {"users", "all", "visits"}
        Compare with the map of the users who were drawn, or of all users, so that the error of
        drawing them counts too; or with that of the visits of those who were drawn, where every
        visit weighs the same and not every user.
    blocks : int, optional
        Sum both maps into blocks x blocks parts before measuring W1 and W2; blocks must divide
        the side: faster, and off by less than the height and the width of a block
        together.
    folder : path, optional
        Keep every finished run there, and play only what is missing: more releases, epsilons,
        repeats, users or cells. For more metrics a run is played again with its own seed. A
        comparison that goes on in a folder goes on with the seed that it began with.
    jobs : int, optional
        Processes, -1 for one per core. By default what joblib is set to, one unless a
        ``joblib.parallel_config`` is around the call: its backend may be a cluster.
    data : str
        Name of the data, for the table.
    progress : callable (runs done, runs in all), optional

    Returns
    -------
    pyarrow.Table
        One row per run, ordered as asked for: setting, errors, the claim of that very run (its own
        relation, and under replacement), seconds, parameters, facts, seeds and versions.

    Raises
    ------
    InputError
        A bad argument, or a folder that holds something else, or in which somebody else plays.

    Examples
    --------
    >>> from client_sdk import Grid
    >>> rng = np.random.default_rng(1)
    >>> people = rng.normal(4, 1, (2000, 2))
    >>> plane = Grid.plane(0, 0, 8, 8)
    >>> table = compare(people, plane, [1, 4], ["dam", "laplace"], 2, rng, metrics=["w2"])
    >>> table.num_rows, table["claim_neighbours"].unique().to_pylist()
    (8, ['replace', 'add or remove'])
    """
    check_generator(rng)
    instance("grid", grid, Grid)
    sides = [grid.cells] if cells is None else _distinct("cells", cells, _side)
    people = {side: user_cells(points, replace(grid, cells=side)) for side in sides}
    return compare_people(
        people, epsilons, releases, repeats, rng, users=users, metrics=metrics, sigma=sigma,
        truth=truth, blocks=blocks, folder=folder, jobs=jobs, data=data, progress=progress,
        source=None if folder is None else _source(points, grid),
    )  # fmt: skip


@in_one_thread  # else the first of several threads that ends sets the others free
def compare_people(
    people: Mapping[int, UserCells],
    epsilons: Iterable[float],
    releases: "Iterable[str | Release] | Mapping[str, Release]",
    repeats: int,
    rng: np.random.Generator,
    *,
    users: Iterable[int] | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    sigma: float = 0.0,
    truth: str = "users",
    blocks: int | None = None,
    folder: FilePath | None = None,
    jobs: int | None = None,
    data: str = "points",
    progress: Progress | None = None,
    source: str | None = None,
) -> pa.Table:
    """Compare as :func:`compare` does on users whose cells are known, by side of the grid.

    For maps that are not square, and for data that were put on their grids in another way. A
    folder takes more sides later; that they are of the same data it knows by ``source``, a text of
    your own that tells one source from another.
    """
    check_generator(rng)
    callback("progress", progress)
    if not people:
        raise InputError("people must hold the users of at least one map")
    scoring = _scoring(metrics, sigma, truth, blocks, people)
    chosen = _distinct("epsilons", epsilons, positive)
    numbers = [None] if users is None else _distinct("users", users, _from_one)
    least = min(map(len, people.values()))
    for number in filter(None, numbers):
        if number > least:
            raise InputError(
                f"users must be at most {least}, the number of those inside the map, got {number}"
            )
    named = _for_sides(find_releases(releases), people)
    _check_claims(named, chosen)
    if jobs is not None:
        jobs = processes("jobs", jobs)
    data = str(data)
    root = rng.bytes(16).hex()
    store = None
    if folder is not None:
        measured = vars(scoring) | {"metrics": list(scoring.metrics)}
        kept = {"data": data, "positions": source, "people": _digests(people), **measured}
        store = RunFolder(folder, kept, root, SCHEMA)
        root = store.root
    settled = product(
        people, numbers, named.items(), chosen, range(whole_number("repeats", repeats, 1))
    )
    runs = [
        Run(label, release, epsilon, number, side, repeat, data, root)
        for side, number, (label, release), epsilon, repeat in settled
    ]
    with store.held() if store else nullcontext():
        rows = store.rows() if store else {}
        missing = [run for run in runs if not _is_measured(rows.get(run.key), scoring)]
        done = len(runs) - len(missing)
        for key, row in _played(missing, people, scoring, jobs, rows):
            rows[key] = row
            done += 1
            if store:
                store.add(key, row)
            if progress is not None:
                progress(done, len(runs))
    return table_of(rows[run.key] for run in runs)


def _for_sides(named: Mapping[str, Release], sides: Iterable[int]) -> Mapping[str, Release]:
    """Refuse releases that run on maps of another side alone, before any run."""
    for release, side in product(named.values(), sides):
        if isinstance(release, Matched):
            release.check_side(side)
    return named


def _check_claims(named: Mapping[str, Release], epsilons: Iterable[float]) -> None:
    """Refuse an epsilon that a release does not take, before any run."""
    for (label, release), epsilon in product(named.items(), epsilons):
        try:
            release.claim(epsilon)
        except LdpSpatialError as error:
            raise type(error)(f"{label} at epsilon {epsilon:g}: {error}") from error


def _is_measured(row: Row | None, scoring: Scoring) -> bool:
    """Tell whether a run is finished and has all metrics that are asked for."""
    return row is not None and all(row[name] is not None for name in scoring.metrics)


def _played(
    runs: Sequence[Run],
    people: Mapping[int, UserCells],
    scoring: Scoring,
    jobs: int | None,
    earlier: Mapping[str, Row],
) -> Iterator[Keyed]:
    """Yield finished runs as they come."""
    here = os.getpid()
    calls = [
        delayed(_play_for)(here, run, people[run.cells], scoring, earlier.get(run.key))
        for run in runs
    ]
    backend, _ = get_active_backend()
    if backend.supports_return_generator:
        try:
            yield from Parallel(jobs, return_as="generator_unordered", batch_size=1)(calls)
        except TerminatedWorkerError as error:
            raise InputError(
                "jobs must be as few as memory has room for: a process that played was killed; "
                f"finished runs are kept where the comparison has a folder, got jobs {jobs}"
            ) from error
        return
    for start in range(0, len(calls), ROUND):
        yield from Parallel(jobs)(calls[start : start + ROUND])


def _play_for(
    caller: int, run: Run, people: UserCells, scoring: Scoring, earlier: Row | None
) -> Keyed:
    """Play a run for the process of that number, which may be this one or another."""
    if os.getpid() != caller:
        end_with(caller)
    found = _play(run, people, scoring, earlier)
    if os.getpid() != caller:
        keep_loaded()
    return found


@in_one_thread  # so that equal seeds give equal rows, on however many cores
def _play(run: Run, people: UserCells, scoring: Scoring, earlier: Row | None) -> Keyed:
    """Play a run; one that lacks metrics only is played again with its seed, and keeps the others.

    Another version of a library may give another map for the same seed: then nothing is kept.
    """
    try:
        if earlier is None:
            return run.key, play(run, people, scoring)
        known = [name for name in METRICS if earlier[name] is not None]
        again = earlier["versions"] != versions()
        wanted = tuple(
            n for n in dict.fromkeys([*known, *scoring.metrics]) if again or n not in known
        )
        row = play(run, people, replace(scoring, metrics=wanted))
        return run.key, row if again else earlier | {name: row[name] for name in wanted}
    except LdpSpatialError as error:
        where = f"{run.label} at epsilon {run.epsilon:g}, {run.cells} cells, repeat {run.repeat}"
        raise type(error)(f"{where}: {error}") from error


def _scoring(
    metrics: Sequence[str],
    sigma: float,
    truth: str,
    blocks: int | None,
    people: Mapping[int, UserCells],
) -> Scoring:
    check_metrics(metrics)
    width = number_in("sigma", sigma, "[0, inf)")
    one_of("truth", truth, TRUTHS)
    if blocks is not None:
        blocks = whole_number("blocks", blocks, 1)
        for shape in (cells.shape for cells in people.values()):
            if shape[0] != shape[1] or shape[0] % blocks:
                raise InputError(f"blocks must divide the side of a square map, got {blocks}")
    return Scoring(tuple(metrics), width, truth, blocks)


def _digests(people: Mapping[int, UserCells]) -> dict[str, str]:
    """Return a fingerprint of the data by resolution, so that runs of other data are noticed."""
    return {str(side): _digest(cells, repr(cells.shape)) for side, cells in people.items()}


def _source(points: Positions, grid: Grid) -> str:
    """Return a fingerprint of positions in a square, whatever resolution is asked for."""
    square = replace(grid, cells=FINE)
    return _digest(user_cells(points, square), repr(square))


def _digest(cells: UserCells, what: str) -> str:
    digest = hashlib.sha256(what.encode())
    for array in (cells.visits.indptr, cells.visits.indices, cells.visits.data):
        digest.update(np.ascontiguousarray(array, dtype=np.int64).tobytes())
    return digest.hexdigest()[:16]


def _distinct(name: str, values: Iterable[Any], check: Callable[[str, Any], Any]) -> list[Any]:
    try:
        found = [check(f"each of {name}", value) for value in values]
    except TypeError:
        raise InputError(f"{name} must be a list of numbers, got {shown(values)}") from None
    if not found:
        raise InputError(f"{name} must hold at least one number")
    if len(set(found)) < len(found):
        raise InputError(f"{name} must differ, got {found}")
    return found


def _side(name: str, value: object) -> int:
    return whole_number(name, value, 1, MAX_CELLS)


def _from_one(name: str, value: object) -> int:
    return whole_number(name, value, 1)
