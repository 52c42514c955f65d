"""The recommended release where most collections are: settings drawn at random, cities held back.

``better-default`` steps through a table of settings, most of them with very few or very many users,
where the field gains most. Here users and epsilon are drawn from the middle, and cities are those
on which nothing about local releases was chosen.
"""

from functools import partial
from math import log

import click
import numpy as np

from experiments.cities import HELD_BACK, MORE
from experiments.finished import played
from experiments.generated import write_page
from experiments.setup import Selection, Setup, experiment
from experiments.studies.better_default import (
    HEADER,
    SIDES,
    Case,
    Outcome,
    losses,
    outcome_of,
    play,
    row,
)
from experiments.tables import DOCS, markdown, replace_block

DRAWS = 231  # seven of each city and side
MAPS = (*HELD_BACK, *MORE)
USERS = (2_000, 200_000)  # even in their logarithm
EPSILONS = (0.5, 6.0)


@experiment("better-default-drawn", repeats=1)
@click.option(
    "--draws",
    cls=Selection,
    default=DRAWS,
    show_default=True,
    type=click.IntRange(1),
    help="So many settings.",
)
def better_default_drawn(setup: Setup, draws: int) -> None:
    """Compare the recommended release with its rivals in settings drawn at random.

    Eleven cities that nothing was chosen on; 15, 32 and 64 cells a side in turn; 2,000 to 200,000
    users, even in their logarithm; epsilon .5 to 6. Settings that were played are kept in --out and
    not played again.
    """
    outcomes = played(setup, partial(play, setup), drawn(draws, setup.seed), outcome_of)
    text = "\n\n".join((by_setting(outcomes), losses(outcomes)))
    click.echo(text)
    if setup.write:
        write_page(DOCS, setup.name, text)
        replace_block(DOCS / "recommended.md", setup.name, by_setting(outcomes, maps=False))


def drawn(draws: int, seed: int) -> list[Case]:
    """Return settings: each city with each side in turn, users and epsilon at random."""
    rng = np.random.default_rng([seed, draws])
    users = np.exp(rng.uniform(log(USERS[0]), log(USERS[1]), draws)).astype(int)
    epsilons = rng.uniform(*EPSILONS, draws).round(2)
    return [
        Case(
            MAPS[i % len(MAPS)],
            SIDES[i // len(MAPS) % len(SIDES)],
            int(users[i]),
            float(epsilons[i]),
        )
        for i in range(draws)
    ]


def by_setting(outcomes: list[Outcome], maps: bool = True) -> str:
    """Return a table over all settings, by cells, users and epsilon, and by map if asked for."""
    parts = {
        "all": outcomes,
        **{f"{side} cells": [o for o in outcomes if o.case.cells == side] for side in SIDES},
        "fewer than 20,000 users": [o for o in outcomes if o.case.users < 20_000],
        "20,000 users and more": [o for o in outcomes if o.case.users >= 20_000],
        "eps below 2": [o for o in outcomes if o.case.epsilon < 2],
        "eps 2 to 4": [o for o in outcomes if 2 <= o.case.epsilon < 4],
        "eps from 4 on": [o for o in outcomes if o.case.epsilon >= 4],
    }
    if maps:
        parts.update({name: [o for o in outcomes if o.case.map == name] for name in MAPS})
    rows = [row(title, group) for title, group in parts.items()]
    return markdown(["settings drawn", *HEADER], [each for each in rows if each])
