"""What holds for all tests, and for the processes that they start."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent

# Examples are those of the source, not of the day, and a machine that is busy draws them slowly.
settings.register_profile(
    "ours", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ours")

# NumPy's and SciPy's BLAS wait for each other in a busy loop, as many threads as there are cores.
# On the small matrices of tests that gains nothing, and where as many tests run at once it takes
# five times as long. They read this when they are loaded: no test has been imported by now.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the long tests first, so that none of them keeps a core waiting in the end.

    The longest of them are those of the whole project, which lie beside the folders. Each runner
    begins with a block of what there is: the files of long tests are dealt out to their heads.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow") is not None:
            files.setdefault(item.path, []).append(item)
    longest_first = sorted(files, key=lambda path: path.parent != TESTS)
    short = [item for item in items if item.get_closest_marker("slow") is None]
    runners = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    ordered: list[pytest.Item] = []
    for runner in range(runners):
        end = len(items) * (runner + 1) // runners
        ordered += [item for path in longest_first[runner::runners] for item in files[path]]
        room = len(short) if runner == runners - 1 else max(end - len(ordered), 0)
        ordered += short[:room]
        del short[:room]
    items[:] = ordered
