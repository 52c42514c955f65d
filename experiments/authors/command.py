"""The command that holds rivals against their authors' code."""

from pathlib import Path

import click
import numpy as np

from experiments.authors.duels import TRAILS, Duel, duels
from experiments.papers.trajectories.figure14 import POOL
from experiments.papers.trajectories.places import places
from experiments.progress import tracked
from experiments.sources import Array
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial.errors import LdpSpatialError

HEADER = (
    "authors' code", "people", "d", "eps", "theirs", "ours", "ours / theirs", "other form",
)  # fmt: skip


@click.command()
@click.option("--code", type=click.Path(path_type=Path, exists=True, file_okay=False),
              required=True, help="Folder with clones of the authors' repositories.")  # fmt: skip
@click.option("--data", type=click.Path(path_type=Path, exists=True, file_okay=False),
              help="Folder of the cities' data: LDPTrace is played on the places of Figure 14 of "
              "Du et al., too.")  # fmt: skip
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0))
@click.option("--write", is_flag=True, help="Put the table into docs/experiments/authors.md.")
def authors(code: Path, data: Path | None, repeats: int, seed: int, write: bool) -> None:
    """Rivals beside their authors' public code, on the same people.

    FOLDER needs clones of zealscott/LDPTrace, dp-cont/dp-cont, YangJianyu-bupt/privmdr,
    link-zju/ccs21-AHEAD, dulei715/2Dim-Est, dulei715/java-tools, ebagdasa/federated and
    dpcomp-org/dpcomp_core, which you fetch; what is missing is named. Those of dulei715 need a Java
    compiler of version 17 or later, the last one a C++ compiler. Their code runs in processes of
    its own and changes nothing in the clones. The error is exact W2 in cells; a ratio below 1 says
    that the release here is nearer to the truth.
    """
    if write and data is None:
        raise click.UsageError("--write needs --data: the table in the docs has rows of it.")
    rows = []
    try:
        for clone in dict.fromkeys(duel.clone for duel in duels()):
            clone.folder(code)
        found = [] if data is None else places(data, POOL * TRAILS, seed)
        settings = list(duels(found))
        for duel in tracked(settings, "settings"):
            rows.append(row(duel, duel.play(code, repeats, seed)))
    except LdpSpatialError as error:
        if rows:  # of what came before: it took minutes
            click.echo(markdown(HEADER, rows))
        raise click.ClickException(str(error)) from error
    table = markdown(HEADER, rows)
    click.echo(table)
    if write:
        replace_block(DOCS / "experiments" / "authors.md", "authors", table)


def row(duel: Duel, errors: dict[str, Array]) -> list[str]:
    """Return the row of a setting: the release as it is by default, then its other form if any."""
    ours, *others = duel.ours
    means = {label: f"{found.mean():.3f}" for label, found in errors.items()}
    return [
        f"[{duel.clone.repository}](https://github.com/{duel.clone.repository})",
        f"{duel.data}, {duel.users:,}",
        str(duel.cells),
        f"{duel.epsilon:g}",
        means["theirs"],
        f"{means[ours]} ({ours})",
        ratio(errors[ours], errors["theirs"]),
        ", ".join(f"{means[other]} ({other})" for other in others),
    ]


def ratio(ours: Array, theirs: Array) -> str:
    """Return the geometric mean of paired ratios, with the least and the most of them.

    Examples
    --------
    >>> ratio(np.array([1.0, 1.0]), np.array([2.0, 0.5]))
    '1.00 (0.50 to 2.00)'
    """
    ratios = ours / theirs
    middle = np.exp(np.log(ratios).mean())
    return f"{middle:.2f} ({ratios.min():.2f} to {ratios.max():.2f})"
