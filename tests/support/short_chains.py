"""Fields sampled with less than half of the work, for tests of what is made of one."""

from dataclasses import replace

import pytest

from ldpspatial.estimation.field import posterior


def shorten_chains(patch: pytest.MonkeyPatch) -> None:
    """Sample fields with less effort; ``tests/ldpspatial/estimation/field`` tests the full one."""
    effort = replace(posterior.FULL, way=1, rounds=2, stages=2, stage=5, visits=18, again=0)
    patch.setattr(posterior, "FULL", effort)
