/**
 * The tests: node test/run.mjs [node] [hermes] [chromium] [size]; all of them without a name.
 *
 * What an engine is missing for is said in one line, and its tests do not run.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { CHROMIUM } from "./support/browser.mjs";
import * as client from "./support/client.mjs";
import { ROOT, vectors, visible } from "./support/files.mjs";
import { runVectors, summary } from "./support/vectors.mjs";

const LARGEST = 11_700; // bytes, packed: it must not grow unnoticed
const HERMES = { linux: "linux64-bin", darwin: "osx-bin", win32: "win64-bin" }[process.platform];

function nodeTests(folder) {
  const files = readdirSync(join(ROOT, "test", folder)).filter((name) => /\.test\.mjs$/.test(name));
  const paths = files.map((name) => join(ROOT, "test", folder, name));
  const options = ["--test", "--test-reporter=spec", "--no-warnings"];
  return spawnSync(process.execPath, [...options, ...paths], { stdio: "inherit" }).status === 0;
}

function told({ lines, passed, total }) {
  console.log(lines.join("\n"));
  return total > 800 && passed === total;
}

const suites = {
  node: () => told(summary("Node", runVectors(client, vectors, visible))) && nodeTests("node"),

  hermes() {
    const hermes = join(ROOT, "node_modules/hermes-engine-cli", HERMES ?? "", "hermes");
    if (!existsSync(hermes)) {
      console.log("hermes-engine-cli is not installed: the vectors in Hermes did not run");
      return true;
    }
    const script = join(ROOT, "build/hermes.js");
    const options = { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 2 ** 26 };
    const found = JSON.parse(execFileSync(hermes, ["-w", script], options));
    const { closed, isSame, limit, lengths } = found;
    console.log(`Hermes: a device without random bytes: ${closed}; with the app's own: ${limit}`);
    const isDevice = closed === "EntropyError" && isSame && limit === "BudgetError";
    return told(found) && isDevice && `${lengths}` === "192";
  },

  chromium() {
    if (CHROMIUM) return nodeTests("browser");
    console.log(
      "chromium is not installed: the tests of the TypeScript client in a browser did not run",
    );
    return true;
  },

  /** What an app adds to its page, minified and packed. */
  size() {
    const packed = (name) => {
      const bytes = readFileSync(join(ROOT, "build/packed", `${name}.js`));
      return gzipSync(bytes, { level: 9 }).length;
    };
    console.log(`packed: ${packed("draws")} bytes to verify a collection and to draw`);
    console.log(`packed: ${packed("app")} bytes of ${LARGEST} with series, ledger and uploader`);
    return packed("app") < LARGEST;
  },
};

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(suites);
const failed = names.filter((name) => !suites[name]());
if (failed.length > 0) console.log(`failed: ${failed.join(", ")}`);
process.exitCode = failed.length > 0 ? 1 : 0;
