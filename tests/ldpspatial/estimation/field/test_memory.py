"""The memory of windows: moves that leave the posterior as it is, and windows that they help."""

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import response_table
from ldpspatial import Field, StampChannel
from ldpspatial.channels.stacks import stack
from ldpspatial.estimation.field.memory import MEMORY, Fields, Memory
from ldpspatial.estimation.field.model import FieldModel
from ldpspatial.estimation.field.prior import HYPERS, FieldPrior
from tests.support.fields import drawn, reports

Array = NDArray[np.float64]
CELLS = 4
CHANNEL = StampChannel(response_table("dam", 2.0, CELLS, radius=1))
PAIRS = 4_000


def pairs(rng: np.random.Generator, n: list[int]) -> tuple[FieldModel, Fields]:
    """Return fields of the prior, and a model with counts of reports that each of them draws."""
    operators = stack(CHANNEL)
    sizes = np.array(n)[:, None, None]
    prior = FieldPrior(CELLS, len(n))
    points = rng.standard_normal((PAIRS, prior.size))
    model = FieldModel(operators, sizes * operators.support / operators.support.sum(), prior)
    state = model.at(points)
    counts = np.zeros(state.reports.shape)
    law = state.reports[:, :, operators.support]
    law /= law.sum(-1, keepdims=True)
    counts[:, :, operators.support] = rng.multinomial(n, law)
    drew = model._with(counts=counts)
    state = drew.at(points)
    return drew, Fields(state.waves, points[:, -HYPERS:], state.density, state.fit)


@pytest.mark.parametrize("n", [[2_000, 40], [40, 300, 2_000], [500, 500, 500, 500]])
def test_moves_leave_the_posterior_as_it_is(n: list[int]) -> None:
    """Of fields and their reports, fields moved given the reports are such pairs again.

    4,000 pairs: each statistic is off by 5.5 standard errors with a probability of 4e-8.
    """
    rng = np.random.default_rng(41)
    model, before = pairs(rng, n)
    memory, after = Memory(model), before
    for _ in range(5):
        after = memory.redrawn(after, rng)
    assert (after.hypers[:, MEMORY] != before.hypers[:, MEMORY]).mean() > 0.9
    np.testing.assert_array_equal(
        np.delete(after.hypers, MEMORY, axis=1), np.delete(before.hypers, MEMORY, axis=1)
    )
    points = model.prior.point_of(after.waves, after.hypers)
    state = model.at(points)
    np.testing.assert_allclose(state.density, after.density, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(state.fit, after.fit, rtol=1e-9)

    moved, normal = after.hypers[:, MEMORY], points[:, :-HYPERS].reshape(PAIRS, len(n), -1)
    squares = (normal**2 - 1).mean(2)
    shares = np.array([each.density[:, :, :2].sum((2, 3)) for each in (before, after)])
    for values in (
        moved, moved**2 - 1, *squares.T, *(moved[:, None] * squares).T,
        after.fit - before.fit, *(shares[1] - shares[0]).T,
        # How far windows are from each other, and by the memory.
        np.square(np.diff(shares[1])).sum(1) - np.square(np.diff(shares[0])).sum(1),
        np.square(np.diff(shares[1])).sum(1) * moved
        - np.square(np.diff(shares[0])).sum(1) * before.hypers[:, MEMORY],
    ):  # fmt: skip
        assert abs(values.mean()) < 5.5 * values.std() / np.sqrt(PAIRS)


@pytest.mark.parametrize("n", [(10_000_000, 10), (1_000_000, 100)])
def test_few_reports_beside_very_many_do_not_keep_chains_apart(n: tuple[int, ...]) -> None:
    """Their map is known through the memory alone, and that hardly moved: chains did not agree."""
    channel = StampChannel(response_table("dam", 2.0, 12))
    rng = np.random.default_rng(7)
    truth = drawn(rng, 12)
    found = Field().fit_windows(channel, [reports(truth, each, rng, channel) for each in n])
    assert all(each.converged for each in found)
    assert found[0].facts["windows"] == 2
