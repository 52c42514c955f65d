"""Finished runs in a folder, so that an interruption loses none of them."""

import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from ldpspatial.comparison.runs import SCHEMA, Row
from ldpspatial.errors import InputError
from ldpspatial.files.folder_lock import locked
from ldpspatial.release.release import Release
from ldpspatial.validate import file_path

SETTINGS = "comparison.json"
RUNS = "runs.jsonl"
UNFINISHED = re.compile(rf"\.{re.escape(SETTINGS)}\.[0-9a-f]+\.part")
ROOT = "seed"
MEASURED = "metrics"


class RunFolder:
    """A file of settings, and one line per finished run.

    A folder belongs to one comparison. Its settings and its seed are written first; at every later
    start the settings must be equal, but for resolutions and metrics, of which there may be more,
    and the seed goes on: runs of other data never mix.

    Parameters
    ----------
    path : folder, made if it is missing
    settings : dict of what JSON can hold
        What must be equal for runs to belong together.
    root : str
        Seed for a new folder.
    schema : pyarrow.Schema, optional
        Columns that every row has to hold, and their types.

    Attributes
    ----------
    root : str
        The seed of all runs in the folder.

    Raises
    ------
    InputError
        The folder cannot be used, holds other files, runs of another comparison or damaged ones.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: Row,
        root: str,
        schema: pa.Schema | None = None,
    ):
        self.path = file_path("folder", path, "folder")
        self.schema = schema
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.root = self._claim(settings, root)
        except OSError as error:
            raise InputError(
                f"folder must be one that can be written, got {str(path)!r}: {error.strerror}"
            ) from None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes out: they would play the same runs, and cut lines off at the end.

        Raises
        ------
        InputError
            Somebody else plays in the folder. Where folders cannot be locked nobody is seen.
        """
        try:
            lock = locked(self.path.resolve(), wait=False)  # a link leads to the same folder
        except BlockingIOError:
            raise InputError(
                "folder must be one that nothing else plays in, and another comparison does in "
                f"{self.path}: wait for its end, or take a new folder"
            ) from None
        try:
            yield
        finally:
            if lock is not None:
                os.close(lock)

    def rows(self) -> dict[str, Row]:
        """Return the finished runs by key; a line that a crash cut off is taken away."""
        data = _lines_in(self.path)
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with (self.path / RUNS).open("r+b") as stream:
                stream.truncate(len(whole))
        return dict(self._row(number, line) for number, line in enumerate(whole.splitlines(), 1))

    def _row(self, number: int, line: bytes) -> tuple[str, Row]:
        try:
            held = json.loads(line)
            key = held["key"]
            row = held["row"]
            if isinstance(key, str) and (self.schema is None or _fits(row, self.schema)):
                return key, row
        except (
            ValueError,
            TypeError,
            KeyError,
            pa.ArrowException,
        ):  # not JSON, or not of this version
            pass
        raise InputError(
            f"folder must hold runs of this version, and line {number} of {self.path / RUNS} is "
            "damaged or of another: take the line out, or a new folder"
        )

    def add(self, key: str, row: Row) -> None:
        """Write one finished run; when this returns it outlives a power cut."""
        line = json.dumps({"key": key, "row": row}) + "\n"
        with (self.path / RUNS).open("ab") as stream:
            stream.write(line.encode())
            stream.flush()
            os.fsync(stream.fileno())

    def _claim(self, settings: Row, root: str) -> str:
        file = self.path / SETTINGS
        if not file.exists():
            held = (entry.name for entry in self.path.iterdir())
            others = [name for name in held if not UNFINISHED.fullmatch(name)]
            if others and not file.exists():  # of two at once, the other may have come first
                raise InputError(
                    f"folder must be new, empty or that of the same comparison, got {self.path}"
                )
            self._put({**settings, ROOT: root}, new=True)
        try:
            earlier = json.loads(file.read_text())
            began_with = str(earlier[ROOT])
        except (ValueError, KeyError, TypeError):
            raise InputError(f"folder holds a damaged {SETTINGS}: {self.path}") from None
        for name, value in settings.items():
            before = earlier.get(name)
            if name == MEASURED and isinstance(before, list) and isinstance(value, list):
                # What a run was not measured by it is played again for.
                settings[name] = before + [each for each in value if each not in before]
                differ = False
            elif isinstance(value, dict) and isinstance(before, dict):
                # One entry a resolution; more of them may be added to a folder later.
                differ = any(before.get(each, value[each]) != value[each] for each in value)
                settings[name] = before | value
            else:
                differ = before != value
            if differ:
                raise InputError(
                    f"folder must hold runs of the same comparison, but {name} is {before!r} in "
                    f"{self.path} and {value!r} now; take a new folder"
                )
        if settings != {name: earlier.get(name) for name in settings}:
            self._put({**settings, ROOT: began_with})
        return began_with

    def _put(self, settings: Row, new: bool = False) -> None:
        """Write the settings in one step; new ones leave those of a simultaneous start alone."""
        file = self.path / SETTINGS
        unfinished = self.path / f".{SETTINGS}.{secrets.token_hex(8)}.part"
        unfinished.write_text(json.dumps(settings, indent=2) + "\n")
        try:
            if new:
                os.link(unfinished, file)
            else:
                unfinished.replace(file)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            unfinished.replace(file)
        finally:
            unfinished.unlink(missing_ok=True)


def _fits(row: Row, schema: pa.Schema) -> bool:
    """Tell whether a row has the columns of a schema and no other, with values of their types."""
    pa.Table.from_pylist([row], schema=schema)  # fails where text stands for a number
    whole = (row[each.name] for each in schema if pa.types.is_integer(each.type))
    return set(row) == set(schema.names) and all(v is None or isinstance(v, int) for v in whole)


def table_of(rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table with the columns of SCHEMA, null for a metric that was not wanted."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def check_labels(path: str | os.PathLike[str], wanted: Mapping[str, Release]) -> None:
    """Refuse a label that stands for another release in a folder, or another spelling of one there.

    Tables and figures hold all runs of a folder, and a label is all that they show of a release. A
    label of one's own is no spelling: it may name a release again.

    Raises
    ------
    InputError
        A label is taken, or a release is there by another name of its parameters.
    """
    try:
        held = {row["release"]: row["parameters"] for row in _finished(path)}
    except (ValueError, KeyError, TypeError):
        return  # damaged: who reads the runs says which line
    for label, release in wanted.items():
        if held.get(label, repr(release)) != repr(release):
            raise InputError(
                f"releases must have labels of their own: {label!r} is {held[label]} in {path}, "
                f"and {release!r} now; give it another label in a file of releases, or take a new "
                "folder"
            )
        name, colon, _ = label.partition(":")
        again = [
            other
            for other, parameters in held.items()
            if colon and other != label and other.startswith(f"{name}:")
            if parameters == repr(release)
        ]
        if again and label not in held:
            raise InputError(
                f"releases must differ, but {label!r} is {again[0]!r} in {path}: call it so"
            )


def with_earlier(path: str | os.PathLike[str], table: pa.Table) -> pa.Table:
    """Return a table with the other runs of its folder below: what stands there as a whole."""
    seeds = set(table["seed"].to_pylist())
    others = {row["seed"]: row for row in _finished(path) if row["seed"] not in seeds}
    order = ("release", "cells", "users", "epsilon", "repeat")
    below = sorted(others.values(), key=lambda row: [row[name] for name in order])
    return pa.concat_tables([table, table_of(below)])


def _finished(path: str | os.PathLike[str]) -> list[Row]:
    """Return the rows of a folder in the order in which they came, or none where it is new."""
    data = _lines_in(file_path("folder", path, "folder"))
    lines = data.split(b"\n")[:-1]  # a crash may have cut off what follows
    return [json.loads(line)["row"] for line in lines]


def _lines_in(folder: Path) -> bytes:
    """Return what is in the file of runs, nothing where there is none."""
    try:
        return (folder / RUNS).read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InputError(
            f"folder must be one whose {RUNS} can be read, got {str(folder)!r}: {error.strerror}"
        ) from None


def earlier_root(path: str | os.PathLike[str]) -> str | None:
    """Return the seed of the comparison in a folder, None where there is none yet."""
    file = file_path("folder", path, "folder") / SETTINGS
    try:
        return str(json.loads(file.read_text())[ROOT])
    except (OSError, ValueError, KeyError, TypeError):
        return None
