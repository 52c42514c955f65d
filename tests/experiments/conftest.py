"""Fixtures for tests of experiments."""

import pytest

from tests.support.short_chains import shorten_chains


@pytest.fixture
def short_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a study sample fields with less effort, where what it tells of them is tested."""
    shorten_chains(monkeypatch)
