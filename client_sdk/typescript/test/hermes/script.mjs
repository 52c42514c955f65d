/** All vectors in Hermes, and a device with a store and random bytes that the app passes. */

/* global print */

import documents from "../../../vectors/documents.json";
import draws from "../../../vectors/draws.json";
import events from "../../../vectors/events.json";
import positions from "../../../vectors/positions.json";
import reports from "../../../vectors/reports.json";
import series from "../../../vectors/series.json";
import tables from "../../../vectors/tables.json";
import visible from "../../../schema/visible-1.json";
import * as client from "../support/client.mjs";
import { runVectors, summary } from "../support/vectors.mjs";

const vectors = { documents, draws, events, positions, reports, series, tables };
const told = summary("Hermes", runVectors(client, vectors, visible));

/** One transaction at a time over a map, without classes and async functions. */
function memory() {
  const rows = new Map();
  const own = {
    get: (name) => Promise.resolve(rows.get(name)),
    list: (prefix) =>
      Promise.resolve(Array.from(rows).filter(([name]) => name.indexOf(prefix) === 0).sort()),
    put: (name, text) => void rows.set(name, text),
    remove: (name) => void rows.delete(name),
  };
  return { transact: (work) => work(own) };
}

function failure(call) {
  return Promise.resolve()
    .then(call)
    .then(() => "none", (error) => (error instanceof client.ClientError ? error.name : `${error}`));
}

const { Collection, Device } = client;
const example = draws.documents
  .map((text) => Collection.fromJson(text))
  .filter(({ name }) => name === "worked example")[0];

let next = 0;
const bytes = (count) => Uint8Array.from({ length: count }, () => (next = (next * 5 + 3) % 256));
const pins = { digest: example.digest, maxEpsilon: 4 };
const report = (device, event) => device.report(example.digest, 41.9, -87.8, { event });

failure(() => Device.install(memory(), { capEpsilon: 3 }))
  .then((closed) => {
    told.closed = closed; // no crypto, and no source of the app's own
    return Device.install(memory(), { capEpsilon: 3, bytes });
  })
  .then((device) =>
    device
      .join(example.toJson(), pins)
      .then(() => report(device, "visit 1"))
      .then((first) => report(device, "visit 1").then((again) => first.id === again.id))
      .then((isSame) => (told.isSame = isSame))
      .then(() => failure(() => report(device, "visit 2")))
      .then((name) => (told.limit = name))
      .then(() => device.outbox())
      .then((outbox) => (told.lengths = outbox.map(([, body]) => body.length))),
  )
  .then(
    () => print(JSON.stringify(told)),
    (error) => print(JSON.stringify({ lines: [`Hermes: ${error}`], passed: 0, total: 0 })),
  );
