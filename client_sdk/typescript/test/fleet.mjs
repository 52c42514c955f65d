/**
 * The TypeScript half of a fleet: node test/fleet.mjs PLANS URL RESULTS FAULT, as
 * tests/support/fleet_devices.py, but with ledgers in memory. FAULT names one of `faults`, which
 * break the client, or is empty.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";

import { DELIVERED, Device, httpsSender, NotAskedError, Uploader } from "../dist/index.js";
import { MemoryStore } from "./support/memory.mjs";

const AT_ONCE = 32;
const SPENT_AT_MOST = 1000; // epsilon
const PASSES = 8;
const CALM_PASSES = 100;

const faults = {
  /** Another report is sent where the first attempt failed. */
  "drawing anew"(send) {
    const tried = new Set();
    return async (body) => {
      const isAgain = tried.has(body);
      tried.add(body);
      const id = randomBytes(16).toString("hex");
      return send(isAgain ? body.replace(/"id":"[0-9a-f]{32}"/, `"id":"${id}"`) : body);
    };
  },

  /** Every failure is taken for a delivery. */
  "believing anybody": (send) => async (body) => {
    const answer = await send(body);
    return answer.refusal ? answer : DELIVERED;
  },
};

const [plans, url, results, fault] = process.argv.slice(2);
const { documents, devices } = JSON.parse(readFileSync(plans, "utf8"));
const post = fault ? faults[fault](httpsSender(url)) : httpsSender(url);

// Each device has a clock of its own, which its code asks for as Date.now().
const own = new AsyncLocalStorage();
const systemNow = Date.now;
Date.now = () => (own.getStore() ? own.getStore().now * 1000 : systemNow());

/** A device that lives through a plan, and what it believes of its reports. */
class Played {
  store = new MemoryStore();
  reports = new Map(); // bodies by id
  heard = new Map();
  told = { delivered: 0, dropped: 0 };
  unasked = 0;
  redrawn = 0;
  passes = 0;
  waits = false;

  constructor(plan) {
    this.plan = plan;
    this.clock = { now: plan.time };
  }

  /** Install the device, join, and read all positions of the plan. */
  async begin() {
    this.device = await Device.install(this.store, { capEpsilon: SPENT_AT_MOST });
    for (const reading of this.plan.readings) {
      const digest = reading.what;
      await this.device.join(documents[digest], { digest, maxEpsilon: 4 });
      await this.read(reading);
    }
  }

  async read({ what, lat, lon, event, is_asked_again: isAskedAgain }) {
    const named = { event: event ?? undefined };
    try {
      const report = await this.device.report(what, lat, lon, named);
      this.reports.set(report.id, report.toBody());
      if (isAskedAgain) {
        this.device = await Device.open(this.store); // as after a crash, from elsewhere
        const same = await this.device.report(what, 1, 2, named);
        if (same.toBody() !== report.toBody()) this.redrawn++;
      }
    } catch (error) {
      if (!(error instanceof NotAskedError)) throw error;
      this.unasked++;
    }
  }

  /** Make one pass; tell whether anything waits then. */
  async send() {
    const { clock, plan, told } = this;
    if (plan.restarts[this.passes % PASSES]) this.device = await Device.open(this.store);
    const uploader = new Uploader(this.device, (body) => this.attempt(body), {
      outbox: plan.outbox,
      wait: async (seconds) => void (clock.now += seconds),
      now: () => clock.now,
    });
    const done = await uploader.runOnce();
    told.delivered += done.delivered;
    told.dropped += done.dropped;
    for (const [reason, n] of Object.entries(done.refused)) told[reason] = (told[reason] ?? 0) + n;
    clock.now += done.waitSeconds + (plan.jumps[this.passes] ?? 0);
    this.passes++;
    this.waits = (await this.device.waiting()) > 0;
    return this.waits;
  }

  async attempt(body) {
    const sent = this.plan.spoils ? body.replace('"row":', '"row":0.0e0,"row":') : body;
    const answer = await post(sent);
    const { isDelivered, refusal } = answer;
    if (isDelivered || refusal) this.heard.set(JSON.parse(body).id, refusal ?? "delivered");
    return answer;
  }

  /** Return what the device believes. */
  async found() {
    const device = await Device.open(this.store); // which verifies all of the ledger
    const waiting = new Set((await device.outbox()).map(([id]) => id));
    const fateOf = (id) => (waiting.has(id) ? "waiting" : (this.heard.get(id) ?? "dropped"));
    return {
      number: this.plan.number,
      spoils: this.plan.spoils,
      reports: [...this.reports].map(([id, body]) => ({ body, fate: fateOf(id) })),
      told: this.told,
      spent: await device.spent(),
      discarded: await device.discarded(),
      unasked: this.unasked,
      redrawn: this.redrawn,
    };
  }
}

/** Play devices in turn, many at once; until each has nothing left, or made `most` passes. */
async function storm(fleet, most) {
  const turns = fleet.map((played) => [played]); // who is due at each turn
  let turn = 0;

  async function play(played) {
    if (played.passes === 0) await played.begin();
    if ((await played.send()) && played.passes < most) {
      const next = turn + played.plan.delays[played.passes % PASSES]; // after others
      (turns[next] ??= []).push(played);
    }
  }

  async function work() {
    while (turn < turns.length) {
      const played = turns[turn]?.pop();
      if (played) await own.run(played.clock, play, played);
      else turn++;
    }
  }

  // Those who end while others may still come again are replaced by the next round.
  while (turn < turns.length) await Promise.all(Array.from({ length: AT_ONCE }, work));
}

const fleet = devices.map((plan) => new Played(plan));
await storm(fleet, PASSES);
console.log("the storm is over");
await once(process.stdin, "data");
await storm(fleet.filter((played) => played.waits), CALM_PASSES);
const found = [];
for (const played of fleet) found.push(await played.found());
writeFileSync(results, JSON.stringify(found));
process.exit();
