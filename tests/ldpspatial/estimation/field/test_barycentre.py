"""The map that is closest in W2 to all samples."""

import numpy as np
import pytest

from ldpspatial import wasserstein
from ldpspatial.estimation.field import barycentre as bands


def test_a_barycentre_by_bands_is_that_of_the_whole_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = np.random.default_rng(22).dirichlet(np.full(50 * 50, 0.1), 3).reshape(-1, 50, 50)
    by_band = bands.barycentre(maps, rounds=3)
    monkeypatch.setattr(bands, "BAND", 50)
    np.testing.assert_allclose(by_band, bands.barycentre(maps, rounds=3), rtol=1e-9)


@pytest.mark.parametrize("gap", [5, 20, 30])
def test_a_barycentre_lies_between_maps_however_far_apart(gap: int) -> None:
    """Of one hill and two that are alike elsewhere: two thirds of the way."""
    rows, cols = np.indices((64, 64))
    hills = [np.exp(-((rows - 32) ** 2 + (cols - at) ** 2) / 32) for at in (10, *2 * [10 + gap])]
    found = bands.barycentre(np.stack([hill / hill.sum() for hill in hills]))
    assert (found.sum(0) * np.arange(64)).sum() == pytest.approx(10 + 2 * gap / 3, abs=0.25)


def test_a_barycentre_of_maps_that_hardly_differ_lies_among_them() -> None:
    """Rounds that change it by little add up to more than such maps are apart."""
    rng = np.random.default_rng(24)
    town = np.where(rng.random((15, 15)) < 0.25, rng.lognormal(0, 2, (15, 15)), 0)
    maps = town * rng.lognormal(0, 1e-3, (16, 15, 15))
    maps /= maps.sum((1, 2), keepdims=True)
    middle = maps.mean(0)
    apart = np.mean([wasserstein(each, middle) for each in maps])
    assert wasserstein(bands.barycentre(maps), middle) < 0.5 * apart


def test_a_barycentre_of_unlike_neighbours_that_hardly_differ_is_their_mean() -> None:
    """Rounds end at three times the distance of the samples there, without an end in sight."""
    board = np.indices((8, 8)).sum(0) % 2 / 32
    noise = np.random.default_rng(3).normal(0, 1e-6, (40, 8, 8))
    maps = np.maximum(board + noise, 0)
    maps /= maps.sum((1, 2), keepdims=True)
    apart = np.abs(maps - maps.mean(0)).sum((1, 2)).mean()
    assert np.abs(bands.barycentre(maps) - maps.mean(0)).sum() < apart / 10
