"""Every speed that the docs state, beside the alternative that a user would otherwise pick.

Figures are medians; a ratio is taken within one run. Compilation happens before the clock
starts and is cached for later processes.
"""

import platform

import click

from experiments.benchmarks import (
    client,
    closing,
    comparison,
    distance,
    distance_growth,
    field,
    ledger,
    releases,
    server,
    service,
    warehouse,
)
from experiments.progress import tracked
from experiments.tables import DOCS, markdown, replace_block

HEADER = ["what", "ldpspatial", "alternative", "ratio"]
BLOCKS = (
    ("device", client.device),
    ("ledger", ledger.ledger),
    ("many reports", client.many_reports),
    ("em", server.em_against_others),
    ("large grids", server.large_grids),
    ("field", field.field),
    ("counting", server.counting),
    ("counting lines", server.counting_lines),
    ("warehouse", warehouse.warehouse),
    ("service", service.service),
    ("closing", closing.closing),
    ("channel", server.direct_against_fft),
    ("central", releases.central),
    ("distributed", releases.distributed),
    ("many people", releases.many_people),
    ("sets", releases.sets),
    ("comparison", comparison.comparison),
)
DISTANCES = (
    ("squared small", distance.squared_small),
    ("squared 64", distance.squared_64),
    ("squared 128", distance.squared_128),
    ("squared 256", distance.squared_256),
    ("cityblock 256", distance.cityblock_256),
    ("euclidean 64", distance.euclidean_64),
    ("memory", distance.memory),
    ("growth", distance_growth.growth),
    ("parts", distance_growth.parts),
)


@click.command()
@click.option("--only", type=click.Choice([name for name, _ in BLOCKS + DISTANCES]), multiple=True)
def benchmarks(only: tuple[str, ...]) -> None:
    """Measure, print and write docs/benchmarks.md and docs/wasserstein.md.

    All of it takes about an hour, most of which the alternatives to the exact distance take.
    """
    chosen = [block for block in BLOCKS + DISTANCES if not only or block[0] in only]
    for name, measure in tracked(chosen, "benchmarks"):
        header, rows = measure()
        table = markdown(header, rows)
        click.echo(f"\n{name}\n{table}")
        page = "wasserstein.md" if (name, measure) in DISTANCES else "benchmarks.md"
        replace_block(DOCS / page, name, table)
    machine = f"{platform.machine()}, Python {platform.python_version()}, 2 cores"
    replace_block(DOCS / "benchmarks.md", "machine", f"Machine: {machine}.")
