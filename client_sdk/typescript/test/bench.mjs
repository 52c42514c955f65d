/** Times in Node: one draw, one verification, one document read. Medians of repeated runs. */

import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";

import * as client from "./support/client.mjs";

const RUNS = 21;

/** Return the median time of one call, in microseconds. */
function median(calls, call) {
  const times = [];
  for (let run = 0; run < RUNS; run++) {
    const start = performance.now();
    for (let k = 0; k < calls; k++) call(k);
    times.push(((performance.now() - start) / calls) * 1000);
  }
  return times.sort((a, b) => a - b)[RUNS >> 1];
}

// 64 x 64 cells at epsilon 3.5, designed by the Python client.
const text = readFileSync(new URL("./support/city.json", import.meta.url), "utf8").trim();
const collection = client.Collection.fromJson(text);
const randomizer = new client.Randomizer(collection);
const cells = collection.grid.cells;
const { radius, octant } = collection.table;
console.log(
  `Node ${process.version}, ${cells} x ${cells} cells, epsilon ${collection.epsilon}, radius ` +
    `${radius}, ${octant.flat().length} weights, document of ${text.length} characters`,
);
const rows = [
  ["a draw, pooled entropy", 20_000, (k) => randomizer.randomize([k % cells, (k * 7) % cells])],
  ["a report of a position", 5_000, () => randomizer.report(52.5163, 13.3777)],
  ["reading and verifying a document", 50, () => client.Collection.fromJson(text).digest],
];
for (const [name, calls, call] of rows) {
  console.log(`${name.padEnd(34)} ${median(calls, call).toFixed(2).padStart(9)} microseconds`);
}
