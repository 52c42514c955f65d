"""``estimate``: from files of reports to a map."""

from pathlib import Path
from typing import Any

import click

from ldpspatial.cli.count import left_out
from ldpspatial.cli.documents import read_collection
from ldpspatial.cli.estimator_options import (
    check_prior,
    chosen_rule,
    estimator_options,
    side_files,
)
from ldpspatial.cli.output import progress, result_folder, show
from ldpspatial.collecting.mapping import write_map
from ldpspatial.collecting.partial_counts import count_files
from ldpspatial.collecting.verdicts import verdicts


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
    .gz) of the texts that devices sent, or files of counts (.json) by "ldpspatial count". Files of
    10^8 reports are fine. The same report sent again counts once.

    \b
    Examples:
      ldpspatial estimate result/collection.json result/reports.parquet --out map
      ldpspatial estimate collection.json day-*.jsonl.gz --on-invalid drop --out map
    """
    collection = read_collection(document)
    inputs = document, *reports, *side_files(options)
    with (
        progress("count reports") as (stage, _),
        result_folder(options["out"], options["overwrite"], inputs) as folder,
    ):
        rule = chosen_rule(options, collection.grid)  # bad files are told before reports are read
        counted = count_files(reports, collection, options["on_invalid"])
        check_prior(options, [counted.counts])
        summary = write_map(
            folder,
            collection,
            counted.counts,
            counted.facts,
            rule,
            options["smoothing"],
            options["method"],
            stage,
        )
    show(
        f"{counted.n} reports, each {collection.epsilon:g}-LDP",
        {
            "grid": f"{collection.grid.cells} x {collection.grid.cells} cells",
            **left_out(counted),
            **verdicts(summary),
        },
    )
    click.echo(f"Written to {options['out']}: see heatmap.png")
