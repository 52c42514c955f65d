"""What `test_transport` cannot reach: potentials that have drifted as far as they may."""

import numpy as np
import pytest

from ldpspatial.metrics.exact.multiscale import FAR, _read_values
from ldpspatial.metrics.exact.pricing import ABSENT


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("beyond", "moved_back"), [(-1, False), (0, False), (1, True), (5, True)])
def test_potentials_that_have_drifted_far_are_moved_back(
    sign: int, beyond: int, moved_back: bool
) -> None:
    first = sign * (FAR + beyond)
    potential = np.array([first, first + 7, first - 2**59])
    cell, is_target = np.array([2, 0, 1]), np.array([False, True, False])
    values = np.full(3, ABSENT), np.full(3, ABSENT)
    _read_values(potential, cell, is_target, *values)
    start = 0 if moved_back else first
    assert potential.tolist() == [start, start + 7, start - 2**59]  # no difference has changed
    assert values[0].tolist() == [ABSENT, 2**59 - start, -start]
    assert values[1].tolist() == [start + 7, ABSENT, ABSENT]
