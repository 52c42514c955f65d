"""The help texts: what they teach must run as printed."""

import ast
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from ldpspatial import __version__
from ldpspatial.cli import main
from tests.support.command_line import run


def subcommands(group: click.Group) -> dict[str, click.Command]:
    context = click.Context(group)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in subcommands(group).items():
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name)


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = main
    for name in path:
        assert isinstance(command, click.Group)
        command = subcommands(command)[name]
    return command


def help_of(path: tuple[str, ...], columns: int) -> str:
    result = CliRunner().invoke(main, [*path, "--help"], env={"COLUMNS": str(columns)})
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def examples(text: str) -> list[str]:
    joined = text.replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip().startswith("ldpspatial ")]


COMMANDS = sorted(leaves(main))


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
@pytest.mark.parametrize("path", [*COMMANDS, ()], ids=" ".join)
def test_every_example_in_a_help_text_parses_as_printed(
    path: tuple[str, ...], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[tuple[str, ...]] = []
    for at in COMMANDS:
        monkeypatch.setattr(command_at(at), "callback", lambda at=at, **_: called.append(at))
    shown = examples(help_of(path, columns))
    for example in shown:
        result = run(*shlex.split(example)[1:])
        assert (result.exit_code, result.stderr) == (0, ""), example
    assert len(called) == len(shown) >= 1
    assert not path or set(called) == {path}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_option_and_command_says_what_it_is_for(path: tuple[str, ...]) -> None:
    command = command_at(path)
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


def test_the_list_of_commands_holds_the_first_line_of_each() -> None:
    text = " ".join(help_of((), 80).split())
    for name, command in subcommands(main).items():
        assert f"{name} {(command.help or '').splitlines()[0]}" in text


def test_neither_the_list_nor_the_version_imports_what_commands_need() -> None:
    heavy = {"numpy", "scipy", "numba", "pyarrow", "matplotlib", "duckdb", "rich", "joblib"}
    for asked in ("--help", "--version"):
        code = (
            "import sys\nfrom ldpspatial.cli import main\n"
            f"try: main([{asked!r}])\n"
            "except SystemExit: print(sorted({name.partition('.')[0] for name in sys.modules}))"
        )
        told = subprocess.run(
            [sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True
        )
        assert not heavy & set(ast.literal_eval(told.stdout.splitlines()[-1]))


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").stdout.split()[-1] == __version__


def test_no_command_shows_the_help_and_fails() -> None:
    result = run()
    assert result.exit_code == 2
    assert "Commands:" in result.output
