"""The recommended release by its name: the disk of each run's own cells, epsilon and users."""

import numpy as np
import pytest

from client_sdk import Grid
from ldpspatial import compare, recommended
from ldpspatial.errors import InputError
from ldpspatial.places.users import cells_by_user
from ldpspatial.release.local import Disk, Recommended

NAMES = ("recommended", "distributed-levels", "central-levels")


@pytest.mark.parametrize(("cells", "epsilon", "users"), [(8, 2.0, 500), (15, 3.5, 2000)])
def test_a_run_is_that_of_the_recommended_disk(cells: int, epsilon: float, users: int) -> None:
    rng = np.random.default_rng(1)
    people = cells_by_user(np.arange(users), rng.integers(0, cells**2, users), (cells, cells))
    by_name = Recommended().release(people, epsilon, np.random.default_rng(2))
    disk = recommended(cells, epsilon, users)
    assert isinstance(disk, Disk)
    by_hand = disk.release(people, epsilon, np.random.default_rng(2))
    assert np.array_equal(by_name.density, by_hand.density)
    assert by_name.claim == by_hand.claim
    told = Recommended(n_users=10**6).release(people, epsilon, np.random.default_rng(2))
    assert told.facts["radius"] <= by_name.facts["radius"]


def test_it_is_compared_by_name_in_every_model() -> None:
    points = np.random.default_rng(1).normal(4, 1, (800, 2))
    names = [f"{name}{aim}" for name in NAMES for aim in ("", ":aim=cells")]
    rng = np.random.default_rng(1)
    table = compare(points, Grid.plane(0, 0, 8, 8), [2.0], names, 1, rng, metrics=["w2"])
    models = [model for model in ("local", "distributed", "central") for _ in range(2)]
    assert table["model"].to_pylist() == models
    assert table["release"].to_pylist() == names


def test_it_can_be_asked_how_private_a_report_is_before_anybody_reports() -> None:
    release = Recommended()
    disk = recommended(8, 1.0, 100_000)
    assert release.local_privacy(8, 1.0) == disk.local_privacy(8, 1.0)


@pytest.mark.parametrize("bad", [0, -1, 2.5, 10**12 + 1, "many"])
def test_bad_numbers_are_refused(bad: int) -> None:
    with pytest.raises(InputError, match="n_users must"):
        Recommended(n_users=bad)


def test_another_aim_is_refused() -> None:
    with pytest.raises(InputError, match="aim must be one of distance, cells, got 'both'"):
        Recommended(aim="both")  # type: ignore[arg-type]


def test_the_number_that_is_expected_counts_and_not_that_of_a_run() -> None:
    for aim in ("distance", "cells"):
        expected = Recommended(n_users=1000, aim=aim).chosen(64, 2.0, 10**7)
        assert expected == Recommended(aim=aim).chosen(64, 2.0, 1000)
        assert expected != Recommended(aim=aim).chosen(64, 2.0, 10**7)
