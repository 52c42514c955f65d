"""Commands of experiments, run twice: into the docs, and from the runs that were kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from experiments.generated import generated, head


@dataclass(frozen=True)
class Written:
    """Folders that a command wrote to, and what stands below the head of its generated page."""

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
    """Write the generated page ``name``, and run once more, which changes no file.

    ``begins`` is what the output proper begins with, behind what progress said.
    """
    docs, out = folder / "docs", folder / "out"
    docs.mkdir()
    monkeypatch.setattr("experiments.setup.DOCS", docs)
    monkeypatch.setattr("os.fsync", lambda _: None)  # no power cut here, and hundreds of runs
    given = [str(word) for word in ("--out", out, "--jobs", 1, *options)]
    first = CliRunner().invoke(command, [*given, "--write"], catch_exceptions=False)
    assert first.exit_code == 0, first.output
    page = generated(docs, f"{name}.md").read_text()
    assert page.startswith(f"{head(name)}\n")
    text = page.removeprefix(f"{head(name)}\n")
    assert "nan" not in text
    files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert any(path.suffix == ".jsonl" for path in files)
    again = CliRunner().invoke(command, given, catch_exceptions=False)
    assert again.output.split(begins, 1)[1] == first.output.split(begins, 1)[1]
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == files
    return Written(docs, out, text)
