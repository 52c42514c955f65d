"""Finished runs of a study, kept in its folder: one that was stopped goes on where it was."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from experiments.progress import tracked
from experiments.setup import Setup
from ldpspatial.comparison.folder import RunFolder

FOLDER = "runs"
Case = TypeVar("Case", bound=tuple[Any, ...])
Result = TypeVar("Result")


def played(
    setup: Setup,
    play: Callable[[Case], Sequence[Result]],
    cases: Iterable[Case],
    result: Callable[..., Result],
) -> list[Result]:
    """Play what --out does not hold yet, in processes, and return the results of all cases.

    Parameters
    ----------
    setup : Setup
    play : callable (case) -> results
        Results are instances of a dataclass, of what JSON can hold.
    cases : tuples of what JSON can hold
        All that tells one run from another, but for the seed.
    result : callable
        Makes a result of its fields, of which JSON turned tuples into lists.

    Raises
    ------
    InputError
        There is no case: the options left all out.
    """
    keys = {json.dumps(case): case for case in setup.some(cases)}
    store = RunFolder(setup.out / FOLDER, {"study": setup.name}, str(setup.seed))
    with store.held():
        rows = store.rows()
        missing = [key for key in keys if key not in rows]
        with setup.pool() as pool:
            found = pool.map(play, (keys[key] for key in missing))
            for key, results in zip(
                missing, tracked(found, setup.name, total=len(missing)), strict=True
            ):
                rows[key] = {"results": [asdict(each) for each in results]}  # type: ignore[call-overload]
                store.add(key, rows[key])
    return [
        result(**{name: _whole(value) for name, value in fields.items()})
        for key in keys
        for fields in rows[key]["results"]
    ]


def _whole(value: object) -> object:
    """Return a list as the tuple that it was."""
    return tuple(value) if isinstance(value, list) else value
