/** The vectors and the table of visible characters, read from the repository. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { FILES } from "./vectors.mjs";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const SHARED = new URL("../../../", import.meta.url);

function load(name) {
  return JSON.parse(readFileSync(new URL(name, SHARED), "ascii"));
}

export const visible = load("schema/visible-1.json");
export const vectors = Object.fromEntries(
  FILES.map((name) => [name, load(`vectors/${name}.json`)]),
);
