"""The docs hold: links, files, names, commands, the map of the code, and code that runs."""

import ast
import builtins
import importlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

from experiments.__main__ import main as experiments
from ldpspatial.cli import main as ldpspatial
from ldpspatial.cli.output import RESULTS, SERIES_RESULTS

ROOT = Path(__file__).parents[1]
PACKAGES = {"client_sdk": ROOT / "client_sdk/python/client_sdk", "ldpspatial": ROOT / "ldpspatial"}
WITH_CODE = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
WITH_CODE.append(ROOT / "client_sdk/python/README.md")
TYPESCRIPT = ROOT / "client_sdk/typescript/README.md"  # its own tests run its app
WITH_CODE.append(TYPESCRIPT)
PAGES = [*WITH_CODE, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
ARCHITECTURE = ROOT / "docs" / "architecture.md"
README = ROOT / "README.md"
INDEX = ROOT / "docs" / "README.md"
# Run by tests of their own, shell and all: test_tutorial, test_embed, test_how_to_warehouse.
PLAYED = {
    ROOT / "docs" / "tutorial.md",
    ROOT / "docs" / "embed.md",
    ROOT / "docs" / "how-to" / "reports-from-a-warehouse.md",
}
GENERATED = sorted((ROOT / "docs" / "generated").glob("*.md"))
WRITTEN = sorted({*(ROOT / "docs").rglob("*.md")} - {*GENERATED})

NOT_OURS = ("__pycache__", "demo-output", "node_modules")

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"[\w./-]+\.(py|md|toml|json)")
IN_FILE = re.compile(r"([\w./-]+\.py): ([\w.]+)")
FILES = {*RESULTS, *SERIES_RESULTS}
HEX = re.compile(r"[0-9a-f]{8,}")
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
NAME = re.compile(r"\.?([A-Za-z_]\w*(\.\w+)*)(\(.*\))?", re.DOTALL)

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


@cache
def source_files() -> list[str]:
    """Paths of the project's own files, relative, with forward slashes."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f[0] != "." and f not in NOT_OURS]
        found += [(Path(folder) / name).relative_to(ROOT).as_posix() for name in names]
    return found


@cache
def words() -> set[str]:
    """Every identifier of the code, the schemas and the vectors."""
    found = set(dir(builtins)) | set(sys.stdlib_module_names)
    for name in source_files():
        is_ours = Path(name).suffix in (".py", ".ts", ".json", ".toml")
        if is_ours and not name.endswith("test_docs.py"):
            found |= set(re.findall(r"\w+", (ROOT / name).read_text(encoding="utf-8")))
    return found


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """Line number and text of the fenced blocks in a language."""
    text = page.read_text(encoding="utf-8")
    found = [m for m in FENCE.finditer(text) if m[1] == language]
    return [(text[: m.start(2)].count("\n"), m[2]) for m in found]


def spans(page: Path) -> list[str]:
    """What stands between backticks, outside of fenced blocks."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]


def meant_by(name: str) -> list[str]:
    """Return the files whose path ends in a name."""
    return [path for path in source_files() if f"/{path}".endswith(f"/{name}")]


@cache
def defined(path: str) -> set[str]:
    """Functions, classes, methods, fields and constants of a module, by dotted name."""
    names: set[str] = set()

    def collect(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(prefix + node.name)
                if isinstance(node, ast.ClassDef):
                    collect(node.body, f"{node.name}.")
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(prefix + node.target.id)
            elif isinstance(node, ast.Assign):
                names.update(prefix + t.id for t in node.targets if isinstance(t, ast.Name))

    collect(ast.parse((ROOT / path).read_text(encoding="utf-8")).body, "")
    return names


@cache
def all_defined() -> set[str]:
    """Dotted names of both packages, with and without their module."""
    found = set()
    for package, folder in PACKAGES.items():
        for path in folder.rglob("*.py"):
            module = path.stem
            names = defined(path.relative_to(ROOT).as_posix())
            found |= names | {f"{module}.{n}" for n in names} | {f"{package}.{module}"}
    return found


def is_a_name(dotted: str) -> bool:
    """Tell whether a dotted name is one of the packages' or can be imported."""
    if dotted in all_defined():
        return True
    first, *rest = dotted.split(".")
    try:
        thing: Any = importlib.import_module(first)
    except ImportError:
        return False
    for part in rest:
        if not hasattr(thing, part):
            return is_a_module(dotted)
        thing = getattr(thing, part)
    return True


def is_a_module(dotted: str) -> bool:
    try:
        return importlib.util.find_spec(dotted) is not None
    except ImportError:
        return False


@cache
def headings(page: Path) -> set[str]:
    """Anchors that GitHub makes of the headings of a page."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@every_page
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target, anchor in LINK.findall(text):
        if target.startswith(("https://", "http://")):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), target
        assert not anchor or anchor in headings(file), f"{target}#{anchor}"


@cache
def linked(page: Path) -> set[Path]:
    """Pages that a page links to."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = {target for target, _ in LINK.findall(text) if target.endswith(".md")}
    return {(page.parent / target).resolve() for target in targets if "://" not in target}


def within(links: int, start: Path) -> set[Path]:
    """Pages that a reader of a page reaches by so many links at most."""
    found = {start}
    for _ in range(links):
        found = found.union(*(linked(page) for page in found))
    return found


def test_the_index_has_every_page() -> None:
    assert {*WRITTEN} - {INDEX} <= linked(INDEX)
    assert INDEX in linked(README)


def test_every_page_is_two_links_from_the_index_and_but_for_generated_ones_from_the_readme() -> (
    None
):
    assert {*PAGES} <= within(2, INDEX)
    assert {*PAGES} <= within(2, README) | {*GENERATED}


def test_pages_are_short_enough_to_be_finished() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) < 120
    lengths = {page.name: len(page.read_text(encoding="utf-8").split()) for page in WRITTEN}
    assert {name: count for name, count in lengths.items() if count > 8000} == {}


@every_page
def test_files_and_what_is_said_to_be_in_them_exist(page: Path) -> None:
    for span in spans(page):
        if FILE.fullmatch(span):
            assert span in FILES or meant_by(span), span
        elif pair := IN_FILE.fullmatch(span):
            (path,) = meant_by(pair[1])  # one, or nobody knows which is meant
            assert pair[2] in defined(path), span


@every_page
def test_names_exist(page: Path) -> None:
    for span in spans(page):
        name = NAME.fullmatch(span)
        if name is None or FILE.fullmatch(span) or span in FILES or HEX.fullmatch(span):
            continue
        if "." in name[1] and page != TYPESCRIPT:
            assert is_a_name(name[1]), span
        elif page == TYPESCRIPT:  # whose names are not Python's
            assert set(name[1].split(".")) <= words(), span
        else:
            assert name[1] in words(), span


@every_page
def test_commands_and_their_options_exist(page: Path) -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shell = "".join(text for _, text in blocks(page, "sh")).replace("\\\n", "")
    for line in [*shell.splitlines(), *spans(page)]:
        try:
            command, *arguments = shlex.split(line, comments=True)
        except ValueError:  # nothing, or no command
            continue
        if command == "make" and arguments:
            assert arguments[0] in targets, line
        elif command == "ldpspatial" and arguments:
            check_command(ldpspatial, arguments, line)
        elif line.startswith("python -m experiments "):
            check_command(experiments, arguments[2:], line)


def check_command(group: click.Command, arguments: list[str], line: str) -> None:
    command = group
    while isinstance(command, click.Group) and arguments and arguments[0] != "NAME":
        context = click.Context(command)
        assert arguments[0] in command.list_commands(context), line
        command, *arguments = command.get_command(context, arguments[0]), *arguments[1:]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {a for a in arguments if a.startswith("--")} <= known, line


@pytest.mark.parametrize(
    "page", [p for p in WITH_CODE if p not in PLAYED], ids=lambda p: str(p.relative_to(ROOT))
)
def test_code_runs_as_printed(page: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    for start, text in blocks(page, "python"):
        lines += [""] * (start - len(lines))  # an error names the line of the page
        lines += text.splitlines()
    script = tmp_path / f"{page.stem}.py"
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-W", "error", str(script)]
    if lines:
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr


def test_the_map_of_the_code_names_every_folder_and_nothing_that_is_not_there() -> None:
    parents: list[str] = []
    named: set[str] = set()
    for line in blocks(ARCHITECTURE, "")[0][1].splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        parents[depth:] = [name]
        path = "".join(parents)
        assert (ROOT / path).exists(), path
        named.add(path)
    for folder in PACKAGES.values():
        modules = [p.relative_to(ROOT) for p in folder.rglob("*.py")]
        assert {f"{module.parent.as_posix()}/" for module in modules} <= named


def test_every_module_begins_with_a_line_on_its_subject() -> None:
    for folder in PACKAGES.values():
        for path in folder.rglob("*.py"):
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
            assert len((text or "").partition("\n")[0]) > 10, path
