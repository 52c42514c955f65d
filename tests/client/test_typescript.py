"""The TypeScript client: built by npm, on all vectors in three engines, and against this client.

Its own tests say what they check (client_sdk/typescript/test); here they are run and their counts
are looked at, so that none is left out unnoticed.
"""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from client_sdk import Collection, Grid, answer_of_http
from ldpspatial.service.closing import close_collection
from ldpspatial.service.progress import progress_of
from ldpspatial.service.store import make_store, open_store
from tests.support.service import COLLECTION, serving
from tests.support.typescript import FOLDER, VECTORS, built_client

CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def built() -> Path:
    return built_client()


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


READ_ANSWERS = """
import { readFileSync } from "node:fs";
import { answerOfHttp } from "ldpspatial-client";
const read = ([status, retryAfter, body]) => {
  const { isDelivered, refusal, retryAfterSeconds } = answerOfHttp(status, retryAfter, body);
  return [isDelivered, refusal, retryAfterSeconds];
};
console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(read)));
"""
BODIES = [
    "", "closed", "null", "[]", "{}", "%s", ' {"type": %s}\n', '{"type":%s,"x":1}', '{"type":[%s]}',
    '{"type":"x","type":%s}', '{"type":%s,"type":"x"}', '{"x":{"type":%s}}', '\ufeff{"type":%s}',
    '{"type":"urn:ldpspatial:problem:clos\\u0065d"}', '{"type":"urn:ldpspatial:problem:__proto__"}',
    *(
        f'{{"type":%s,"x":{more}}}'
        for more in (
            "NaN", "-Infinity", "1.5", "1e3", "-0", "-1", "01", "1" * 17, "-" + "1" * 17, "1" * 18,
            "1" * 5000, "true", "false", "null", "{}", "[]", "[[[]]]", "[[[1]]]", "[[[[]]]]",
            '[{"x":[1]}]', '[{"x":[{}]}]', "[" * 500 + "]" * 500, "[" * 20_000 + "]" * 20_000,
            '"1.5e3 [[[[[ NaN"', '"\\ud800"', '"\ufffd"', '"\\ufffd"', '"\x01"', '"\x7f"',
            '"' + "a" * 65_490 + '"', '"' + "\U0001f30d" * 65_400 + '"', '"' + "a" * 65_500 + '"',
        )
    ),
]  # fmt: skip
PAUSES = [
    None, "", "5", " 7 ", "+5", "-5", "1.5", "1e3", "0x10", "5, 6", "9" * 20, "\u0663", "NaN",
    "soon", "Fri, 31 Dec 9999 23:59:59 GMT", "fri, 31 dec 9999 23:59:59 gmt",
    "Friday, 31-Dec-49 23:59:59 GMT",
    "Fri 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59", "Fri Dec 31 23:59:59 9999",
    "Fri, 31 Dec 9999 23:59:59 +0100", "9999-12-31T23:59:59Z", "Fri, 99 Dec 9999 23:59:59 GMT",
    "Fri, 31 Foo 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT",
]  # fmt: skip


def test_it_reads_every_answer_of_a_server_as_this_client_does(built: Path) -> None:
    """Or one of them would drop for good what the other keeps sending."""
    kind = json.dumps("urn:ldpspatial:problem:closed")
    cases = [(410, None, body.replace("%s", kind)) for body in BODIES]
    cases += [(status, pause, "") for status in (404, 503) for pause in PAUSES]
    run = subprocess.run(
        ["node", "--input-type=module", "--eval", READ_ANSWERS], input=json.dumps(cases),
        cwd=FOLDER, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    for (status, pause, body), theirs in zip(cases, json.loads(run.stdout), strict=True):
        ours = answer_of_http(status, pause, body.encode())
        told = [ours.is_delivered, ours.refusal, ours.retry_after_s]
        assert told == theirs, (status, pause, body[:90])


def test_the_document_of_its_benchmark_is_one_of_this_client() -> None:
    text = (FOLDER / "test" / "support" / "city.json").read_text().strip()
    grid = Grid.from_center(lat=52.52, lon=13.405, side_m=20_000, cells=64)
    assert text == Collection.create("a city", grid, epsilon=3.5).to_json()
