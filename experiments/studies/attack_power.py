"""How much of its claim the attacks see of each release: by all that a user sends, or by maps.

Maps are attacked where that is all that leaves a release, in the central and distributed models;
the recommended releases once more on larger ones, for each way in which they choose what to ask.
On which inputs was found by pilots, with other seeds than those that are reported; the
sketches have those of ``flat``, and either aim has those of the other. ``--search`` looks anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import click
import numpy as np

from experiments.generated import write_page
from experiments.progress import tracked
from experiments.setup import Selection, Study
from experiments.tables import DOCS, markdown
from ldpspatial.errors import InputError
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.release.attack import Attack, attack, attack_reports, best_inputs
from ldpspatial.release.attack_inputs import Inputs
from ldpspatial.release.central import CentralLevels
from ldpspatial.release.distributed import DistributedLevels
from ldpspatial.release.local import (
    DamTrajectory,
    Disk,
    LdpTrace,
    LocalRelease,
    PivotTrace,
    Recommended,
)
from ldpspatial.release.registry import releases
from ldpspatial.release.release import Release, Released

EPSILON = 3.5  # of reports: the DAM paper's
OF_MAPS = 1.0  # with so few runs no more can be seen
CELLS = 4
TOO_LARGE = 1.2
CLAIMED, TIMES = 0.5, 3.0  # of releases that are too loud: what few runs can show
OF_RUNS = 4  # one in so many is of these
PILOT_SEED = 1000  # more than that of the runs which are reported

MORE: Mapping[str, LocalRelease] = {
    "dam-trajectory, 4 slots": DamTrajectory(slots=4),
    "ldptrace, all slots": LdpTrace("all"),
    "pivottrace, 2 points": PivotTrace(2),
}
# The same reports by EM: a field takes a hundred times as long, and sees no more of them.
QUICK: Mapping[str, Release] = {
    each.name: each for each in (Recommended(rule="scaled"), Disk(rule="scaled"))
}
BOTH_AIMS: Mapping[str, Release] = {
    "central-levels:aim=cells": CentralLevels(aim="cells"),
    "distributed-levels:aim=cells": DistributedLevels(aim="cells"),
}
EMPTY = Inputs((2, 2))
PAIR, PAIR_1, PAIR_3, PAIR_40 = (Inputs((1, 2), 0, opposite) for opposite in (0, 1, 3, 40))
# By pilots; of releases that are not named, the inputs are PAIR_40.
BEST: Mapping[str, Inputs] = {
    "laplace-top": Inputs((2, 2), 12, 12, 12),
    "central-levels": PAIR_3,
    "central-levels:aim=cells": PAIR_3,
    "distributed-levels": PAIR_1,
    "distributed-levels:aim=cells": PAIR_1,
    "two-servers": EMPTY,
    "count-min": EMPTY,
    "count-min-minimum": EMPTY,
    "flat": EMPTY,
    "sparse-emd-sums": EMPTY,
    "adaptive-hierarchical": PAIR_1,
    "adaptive-grid": EMPTY,
    "central-adaptive-grid": PAIR,
}
# A map of which takes a millisecond and more: a third of the runs.
SLOW = ("quadtree", "count-min", "count-min-minimum", "two-servers", "central-levels", *BOTH_AIMS)
SLOW += ("distributed-levels",)
PARTS = 3
# Every way in which the recommended releases ask on larger maps. Where a shape begins, one person
# in the number of people decides: had it no noise, it would tell of that person for certain.
LARGER: Mapping[str, tuple[Release, Inputs]] = {
    "central-levels, where a shape begins": (CentralLevels(), Inputs((16, 16), 0, 148)),
    "central-levels, shape": (CentralLevels(), Inputs((8, 8), 6, 400)),
    "central-levels, whole levels": (CentralLevels(), Inputs((64, 64), 0, 20_000)),
    "central-levels, wide areas": (CentralLevels(), Inputs((1, 32), 12, 12, 12)),
    "distributed-levels, sixteen sums": (DistributedLevels(), Inputs((8, 8))),
    "distributed-levels, several levels": (DistributedLevels(), Inputs((16, 16), 0, 800)),
    "distributed-levels, wide areas": (DistributedLevels(), Inputs((1, 32), 300, 300, 300)),
}


@click.command("attack-power", cls=Study)
@click.option("--runs", default=60_000, show_default=True, type=click.IntRange(4),
              help="What a user sends, drawn so often on either input.")  # fmt: skip
@click.option("--maps", default=12_000, show_default=True, type=click.IntRange(12),
              help="Maps on either input; of slow releases a third.")  # fmt: skip
@click.option("--local-maps", default=60, show_default=True, type=click.IntRange(4),
              help="Maps of local releases on either input, for their form.")  # fmt: skip
@click.option("--search", is_flag=True, help="Look for the inputs anew.")
@click.option("--only", cls=Selection, default="", help="Releases, by names and commas.")
@click.option("--seed", default=1, show_default=True)
@click.option("--write", is_flag=True, help="Write docs/generated/attack-power.md.")
def attack_power(
    runs: int, maps: int, local_maps: int, search: bool, only: str, seed: int, write: bool
) -> None:
    """Show what attacks see of every release's claim, and whether too much is noticed.

    All bounds are held with probability 1 - 1e-6 each.
    """
    rng = np.random.default_rng(seed)
    local = {name: each for name, each in releases().items() if isinstance(each, LocalRelease)}
    trusting = {
        name: each
        for name, each in {**releases(), **BOTH_AIMS}.items()
        if each.model in ("central", "distributed")
    }
    larger = LARGER
    if only:
        wanted = only.split(",")
        local = {name: each for name, each in local.items() if name in wanted}
        trusting = {name: each for name, each in trusting.items() if name in wanted}
        larger = {name: pair for name, pair in larger.items() if name.split(",")[0] in wanted}
        if not local and not trusting:
            raise InputError(f"--only must name a release that is attacked, got {only!r}")
    sent = [
        _of_reports(name, each, runs, rng)
        for name, each in tracked({**local, **({} if only else MORE)}.items(), "reports")
    ]
    for name, each in tracked(local.items(), "local maps"):
        found = _checked(name, attack(QUICK.get(name, each), OF_MAPS, 2, local_maps, rng))
        if found.seen:
            raise click.ClickException(f"maps of {name} tell {found.seen:.3f} by {found.by}")
    seen = []
    for name, each in tracked(trusting.items(), "maps"):
        inputs = BEST.get(name, PAIR_40)
        # A stream of its own, whatever else is attacked.
        own = np.random.default_rng([seed, *name.encode()])
        if search:
            pilot = np.random.default_rng(seed + PILOT_SEED)
            inputs = best_inputs(each, OF_MAPS, pilot, facts=each.model == "central")
        seen.append(_of_maps(name, each, inputs, maps // PARTS if name in SLOW else maps, own))
    for name, (each, inputs) in tracked(larger.items(), "larger maps"):
        own = np.random.default_rng([seed, *name.encode()])
        seen.append(_of_maps(name, each, inputs, maps // PARTS, own))
    parts = (
        f"## All that a user sends\n\n{CELLS} x {CELLS} cells, {runs:,} runs on either input.",
        markdown(
            ["release", "claim", "largest by the law", "seen", "share of the claim",
             f"seen at epsilon times {TOO_LARGE}", "noticed"], sent),
        "## Maps\n\nCentral and distributed releases, through the whole pipeline. Inputs are rows "
        "x columns; the others who are there in the first cell, in the last one, and in each "
        "between. The one user is in the first cell or nowhere, or in the first or last cell. "
        "Errors, warnings and the form of what came are seen as well, noisy sums where these are "
        f"released, and facts of central runs. A quarter of the runs are at {TIMES:g} times an "
        f"epsilon of {CLAIMED:g} that is claimed. Of local releases, {local_maps:,} maps on either "
        "input told nothing: no error, warning or other form came more on one input.",
        markdown(
            ["release", "model", "inputs", "runs", "allowed", "seen", "share of the claim",
             f"seen at {TIMES:g} times {CLAIMED:g}", "noticed"], seen),
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


@dataclass(frozen=True)
class Louder(Release):
    """A release that runs at more than the epsilon that it claims."""

    inner: Release
    factor: float
    name = "louder"

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Claim what the release would promise."""
        return self.inner.claim(epsilon)

    def release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Run at more."""
        return self.inner.release(users, self.factor * epsilon, rng)


def _of_maps(
    name: str, release: Release, inputs: Inputs, runs: int, rng: np.random.Generator
) -> list[str]:
    facts = release.model == "central"
    found = _checked(name, attack(release, OF_MAPS, inputs, runs, rng, facts=facts))
    few = max(runs // OF_RUNS, 4)
    loud = attack(Louder(release, TIMES), CLAIMED, inputs, few, rng, facts=facts)
    return [
        name,
        release.model,
        str(inputs),
        f"{runs:,}",
        f"{found.allowed:g}",
        f"{found.seen:.3f}",
        f"{found.power:.2f}",
        f"{loud.seen:.3f}",
        "no" if loud.passed else f"claim of {loud.allowed:g} broken",
    ]


def _checked(name: str, found: Attack) -> Attack:
    if not found.passed:
        raise click.ClickException(
            f"{name} loses {found.seen:.3f}: {found.allowed:g} is claimed, and by the law of its "
            f"reports, if it has any, it is at most {found.largest:.3f}"
        )
    return found
