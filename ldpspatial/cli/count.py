"""``count``: from files of reports or of counts, or stores, to the counts of a collection."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from client_sdk import Collection
from ldpspatial.cli.documents import read_collection
from ldpspatial.cli.opened_store import is_store, with_store
from ldpspatial.cli.output import progress, show
from ldpspatial.cli.output_files import check_output, placed
from ldpspatial.collecting.counting import ReportCounts
from ldpspatial.collecting.partial_counts import (
    SUFFIX,
    add_counts,
    collection_of,
    count_files,
    write_counts,
)
from ldpspatial.errors import InputError

if TYPE_CHECKING:
    from ldpspatial.service.store import Store


@click.command()
@click.argument("document", metavar="COLLECTION", type=click.Path(path_type=Path))
@click.argument("parts", metavar="PARTS...", nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="File of counts, .json.",
)
@click.option("--overwrite", is_flag=True, help="Replace earlier counts of this collection.")
@click.option(
    "--on-invalid", type=click.Choice(["error", "drop"]), default="error", show_default=True,
    help="Reports that are bad: refuse the files, or leave bad reports out and count them.",
)  # fmt: skip
def count(
    document: Path, parts: tuple[str, ...], out: Path, overwrite: bool, on_invalid: str
) -> None:
    """Count reports, or add what was counted elsewhere.

    PARTS are files of reports as "ldpspatial estimate" takes them, files of counts (.json) that
    this command wrote, and stores, files or postgresql:// addresses, in which the collection is
    closed or released. The digest of the collection is checked. "ldpspatial estimate" makes the
    map from the counts.

    A report counts once among all files of reports together, and once in each store; a file of
    counts holds no ids. The same report in two such parts counts twice. So send all copies of a
    report to one part, by the first digits of its id say, or write what two stores hold by
    "ldpspatial store export", and count these files together.

    \b
    Examples:
      ldpspatial count berlin.json monday.parquet --out monday.json
      ldpspatial count berlin.json monday.json tuesday.json --out both.json
      ldpspatial count berlin.json north.db south.db --out berlin-counts.json
    """
    collection = read_collection(document)
    inputs = (str(document), *(part for part in parts if "://" not in part))
    earlier = "counts of this collection", lambda file: _has_counts(file, collection)
    check_output("out", out, (SUFFIX,), overwrite, inputs, earlier)
    with progress("count reports"):
        counted = _counted(parts, collection, on_invalid)
        with placed("out", out, overwrite) as file:
            write_counts(file, collection, counted)
    show(f"{counted.n} reports", left_out(counted))
    click.echo(f"Written to {out}")


def _has_counts(file: Path, collection: Collection) -> bool:
    try:
        return collection_of(file) == collection.digest
    except InputError:
        return False


def _counted(parts: tuple[str, ...], collection: Collection, on_invalid: str) -> ReportCounts:
    """Return the sum over stores and files."""
    stores = [part for part in parts if is_store(part)]
    files = [Path(part) for part in parts if part not in stores]
    if len({_place(store) for store in stores}) < len(stores):
        raise InputError("parts must be different stores, but one is given twice")

    async def count_stored_reports(opened: "Store") -> ReportCounts:
        from ldpspatial.service.counting import count_stored  # noqa: PLC0415

        return await count_stored(opened, collection, on_invalid)

    found = [with_store(store, count_stored_reports) for store in stores]
    if files:
        found.append(count_files(files, collection, on_invalid))
    return add_counts(found)


def _place(store: str) -> str:
    """Return what names a store: its address, or the file that its path leads to."""
    if "://" not in store:
        return os.path.realpath(store)
    return re.sub("^postgres(ql)?://", "postgresql://", store)  # both name the same


def left_out(counted: ReportCounts) -> dict[str, str]:
    """Return what to show of reports that do not count."""
    reasons = ", ".join(f"{n} {reason}" for reason, n in counted.rejected.items())
    repeats = f"{counted.repeated} not counted again" if counted.repeated else "none"
    return {
        "left out": reasons or "none",
        "repeats": repeats if counted.ids_checked else "not looked for: no ids",
    }
