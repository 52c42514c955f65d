"""The TypeScript client: built by npm, on all vectors in three engines, and against this client.

Its own tests say what they check (client_sdk/typescript/test); here they are run and their counts
are looked at, so that none is left out unnoticed.
"""

import asyncio
import fcntl
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from client_sdk import Collection, Grid
from ldpspatial.service.closing import close_collection
from ldpspatial.service.progress import progress_of
from ldpspatial.service.store import make_store, open_store
from tests.support.service import COLLECTION, serving

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "client_sdk" / "typescript"
VECTORS = ROOT / "client_sdk" / "vectors"
OLDEST_NODE = 20
OURS = {"EINTEGRITY", "EUSAGE", "EJSONPARSE"}  # npm's codes for a wrong file or lock
CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser")
NOT_BUILT = ("node_modules", "dist", "build")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def built() -> Path:
    """Return the folder of the client, installed and built once for its present sources."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("npm is not installed: the tests of the TypeScript client did not run")
    told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.match(r"v(\d+)\.", told)
    if version is None or int(version[1]) < OLDEST_NODE:
        pytest.skip(f"node {OLDEST_NODE} or later is not installed: the TypeScript client's tests "
                    "did not run")  # fmt: skip
    with alone():
        lock = FOLDER / "package-lock.json"
        once("node_modules/installed", digest([lock]), lambda: install(npm))
        sources = [
            path
            for path in sorted(FOLDER.rglob("*"))
            if path.is_file() and path.relative_to(FOLDER).parts[0] not in NOT_BUILT
        ]
        once("build/built", digest([*sources, *sorted(VECTORS.glob("*.json"))]), build)
    return FOLDER


@contextmanager
def alone() -> Iterator[None]:
    """Keep other processes from building at the same time."""
    with (FOLDER / "package.json").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def digest(files: list[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def once(name: str, state: str, make: object) -> None:
    """Make what a file says to be of another state, and write down its state."""
    stamp = FOLDER / name
    if not stamp.exists() or stamp.read_text() != state:
        assert callable(make)
        make()
        stamp.write_text(state)


def install(npm: str) -> None:
    command = [npm, "ci", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=30000"]
    try:
        run = subprocess.run(
            command, cwd=FOLDER, capture_output=True, text=True, check=False, timeout=300
        )
    except subprocess.TimeoutExpired:
        pytest.skip("npm could not install TypeScript's compiler within 300 seconds")
    if run.returncode:
        code = re.search(r"\b(?:code|ERR!) (E[A-Z_]+)", run.stderr)
        assert code is None or code[1] not in OURS, run.stderr
        pytest.skip(f"npm cannot install TypeScript's compiler here: {code and code[1]}")


def build() -> None:
    run = subprocess.run(
        ["npm", "run", "build"], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def suite(name: str) -> str:
    """Run a suite of the client's own tests and return what it printed."""
    run = subprocess.run(
        ["npm", "test", "--", name], cwd=FOLDER, capture_output=True, text=True, check=False,
        timeout=800,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def need_chromium() -> None:
    if not any(Path(path).exists() for path in CHROMIUM):
        pytest.skip("chromium is not installed: the tests of the TypeScript client in a browser "
                    "did not run")  # fmt: skip


def entries(kinds: tuple[str, ...]) -> int:
    """Return how many vectors a port is put to, the table of visible characters as one."""
    files = {path.stem: json.loads(path.read_text()) for path in VECTORS.glob("*.json")}
    count = 1 + sum(len(grid["positions"]) for grid in files["positions"].pop("grids"))
    for name, content in files.items():
        for kind, held in content.items():
            if isinstance(held, list) and (name, kind) not in {
                ("draws", "documents"), ("reports", "outputs"), ("tables", "tables"),
            }:  # fmt: skip
                count += len(held) if kind not in kinds else 0
    return count + 1  # the outputs, all in one


def test_all_vectors_and_its_own_tests_in_node(built: Path) -> None:
    out = suite("node")
    assert f"Node: {entries(())} of {entries(())} vectors" in out
    assert int(re.findall(r"tests (\d+)", out)[0]) >= 50
    assert re.findall(r"(?:skipped|todo) (\d+)", out) == ["0", "0"]


def test_all_vectors_in_hermes_which_decodes_no_bytes(built: Path) -> None:
    count = entries(("bytes",))
    assert f"Hermes: {count} of {count} vectors" in suite("hermes")


def test_vectors_two_tabs_and_kills_in_chromium(built: Path) -> None:
    need_chromium()
    out = suite("chromium")
    assert f"Chromium: {entries(())} of {entries(())} vectors" in out
    assert "Chromium: two tabs, cap 40, 120 attempts: 40 handed out by 2" in out
    assert re.search(r"Chromium: killed 20 times, \d+ handed out, 0 missing", out)


async def prepared(path: Path) -> None:
    store = await make_store(path)
    await store.add(COLLECTION, 5)
    await store.close()


async def counted(path: Path) -> int | None:
    """Close the collection and return how many reports count."""
    store = await open_store(path)
    await close_collection(store, COLLECTION.digest)
    progress = await progress_of(store, await store.held(COLLECTION.digest))
    await store.close()
    return progress.counted


def test_devices_in_a_browser_report_to_the_service_of_another_origin(
    built: Path, tmp_path: Path
) -> None:
    need_chromium()
    path = tmp_path / "store.db"
    asyncio.run(prepared(path))
    positions = [[52.45 + 0.007 * k, 13.3 + 0.01 * k] for k in range(20)]
    with serving(path) as server:
        run = subprocess.run(
            ["node", "test/devices.mjs", f"http://127.0.0.1:{server.port}", COLLECTION.digest],
            input=json.dumps(positions), cwd=FOLDER, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert run.returncode == 0, run.stderr
    spent = 20 * COLLECTION.micro_epsilon
    assert json.loads(run.stdout) == {"delivered": 20, "refused": {}, "failed": 0, "spent": spent}
    assert asyncio.run(counted(path)) == 20


def test_it_is_small(built: Path) -> None:
    packed, most = re.findall(r"packed: (\d+) bytes of (\d+) with series", suite("size"))[0]
    assert 4000 < int(packed) < int(most)


@pytest.mark.parametrize("seed", [1, 2])
def test_it_answers_as_this_client_does(built: Path, seed: int) -> None:
    """16,000 requests catch each of eighty wrong ports: tests/client/test_conformance_cases.py."""
    port = ["node", str(FOLDER / "test" / "conformance.mjs")]
    command = [sys.executable, "-m", "client_sdk.conformance", "compare"]
    run = subprocess.run(
        [*command, "--count", "8000", "--seed", str(seed), "--", *port],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    assert "All answers agree." in run.stdout


def test_the_document_of_its_benchmark_is_one_of_this_client() -> None:
    text = (FOLDER / "test" / "support" / "city.json").read_text().strip()
    grid = Grid.from_center(lat=52.52, lon=13.405, side_m=20_000, cells=64)
    assert text == Collection.create("a city", grid, epsilon=3.5).to_json()
