/** The client in headless Chromium: vectors, IndexedDB, two tabs, and a browser that is killed. */

import assert from "node:assert/strict";
import { appendFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import test, { after, before } from "node:test";

import { Browser, inTabs, Pages, withBrowser, withProfile } from "../support/browser.mjs";

const COST = 1_400_000;
const KILLS = Number(process.env.KILLS ?? 20);

let pages;
before(async () => {
  pages = await Pages.open();
});
after(() => pages.close());

/** Run with a new browser in a profile, and what opens pages in tabs of it. */
function inBrowser(profile, run) {
  return withBrowser(profile, (browser) => run((...urls) => inTabs(pages, browser, urls)));
}

/** Run with a new browser with a new profile. */
function inNewBrowser(run) {
  return withProfile((profile) => inBrowser(profile, run));
}

/** Run pages in a new browser with a new profile, in tabs of the same name of a store. */
function once(...urls) {
  return inNewBrowser((open) => open(...urls));
}

test("all vectors", async () => {
  const [{ lines, passed, total }] = await once(pages.url("vectors"));
  console.log(lines.join("\n"));
  assert.ok(total > 800);
  assert.equal(passed, total);
});

test("the app of the README reports once, and what it sends tells nothing of its own", async () => {
  const [found] = await once(pages.url("readme"));
  const { before, second, again, spent, waiting } = found;
  assert.deepEqual([before, second, again], ["LedgerError", "BudgetError", "AlreadyGivenError"]);
  assert.deepEqual([spent, waiting], [COST, []]);
  const sent = pages.heard.filter(({ kind }) => kind === "report");
  assert.equal(sent.length, 1);
  const [{ value, headers }] = sent;
  assert.match(value, /^\{"col":-?\d,"collection":"a570[^}]+\} +$/);
  assert.equal(value.length, 192);
  assert.equal(headers["content-type"], "application/x-ndjson");
  for (const name of ["cookie", "referer", "authorization"]) assert.equal(headers[name], undefined);
});

test("draws of the browser's source follow the table: false alarm 1e-6 a cell", async () => {
  const [counts] = await once(pages.url("draw"));
  // Of the worked example: 570718658112328, 214510593955533 and 2^47 of 4696798084871068.
  const probability = ([row, col]) => {
    const [y, x] = [Math.abs(row - 1), Math.abs(col)].sort((a, b) => a - b);
    const weight = { "0,0": 570718658112328, "1,0": 570718658112328, "1,1": 214510593955533 };
    return (weight[`${x},${y}`] ?? 2 ** 47) / 4696798084871068;
  };
  const cells = Object.entries(counts).map(([cell, count]) => [cell.split(",").map(Number), count]);
  assert.equal(cells.length, 16);
  for (const [cell, count] of cells) {
    const p = probability(cell);
    const sigmas = (count - 50_000 * p) / Math.sqrt(50_000 * p * (1 - p));
    // 5.42 sigmas on either side once in 6e-8, sixteen times; a wrong weight is 20 away.
    assert.ok(Math.abs(sigmas) < 5.42, `${cell}: ${sigmas}`);
  }
});

test("opening makes no ledger, and a deleted one is not made anew", async () => {
  const [found] = await once(pages.url("lifetime", { name: "one" }));
  assert.deepEqual(found, {
    before: [],
    opened: "LedgerError",
    after: [],
    twice: "LedgerError",
    deleted: "LedgerError",
    gone: "LedgerError",
    left: [],
  });
});

test("two tabs, a cap of 40, 120 attempts: exactly 40", async () => {
  await inNewBrowser(async (open) => {
    const name = { name: "shared" };
    await open(pages.url("install", { ...name, cap: "56" }));
    const spend = pages.url("spend", { ...name, attempts: "60", tabs: "2" });
    const errors = await open(spend, spend);
    const handed = pages.heard.filter(({ kind }) => kind === "handed out");
    const tabs = new Set(handed.map(({ page }) => page));
    const ids = new Set(handed.map(({ value }) => value));
    const refused = errors.reduce((sum, { BudgetError = 0 }) => sum + BudgetError, 0);
    console.log(`Chromium: two tabs, cap 40, 120 attempts: ${ids.size} handed out by ${tabs.size}`);
    assert.deepEqual([handed.length, ids.size, refused], [40, 40, 80]);
    assert.equal(tabs.size, 2);
    const [{ spent, waiting, remaining }] = await open(pages.url("account", name));
    assert.deepEqual([spent, remaining], [40 * COST, 0]);
    assert.deepEqual(waiting, [...ids].sort());
  });
});

test("two tabs that ask for the same events have the same reports", async () => {
  await inNewBrowser(async (open) => {
    const name = { name: "events" };
    await open(pages.url("install", { ...name, cap: "1000" }));
    const event = pages.url("event", name);
    const [one, other] = await open(event, event);
    assert.equal(new Set(one).size, 20);
    assert.deepEqual(one, other);
    const [{ spent }] = await open(pages.url("account", name));
    assert.equal(spent, 20 * COST);
  });
});

test("a report is handed out only when its transaction is durable", async () => {
  await inNewBrowser(async (open) => {
    const name = { name: "strict" };
    await open(pages.url("install", { ...name, cap: "1000" }));
    const [found] = await open(pages.url("durability", name));
    assert.deepEqual(new Set(found.asked), new Set(["strict"]));
    assert.equal(found.relaxed, "LedgerError");
    assert.equal(found.aborted, "LedgerUnavailableError");
    assert.deepEqual([found.spent, found.waiting.length], [COST, 1]);
  });
});

test("two tabs upload all that waits, each report alone", async () => {
  await inNewBrowser(async (open) => {
    const name = { name: "outbox" };
    await open(pages.url("install", { ...name, cap: "1000" }));
    await open(pages.url("spend", { ...name, attempts: "30" }));
    const upload = pages.url("upload", name);
    const done = await open(upload, upload);
    const sent = pages.heard.filter(({ kind }) => kind === "sent").map(({ value }) => value);
    assert.equal(new Set(sent).size, 30);
    assert.ok(sent.every((body) => body.length === 192));
    assert.ok(done.every(({ isComplete, spent }) => isComplete && spent === 30 * COST));
    const [{ waiting }] = await open(pages.url("account", name));
    assert.deepEqual(waiting, []);
  });
});

/** The account that a device opens with, or null where it refuses because its ledger is gone. */
async function accountOrNone(open, name) {
  try {
    return (await open(pages.url("account", name)))[0];
  } catch (error) {
    if (!/LedgerError: there is no ledger here/.test(error.message)) throw error;
    return null;
  }
}

/** Heads of records that a kill left alone: their lengths are the second pair of bytes but one. */
const TORN = {
  "little is written behind": Uint8Array.of(1, 2, 3, 4, 100, 0, 1), // 100 bytes are to come
  "less is written behind than it announces": Uint8Array.of(1, 2, 3, 4, 0, 112, 1), // 28,672 bytes
};

for (const [name, head] of Object.entries(TORN)) {
  test(`a torn record, ${name}: nothing is forgotten, or no ledger is there`, async () => {
    // A kill between the two writes of a record leaves its head alone. Chromium goes on writing
    // behind it, takes that for damage at the start after the next, and drops the whole database.
    await withProfile(async (profile) => {
      const name = { name: "torn" };
      const spend = pages.url("spend", { ...name, attempts: "3" });
      await inBrowser(profile, async (open) => {
        await open(pages.url("install", { ...name, cap: "1000" }));
        await open(spend);
      });
      const files = readdirSync(profile, { recursive: true });
      const logs = files.filter((file) => /indexeddb.leveldb.\d+\.log$/.test(file));
      if (!logs.length) console.log("Chromium: keeps no log that a kill could tear");
      for (const log of logs) appendFileSync(join(profile, log), head);
      await inBrowser(profile, (open) => open(spend));
      for (let start = 0; start < 2; start++) {
        const account = await inBrowser(profile, (open) => accountOrNone(open, name));
        console.log(`Chromium: after a torn write ${account ? "all is there" : "no ledger is there"}`);
        assert.ok(account === null || account.spent === 6 * COST);
      }
    });
  });
}

test(`killed ${KILLS} times while two tabs spend, nothing handed out is missing`, async () => {
  const most = 40 * KILLS;
  await withProfile(async (profile) => {
    const name = { name: "killed" };
    const cap = String((most * COST) / 1e6);
    const install = pages.url("install", { ...name, cap });
    let browser = new Browser(profile);
    const open = (...urls) => inTabs(pages, browser, urls);
    const handed = new Set();
    let between = 0; // counted, and not told any more
    let given = 0;
    let dropped = 0; // databases, one in some hundred kills: then nothing can be missing
    try {
      await open(install);
      for (let kill = 0; kill < KILLS; kill++) {
        pages.clear();
        const spend = pages.url("spend", { ...name, attempts: "100000", tabs: "2" });
        await browser.open([spend, spend]);
        // At a random moment: after some reports of both tabs, and then some milliseconds.
        const some = 1 + Math.floor(Math.random() * 20);
        await pages.until((heard) => {
          const told = heard.filter(({ kind }) => kind === "handed out");
          const tabs = new Set(told.map(({ page }) => page)).size;
          const isOver = heard.some(({ kind }) => kind === "end" || kind === "error");
          return isOver || (told.length >= some && tabs === 2);
        });
        await new Promise((done) => setTimeout(done, Math.random() * 20));
        await browser.kill();
        for (const { kind, value } of pages.heard) if (kind === "handed out") handed.add(value);

        const failed = pages.heard.find(({ kind }) => kind === "error");
        browser = new Browser(profile); // it is killed next
        const account = await accountOrNone(open, name);
        assert.ok(!failed || account === null, failed?.value);
        if (account === null) {
          dropped += 1;
          given += handed.size;
          handed.clear();
          between = 0;
          await open(install); // as the user would, asked again
          continue;
        }
        const waiting = new Set(account.waiting);
        const missing = [...handed].filter((id) => !waiting.has(id));
        assert.deepEqual(missing, [], `after kill ${kill + 1}`);
        assert.equal(account.spent, waiting.size * COST);
        assert.ok(waiting.size <= most);
        between = waiting.size - handed.size;
      }
      given += handed.size;
      console.log(
        `Chromium: killed ${KILLS} times, ${given} handed out, 0 missing, ` +
          `${between} counted and not handed out, ${dropped} times its database was dropped`,
      );
      assert.ok(given >= KILLS);
      assert.ok(dropped <= KILLS / 4);
      // What is left under the cap is given, and no more.
      await open(pages.url("spend", { ...name, attempts: String(most + 5) }));
      for (const { kind, value } of pages.heard) if (kind === "handed out") handed.add(value);
      assert.equal(handed.size + between, most);
    } finally {
      await browser.kill(); // or it would keep this process from ending
    }
  });
});
