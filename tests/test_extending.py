"""What CONTRIBUTING.md says of adding things: each example is applied to a copy, and works there.

All of them together are applied to another copy, in which every test passes that they could break.

The examples are differences in ``tests/support/extending``. To write one anew: change a checkout,
``git add -AN`` and ``git diff -U1``.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = Path(__file__).parent / "support" / "extending"
NOT_COPIED = (".git", ".venv", ".hypothesis", ".*_cache", "node_modules", "demo-output")
# What an extension might break: tests that read a registry, a list, a table or all the sources.
LISTENING = (
    *("tests/test_docs.py", "tests/test_imports.py", "tests/ldpspatial/test_bad_input.py"),
    *("tests/client/test_response.py", "tests/client/test_vectors.py"),
    *("tests/ldpspatial/cli/test_cli_compare.py", "tests/ldpspatial/cli/test_cli_help.py"),
    "tests/ldpspatial/comparison/test_range_queries.py",
    "tests/ldpspatial/estimation/test_estimate_input.py",
    *("tests/ldpspatial/files/test_maps.py", "tests/ldpspatial/metrics/test_density.py"),
    *("tests/ldpspatial/release/test_attack.py", "tests/ldpspatial/release/test_registry.py"),
    "tests/ldpspatial/release/central/test_central_releases.py",
    *("tests/experiments/test_attacks.py", "tests/experiments/test_generated.py"),
)
# Of these: what reads all the sources, what reads a whole list, and cases of the examples' names.
CHOSEN = (
    "(test_docs and not test_code_runs) or test_imports or test_vectors or test_density "
    "or test_generated or has_a_row or names or listed or claims or by_default or refused_by_name "
    "or every_option or bad_arguments or half or blocks or pulled or largest"
)

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git applies the differences")


class Checkout:
    """A copy of the sources in which a program can be run."""

    def __init__(self, folder: Path):
        self.folder = folder
        left_out = shutil.ignore_patterns(*NOT_COPIED)
        shutil.copytree(ROOT, folder, ignore=left_out)  # with what was compiled
        self._before = self._contents()

    def apply(self, example: str) -> None:
        """Change the copy as an example says."""
        command = ["git", "apply", "--whitespace=error", str(EXAMPLES / f"{example}.diff")]
        # A folder that belongs to no repository, whatever lies around it.
        subprocess.run(
            command, cwd=self.folder, check=True, env={**os.environ, "GIT_DIR": os.devnull}
        )

    def python(self, *arguments: object) -> str:
        """Run Python on the copy and return what it prints."""
        paths = self.folder / "client_sdk" / "python", self.folder
        run = subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def test(self, *files: str, only: str) -> None:
        """Run tests of the copy."""
        self.python("-m", "pytest", "-p", "no:cacheprovider", *files, "-k", only)

    def generate(self) -> None:
        """Write anew what is generated from mechanisms and releases."""
        self.python("client_sdk/vectors/make_vectors.py")
        self.python("-m", "experiments", "claims")

    def changed(self) -> set[str]:
        """Return the files that are new or other than they were."""
        now = self._contents()
        return {name for name in now if now[name] != self._before.get(name)}

    def _contents(self) -> dict[str, bytes]:
        texts = (".py", ".md", ".json", ".toml")
        files = [path for path in self.folder.rglob("*") if path.suffix in texts]
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in files}


@contextmanager
def example(folder: Path, name: str, files: int) -> Iterator[Checkout]:
    """A copy with an example, which may have changed that many files in the end."""
    checkout = Checkout(folder / "checkout")
    checkout.apply(name)
    yield checkout
    assert len(checkout.changed()) <= files, checkout.changed()


def test_a_device_mechanism_takes_six_files_with_its_release(tmp_path: Path) -> None:
    with example(tmp_path, "mechanism", 6) as checkout:
        checkout.generate()
        options = ("--epsilon", 3.5, "--cells", 8, "--draws", 20_000)
        assert "passed" in checkout.python("-m", "ldpspatial", "audit", "dam-half", *options)
        code = "from ldpspatial import releases; print(releases()['dam-half'].claim(1.0))"
        assert "epsilon 1, per user" in checkout.python("-c", code)


def test_a_metric_takes_two_files(tmp_path: Path) -> None:
    with example(tmp_path, "metric", 2) as checkout:
        points = tmp_path / "points.csv"
        points.write_text("lat,lon\n" + "".join(f"{k % 7},{k % 5}\n" for k in range(200)))
        options = ("--cells", 4, "--repeats", 1, "--epsilon", 1, "--release", "laplace")
        told = checkout.python(
            *("-m", "ldpspatial", "compare", points, *options),
            *("--metric", "largest", "--out", tmp_path / "out"),
        )
        assert "largest error of a cell" in told


def test_a_file_format_takes_two_files(tmp_path: Path) -> None:
    with example(tmp_path, "file_format", 2) as checkout:
        head = "ncols 2\nnrows 2\nxllcorner 10\nyllcorner 20\ncellsize 5\n"
        for name, rows in (("north", "1 1\n0 0\n"), ("south", "0 0\n1 1\n")):
            (tmp_path / f"{name}.asc").write_text(head + rows)
        maps = tmp_path / "north.asc", tmp_path / "south.asc"
        told = checkout.python("-m", "ldpspatial", "distance", *maps)
        assert "5 units" in told or " 5" in told, told


def test_an_estimator_takes_two_files(tmp_path: Path) -> None:
    with example(tmp_path, "estimator", 2) as checkout:
        told = checkout.python("-m", "ldpspatial", "simulate", "--help")
        assert "pulled" in told
        people = ("--map", "normal", "--people", 500, "--cells", 5, "--epsilon", 3, "--radius", 1)
        way = ("--rule", "pulled", "--out", tmp_path / "map")
        checkout.python("-m", "ldpspatial", "simulate", *people, *way)
        regions = tmp_path / "regions.csv"
        regions.write_text("name,south,west,north,east\ncentre,-2,-2,2,2\n")
        asked = (tmp_path / "map", regions, "--method", "posterior")
        assert "centre" in checkout.python("-m", "ldpspatial", "ranges", *asked)


def test_a_release_takes_four_files(tmp_path: Path) -> None:
    with example(tmp_path, "release", 4) as checkout:
        checkout.generate()
        options = ("--epsilon", 1, "--cells", 2, "--runs", 200)
        assert "passed" in checkout.python("-m", "ldpspatial", "audit", "blocks", *options)


@pytest.mark.slow
def test_no_test_fails_with_all_examples(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "checkout")
    for path in sorted(EXAMPLES.glob("*.diff")):
        checkout.apply(path.stem)
    checkout.generate()
    checkout.test(*LISTENING, only=CHOSEN)
