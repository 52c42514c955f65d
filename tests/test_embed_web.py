"""The page for web and React Native: its code compiles as printed, and reports arrive from it."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from client_sdk import Collection
from tests.support.command_line import succeed
from tests.support.service import serving
from tests.support.typescript import FOLDER as CLIENT
from tests.support.typescript import built_client

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "embed-web.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```ts\n// (\w+)\.ts\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PYTHON_PAGE = (ROOT / "docs" / "embed.md").read_text(encoding="utf-8")
OPTIONS = {
    "target": "ES2020",
    "module": "ES2020",
    "moduleResolution": "bundler",
    "lib": ["ES2020", "DOM"],
    "types": [],
    "strict": True,
    "noUnusedLocals": True,
    "exactOptionalPropertyTypes": True,
}
MAIN = """
import crypto from "node:crypto";
import fs from "node:fs";

import { Device } from "ldpspatial-client";

import { agreed, reading, upload } from "./collecting.js";
import { storeOver } from "./store.js";

const bytes = (count) => new Uint8Array(crypto.randomBytes(count));
const document = fs.readFileSync("collection.json", "utf8");
const url = process.argv[2];
let held;
const table = { read: async () => held, replace: async (rows) => { held = new Map(rows); } };
const store = storeOver(table);
await Device.open(store, { bytes }).then(() => { throw new Error("opened nothing"); }, () => 0);
const device = await agreed(store, document, bytes);
const names = ["first", "first", "second", "third"];
await Promise.all(names.map((name) => reading(device, name, 52.5, 13.4)));
const done = await upload(device, url, 0);
const again = await Device.open(store, { bytes });
console.log(JSON.stringify([done.delivered, await again.spent(), await again.waiting()]));
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A folder with the page's code, compiled against the client as it is built."""
    built_client()
    for name, code in BLOCKS:
        (tmp_path / f"{name}.ts").write_text(code)
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS}))
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "ldpspatial-client").symlink_to(CLIENT)
    compiler = CLIENT / "node_modules" / "typescript" / "bin" / "tsc"
    done = subprocess.run(
        ["node", compiler, "--project", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return tmp_path


def test_both_pages_pin_one_document() -> None:
    (digest,) = re.findall(r'DIGEST = "([0-9a-f]{64})"', TEXT)
    assert f'DIGEST = "{digest}"' in PYTHON_PAGE
    assert [name for name, _ in BLOCKS] == ["collecting", "web", "store"]


def test_reports_arrive_and_none_beyond_the_cap(app: Path) -> None:
    command = re.search(r"^ldpspatial (collection new .*?--out collection\.json)$", PYTHON_PAGE,
                        re.MULTILINE | re.DOTALL)  # fmt: skip
    assert command
    words = re.findall(r'"[^"]+"|[^\s\\]+', command[1])
    made = app / "collection.json"
    given = [made if word == "collection.json" else word.strip('"') for word in words]
    succeed(*given)
    store = app / "store.db"
    succeed("store", "new", store)
    succeed("store", "add", store, made, "--minimum", "2")
    (app / "main.js").write_text(MAIN)
    with serving(store) as server:
        url = f"http://127.0.0.1:{server.port}/reports"
        done = subprocess.run(
            ["node", "main.js", url], cwd=app, capture_output=True, text=True, check=False,
            timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [2, 7_000_000, 0]
    digest = Collection.from_json(made.read_text()).digest
    closed = succeed("store", "close", store, digest).output
    assert re.search(r"counted +2 \(0 repeated, 0 conflicting\)", closed)
