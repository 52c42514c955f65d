"""How far forged reports can move the map of a collection, before it starts."""

from collections.abc import Mapping

import numpy as np

from client_sdk import ResponseTable
from ldpspatial.channels.disk import StampChannel
from ldpspatial.datasets import SyntheticMap
from ldpspatial.estimation.forgery.influence import Influence, influence
from ldpspatial.planning.rehearsal import People

SHARES = (0.01, 0.05)
DRAWN = 100_000  # people of each map


def forged_influence(
    table: ResponseTable, laws: Mapping[str, SyntheticMap], rng: np.random.Generator
) -> tuple[Influence, ...]:
    """Return what 1 % and 5 % of forged reports can do, each on the map that they move most."""
    channel = StampChannel(table)
    truths = [People.on_grid(law, law.draw(DRAWN, rng), table.cells).truth for law in laws.values()]
    return tuple(
        max((influence(channel, truth / truth.sum(), share) for truth in truths), key=_moved)
        for share in SHARES
    )


def _moved(found: Influence) -> float:
    return found.w2
