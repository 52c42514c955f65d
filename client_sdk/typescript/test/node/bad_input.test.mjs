/** What is no argument is refused by an error of our own, with its name and not its content. */

import assert from "node:assert/strict";
import test from "node:test";

import * as client from "../../dist/index.js";
import { MemoryStore } from "../support/memory.mjs";
import { collection, installed, pins, series } from "../support/places.mjs";

const WRONG = [null, -0.5, "x", true, [], {}, () => 0, NaN, Symbol("x"), 7n];
const HERE = [41.9, -87.8];
const MANY = collection({ max_reports: 1000 });
const WEEK = series({ windows: 7, answers: 2, firstStart: 0 });

/** Each call with a wrong value in one place; in `fine` what is right there after all. */
async function calls() {
  const { device } = await installed([MANY, WEEK]);
  const report = await device.report(MANY, ...HERE);
  const randomizer = new client.Randomizer(MANY);
  const send = async () => client.LATER;
  const grid = ["plane", 0, 0, 100, 100, 5];
  const store = () => new MemoryStore();
  const { Collection, Device, Grid, Series, Uploader } = client;
  const uploader = (value) => new Uploader(device, send, value);
  const object = (value) => typeof value === "object" && value !== null;
  return {
    grid: [0, 1, 2, 3, 4, 5].map((i) => (v) => {
      return new Grid(...grid.slice(0, i), v, ...grid.slice(i + 1));
    }),
    cell: [
      [(v) => MANY.grid.cell(v, 0), (v) => v === -0.5],
      [(v) => MANY.grid.cell(0, v), (v) => v === -0.5],
      [(v) => MANY.grid.contains(v, 0), (v) => v === -0.5],
    ],
    collection: [
      (v) => Collection.fromJson(v),
      (v) => Collection.fromJson(MANY.toJson(), { digest: v }),
      (v) => Collection.fromJson(MANY.toJson(), { maxEpsilon: v }),
      [(v) => Collection.fromJson(MANY.toJson(), v), object],
    ],
    series: [
      (v) => Series.fromJson(v),
      [(v) => Series.fromJson(WEEK.toJson(), v), object],
      (v) => WEEK.collection(v),
      (v) => WEEK.start(v),
      [(v) => WEEK.windowAt(v), (v) => v === -0.5],
    ],
    report: [(v) => client.Report.fromJson(v), (v) => report.check(v)],
    randomizer: [
      (v) => new client.Randomizer(v),
      [(v) => new client.Randomizer(MANY, v), object],
      (v) => new client.Randomizer(MANY, { bytes: v }).randomize([0, 0]),
      (v) => randomizer.randomize(v),
      (v) => randomizer.randomize([v, 0]),
      [(v) => randomizer.report(v, 0), (v) => v === -0.5],
    ],
    device: [
      (v) => Device.install(v, { capEpsilon: 1 }),
      (v) => Device.install(store(), v),
      (v) => Device.install(store(), { capEpsilon: v }),
      (v) => Device.install(store(), { capEpsilon: 1, collectionCapEpsilon: v ?? "x" }),
      (v) => Device.open(v),
      (v) => Device.open(store(), v),
      (v) => device.join(v, pins(MANY)),
      (v) => device.join(MANY.toJson(), v),
      (v) => device.join(MANY.toJson(), { ...pins(MANY), digest: v }),
      (v) => device.join(MANY.toJson(), { ...pins(MANY), maxEpsilon: v }),
      (v) => device.report(v, ...HERE),
      [(v) => device.report(MANY, v, 0), (v) => v === -0.5],
      [(v) => device.report(MANY, ...HERE, v), object],
      [(v) => device.report(MANY, ...HERE, { event: v }), (v) => v === "x"],
      (v) => device.isAsked(v),
      (v) => device.windows(v),
      (v) => device.spent(v),
      (v) => device.remaining(v),
      [(v) => device.isPending(v), (v) => v === "x"],
      [(v) => device.acknowledge(v), (v) => v === "x" || Array.isArray(v)],
      (v) => device.acknowledge([v, 5]),
      [(v) => device.discard(v), (v) => v === "x" || Array.isArray(v)],
      (v) => device.discardNewest(v),
    ],
    uploader: [
      (v) => new Uploader(v, send),
      [(v) => new Uploader(device, v), (v) => typeof v === "function"],
      [uploader, object],
      [(v) => uploader({ maxDelaySeconds: v }), (v) => v === null],
      [(v) => uploader({ batch: v }), (v) => v === null],
      [(v) => uploader({ outbox: v }), (v) => v === null],
      (v) => uploader({}).runOnce(v),
      (v) => uploader({}).run(v),
      (v) => client.answerOfHttp(v),
      (v) => client.httpsSender(v),
      [(v) => client.httpsSender("https://a.example/", v), object],
    ],
    store: [[(v) => new client.IndexedDbStore(v), (v) => v === "x"]],
  };
}

test("every public function refuses what it cannot take", async () => {
  const found = [];
  let tried = 0;
  for (const [name, list] of Object.entries(await calls())) {
    for (const entry of list) {
      const [call, isFine] = Array.isArray(entry) ? entry : [entry, () => false];
      for (const value of WRONG.filter((wrong) => !isFine(wrong))) {
        const error = await Promise.resolve(value).then(call).then(() => null, (e) => e);
        const isOurs = error instanceof client.ClientError && !/41\.9|87\.8/.test(error.message);
        if (!isOurs) found.push(`${name}: ${call} with ${String(value)}: ${error}`);
        tried++;
      }
    }
  }
  assert.deepEqual(found, []);
  assert.ok(tried > 400);
});
