"""The client under every Python that the machine has, each without any package installed."""

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.support import device_walk

ROOT = Path(__file__).parents[2]
PATHS = [str(ROOT / "client_sdk" / "python"), str(ROOT / "tests" / "support")]
VERSIONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
TELLS = (
    "import sys, importlib.util\n"
    "print('%d.%d' % sys.version_info[:2], importlib.util.find_spec('_sqlite3') is not None)"
)


def candidates(version: str) -> list[str]:
    """Where an interpreter may be: this one, on the path, or where pyenv keeps its own."""
    found = [sys.executable, shutil.which(f"python{version}") or ""]
    if pyenv := shutil.which("pyenv"):
        told = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False)
        if told.returncode == 0:
            versions = Path(told.stdout.strip()) / "versions"
            found += map(str, sorted(versions.glob(f"{version}.*/bin/python{version}")))
    return [path for path in found if path]


@cache
def interpreter(version: str) -> str:
    """Return an interpreter of a version, or skip: a shim on the path may stand for none."""
    for path in candidates(version):
        command = [path, "-I", "-S", "-c", TELLS]
        told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        if told.returncode == 0 and told.stdout.split() == [version, "True"]:
            return path
    return pytest.skip(f"no python{version} with SQLite is on this machine")


def walk(version: str, stage: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run one stage in a fresh interpreter that sees the standard library and the client alone."""
    script = f"import sys; sys.path += {PATHS!r}; import device_walk; device_walk.main()"
    command = [interpreter(version), "-I", "-S", "-B", "-W", "error", "-c", script]
    return subprocess.run(
        [*command, stage, str(folder)], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_every_module_but_the_kernels_imports_without_a_package(
    version: str, tmp_path: Path
) -> None:
    run = walk(version, "imports", tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout) == {"foreign": [], "digests": device_walk.digests()}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_device_keeps_its_account_through_restarts_and_crashes(
    version: str, tmp_path: Path
) -> None:
    for stage in device_walk.STAGES:
        run = walk(version, stage, tmp_path)
        expected = device_walk.DIED if stage.startswith("dies") else 0
        assert (run.returncode, run.stderr) == (expected, ""), stage


def test_a_device_that_one_python_installed_works_under_any_other(tmp_path: Path) -> None:
    """An app that is updated may bring another Python along."""
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    others = [version for version in VERSIONS if version != here and has(version)]
    if not others:
        pytest.skip("no second Python is on this machine")
    for k, stage in enumerate(device_walk.STAGES):
        version = [here, *others][k % (len(others) + 1)]
        run = walk(version, stage, tmp_path)
        expected = device_walk.DIED if stage.startswith("dies") else 0
        assert (run.returncode, run.stderr) == (expected, ""), (version, stage)


def has(version: str) -> bool:
    try:
        return bool(interpreter(version))
    except pytest.skip.Exception:
        return False
