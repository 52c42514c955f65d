"""What is printed: plain text that can be copied, searched and piped."""

import io
import sys
import warnings
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from client_sdk.collection import DesignWarning
from ldpspatial.cli import main
from ldpspatial.cli.output import progress, show_table
from tests.support.command_line import run, succeed
from tests.support.same_draws import same_draws

PLAY = ("simulate", "--map", "normal", "--people", 50, "--cells", 5, "--epsilon", 2, "--radius", 1)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_piped_output_has_no_control_characters_whatever_the_terminal_says(
    tmp_path: Path,
) -> None:
    arguments = [str(a) for a in (*PLAY, "--out", tmp_path / "r")]
    colours = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "20"}
    with same_draws():
        result = CliRunner().invoke(main, arguments, env=colours)
    assert (result.exit_code, result.stderr) == (0, "")
    assert all(line.isprintable() for line in result.stdout.split("\n"))


def test_long_paths_and_ids_are_not_folded(tmp_path: Path) -> None:
    out = tmp_path / ("long " * 40).strip()
    assert f"Written to {out}: see heatmap.png\n" in succeed(*PLAY, "--out", out).stdout
    assert any(
        len(line.split()[-1]) == 64
        for line in succeed("collection", "show", out / "collection.json").stdout.splitlines()
    )


def test_a_path_that_the_character_set_lacks_is_shown_escaped(tmp_path: Path) -> None:
    arguments = [str(a) for a in (*PLAY, "--out", tmp_path / "東")]
    result = CliRunner(charset="latin-1").invoke(main, arguments)
    assert (result.exit_code, result.exception) == (0, None)
    assert r"\u6771: see heatmap.png" in result.stdout


def test_design_warnings_are_shown_once_whatever_python_does_with_warnings(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run(*PLAY[:-1], 0, "--out", tmp_path / "r")
        assert warnings.filters[0][0] == "ignore"
    assert result.stderr.count("Warning: ") == result.stderr.count("\n") == 1
    assert issubclass(DesignWarning, UserWarning)


def test_progress_on_a_terminal_names_the_stage_and_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    with progress("read positions") as (stage, advance):
        stage("intervals")
        advance(1, 40)
        stage("write files")
    shown = click.unstyle(screen.getvalue())
    assert "read positions" in shown
    assert "write files" in shown


def test_progress_off_a_terminal_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("read positions") as (stage, advance):
        stage("intervals")
        advance(1, 40)
    assert capfd.readouterr() == ("", "")


def test_columns_are_aligned_at_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    show_table("title", ("a", "long"), [("1", "2"), ("300", "")])
    assert capsys.readouterr().out == "title\n    a  long\n    1     2\n  300\n"
