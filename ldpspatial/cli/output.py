"""What commands write and show: a folder of results, a progress line, a table."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from ldpspatial.errors import InputError

console = Console()
Stage = Callable[[str], None]


@contextmanager
def result_folder(path: Path, overwrite: bool) -> Iterator[Path]:
    """Yield a new folder that takes the name ``path`` when the block ends without an error.

    Nothing is left behind by an error. An existing folder that holds anything is refused unless
    ``overwrite``; then it is replaced whole, at the end.
    """
    if path.exists() and not path.is_dir():
        raise InputError(f"out must be a folder, got the file {path}")
    if path.exists() and any(path.iterdir()) and not overwrite:
        raise InputError(f"out must be a new or empty folder, got {path} (--overwrite replaces it)")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise InputError(f"out cannot be written at {path}: {error.strerror}") from None
    try:
        yield unfinished
        unfinished.chmod(0o755)
        old = unfinished.with_name(unfinished.name + ".old")
        if path.exists():
            path.rename(old)
        unfinished.rename(path)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def progress(label: str) -> Iterator[tuple[Stage, Callable[[int, int], None]]]:
    """Show a spinner or bar on standard error; yield (name a stage, advance within it)."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def stage(name: str) -> None:
            bar.update(task, description=name, completed=0, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield stage, advance


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a summary that people read too."""
    path.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n")


def show(title: str, rows: dict[str, str]) -> None:
    """Print a two-column table."""
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)
