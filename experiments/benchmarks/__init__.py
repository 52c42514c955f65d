"""Every speed that the docs state, beside the alternative that a user would otherwise pick.

Figures are medians; a ratio is taken within one run. Compilation happens before the clock
starts and is cached for later processes.
"""

import platform

import click
from rich.progress import track

from experiments.benchmarks import client, server
from experiments.tables import DOCS, markdown, replace_block

HEADER = ["what", "ldpspatial", "alternative", "ratio"]
BLOCKS = (
    ("device", client.device),
    ("many reports", client.many_reports),
    ("em", server.em_against_dense),
    ("large grids", server.large_grids),
    ("counting", server.counting),
    ("channel", server.direct_against_fft),
)


@click.command()
@click.option("--only", type=click.Choice([name for name, _ in BLOCKS]), multiple=True)
def benchmarks(only: tuple[str, ...]) -> None:
    """Measure, print and write docs/benchmarks.md and the summary in README."""
    chosen = [block for block in BLOCKS if not only or block[0] in only]
    for name, measure in track(chosen, "benchmarks"):
        header, rows = measure()
        table = markdown(header, rows)
        click.echo(f"\n{name}\n{table}")
        replace_block(DOCS / "benchmarks.md", name, table)
        if name in ("em", "many reports"):
            replace_block(DOCS.parent / "README.md", name, table)
    machine = f"{platform.machine()}, Python {platform.python_version()}, 2 cores"
    replace_block(DOCS / "benchmarks.md", "machine", f"Machine: {machine}.")
