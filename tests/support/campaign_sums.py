"""What the rounds of a campaign come to, drawn by the device's own rule without devices."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from client_sdk.rounds import RoundDocument
from ldpspatial.release.distributed.campaigns import CampaignPlan, SessionSum
from ldpspatial.release.distributed.noise.polya import sum_of_shares
from ldpspatial.release.distributed.sums.secure_sum import encode

Ints = NDArray[np.int64]


def summed(document: RoundDocument, cells: Ints, side: int, rng: np.random.Generator) -> SessionSum:
    """Return what a secure sum of people in these cells comes to, by the device's own rule."""
    depth = side.bit_length() - 1
    total = np.zeros(document.length, dtype=np.int64)
    for cell in cells.tolist():
        total[document.asked.ones(depth, *divmod(cell, side))] += 1
    noise = sum_of_shares(
        len(cells), document.honest, document.micro_epsilon / 1e6, document.length, rng
    )
    return SessionSum(len(cells), len(cells), encode(total + noise, 1 << document.bits))


def played(
    plan: CampaignPlan, cells: Ints, rng: np.random.Generator, silent: Iterable[int] = ()
) -> list[RoundDocument]:
    """Let each person take part in a round, as many in each; some rounds come to no sum."""
    documents = []
    side = plan.campaign.grid.cells
    cohorts = np.array_split(rng.permutation(cells), plan.campaign.rounds)
    for number, cohort in enumerate(cohorts, start=1):
        document = plan.document(number)
        documents.append(document)
        if number in silent:
            plan.take([SessionSum(len(cohort), 0, None)])
        else:
            plan.take([summed(document, cohort, side, rng)])
    return documents
