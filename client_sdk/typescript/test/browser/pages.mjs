/** What the pages of the tests do in a browser: /page?do=NAME&... runs a function of this file. */

import documents from "../../../vectors/documents.json";
import draws from "../../../vectors/draws.json";
import events from "../../../vectors/events.json";
import positions from "../../../vectors/positions.json";
import reports from "../../../vectors/reports.json";
import series from "../../../vectors/series.json";
import tables from "../../../vectors/tables.json";
import visible from "../../../schema/visible-1.json";
import * as app from "readme";

import * as client from "../support/client.mjs";
import { runVectors, summary } from "../support/vectors.mjs";

const { Collection, Device, IndexedDbStore, Uploader } = client;
const HERE = [41.9, -87.8];
const EXAMPLE = draws.documents
  .map((text) => Collection.fromJson(text))
  .find(({ name }) => name === "worked example");
const MANY = Collection.fromJson(
  JSON.stringify({ ...JSON.parse(EXAMPLE.toJson()), max_reports: 100_000 }),
);
const PINS = { digest: MANY.digest, maxEpsilon: 4 };

const parameters = Object.fromEntries(new URLSearchParams(location.search));
const page = Math.random().toString(16).slice(2); // names a tab in the tests, draws nothing

async function tell(kind, value) {
  const body = JSON.stringify({ kind, value });
  await fetch(`/told?page=${page}`, { method: "POST", body });
}

async function failure(call) {
  try {
    await call;
  } catch (error) {
    return error.name;
  }
  return "none";
}

const store = () => new IndexedDbStore(parameters.name);

async function account(device) {
  const waiting = (await device.outbox()).map(([id]) => id);
  return { spent: await device.spent(), waiting, remaining: await device.remaining() };
}

const pages = {
  /** All vectors. */
  vectors() {
    const all = { documents, draws, events, positions, reports, series, tables };
    return summary("Chromium", runVectors(client, all, visible));
  },

  /** Install a device with a cap, which only this page does. */
  async install() {
    const device = await Device.install(store(), { capEpsilon: Number(parameters.cap) });
    await device.join(MANY.toJson(), PINS);
    return account(device);
  },

  /** What opening does where nothing was installed, and what a deleted ledger does. */
  async lifetime() {
    const { name } = parameters;
    const before = (await indexedDB.databases()).map((database) => database.name);
    const opened = await failure(Device.open(store()));
    const after = (await indexedDB.databases()).map((database) => database.name);
    const device = await Device.install(store(), { capEpsilon: 10 });
    const twice = await failure(Device.install(store(), { capEpsilon: 10 }));
    await device.join(MANY.toJson(), PINS);
    await device.report(MANY, ...HERE, { event: "visit 1" });
    await new Promise((done) => (indexedDB.deleteDatabase(name).onsuccess = done));
    const deleted = await failure(device.report(MANY, ...HERE));
    const gone = await failure(Device.open(store()));
    const left = (await indexedDB.databases()).map((database) => database.name);
    return { before, opened, after, twice, deleted, gone, left };
  },

  /** Ask for reports, and tell the server each one; after the first, wait for other tabs. */
  async spend() {
    const device = await Device.open(store());
    const errors = {};
    for (let k = 0; k < Number(parameters.attempts); k++) {
      // By POST: a second tab that asks its cache for the same address is kept waiting for 20 s.
      if (k === 1) await fetch(`/together?tabs=${parameters.tabs ?? 1}`, { method: "POST" });
      try {
        const { id } = await device.report(MANY, ...HERE);
        await tell("handed out", id);
      } catch (error) {
        errors[error.name] = (errors[error.name] ?? 0) + 1;
        if (error.name !== "BudgetError") errors.message = error.message;
      }
    }
    return errors;
  },

  /** The same event in two tabs has one report. */
  async event() {
    const device = await Device.open(store());
    const reports = [];
    for (let k = 0; k < 20; k++) {
      reports.push((await device.report(MANY, ...HERE, { event: `visit ${k}` })).id);
    }
    return reports;
  },

  async account() {
    return account(await Device.open(store()));
  },

  /** Where a transaction does not become durable nothing is handed out. */
  async durability() {
    const device = await Device.open(store());
    const asked = [];
    const begin = IDBDatabase.prototype.transaction;
    IDBDatabase.prototype.transaction = function (table, mode, options) {
      asked.push(options?.durability);
      return begin.call(this, table, mode, options);
    };
    await device.report(MANY, ...HERE);
    IDBDatabase.prototype.transaction = function (table, mode) {
      return begin.call(this, table, mode); // as a browser that knows no durability
    };
    const relaxed = await failure(device.report(MANY, ...HERE));
    const before = await failure(device.spent());
    IDBDatabase.prototype.transaction = begin;
    const put = IDBObjectStore.prototype.put;
    IDBObjectStore.prototype.put = function (...row) {
      const request = put.apply(this, row);
      request.transaction.abort(); // the disk is full, say
      return request;
    };
    const aborted = await failure(device.report(MANY, ...HERE));
    IDBObjectStore.prototype.put = put;
    return { asked, relaxed, before, aborted, ...(await account(device)) };
  },

  /** Upload all that waits to the server of the test. */
  async upload() {
    const device = await Device.open(store());
    const send = async (body) => {
      await tell("sent", body);
      return client.DELIVERED;
    };
    const done = await new Uploader(device, send, { maxDelaySeconds: 0 }).runOnce();
    return { ...done, ...(await account(device)) };
  },

  /** The app of the README: agree twice, visit twice, upload. */
  async readme() {
    const place = { latitude: 41.9, longitude: -87.8 };
    const before = await failure(app.visit(1, place));
    await app.agree();
    await app.agree();
    await app.visit(1, place);
    await app.visit(1, { latitude: 41.7, longitude: -87.6 });
    const second = await failure(app.visit(2, place));
    await app.upload(0);
    const again = await failure(app.visit(1, place));
    return { before, second, again, ...(await account(await Device.open(new IndexedDbStore()))) };
  },

  /** A device for each position, which reports to a server of another origin. */
  async devices() {
    const { server, digest } = parameters;
    const done = { delivered: 0, refused: {}, failed: 0, spent: 0 };
    const positions = await (await fetch("/positions")).json();
    for (let k = 0; k < positions.length; k++) {
      const device = await Device.install(new IndexedDbStore(`device ${k}`), { capEpsilon: 20 });
      const document = await (await fetch(`${server}/collections/${digest}`)).text();
      await device.join(document, { digest, maxEpsilon: 20 });
      await device.report(digest, ...positions[k], { event: "noon" });
      const send = client.httpsSender(`${server}/reports`);
      const pass = await new Uploader(device, send, { maxDelaySeconds: 0 }).runOnce();
      done.delivered += pass.delivered;
      done.failed += pass.isComplete ? 0 : 1;
      done.spent += await device.spent();
      for (const [reason, count] of Object.entries(pass.refused)) {
        done.refused[reason] = (done.refused[reason] ?? 0) + count;
      }
    }
    return done;
  },

  /** Draws of the browser's own source. */
  draw() {
    const randomizer = new client.Randomizer(EXAMPLE);
    const counts = {};
    for (let k = 0; k < 50_000; k++) {
      const cell = String(randomizer.randomize([1, 0]));
      counts[cell] = (counts[cell] ?? 0) + 1;
    }
    return counts;
  },
};

async function run() {
  await tell("begin", null);
  try {
    await tell("end", await pages[parameters.do]());
  } catch (error) {
    await tell("error", `${error.stack ?? error}`);
  }
}

run();
