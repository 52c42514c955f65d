"""Commands of experiments, run twice: into the docs, and from the runs that were kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner


@dataclass(frozen=True)
class Written:
    """Where a command wrote, and its page of the docs."""

    docs: Path
    out: Path
    text: str


def run_and_resume(
    command: click.Command,
    name: str,
    options: Sequence[object],
    begins: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Written:
    """Fill the block ``name`` of a page, and run once more, which changes no file.

    ``begins`` is what the output proper begins with, behind what progress said.
    """
    docs, out = folder / "docs", folder / "out"
    docs.mkdir()
    page = docs / "experiments.md"
    page.write_text(f"before\n<!-- {name} -->\n<!-- /{name} -->\nafter\n")
    monkeypatch.setattr("experiments.papers.distributed.setup.DOCS", docs)
    monkeypatch.setattr("os.fsync", lambda _: None)  # no power cut here, and hundreds of runs
    given = [str(word) for word in ("--out", out, "--jobs", 1, *options)]
    first = CliRunner().invoke(command, [*given, "--write"], catch_exceptions=False)
    assert first.exit_code == 0, first.output
    text = page.read_text()
    assert text.startswith(f"before\n<!-- {name} -->\n")
    assert text.endswith(f"\n<!-- /{name} -->\nafter\n")
    assert "nan" not in text
    files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert any(path.suffix == ".jsonl" for path in files)
    again = CliRunner().invoke(command, given, catch_exceptions=False)
    assert again.output.split(begins, 1)[1] == first.output.split(begins, 1)[1]
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == files
    return Written(docs, out, text)
