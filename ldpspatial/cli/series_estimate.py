"""``series estimate``: from reports of several windows to their maps, estimated together."""

import re
from pathlib import Path
from typing import Any

import click

from ldpspatial.cli.documents import read_series
from ldpspatial.cli.estimator_options import (
    check_prior,
    chosen_rule,
    estimator_options,
    side_files,
)
from ldpspatial.cli.output import SERIES_RESULTS, progress, result_folder, show, show_table
from ldpspatial.collecting.series_maps import SeriesMaps, write_series
from ldpspatial.collecting.verdicts import known_before, samples_verdict
from ldpspatial.collecting.window_counts import count_windows


class Windows(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A window, or a range of them, counted from 1, as in 3-9."""

    name = "windows"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        """Return the windows."""
        if isinstance(value, range):
            return value
        found = re.fullmatch("([0-9]{1,6})(?:-([0-9]{1,6}))?", str(value))
        windows = range(int(found[1]), int(found[2] or found[1]) + 1) if found else range(0)
        if not windows:
            self.fail(f"must be a window or a range of them, as in 3 or 3-9, got {value!r}")
        return windows


@click.command("estimate")
@click.argument("document", metavar="SERIES", type=click.Path(path_type=Path))
@click.argument("reports", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of results.")
@click.option("--overwrite", is_flag=True, help="Replace the earlier result in --out.")
@click.option(
    "--on-invalid", type=click.Choice(["error", "drop"]), default="error", show_default=True,
    help="Lines that are not reports; reports of no window of the series, outside the output "
    "domain, without an id where others have one, or with the id of a different report.",
)  # fmt: skip
@click.option(
    "--windows", type=Windows(), help="Only these, as in 3-9; at most 100 are estimated together."
)
@click.option(
    "--minimum", type=click.IntRange(1), default=1, show_default=True,
    help="Reports that a window needs; one with fewer gets no map.",
)  # fmt: skip
@estimator_options
def estimate(document: Path, reports: tuple[Path, ...], **options: Any) -> None:
    """Estimate the maps of all windows together.

    SERIES is the document; REPORTS are files as "ldpspatial estimate" takes them, each with reports
    of any windows, which the column collection tells apart; or files of counts (.json) of windows
    by "ldpspatial count". Files are read once.

    Windows lend each other what they have in common: maps are nearer to the truth than from their
    own reports alone, and changes have intervals ("ldpspatial ranges --since"). Windows without
    reports are named and get no map; those on either side of one count as if they followed each
    other. A window whose reports are unlike the others', or need people outside the --support, is
    estimated apart, and named. With another --estimator than field, robust and map-alone each
    window is estimated by itself.

    \b
    Writes into --out:
      window-1, window-2, ...
                     what "ldpspatial estimate" writes, for each window with reports
      maps.png       all maps on one scale
      windows.csv    reports and the check of each window
      summary.json   the same, what was left out, and how alike windows are
      series.json    the document

    \b
    Examples:
      ldpspatial series estimate week.json day-*.jsonl.gz --out week
      ldpspatial series estimate year.json reports.parquet --windows 10-20 --out spring
    """
    series = read_series(document)
    inputs = document, *reports, *side_files(options)
    with (
        progress("count reports") as (stage, _),
        result_folder(options["out"], options["overwrite"], inputs, SERIES_RESULTS) as folder,
    ):
        rule = chosen_rule(options, series.template.grid)
        counted = count_windows(reports, series, options["on_invalid"], options["windows"])
        check_prior(options, (each.counts for each in counted.windows.values()))
        found = write_series(
            folder,
            series,
            counted,
            rule,
            options["smoothing"],
            options["method"],
            options["minimum"],
            stage,
        )
    _show(found)
    click.echo(f"Written to {options['out']}: see maps.png")


def _show(found: SeriesMaps) -> None:
    summary = found.summary
    rows = []
    for each in summary["windows"]:
        left_out = sum(each["rejected"].values())
        rows.append(
            (
                str(each["window"]), each["opens"], str(each["n"]), str(left_out),
                str(each["repeated"]) if each["ids_checked"] else "no ids",
                f"{each['p_value']:.2g}" + ("" if each["plausible"] else " DOES NOT FIT"),
            )
        )  # fmt: skip
    title = f"{summary['n']} reports, each {summary['epsilon']:g}-LDP"
    header = ("window", "opens", "reports", "left out", "repeats", "check p")
    show_table(title, header, rows)
    reasons = ", ".join(f"{n} {reason}" for reason, n in summary["rejected"].items())
    too_few = ", ".join(f"{k} ({n})" for k, n in summary["too_few"].items())
    told = {
        "of no window": reasons or "none",
        "too few reports": too_few or "none",
        "gaps": ", ".join(map(str, summary["gaps"])) or "none",
    }
    told |= _of_fields(found)
    if summary["estimator"].get("windows", 1) > 1:
        told["alike"] = f"correlation {summary['estimator']['correlation']:.2f} of one window's "
        told["alike"] += "field with the next's"
    show("", told)


def _of_fields(found: SeriesMaps) -> dict[str, str]:
    """Return which windows were fitted alone, what was known before, and whom not to trust."""
    told: dict[str, str] = {}
    windows = found.summary["windows"]
    alone = [str(each["window"]) for each in windows if each.get("fitted_together") == 1]
    if alone and len(windows) > 1:
        told["fitted alone"] = f"{', '.join(alone)}: see the warnings for why"
    said: dict[str, dict[str, list[str]]] = {}
    for each in found.maps:
        for name, text in (known_before(each.summary) | samples_verdict(each.summary)).items():
            said.setdefault(name, {}).setdefault(text, []).append(str(each.window))
    for name, texts in said.items():
        told[name] = "; ".join(
            text if len(those) == len(windows) else f"{', '.join(those)}: {text}"
            for text, those in texts.items()
        )
    return told
