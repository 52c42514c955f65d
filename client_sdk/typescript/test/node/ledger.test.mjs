/** The ledger and the device on it: nothing leaves uncounted, whatever fails. */

import assert from "node:assert/strict";
import test from "node:test";

import * as client from "../support/client.mjs";
import { MemoryStore } from "../support/memory.mjs";
import { collection, EXAMPLE, installed, pins, series } from "../support/places.mjs";

const { Device, LedgerError, LedgerUnavailableError, Report } = client;
const MANY = collection({ max_reports: 1000 });
const HERE = [41.9, -87.8];
const COST = 1_400_000;

test("a device is installed once and opened only where it was", async () => {
  const store = new MemoryStore();
  await assert.rejects(Device.open(store), LedgerError);
  assert.equal(store.rows.size, 0); // opening made nothing
  await Device.install(store, { capEpsilon: 3 });
  await assert.rejects(Device.install(store, { capEpsilon: 300 }), LedgerError);
  assert.equal(await (await Device.open(store)).remaining(), 3_000_000);
});

test("caps are rounded down and bad ones refused", async () => {
  const caps = [
    [{ capEpsilon: 0.7 }, 700_000],
    [{ capEpsilon: 0.0000019 }, 1],
    [{ capEpsilon: 1e6 }, 1e12],
    [{ capEpsilon: 2.0000009, collectionCapEpsilon: 1 }, 2_000_000],
  ];
  for (const [cap, micro] of caps) {
    assert.equal(await (await Device.install(new MemoryStore(), cap)).remaining(), micro);
  }
  for (const capEpsilon of [0, -1, NaN, Infinity, "8", undefined, null, 1e6 + 1, 1e-7, {}]) {
    await assert.rejects(
      Device.install(new MemoryStore(), { capEpsilon }),
      (error) => error.name === "ParameterError" && /^capEpsilon must/.test(error.message),
    );
  }
  const above = { capEpsilon: 1, collectionCapEpsilon: 2 };
  await assert.rejects(Device.install(new MemoryStore(), above), { name: "ParameterError" });
});

test("only what was joined by its digest and largest epsilon is reported to", async () => {
  const { device } = await installed([]);
  await assert.rejects(device.report(MANY, ...HERE), { name: "CollectionError" });
  const text = MANY.toJson();
  const wrong = [
    { digest: EXAMPLE.digest, maxEpsilon: 4 },
    { digest: MANY.digest, maxEpsilon: 1.3 },
    { digest: MANY.digest, maxEpsilon: undefined },
    { digest: undefined, maxEpsilon: 4 },
  ];
  for (const pin of wrong) await assert.rejects(device.join(text, pin), client.ClientError);
  await assert.rejects(device.report(MANY.digest, ...HERE), { name: "CollectionError" });
  await device.join(text, pins(MANY));
  const report = await device.report(MANY.digest, ...HERE);
  report.check(MANY);
  assert.equal(await device.spent(MANY), COST);
});

test("a long document is not joined, whatever it says", async () => {
  const { device } = await installed([]);
  const text = MANY.toJson() + " ".repeat(2 ** 22);
  await assert.rejects(device.join(text, pins(MANY)), { name: "CollectionError" });
});

test("each of three limits stops the reports before anything is drawn", async () => {
  const cases = [
    [{ capEpsilon: 4.3 }, 1000, 3],
    [{ capEpsilon: 100, collectionCapEpsilon: 2.8 }, 1000, 2],
    [{ capEpsilon: 100 }, 4, 4],
  ];
  for (const [caps, max_reports, most] of cases) {
    const what = collection({ max_reports });
    let drawn = 0;
    const bytes = (n) => (drawn++, crypto.getRandomValues(new Uint8Array(n)));
    const { device } = await installed([what], { ...caps, bytes });
    for (let k = 0; k < most; k++) await device.report(what, ...HERE);
    const before = drawn;
    await assert.rejects(device.report(what, ...HERE), { name: "BudgetError" });
    assert.equal(drawn, before);
    assert.deepEqual([await device.spent(), await device.waiting()], [most * COST, most]);
  }
});

test("nothing is given back: not by acknowledging, discarding or joining again", async () => {
  const { device, store } = await installed([MANY], { capEpsilon: 4.3 });
  const ids = [];
  for (let k = 0; k < 3; k++) ids.push((await device.report(MANY, ...HERE)).id);
  await device.acknowledge([ids[0], "unknown"]);
  await device.discard([ids[1], ids[1]]);
  assert.deepEqual([await device.waiting(), await device.discarded()], [1, 1]);
  const again = await Device.open(store);
  await again.join(MANY.toJson(), pins(MANY));
  await assert.rejects(again.report(MANY, ...HERE), { name: "BudgetError" });
  assert.equal(await again.spent(), 3 * COST);
});

test("an event has one report: the stored one while it waits, and then none", async () => {
  const { device, store } = await installed([MANY]);
  const first = await device.report(MANY, ...HERE, { event: "visit 41" });
  const moved = await device.report(MANY, 41.7, -87.6, { event: "visit 41" });
  assert.deepEqual(moved, first);
  const [opened, other] = [await Device.open(store), await Device.open(store)];
  assert.deepEqual(await opened.report(MANY, ...HERE, { event: "visit 41" }), first);
  assert.equal(await device.spent(), COST);
  const second = await other.report(MANY, ...HERE, { event: "visit 42" });
  assert.notEqual(second.id, first.id);
  await device.acknowledge([first.id]);
  await device.discard([second.id]);
  for (const event of ["visit 41", "visit 42"]) {
    await assert.rejects(device.report(MANY, ...HERE, { event }), { name: "AlreadyGivenError" });
  }
  for (const event of ["", 5, null, "\ud800", 52.52]) {
    await assert.rejects(
      device.report(MANY, ...HERE, { event }),
      (error) => error.name === "ParameterError" && !/52/.test(error.message),
    );
  }
  assert.equal(await device.spent(), 2 * COST);
  assert.ok(![...store.rows].flat().join().includes("visit"));
});

test("where the change cannot be written nothing is handed out and nothing is spent", async () => {
  const { device, store } = await installed([MANY]);
  store.fails = () => true;
  await assert.rejects(device.report(MANY, ...HERE, { event: "a" }), LedgerUnavailableError);
  store.fails = () => false;
  assert.deepEqual([await device.spent(), await device.waiting()], [0, 0]);
  const report = await device.report(MANY, ...HERE, { event: "a" });
  assert.deepEqual(await device.outbox(), [[report.id, report.toBody()]]);
});

test("where random bytes are missing nothing is spent, and the next try goes through", async () => {
  let isBroken = false;
  const bytes = (n) => crypto.getRandomValues(new Uint8Array(isBroken ? 1 : n));
  const { device } = await installed([MANY], { bytes });
  isBroken = true;
  const event = { event: "visit 1" };
  await assert.rejects(device.report(MANY, ...HERE, event), { name: "EntropyError" });
  assert.deepEqual([await device.spent(), await device.waiting()], [0, 0]);
  isBroken = false;
  await device.report(MANY, ...HERE, event);
  assert.equal(await device.spent(), COST);
});

test("a report is in the store before it is returned", async () => {
  const { device, store } = await installed([MANY]);
  let isCommitted = false;
  store.fails = () => {
    isCommitted = true;
    return false;
  };
  const report = await device.report(MANY, ...HERE);
  assert.ok(isCommitted);
  assert.ok(store.rows.has(`pending/${report.id}`));
});

test("many calls at once never pass the cap", async () => {
  const { device, store } = await installed([MANY], { capEpsilon: 1.4 * 40 });
  const other = await Device.open(store);
  const attempts = Array.from({ length: 120 }, (_, k) => (k % 2 ? device : other));
  const done = await Promise.allSettled(attempts.map((one) => one.report(MANY, ...HERE)));
  const given = done.filter(({ status }) => status === "fulfilled");
  assert.equal(given.length, 40);
  assert.equal(new Set(given.map(({ value }) => value.id)).size, 40);
  assert.ok(done.every(({ reason }) => !reason || reason.name === "BudgetError"));
});

test("damage is found: a changed, exchanged or missing row", async () => {
  const damages = {
    "a changed number": (rows) =>
      rows.set("ledger/1", rows.get("ledger/1").replace(`${2 * COST}`, `${COST}`)),
    "a row in another's place": (rows, [a, b]) => rows.set(a, rows.get(b)),
    "a missing report": (rows, [a]) => rows.delete(a),
    "a report without its checksum": (rows, [a]) => rows.set(a, rows.get(a).slice(16)),
    "what is no text": (rows, [a]) => rows.set(a, 7),
    "a missing event": (rows) => rows.delete([...rows.keys()].find((n) => n.startsWith("event/"))),
  };
  for (const [name, damage] of Object.entries(damages)) {
    const { device, store } = await installed([MANY]);
    for (const event of ["1", "2"]) await device.report(MANY, ...HERE, { event });
    damage(store.rows, [...store.rows.keys()].filter((row) => row.startsWith("pending/")));
    await assert.rejects(Device.open(store), { name: "LedgerError" }, name);
  }
  const { device, store } = await installed([MANY]);
  store.rows.clear();
  await assert.rejects(device.report(MANY, ...HERE), { name: "LedgerError" });
  assert.equal(store.rows.size, 0);
});

test("the store holds no position and no time", async () => {
  const { device, store } = await installed([MANY]);
  await device.report(MANY, 41.812345, -87.612345, { event: "here" });
  // Less ids, hashes and keys: random digits spell such a number in one run of 50,000.
  const text = [...store.rows].flat().join("\n").replace(/[0-9a-f]{32,}/g, "");
  assert.ok(text.includes("ldpspatial/report/1"));
  assert.ok(!/812345|612345|"lat"|"lon"/.test(text));
  assert.ok(!text.includes(String(Math.floor(Date.now() / 1e6))));
});

// Series

test("a device answers the windows that it drew, once each, by its clock", async (context) => {
  context.mock.timers.enable({ apis: ["Date"], now: 0 });
  const what = series({ windows: 7, answers: 3, firstStart: 1_800_000_000 });
  const { device, store } = await installed([what]);
  const windows = await device.windows(what);
  assert.equal(windows.length, 3);
  await device.join(what.toJson(), pins(what));
  const other = await Device.open(store);
  assert.deepEqual(await other.windows(what.digest), windows);
  const given = [];
  for (let k = 0; k <= 8; k++) {
    context.mock.timers.setTime((what.firstStart + (k - 1) * 1000 + 500) * 1000);
    assert.equal(await device.isAsked(what), windows.includes(k));
    if (!windows.includes(k)) {
      await assert.rejects(device.report(what, ...HERE), { name: "NotAskedError" });
      continue;
    }
    const report = await device.report(what, ...HERE);
    report.check(what.collection(k));
    assert.deepEqual(await other.report(what, 41.7, -87.6), report);
    assert.equal(await device.isAsked(what), false);
    given.push(report.id);
  }
  assert.equal(new Set(given).size, 3);
  assert.equal(await device.spent(what), 3 * COST);
  await device.acknowledge(given);
  context.mock.timers.setTime((what.start(windows[0]) + 1) * 1000); // turned back
  await assert.rejects(device.report(what, ...HERE), { name: "AlreadyGivenError" });
});

test("a series is asked for no position that its budget does not pay for", async (context) => {
  const what = series({ windows: 1, answers: 1, firstStart: 1_800_000_000 });
  context.mock.timers.enable({ apis: ["Date"], now: what.firstStart * 1000 });
  const { device } = await installed([what], { capEpsilon: 1.3 });
  assert.equal(await device.isAsked(what), false);
  await assert.rejects(device.report(what, ...HERE), { name: "BudgetError" });
  const event = { event: "an app's own" };
  await assert.rejects(device.report(what, ...HERE, event), { name: "ParameterError" });
  await assert.rejects(device.isAsked(EXAMPLE.digest), { name: "CollectionError" });
});

test("every set of windows is alike likely: chi-square, false alarm 1e-6", () => {
  const counts = new Map();
  const runs = 35_000;
  for (let k = 0; k < runs; k++) {
    const chosen = String(client.chooseWindows(7, 3, client.systemBytes));
    counts.set(chosen, (counts.get(chosen) ?? 0) + 1);
  }
  assert.equal(counts.size, 35);
  const expected = runs / 35;
  let sum = 0;
  for (const count of counts.values()) sum += (count - expected) ** 2 / expected;
  assert.ok(sum < 92.2); // chi-square of 34 degrees of freedom at 1e-6: 92.1
  // Power: a set that is left out, or one that is twice as likely, adds 1000.
});

test("a body has one length and is read back", async () => {
  const { device } = await installed([MANY]);
  const report = await device.report(MANY, ...HERE);
  const [[id, body]] = await device.outbox();
  assert.deepEqual([id, body.length], [report.id, 192]);
  assert.deepEqual(Report.fromJson(body), report);
});

test("what is no collection is refused and not repeated", async () => {
  const { device } = await installed([MANY]);
  for (const wrong of [41.9, "41.9,-87.8", null, undefined, "", {}, "constructor"]) {
    await assert.rejects(
      device.report(wrong, ...HERE),
      (error) => error.name === "ParameterError" && !/41|87/.test(error.message),
    );
  }
});
