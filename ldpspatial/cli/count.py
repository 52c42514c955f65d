"""``count``: from files of reports, or of counts, to the counts of a collection."""

from pathlib import Path

import click

from ldpspatial.cli.documents import read_collection
from ldpspatial.cli.output import progress, show
from ldpspatial.collecting.counting import ReportCounts
from ldpspatial.collecting.partial_counts import SUFFIX, count_files, write_counts
from ldpspatial.errors import InputError


@click.command()
@click.argument("document", metavar="COLLECTION", type=click.Path(path_type=Path))
@click.argument(
    "files", metavar="FILES...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="File of counts, .json."
)
@click.option(
    "--on-invalid", type=click.Choice(["error", "drop"]), default="error", show_default=True,
    help="Reports that are bad: refuse the files, or leave bad reports out and count them.",
)  # fmt: skip
def count(document: Path, files: tuple[Path, ...], out: Path, on_invalid: str) -> None:
    """Count reports, or add what was counted elsewhere.

    FILES are files of reports as "ldpspatial estimate" takes them, each report counted once; or
    files of counts (.json) that this command wrote, which are added; or both. The digest of the
    collection is checked. "ldpspatial estimate" makes the map from either.

    A file of counts holds no ids: the same report in two of the parts counts twice. So send all
    copies of a report to one part, by the first digits of its id say.

    \b
    Examples:
      ldpspatial count berlin.json monday.parquet --out monday.json
      ldpspatial count berlin.json monday.json tuesday.json --out both.json
    """
    if out.suffix.lower() != SUFFIX:
        raise InputError(f"out must end in {SUFFIX}, got {out.name!r}")
    collection = read_collection(document)
    with progress("count reports"):
        counted = count_files(files, collection, on_invalid)
        write_counts(out, collection, counted)
    show(f"{counted.n} reports", left_out(counted))
    click.echo(f"Written to {out}")


def left_out(counted: ReportCounts) -> dict[str, str]:
    """Return what to show of reports that do not count."""
    reasons = ", ".join(f"{n} {reason}" for reason, n in counted.rejected.items())
    repeats = f"{counted.repeated} not counted again" if counted.repeated else "none"
    return {
        "left out": reasons or "none",
        "repeats": repeats if counted.ids_checked else "not looked for: no ids",
    }
