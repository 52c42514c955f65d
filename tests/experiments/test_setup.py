from pathlib import Path

import pytest

from experiments.setup import Setup
from ldpspatial.errors import InputError


def setup(jobs: int) -> Setup:
    return Setup("test", Path(), Path(), repeats=1, jobs=jobs, seed=1, write=False)


@pytest.mark.parametrize("jobs", [1, 2, -1])
def test_work_is_done_by_as_many_processes_as_asked_for(jobs: int):
    with setup(jobs).pool() as pool:
        assert list(pool.map(abs, [-3, 2])) == [3, 2]


@pytest.mark.parametrize("jobs", [0, -2])
def test_a_number_of_processes_that_there_cannot_be_is_refused(jobs: int):
    with pytest.raises(InputError, match=f"--jobs must be 1 or more, or -1.*got {jobs}"):
        setup(jobs).pool()
