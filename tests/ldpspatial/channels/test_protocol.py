"""Loops get behind the checks of this package's channels, and behind nothing of another's."""

from typing import Any

import numpy as np
import pytest

from client_sdk import response_table
from ldpspatial import EM, InputError, StampChannel
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.channels.protocol import operators

TABLE = response_table("dam", 3.5, 3)
DENSITY = np.full((3, 3), 1 / 9)


class Halved(StampChannel):
    """A subclass of another package, which knows of no checks."""

    def forward(self, density: Any) -> Any:
        """Return half of every probability."""
        return super().forward(density) / 2


class Foreign:
    """A channel of another package, whose forward returns what it was made with."""

    input_shape = (2, 2)
    epsilon = 1.0
    support = np.ones(500, bool)

    def __init__(self, answer: Any):
        self.answer = answer

    def forward(self, density: Any) -> Any:
        return self.answer

    def adjoint(self, ratio: Any) -> Any:
        return np.ones((2, 2))


@pytest.mark.parametrize(
    "channel",
    [StampChannel(TABLE, "direct"), StampChannel(TABLE, "fft"), MatrixChannel(np.eye(9), (3, 3))],
)
def test_loops_get_what_callers_get(channel: Any) -> None:
    forward, adjoint = operators(channel)
    law = channel.forward(DENSITY)
    np.testing.assert_array_equal(forward(DENSITY), law)
    np.testing.assert_array_equal(adjoint(law), channel.adjoint(law))


def test_a_method_that_a_subclass_overrides_is_not_passed_by() -> None:
    forward, _ = operators(Halved(TABLE))
    np.testing.assert_array_equal(forward(DENSITY), StampChannel(TABLE).forward(DENSITY) / 2)


@pytest.mark.parametrize(
    "answer", [None, "text", 0.5, np.ones(3), np.ones((500, 1)), [[1], [1, 2]]]
)
def test_what_another_channel_returns_is_never_read_beyond_its_end(answer: Any) -> None:
    with pytest.raises(
        InputError, match=r"forward of the channel must return .* of shape \(500,\)"
    ):
        EM().fit(Foreign(answer), np.ones(500, int))


def test_another_channel_with_good_answers_is_taken() -> None:
    assert EM().fit(Foreign(np.full(500, 1 / 500)), np.ones(500, int)).converged
