"""Whether two revisions give the same numbers: for fixed seeds, bit by bit.

The probe is a script of its own that knows public names only, so that it runs in any revision; it
is played in a checkout of each, and what differs is named.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).with_name("same_numbers_probe.py")


@click.command("same-numbers")
@click.option("--against", required=True, help="Revision to compare with.")
def same_numbers(against: str) -> None:
    r"""Compare the numbers of this tree with those of another revision.

    \b
    Example:
      python -m experiments same-numbers --against HEAD~1
    """
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "other"
        git("worktree", "add", "--detach", str(other), against)
        try:
            before = numbers(other)
        finally:
            git("worktree", "remove", "--force", str(other))
    after = numbers(ROOT)
    differing = [name for name in before if before[name] != after.get(name)]
    missing = sorted(after.keys() - before.keys())
    for name in differing:
        click.echo(f"{name}: {before[name]} before, {after.get(name, 'nothing')} now")
    click.echo(f"{len(before)} compared, {len(differing)} differ, {len(missing)} are new")
    if differing or missing:
        raise SystemExit(1)


def git(*arguments: str) -> None:
    """Run git quietly in this checkout."""
    subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True)  # noqa: S607


def numbers(tree: Path) -> dict[str, str]:
    """Return what the probe prints in a checkout."""
    path = f"{tree / 'client_sdk' / 'python'}{os.pathsep}{tree}"
    done = subprocess.run(
        [sys.executable, str(PROBE), str(tree)],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found
