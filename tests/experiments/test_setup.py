from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from experiments.__main__ import main
from experiments.setup import Setup, begun_with
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


def test_a_folder_with_runs_goes_on_with_its_seed_and_one_without_takes_another(tmp_path: Path):
    out = tmp_path / "new" / "out"
    assert [begun_with(out, seed) for seed in (1, 2)] == [1, 2]
    (out / "runs").mkdir()
    assert [begun_with(out, seed) for seed in (3, 4)] == [2, 2]
    (out / "seed").unlink()
    assert [begun_with(out, seed) for seed in (3, 4)] == [3, 3]
    (out / "seed").write_text("one")
    with pytest.raises(InputError, match="seed must hold the seed of the folder's runs, got 'one'"):
        begun_with(out, 1)


SELECTING = [
    ("attack-power", "--only", "k-rr"),
    ("better-default", "--most-users", "1000"),
    ("better-default", "--least-users", "1000"),
    ("better-default", "--least-epsilon", "1"),
    ("better-default-drawn", "--draws", "5"),
    ("city-intervals", "--most-users", "10000"),
    ("levels", "--side", "64"),
    ("levels", "--epsilon", "1"),
    ("levels", "--users", "1000"),
    ("levels", "--map", "tokyo"),
    ("public-weights", "--least-users", "1000000"),
    ("two-servers", "--city", "tokyo"),
    ("window-changes", "--most-cells", "15"),
]


@pytest.mark.parametrize(("name", "option", "value"), SELECTING)
def test_a_part_of_the_settings_never_replaces_tables_of_all(
    name: str, option: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("it began")

    monkeypatch.setattr(main.commands[name], "callback", started)
    places = [] if name == "attack-power" else ["--data", tmp_path, "--out", tmp_path / "out"]
    ran = CliRunner().invoke(main, [*map(str, (name, *places, option, value, "--write"))])
    assert ran.exit_code == click.UsageError.exit_code
    told = ran.output.splitlines()[-1]
    assert told.startswith("Error: --write must go without options that leave settings out, got ")
    assert f"{option} {value}" in told


@pytest.mark.parametrize(
    ("name", "option", "value", "told"),
    [
        ("attack-power", "--only", "nobody", "--only must name a release that is attacked"),
        ("better-default", "--most-users", "1", "--most-users 1 must leave a setting"),
        ("city-intervals", "--most-users", "1", "--most-users 1 must leave a setting"),
        ("levels", "--epsilon", "nan", "--epsilon must be a positive finite number, got nan"),
        ("public-weights", "--least-users", "1000001", "--least-users 1000001 must leave"),
        ("window-changes", "--most-cells", "1", "--most-cells 1 must leave a setting"),
    ],
)
def test_options_that_leave_nothing_are_refused(
    name: str, option: str, value: str, told: str, tmp_path: Path
) -> None:
    places = [] if name == "attack-power" else ["--data", tmp_path, "--out", tmp_path / "out"]
    ran = CliRunner().invoke(main, [*map(str, (name, *places, option, value))])
    assert ran.exit_code == 1
    assert ran.output.splitlines()[-1].startswith(f"Error: {told}")
