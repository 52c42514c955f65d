/** What was built: no BigInt, no dependency, no randomness of its own, no clock in a draw. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import * as client from "../support/client.mjs";
import { ROOT } from "../support/files.mjs";

const FOLDERS = ["dist", "build/es5"];

function modules(folder) {
  return readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith(".js"))
    .map((name) => [name, code(readFileSync(join(ROOT, folder, name), "utf8"))]);
}

/** A module without its comments. */
function code(text) {
  return text.replace(/\/\*[^]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "");
}

test("no module uses BigInt, Math.random, eval or a name of Node", () => {
  const banned = new RegExp(
    "\\bBigInt\\b|\\bBig(Ui|I)nt64Array\\b|\\b\\d+n\\b|Math\\.random|\\beval\\b|\\bFunction\\(" +
      "|\\brequire\\(|\\bprocess\\b",
  );
  for (const folder of FOLDERS) {
    const found = modules(folder);
    assert.ok(found.length > 15);
    for (const [name, text] of found) assert.doesNotMatch(text, banned, `${folder}/${name}`);
  }
  for (const wrong of ["x = 12n;", "Math.random()", "new BigUint64Array(2)", "BigInt(5)"]) {
    assert.match(wrong, banned);
  }
});

test("modules import each other alone, and no draw knows the date", () => {
  for (const [name, text] of modules("dist")) {
    for (const [, from] of text.matchAll(/from "([^"]+)"/g)) assert.match(from, /^\.\/\w+\.js$/);
    assert.doesNotMatch(text, /\bimport\(/);
    if (/\bDate\b/.test(text)) assert.match(name, /^(device|sending|uploader)\.js$/);
  }
  const { dependencies, peerDependencies } = JSON.parse(
    readFileSync(join(ROOT, "package.json"), "utf8"),
  );
  assert.deepEqual([dependencies, peerDependencies], [undefined, undefined]);
});

test("the lock of the packages names no registry", () => {
  assert.doesNotMatch(readFileSync(join(ROOT, "package-lock.json"), "utf8"), /resolved|https?:/);
});

test("public names are these", async () => {
  const names = Object.keys(await import("../../dist/index.js")).sort();
  assert.deepEqual(names, [
    "AlreadyGivenError", "BudgetError", "ClientError", "Collection", "CollectionError",
    "DELIVERED", "Device", "EntropyError", "Grid", "IndexedDbStore", "LATER", "LedgerError",
    "LedgerUnavailableError", "NotAskedError", "ParameterError", "PositionError", "Randomizer",
    "Report", "ResponseTable", "Series", "Uploader", "answerOfHttp", "httpsSender",
  ]);
});

test("errors are of their classes, and named after them", () => {
  const parents = { LedgerUnavailableError: "LedgerError" };
  const kinds = Object.entries(client).filter(([name]) => name.endsWith("Error"));
  assert.equal(kinds.length, 10);
  for (const [name, Kind] of kinds) {
    const error = new Kind("why");
    assert.deepEqual([error.name, error.message], [name, "why"]);
    const parent = client[parents[name] ?? "ClientError"];
    assert.ok(error instanceof Kind && error instanceof parent && error instanceof Error);
    assert.ok(error instanceof client.LedgerError === name.startsWith("Ledger"));
  }
});

test("SHA-256 and HMAC are those of the standards", async () => {
  const { createHash, createHmac } = await import("node:crypto");
  for (let length = 0; length < 300; length++) {
    const bytes = Uint8Array.from({ length }, (_, i) => (i * 7 + length) % 256);
    const hash = createHash("sha256").update(bytes).digest("hex");
    assert.equal(client.toHex(client.sha256(bytes)), hash);
    const key = bytes.slice(0, 64);
    const right = createHmac("sha256", key).update(bytes).digest("hex");
    assert.equal(client.toHex(client.hmac(key, bytes)), right);
  }
  const text = "Z\u00fcrich \u20ac \ud83d\udeb2 \u0000\u007f\u0080\u07ff\u0800\uffff";
  assert.deepEqual([...client.encode(text)], [...Buffer.from(text)]);
});
