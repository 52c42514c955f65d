"""``estimate``: from files of reports to a map."""

from pathlib import Path
from typing import Any

import click

from client_sdk import Collection
from ldpspatial.cli.estimator_options import estimator_options
from ldpspatial.cli.output import progress, result_folder, show
from ldpspatial.collecting.counting import count_reports
from ldpspatial.collecting.mapping import write_map
from ldpspatial.collecting.results import fit_verdict
from ldpspatial.errors import InputError


@click.command()
@click.argument("document", metavar="COLLECTION", type=click.Path(path_type=Path))
@click.argument("reports", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of results.")
@click.option("--overwrite", is_flag=True, help="Replace the earlier result in --out.")
@click.option(
    "--on-invalid", type=click.Choice(["error", "drop"]), default="error", show_default=True,
    help="Lines that are not reports; reports of another collection, outside the output domain, "
    "without an id where others have one, or with the id of a different report.",
)  # fmt: skip
@estimator_options
def estimate(document: Path, reports: tuple[Path, ...], **options: Any) -> None:
    """Estimate the map from files of reports.

    COLLECTION is the collection document; REPORTS are Parquet or CSV files with the columns row
    and col, and id and collection where they were kept, or JSON lines (.jsonl, .ndjson, also with
    .gz) of the texts that devices sent. Files of 10^8 reports are fine. The same report sent again
    counts once.

    \b
    Examples:
      ldpspatial estimate result/collection.json result/reports.parquet --out map
      ldpspatial estimate collection.json day-*.jsonl.gz --on-invalid drop --out map
    """
    collection = read_collection(document)
    with (
        progress("count reports") as (stage, advance),
        result_folder(options["out"], options["overwrite"], (document, *reports)) as folder,
    ):
        counted = count_reports(reports, collection, options["on_invalid"])
        summary = write_map(
            folder,
            collection,
            counted.counts,
            {
                "rejected": counted.rejected,
                "repeated": counted.repeated,
                "ids_checked": counted.ids_checked,
            },
            options["rule"],
            options["smoothing"],
            options["method"],
            stage,
            advance,
        )
    left_out = ", ".join(f"{n} {reason}" for reason, n in counted.rejected.items())
    repeated = f"{counted.repeated} not counted again" if counted.repeated else "none"
    show(
        f"{counted.n} reports, each {collection.epsilon:g}-LDP",
        {
            "grid": f"{collection.grid.cells} x {collection.grid.cells} cells",
            "left out": left_out or "none",
            "repeats": repeated if counted.ids_checked else "not looked for: no ids",
            "check": fit_verdict(summary),
        },
    )
    click.echo(f"Written to {options['out']}: see heatmap.png")


def read_collection(path: Path) -> Collection:
    """Read and verify a collection document."""
    return Collection.from_json(read_document(path, "COLLECTION"))


def read_document(path: Path, argument: str) -> str:
    """Return the text of a document, or say which argument cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError(f"{argument} cannot be read at {path}: {reason}") from None
