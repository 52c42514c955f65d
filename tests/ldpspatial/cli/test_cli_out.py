"""The folder of results: new, replaced, or not touched at all."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ldpspatial.cli.output import RESULTS, result_folder
from ldpspatial.errors import InputError
from tests.support.command_line import refusal, run, succeed

PLAY = (
    *("simulate", "--map", "normal", "--people", 50),
    *("--cells", 5, "--epsilon", 2, "--radius", 1, "--intervals", "none", "--estimator", "em"),
)


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


@pytest.fixture
def result(tmp_path: Path) -> Path:
    out = tmp_path / "result"
    succeed(*PLAY, "--out", out)
    return out


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_a_relative_folder_without_parent_is_made_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "Written to r:" in succeed(*PLAY, "--out", "r").stdout
    assert sorted(contents(tmp_path / "r")) == sorted(RESULTS)
    assert os.listdir(tmp_path) == ["r"]


def test_an_empty_folder_even_the_current_one_is_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    succeed(*PLAY, "--out", ".")
    assert sorted(os.listdir()) == sorted(RESULTS)


def test_the_folder_obeys_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        succeed(*PLAY, "--out", tmp_path / "private")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o700


def test_a_result_whose_name_was_taken_meanwhile_is_kept_under_another(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def second() -> None:
        with result_folder(out, overwrite=False) as folder:
            (folder / "summary.json").write_text("second")
            with result_folder(out, overwrite=False) as first:
                (first / "summary.json").write_text("first")

    with pytest.raises(InputError, match="which another command has filled") as refused:
        second()
    kept = Path(str(refused.value).rpartition(" ")[2])
    assert (kept / "summary.json").read_text() == "second"
    assert (out / "summary.json").read_text() == "first"
    assert set(tmp_path.iterdir()) == {out, kept}


def test_a_folder_in_which_another_command_works_is_refused(tmp_path: Path) -> None:
    with result_folder(tmp_path, overwrite=False) as folder:
        told = f"which holds {folder.name}: if none is running, one was killed"
        assert told in refusal(*PLAY, "--out", tmp_path)
        assert folder.exists()


@pytest.mark.parametrize("is_new", [True, False])
def test_what_a_killed_command_left_is_removed_by_the_next(is_new: bool, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if not is_new:
        out.mkdir()
    with stopped(out) as process:
        (left,) = (tmp_path if is_new else out).iterdir()
        assert (left / "half").read_text() == "written"
        process.kill()
    assert left.exists()
    (tmp_path / ".0123456789abcdef.part").mkdir()  # of another program
    succeed(*PLAY, "--out", out)
    assert sorted(contents(out)) == sorted(RESULTS)
    assert sorted(os.listdir(tmp_path)) == [".0123456789abcdef.part", "out"]


def test_an_earlier_result_is_kept_without_overwrite(result: Path) -> None:
    before = contents(result)
    error = refusal(*PLAY, "--out", result)
    assert error == f"--out must be a new or empty folder, got {result} (--overwrite replaces it)"
    assert contents(result) == before


def test_overwrite_replaces_an_earlier_result_and_nothing_else(result: Path) -> None:
    (result / "notes.txt").write_text("mine")
    before = contents(result)
    succeed(*PLAY, "--out", result, "--overwrite")
    after = contents(result)
    assert sorted(after) == sorted((*RESULTS, "notes.txt"))
    assert after["notes.txt"] == b"mine"
    assert after["reports.parquet"] != before["reports.parquet"]


def test_overwrite_leaves_no_file_of_an_earlier_result(result: Path, tmp_path: Path) -> None:
    succeed(*PLAY, "--out", tmp_path / "other")
    inputs = (tmp_path / "other" / "collection.json", tmp_path / "other" / "reports.parquet")
    succeed("estimate", *inputs, "--out", result, "--overwrite")
    assert sorted(contents(result)) == sorted(set(RESULTS) - {"reports.parquet"})


@pytest.mark.parametrize("names", [("summary.json",), ("collection.json", "reports.parquet")])
def test_overwrite_refuses_a_folder_that_is_no_result(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).write_text("mine")
    before = contents(tmp_path)
    for arguments in ((*PLAY, "--overwrite"), ("demo",)):
        error = refusal(*arguments, "--out", tmp_path)
        assert "--out must be new, empty or an earlier result to be replaced" in error
        assert str(tmp_path) in error
    assert contents(tmp_path) == before


def test_overwrite_never_removes_an_input(result: Path) -> None:
    before = contents(result)
    inputs = result / "collection.json", result / "reports.parquet"
    error = refusal("estimate", *inputs, "--out", result, "--overwrite")
    assert "--out must not hold an input when it is replaced" in error
    points = result / "estimate.csv"
    error = refusal("simulate", points, *PLAY[5:], "--out", result, "--overwrite")
    assert "--out must not hold an input when it is replaced" in error
    assert contents(result) == before


def test_a_link_is_followed(result: Path, tmp_path: Path) -> None:
    before = contents(result)
    (tmp_path / "link").symlink_to(result)
    succeed(*PLAY, "--out", tmp_path / "link", "--overwrite")
    assert (tmp_path / "link").is_symlink()
    assert contents(result)["reports.parquet"] != before["reports.parquet"]
    assert sorted(os.listdir(tmp_path)) == ["link", "result"]


@pytest.mark.parametrize(
    ("out", "rule"),
    [
        ("file", "--out must be a folder, got the file"),
        ("file/r", "--out must lie in a folder that can be written"),
        ("no/such/r", "--out must lie in a folder that can be written"),
        ("r" * 300, "--out must lie in a folder that can be written"),
    ],
    ids=["file", "below a file", "no parent", "long"],
)
def test_a_folder_that_cannot_be_made_is_refused(out: str, rule: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    error = refusal(*PLAY, "--out", tmp_path / out)
    assert rule in error
    assert str(tmp_path / out) in error
    assert contents(tmp_path) == {"file": b"mine"}


def test_a_folder_that_may_not_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not by permissions: a superuser may write everywhere.
    monkeypatch.setattr(Path, "mkdir", raising(PermissionError(13, "Permission denied")))
    error = refusal(*PLAY, "--out", tmp_path / "r")
    rule = "--out must lie in a folder that can be written"
    assert error == f"{rule}, got {tmp_path / 'r'}: Permission denied"
    assert os.listdir(tmp_path) == []


def test_a_read_only_current_folder_serves_as_long_as_nothing_is_written_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    if os.access(tmp_path / "locked", os.W_OK):
        pytest.skip("a superuser may write everywhere")
    monkeypatch.chdir(tmp_path / "locked")
    assert "Permission denied" in refusal("demo", "--people", 50, "--cells", 5)
    succeed(*PLAY, "--out", "../r")
    assert sorted(os.listdir(tmp_path)) == ["locked", "r"]


@pytest.mark.parametrize("moment", ["play", "write_reports", "write_estimate"])
def test_an_interrupted_run_leaves_nothing(
    moment: str, result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(result)
    monkeypatch.setattr(f"ldpspatial.cli.simulate.{moment}", raising(KeyboardInterrupt()))
    for arguments in (("--out", tmp_path / "new"), ("--out", result, "--overwrite")):
        stopped = run(*PLAY, *arguments)
        assert stopped.exit_code == 1
        assert stopped.stderr.strip() == "Aborted!"
        assert stopped.stdout == ""
    assert os.listdir(tmp_path) == ["result"]
    assert contents(result) == before


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
        (MemoryError("Unable to allocate 1 PiB"), "there is not enough memory for this"),
    ],
    ids=["disk", "memory"],
)
def test_a_full_disk_or_memory_is_one_line_and_leaves_nothing(
    error: Exception, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldpspatial.plotting.heat_map.save_figure", raising(error))
    assert refusal(*PLAY, "--out", tmp_path / "r") == line
    assert os.listdir(tmp_path) == []


STOPPED = """
import pathlib, sys, time
from ldpspatial.cli.output import result_folder

with result_folder(pathlib.Path(sys.argv[1]), False) as folder:
    (folder / "half").write_text("written")
    print("ready", flush=True)
    time.sleep(60)
"""


@contextmanager
def stopped(out: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process in the middle of a result, which somebody has to end."""
    command = [sys.executable, "-c", STOPPED, str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process


def test_a_command_that_is_told_to_stop_leaves_nothing_behind(tmp_path: Path) -> None:
    with stopped(tmp_path / "out") as process:
        assert list(tmp_path.iterdir()) != []
        process.terminate()
        assert process.wait(30) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
