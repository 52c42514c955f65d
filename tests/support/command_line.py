"""The command line, called as a user calls it."""

import csv
from pathlib import Path

import numpy as np
from click.testing import CliRunner, Result

from ldpspatial.cli import main
from tests.support.same_draws import same_draws

CENTER = (48.0, 11.0)


def run(*arguments: object) -> Result:
    """Run a command; an exception that is not for users fails the test with its traceback.

    What it draws is the same in every run.
    """
    with same_draws():
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def succeed(*arguments: object) -> Result:
    """Run a command that must succeed without a word on standard error."""
    result = run(*arguments)
    assert (result.exit_code, result.stderr) == (0, ""), result.stderr
    return result


def refusal(*arguments: object) -> str:
    """Run a command that must be refused; return its one line of error."""
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    *usage, error, rest = result.stderr.split("\n")
    assert rest == ""
    assert not usage or usage[0].startswith("Usage: ")
    assert error.startswith("Error: ")
    assert error.isprintable()
    return error.removeprefix("Error: ")


def people(n: int = 300) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return (n, 2) latitudes and longitudes of a city of some km, whole 1e-6 degrees."""
    rng = np.random.default_rng(1)
    return np.round(CENTER + rng.normal(0, 0.01, (n, 2)), 6)


def write_people(path: Path, names: tuple[str, str] = ("lat", "lon"), mark: str = ",") -> Path:
    """Write ``people`` as a text table."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=mark)
        writer.writerow(("note", *names))
        writer.writerows((f"day {k}", *pair) for k, pair in enumerate(people().tolist()))
    return path
