"""What commands write and show: a folder of results, a progress line, lines of text.

Text is plain and never folded, so that ids and paths can be copied and files of output searched.
"""

import os
import re
import secrets
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ldpspatial.errors import InputError
from ldpspatial.files.unfinished import UNFINISHED, remove_left, unfinished_folder

Stage = Callable[[str], None]
Advance = Callable[[int, int], None]

# Every file that a command writes into its folder of results: the document of what was collected
# first, the summary last.
RESULTS = (
    "collection.json", "reports.parquet", "estimate.npz", "estimate.csv", "estimate.geojson",
    "heatmap.png", "summary.json",
)  # fmt: skip
SERIES_RESULTS = ("series.json", "windows.csv", "maps.png", "summary.json")
WINDOW_FOLDER = re.compile("window-[0-9]+")  # in that of a series; it holds RESULTS


@contextmanager
def result_folder(
    out: Path,
    overwrite: bool | None,
    inputs: Iterable[Path] = (),
    results: Sequence[str] = RESULTS,
) -> Iterator[Path]:
    """Yield a folder whose files lie in ``out`` once the block has ended without an error.

    An error, or being told to stop, leaves nothing behind and an earlier result as it was; a kill
    leaves a hidden folder, ``.….part``, in ``out`` or beside it, which the next command with a
    result there removes (:mod:`ldpspatial.files.unfinished`). ``out`` must be new or empty; with
    ``overwrite`` it may hold an earlier result of the same kind, that of files ``results``, which
    are replaced or removed, as are those in folders of windows. Other files in it are left alone,
    and ``inputs`` may not lie there. None is for a command that has no such option.
    """
    target = Path(os.path.realpath(out))  # a link is followed, not replaced
    with ExitStack() as stack:
        try:
            exists = target.exists()
            # In an existing folder, not beside it: that may be another file system, as containers
            # have it, or a place where nobody may write. Not tempfile: it ignores the umask.
            place = target if exists else target.parent
            if exists:
                _check_replaceable(target, out, overwrite, inputs, results)
            unfinished = stack.enter_context(unfinished_folder(place))
        except OSError as error:
            raise InputError(
                f"out must lie in a folder that can be written, got {out}: {error.strerror}"
            ) from None
        with _stoppable():
            yield unfinished
        if exists:
            _replace_results(unfinished, target, results)
        else:
            _rename(unfinished, target, out)


def _rename(unfinished: Path, target: Path, out: Path) -> None:
    """Give the result its name; one whose name was taken meanwhile is kept under another."""
    try:
        unfinished.rename(target)
    except OSError:
        kept = target.with_name(f"{target.name}-{secrets.token_hex(4)}")
        unfinished.rename(kept)
        raise InputError(
            f"out must stay free until the result is there, got {out}, which another command has "
            f"filled meanwhile; this result is in {kept}"
        ) from None


@contextmanager
def _stoppable() -> Iterator[None]:
    """Make SIGTERM end the block as an error does, where it would end the process at once."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _check_replaceable(
    target: Path, out: Path, overwrite: bool | None, inputs: Iterable[Path], results: Sequence[str]
) -> None:
    if not target.is_dir():
        raise InputError(f"out must be a folder, got the file {out}")
    remove_left(target)
    held = os.listdir(target)
    if left := [name for name in held if UNFINISHED.fullmatch(name)]:
        raise InputError(
            f"out must not be used by another command, got {out}, which holds {left[0]}: if none "
            "is running, one was killed, and that folder can be removed"
        )
    if held and not overwrite:
        way = "" if overwrite is None else " (--overwrite replaces it)"
        raise InputError(f"out must be a new or empty folder, got {out}{way}")
    # Both, because a folder in which somebody keeps a collection and reports is not a result.
    if held and not {results[0], results[-1]} <= set(held):
        raise InputError(
            f"out must be new, empty or an earlier result to be replaced, got {out}, "
            f"which holds other files and not both {results[0]} and {results[-1]}"
        )
    for file in inputs:
        place = Path(os.path.realpath(file))
        if held and (place.parent == target or _is_window(place.parent, target)):
            raise InputError(f"out must not hold an input when it is replaced, got {out}: {file}")


def _is_window(folder: Path, target: Path) -> bool:
    return folder.parent == target and WINDOW_FOLDER.fullmatch(folder.name) is not None


def _replace_results(source: Path, target: Path, results: Sequence[str]) -> None:
    # The old summary goes first and the new one comes last: should the machine stop in between,
    # no summary stands beside files that it does not describe.
    (target / results[-1]).unlink(missing_ok=True)
    for folder in _windows(target):
        if not (source / folder.name).exists():
            _remove_results(folder)
    for folder in _windows(source):
        (target / folder.name).mkdir(exist_ok=True)
        _replace_results(folder, target / folder.name, RESULTS)
    for name in results:
        if (source / name).exists():
            (source / name).replace(target / name)
        else:
            (target / name).unlink(missing_ok=True)


def _windows(target: Path) -> list[Path]:
    return [each for each in target.iterdir() if each.is_dir() and _is_window(each, target)]


def _remove_results(folder: Path) -> None:
    """Remove the result of a window, and its folder if nothing else is in it."""
    for name in reversed(RESULTS):
        (folder / name).unlink(missing_ok=True)
    if not os.listdir(folder):
        folder.rmdir()


@contextmanager
def progress(label: str) -> Iterator[tuple[Stage, Advance]]:
    """Show what is being done on standard error; yield (name a stage, advance within it).

    Nothing is shown where standard error is not a terminal.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        bar.add_task(label, total=None)

        def stage(name: str) -> None:
            bar.remove_task(bar.task_ids[0])  # a new task: the total of one cannot be unset
            bar.add_task(name, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(bar.task_ids[0], completed=done, total=total)

        yield stage, advance


def show(title: str, rows: Mapping[str, str]) -> None:
    """Print names and values below a title."""
    click.secho(title, bold=True)
    width = max(map(len, rows))
    for name, value in rows.items():
        click.echo(f"  {name:<{width}}  {value}")


def show_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns, aligned at the right, below a title."""
    click.secho(title, bold=True)
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        line = "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(f"  {line}".rstrip())
