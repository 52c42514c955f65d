"""How near optimised forgeries come to what is said of forged reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click
import numpy as np
from numpy.typing import NDArray

from client_sdk import response_table
from experiments.means import range_of
from experiments.optimised_forgers import ascended, far_from, fitting
from experiments.progress import tracked
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial import EM, Field, StampChannel, wasserstein
from ldpspatial.estimation import Estimator, influence
from ldpspatial.estimation.forgery.proofs import least_share
from ldpspatial.estimation.forgery.regions import RegionAttack
from ldpspatial.estimation.limit_fits import LimitFits

Array = NDArray[np.float64]

EPSILONS = (0.5, 1.0, 2.0, 3.5, 5.0, 7.0)
SHARES = (0.01, 0.05, 0.2)
PEOPLE = (10_000, 100_000)
SINGLE = 24  # output cells that all forgers may send
ROUNDED = 1e-6  # of shares and of cells
FITS = 60  # of each ascent of a region's share
SUMMITS = 2  # output cells, and mixtures by chance, that such ascents start from
APART = 4  # ranks between those output cells
ESTIMATORS: Mapping[str, Estimator] = {"em": EM(), "field": Field()}


@dataclass(frozen=True)
class Attacked:
    """What forgeries did to one map, beside what was said of them; W2 in cells.

    Attributes
    ----------
    best : the farthest that the fit of maximum likelihood was moved, by any forgery
    estimators : the farthest that an estimator was moved by that forgery, on 10,000 and 100,000
        expected reports, divided by the w2 that a summary of its map without them says
    w2, reached, proven : as :func:`ldpspatial.estimation.influence` has them
    region, region_proven : the most by which a quarter of the square grew or shrank, and the proof
    broken : whether a region left what is proved
    """

    best: float
    estimators: float
    w2: float
    reached: float
    proven: float
    region: float
    region_proven: float
    broken: bool


@click.command("forgery-bound")
@click.option("--cells", default=6, show_default=True, type=click.IntRange(4, 20))
@click.option("--seed", default=1, show_default=True, help="Of the crowded map.")
@click.option("--write", is_flag=True, help="Write the table in docs/experiments.")
def forgery_bound(cells: int, seed: int, write: bool) -> None:
    """Show how near optimised forgeries come to the bounds on forged reports.

    DAM on three maps, with 1, 5 and 20 % of all reports forged. Forgers send one output cell, or
    what the model fits exactly, or what gradients improve.
    """
    rng = np.random.default_rng(seed)
    settings = [(epsilon, share) for epsilon in EPSILONS for share in SHARES]
    where = maps(cells, rng)
    found = {
        setting: [attacked(*setting, density) for density in where]
        for setting in tracked(settings, "settings")
    }
    table = shown(found)
    click.echo(table)
    if write:
        replace_block(DOCS / "experiments" / "forged-reports.md", "forgery-bound", table)


def maps(cells: int, rng: np.random.Generator) -> list[Array]:
    """Return an even map, a hill beside the middle, and a crowded map of five cells."""
    rows, cols = (np.indices((cells, cells)) + 0.5) / cells
    spots = np.zeros(cells * cells)
    spots[rng.choice(spots.size, 5, replace=False)] = np.arange(1, 6)
    hill = np.exp(-((rows - 0.4) ** 2 + (cols - 0.35) ** 2) / 0.05)
    found = [np.ones((cells, cells)), hill, spots.reshape(cells, cells)]
    return [each / each.sum() for each in found]


def attacked(epsilon: float, share: float, density: Array) -> Attacked:
    """Attack one map in all ways."""
    cells = len(density)
    channel = StampChannel(response_table("dam", epsilon, cells))
    matrix = channel.matrix()
    honest = matrix @ density.ravel()
    told = influence(channel, density, share)
    quarter = np.zeros((cells, cells))
    quarter[: cells // 2, : cells // 2] = 1
    region = told.region(quarter)

    def law_of(forged: Array) -> Array:
        law = (1 - share) * channel.forward(density)
        law[channel.support] += share * forged
        return law

    limits = LimitFits(channel)
    sent = forgeries(channel, density, share)
    fits = [limits.fit(law_of(each), density) for each in sent]
    moved = [wasserstein(density, each) for each in fits]
    lower = -most_of(-quarter, channel, density, share)
    upper = most_of(quarter, channel, density, share)
    shares = [lower, upper, *(float((quarter * each).sum()) for each in fits)]
    worst = sent[int(np.argmax(moved))]
    return Attacked(
        best=max(moved),
        estimators=estimators_moved(channel, honest, worst, share),
        w2=told.w2,
        reached=told.reached,
        proven=told.proven,
        region=max(abs(each - region.share) for each in shares),
        region_proven=max(region.most - region.share, region.share - region.least),
        broken=min(shares) < region.least - ROUNDED or max(shares) > region.most + ROUNDED,
    )


def most_of(weights: Array, channel: StampChannel, density: Array, share: float) -> float:
    """Return the largest weighted share that ascents from several places find."""
    attack = RegionAttack(weights, channel, density, share)
    support = channel.support
    size = int(support.sum())
    single = [attack.reached(each) for each in np.eye(size)]
    best = [np.eye(size)[y] for y in np.argsort(single)[::-1][: SUMMITS * APART : APART]]
    rng = np.random.default_rng(1)
    mixed = [np.full(size, 1 / size), *rng.dirichlet(np.ones(size), SUMMITS)]
    named = least_share(-weights, channel, density, share).forged[support]
    for each in (*best, *mixed, named):
        attack.ascend(each, FITS)
    return attack.best


def forgeries(channel: StampChannel, density: Array, share: float) -> list[Array]:
    """Return what forgers send, as distributions over the output cells."""
    matrix = channel.matrix()
    size = len(matrix)
    single = [np.eye(size)[y] for y in np.linspace(0, size - 1, SINGLE).round().astype(int)]
    exact = fitting(channel, density, share)
    starts = [exact[0], exact[-1], single[0]]
    best = [ascended(channel, density, share, far_from(density), each)[0] for each in starts]
    return [*single, *exact, matrix[:, 0], matrix[:, -1], *best]


def estimators_moved(channel: StampChannel, honest: Array, forged: Array, share: float) -> float:
    """Return how far the estimators are moved by a forgery, at most, in w2 of their honest maps."""
    farthest = 0.0
    for estimator in ESTIMATORS.values():
        for people in PEOPLE:
            without = np.round(people * (1 - share) * honest)
            with_them = without + np.round(people * share * forged)
            before = estimator.fit(channel, without).density
            after = estimator.fit(channel, with_them).density
            told = influence(channel, before, share).w2
            farthest = max(farthest, wasserstein(before, after) / told)
    return farthest


def shown(found: Mapping[tuple[float, float], Sequence[Attacked]]) -> str:
    """Return the table: a row for each epsilon and share, worst of the maps in each column."""
    rows = []
    for (epsilon, share), runs in found.items():
        rows.append(
            [
                f"{epsilon:g}",
                f"{share:.0%}",
                range_of(run.best for run in runs),
                range_of(run.w2 / run.best for run in runs),
                range_of(run.estimators for run in runs),
                range_of(run.proven / run.best for run in runs),
                range_of(run.region_proven / run.region for run in runs),
                "yes" if any(run.broken or run.best > run.w2 + ROUNDED for run in runs) else "no",
            ]
        )
    header = ["eps", "forged", "best attack, cells", "w2 / attack", "EM, field / w2",
              "proven / attack", "region proven / attack", "broken"]  # fmt: skip
    return markdown(header, rows)
