"""How much of its claim the attacks see of each release: by all that a user sends, and by maps."""

from collections.abc import Mapping

import click
import numpy as np

from experiments.generated import write_page
from experiments.progress import tracked
from experiments.tables import DOCS, markdown
from ldpspatial.release.attack import Attack, attack, attack_reports
from ldpspatial.release.local import (
    DamTrajectory,
    Disk,
    LdpTrace,
    LocalRelease,
    PivotTrace,
    Recommended,
)
from ldpspatial.release.registry import releases
from ldpspatial.release.release import Release

EPSILON = 3.5  # of reports: the DAM paper's
OF_MAPS = 1.0  # with so few runs no more can be seen
CELLS = 4
OF_MAP = 2  # cells along a side, so that one user weighs much
TOO_LARGE = 1.2

MORE: Mapping[str, LocalRelease] = {
    "dam-trajectory, 4 slots": DamTrajectory(slots=4),
    "ldptrace, one slot": LdpTrace("one"),
    "pivottrace, 2 points": PivotTrace(2),
}
# The same reports by EM: a field takes a hundred times as long, and sees no more of them.
QUICK: Mapping[str, Release] = {
    each.name: each for each in (Recommended(rule="scaled"), Disk(rule="scaled"))
}


@click.command("attack-power")
@click.option("--runs", default=60_000, show_default=True, type=click.IntRange(4),
              help="What a user sends, drawn so often on either input.")  # fmt: skip
@click.option("--maps", default=200, show_default=True, type=click.IntRange(4),
              help="Maps on either input.")  # fmt: skip
@click.option("--seed", default=1, show_default=True)
@click.option("--write", is_flag=True, help="Write docs/generated/attack-power.md.")
def attack_power(runs: int, maps: int, seed: int, write: bool) -> None:
    """Show what attacks see of every release's claim, and whether a fifth too much is noticed.

    All bounds are held with probability 1 - 1e-6 each.
    """
    rng = np.random.default_rng(seed)
    everything = {name: each for name, each in releases().items() if each.model != "none"}
    local = {name: each for name, each in everything.items() if isinstance(each, LocalRelease)}
    sent = [
        _of_reports(name, each, runs, rng)
        for name, each in tracked({**local, **MORE}.items(), "releases")
    ]
    seen = [
        _of_maps(name, QUICK.get(name, each), maps, rng)
        for name, each in tracked(everything.items(), "releases")
    ]
    parts = (
        f"## All that a user sends\n\n{CELLS} x {CELLS} cells, {runs:,} runs on either input.",
        markdown(
            ["release", "claim", "largest by the law", "seen", "share of the claim",
             f"seen at epsilon times {TOO_LARGE}", "noticed"], sent),
        f"## Maps\n\n{OF_MAP} x {OF_MAP} cells, {maps:,} runs on either input; errors, warnings "
        "and the form of what came are seen as well. `recommended` and `disk` estimate by EM here.",
        markdown(["release", "model", "allowed", "seen", "share of the claim"], seen),
    )  # fmt: skip
    text = "\n\n".join(parts)
    click.echo(text)
    if write:
        write_page(DOCS, "attack-power", text)


def _of_reports(name: str, release: LocalRelease, runs: int, rng: np.random.Generator) -> list[str]:
    found = _checked(name, attack_reports(release, EPSILON, CELLS, runs, rng))
    loud = attack_reports(release, TOO_LARGE * EPSILON, CELLS, runs, rng)
    return [
        name,
        f"{found.allowed:g}",
        f"{found.largest:.3f}",
        f"{found.seen:.3f}",
        f"{found.power:.2f}",
        f"{loud.seen:.3f}",
        "claim broken" if loud.seen > EPSILON
        else "other law" if loud.seen > found.largest
        else "no",
    ]  # fmt: skip


def _of_maps(name: str, release: Release, runs: int, rng: np.random.Generator) -> list[str]:
    found = _checked(name, attack(release, OF_MAPS, OF_MAP, runs, rng))
    return [name, release.model, f"{found.allowed:g}", f"{found.seen:.3f}", f"{found.power:.2f}"]


def _checked(name: str, found: Attack) -> Attack:
    if not found.passed:
        raise click.ClickException(
            f"{name} loses {found.seen:.3f}: {found.allowed:g} is claimed, and by the law of its "
            f"reports it is at most {found.largest:.3f}"
        )
    return found
