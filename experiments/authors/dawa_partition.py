"""How much of one person the private partition of DPComp's DAWA gives away."""

from math import log
from pathlib import Path

import click
import numpy as np
from scipy.stats import beta

from experiments.authors.clones import CENTRAL_MAPS
from ldpspatial.errors import LdpSpatialError

CELLS = 64
EPSILON = 4.0
PARTS = 4  # one part in so many of epsilon is the partition's
SURE = 1e-6  # chance that either end is wrong


@click.command(name="dawa-partition")
@click.option("--code", type=click.Path(path_type=Path, exists=True, file_okay=False),
              required=True, help="Folder with a clone of dpcomp-org/dpcomp_core.")  # fmt: skip
@click.option("--runs", default=100_000, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=1, show_default=True)
def dawa_partition(code: Path, runs: int, seed: int) -> None:
    """Attack the partition of DPComp's DAWA on a line of 64 cells where nobody is, or one person.

    Counts how often the first cell is a bucket of its own, without anybody and with one person in
    it. The logarithm of the ratio may be at most the partition's part of epsilon.
    """
    lines = np.zeros((2, CELLS))
    lines[1, 0] = 1.0
    words = (EPSILON, "first-alone", runs, seed)
    try:
        empty, one = CENTRAL_MAPS.run(code, {"lines": lines}, *words)["alone"]
    except LdpSpatialError as error:
        raise click.ClickException(str(error)) from error
    seen = f"{np.log(one / empty):.2f}" if min(one, empty) else "-"
    click.echo(
        f"first cell alone in {empty} of {runs} runs of nobody, {one} of one person there\n"
        f"loss of the partition: {seen}, at least {least_loss(empty, one, runs):.2f}; "
        f"its part of epsilon: {EPSILON / PARTS:g}"
    )


def least_loss(few: int, many: int, runs: int) -> float:
    """Return what the loss is at least, wrongly with a chance of at most 2 ``SURE``.

    Examples
    --------
    >>> round(least_loss(100, 10_000, 1_000_000), 2), least_loss(0, 0, 10)
    (4.09, 0.0)
    """
    most = beta.ppf(1 - SURE, few + 1, runs - few) if few < runs else 1.0
    least = beta.ppf(SURE, many, runs - many + 1) if many else 0.0
    return max(log(least / most), 0.0) if least else 0.0
