/** The uploader over a fake clock: what it sends, when, and what it makes of the answers. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import test from "node:test";

import { answerOfHttp, DELIVERED, httpsSender, LATER, Uploader } from "../../dist/index.js";
import { collection, installed } from "../support/places.mjs";

const MANY = collection({ max_reports: 1000 });
const CLOSED = { ...LATER, refusal: "closed" };

/** A device with reports that wait, a clock, and an uploader over them. */
async function made(count, answers, options = {}) {
  const { device, store } = await installed([MANY], { capEpsilon: 10_000 });
  const reports = [];
  for (let k = 0; k < count; k++) reports.push(await device.report(MANY, 41.9, -87.8));
  const clock = { now: 1_800_000_000, waits: [] };
  const bodies = [];
  const send = async (body) => {
    bodies.push(body);
    const answer = typeof answers === "function" ? answers(body) : answers;
    return Array.isArray(answer) ? answer[Math.min(bodies.length, answer.length) - 1] : answer;
  };
  const wait = async (seconds) => {
    clock.waits.push(seconds);
    clock.now += seconds;
  };
  const all = { wait, now: () => clock.now, ...options };
  const make = () => new Uploader(device, send, all);
  return { device, store, reports, clock, bodies, make, upload: make(), all };
}

test("each report goes out alone, as it is stored, in another order", async () => {
  const { device, reports, bodies, upload } = await made(20, DELIVERED);
  const stored = (await device.outbox()).map(([, body]) => body);
  const done = await upload.runOnce();
  assert.deepEqual([...bodies].sort(), [...stored].sort());
  assert.notDeepEqual(bodies, stored); // equal once in 20! runs
  assert.notDeepEqual(bodies, reports.map((report) => report.toBody()));
  assert.ok(bodies.every((body) => /^[\x20-\x7e]{192}$/.test(body)));
  const { delivered, refused, dropped, isComplete, waitSeconds } = done;
  assert.deepEqual([delivered, refused, dropped, isComplete], [20, {}, 0, true]);
  assert.ok(waitSeconds >= 450 && waitSeconds <= 900);
  assert.deepEqual([await device.waiting(), await device.spent()], [0, 20 * 1_400_000]);
});

test("delays are uniform: Kolmogorov and Smirnov at 1e-6; halved ones are noticed", async () => {
  const { clock, upload } = await made(300, DELIVERED, { maxDelaySeconds: 40, batch: 300 });
  await upload.runOnce();
  const distance = (values) =>
    Math.max(
      ...[...values].sort((a, b) => a - b).map((v, i) => Math.abs((i + 0.5) / 300 - v / 40)),
    );
  const critical = 2.7 / Math.sqrt(300); // 2 exp(-2 * 2.7^2) = 9e-7
  assert.equal(clock.waits.length, 300);
  assert.ok(distance(clock.waits) < critical);
  assert.ok(distance(clock.waits.map((v) => v / 2)) > critical);
});

test("the same bytes are sent again, after a pause that doubles, below its bound", async () => {
  const { clock, bodies, make } = await made(1, LATER);
  let bound = 30;
  for (let k = 0; k < 25; k++) {
    const done = await make().runOnce(); // a new one each time: the pause is in the ledger
    assert.equal(done.isComplete, false);
    assert.ok(done.waitSeconds <= bound);
    const early = await make().runOnce();
    assert.ok(Math.abs(early.waitSeconds - done.waitSeconds) < 1e-3);
    clock.now += done.waitSeconds + 0.001;
    bound = Math.min(2 * bound, 6 * 3600);
  }
  assert.equal(bodies.length, 25);
  assert.equal(new Set(bodies).size, 1);
});

test("Retry-After is kept to by all uploaders, for a day at most", async () => {
  for (const [asked, least] of [[77, 77], [1e9, 86_400], [Infinity, 86_400]]) {
    const answer = { ...LATER, retryAfterSeconds: asked };
    const { bodies, clock, make } = await made(2, answer);
    const { waitSeconds } = await make().runOnce();
    assert.ok(waitSeconds >= least && waitSeconds <= least + 30);
    clock.now += least - 1;
    await make().runOnce();
    assert.equal(bodies.length, 1);
  }
});

test("a clock that is turned back begins a pause again, once; turned forward ends it", async () => {
  const { bodies, clock, make } = await made(1, { ...LATER, retryAfterSeconds: 1000 });
  const { waitSeconds } = await make().runOnce();
  clock.now -= 1e8;
  const again = await make().runOnce();
  assert.ok(Math.abs(again.waitSeconds - waitSeconds) < 1);
  clock.now += waitSeconds + 1;
  await make().runOnce();
  assert.equal(bodies.length, 2);
});

test("a report that is refused for good leaves and stays spent", async () => {
  const { device, upload } = await made(3, [DELIVERED, CLOSED, DELIVERED]);
  const done = await upload.runOnce();
  assert.deepEqual([done.delivered, done.refused, done.isComplete], [2, { closed: 1 }, true]);
  assert.deepEqual([await device.waiting(), await device.discarded()], [0, 1]);
  assert.equal(await device.spent(), 3 * 1_400_000);
});

test("one bad report does not block the others", async () => {
  const { device, reports, clock, make } = await made(5, (body) =>
    body.includes(reports[0].id) ? LATER : DELIVERED,
  );
  for (let k = 0; k < 200 && (await device.waiting()) > 1; k++) {
    clock.now += (await make().runOnce()).waitSeconds;
  }
  assert.deepEqual((await device.outbox()).map(([id]) => id), [reports[0].id]);
});

test("an answer that is none loses nothing, and does not come back at once", async () => {
  const answers = [
    undefined, true, 201, {}, { ...LATER, refusal: "whatever" }, { ...LATER, isDelivered: "no" },
    { ...LATER, retryAfterSeconds: NaN }, { ...LATER, retryAfterSeconds: -1 },
    { ...DELIVERED, refusal: "closed" }, { ...LATER, retryAfterSeconds: "5" },
  ];
  for (const answer of answers) {
    const { device, bodies, make } = await made(2, () => answer);
    await assert.rejects(make().runOnce(), { name: "ParameterError" });
    assert.equal((await make().runOnce()).isComplete, false);
    assert.deepEqual([await device.waiting(), bodies.length], [2, 1]);
  }
  const thrown = await made(2, () => {
    throw new RangeError("of the app");
  });
  await assert.rejects(thrown.upload.runOnce(), RangeError);
  assert.equal((await thrown.make().runOnce()).isComplete, false);
  assert.equal(thrown.bodies.length, 1);
});

test("the outbox is bounded, the oldest stay, also while nothing may be sent", async () => {
  const { device, reports, clock, make } = await made(12, LATER, { outbox: 7 });
  const done = await make().runOnce();
  assert.deepEqual([done.dropped, await device.waiting(), await device.discarded()], [5, 7, 5]);
  const kept = (await device.outbox()).map(([id]) => id).sort();
  assert.deepEqual(kept, reports.slice(0, 7).map(({ id }) => id).sort());
  await device.report(MANY, 41.9, -87.8);
  clock.now -= 1;
  assert.equal((await make().runOnce()).dropped, 1);
});

test("a pass has a limit, and the next follows at once", async () => {
  const { upload } = await made(5, DELIVERED, { batch: 2 });
  const passes = [await upload.runOnce(), await upload.runOnce(), await upload.runOnce()];
  assert.deepEqual(passes.map(({ delivered }) => delivered), [2, 2, 1]);
  assert.deepEqual(passes.map(({ waitSeconds }) => waitSeconds === 0), [true, true, false]);
});

test("where nothing can be written nothing is sent, and a pause is kept in mind", async () => {
  const { store, bodies, clock, upload } = await made(2, DELIVERED);
  store.fails = () => true;
  await assert.rejects(upload.runOnce(), { name: "LedgerUnavailableError" });
  store.fails = () => false;
  const early = await upload.runOnce();
  assert.deepEqual([early.isComplete, bodies.length], [false, 0]);
  clock.now += early.waitSeconds;
  assert.equal((await upload.runOnce()).delivered, 2);
});

test("a pass that waits is stopped at once, and a run between passes", async () => {
  const { device, bodies, all } = await made(3, DELIVERED);
  const control = new AbortController();
  const upload = new Uploader(device, async () => assert.fail("sent"), {
    ...all, wait: undefined, maxDelaySeconds: 86_400,
  });
  const running = upload.run(control.signal);
  setImmediate(() => control.abort());
  await running;
  assert.deepEqual([bodies.length, await device.waiting()], [0, 3]);
});

test("two uploaders at once send every report, and none that was dealt with", async () => {
  const { device, bodies, make } = await made(10, DELIVERED);
  const done = await Promise.all([make().runOnce(), make().runOnce()]);
  assert.equal(await device.waiting(), 0);
  assert.equal(new Set(bodies).size, 10);
  assert.ok(done.every(({ isComplete }) => isComplete));
});

test("bad arguments are named", async () => {
  const { device } = await installed([]);
  const wrong = [
    [{ maxDelaySeconds: -1 }, /^maxDelaySeconds must be a number from 0 to 86400, got -1/],
    [{ maxDelaySeconds: "1" }, /^maxDelaySeconds/],
    [{ batch: 0 }, /^batch/],
    [{ outbox: 10 ** 7 }, /^outbox/],
    [{ bytes: 7 }, /^bytes/],
  ];
  for (const [options, message] of wrong) {
    assert.throws(() => new Uploader(device, async () => LATER, options), { message });
  }
  assert.throws(() => new Uploader(device, null), { name: "ParameterError" });
  assert.throws(() => new Uploader({}, async () => LATER), { name: "ParameterError" });
});

// Answers of HTTP

const problem = (reason) => JSON.stringify({ type: `urn:ldpspatial:problem:${reason}` });

test("only 2xx delivers and only registered problems of 4xx are final", () => {
  for (const status of [200, 201, 204, 299]) assert.equal(answerOfHttp(status), DELIVERED);
  for (const reason of ["closed", "foreign", "malformed", "conflict"]) {
    assert.equal(answerOfHttp(410, null, problem(reason)).refusal, reason);
    assert.equal(answerOfHttp(503, null, problem(reason)).refusal, null);
    assert.equal(answerOfHttp(302, null, problem(reason)).refusal, null);
  }
  for (const body of ["", "closed", "null", "[]", problem("Closed"), problem("closed "), "{}"]) {
    assert.deepEqual(answerOfHttp(404, null, body), LATER);
  }
  for (const status of [99, 1000, 200.5, "200", undefined]) {
    assert.throws(() => answerOfHttp(status), { name: "ParameterError" });
  }
});

test("a problem that is no strict JSON passes", () => {
  const withMore = (more) => problem("closed").replace("}", `,"more":${more}}`);
  assert.equal(answerOfHttp(410, null, withMore("1")).refusal, "closed");
  const deep = (depth) => "[".repeat(depth) + "]".repeat(depth);
  const bad = [
    "NaN", "Infinity", "1.5", "1e999", "1".repeat(18), "1".repeat(5000), "true", "null", deep(9),
    deep(20_000), '"\u0001"', '"\ufffd"', `"${"a".repeat(70_000)}"`, '1,"more":2', "1,",
  ];
  for (const more of bad) {
    const { refusal, retryAfterSeconds } = answerOfHttp(410, "7", withMore(more));
    assert.deepEqual([refusal, retryAfterSeconds], [null, 7], more.slice(0, 20));
  }
});

test("Retry-After is read as seconds or as a date", (context) => {
  const now = Date.parse("2026-11-23T10:00:00Z");
  context.mock.timers.enable({ apis: ["Date"], now });
  const cases = {
    120: 120, " 5 ": 5, "00": 0, "-3": 0, "1.5": 0, "1e3": 0, "": 0, soon: 0, 99999999999: 86_400,
    "Mon, 23 Nov 2026 10:01:40 GMT": 100, "Monday, 23-Nov-26 10:01:40 GMT": 100,
    "mon, 23 nov 2026 10:01:40 gmt": 100, "Mon, 23 Nov 2026 10:01:40": 0,
    "Mon, 23 Nov 2026 10:01:40 +0100": 0, "Mon 23 Nov 2026 10:01:40 GMT": 0,
    "Mon, 23 Nov 2026 09:00:00 GMT": 0, "Fri, 31 Dec 2099 23:59:59 GMT": 86_400, "Mon, x": 0,
  };
  for (const [text, seconds] of Object.entries(cases)) {
    assert.equal(answerOfHttp(503, text).retryAfterSeconds, seconds, text);
  }
});

test("an address that is no https, or names a user, is refused", () => {
  const bad = [
    "http://example.org/", "ftp://example.org", "https://", "https://user@example.org/", "", 5,
    "https://example.org/a b", "https://ex\u00e4mple.org/", "http://localhost.example.org/", null,
    "https://user:word@example.org",
  ];
  for (const url of bad) assert.throws(() => httpsSender(url), { name: "ParameterError" }, url);
  for (const url of ["https://example.org/reports", "http://127.0.0.1:80/", "http://[::1]:8/r"]) {
    httpsSender(url);
  }
  for (const timeoutSeconds of [0, -1, 3601, "5", NaN]) {
    assert.throws(() => httpsSender("https://a/", { timeoutSeconds }), { name: "ParameterError" });
  }
});

test("what is sent is the body, its type, and nothing of a device's own", async (context) => {
  const seen = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      seen.push({ method: request.method, headers: request.headers, body });
      const [status, headers, text] = {
        "/ok": [204, {}, ""],
        "/closed": [409, {}, problem("closed")],
        "/busy": [503, { "Retry-After": "33" }, ""],
        "/moved": [307, { Location: "/ok" }, ""],
      }[request.url];
      response.writeHead(status, headers).end(text);
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  context.after(() => server.close());
  const at = (path) => httpsSender(`http://127.0.0.1:${server.address().port}${path}`);
  assert.equal((await at("/ok")("a report")).isDelivered, true);
  assert.equal((await at("/closed")("a report")).refusal, "closed");
  assert.equal((await at("/busy")("a report")).retryAfterSeconds, 33);
  assert.deepEqual(await at("/moved")("a report"), LATER);
  assert.deepEqual(await httpsSender("http://127.0.0.1:9/")("a report"), LATER);
  assert.equal(seen.length, 4); // the redirection was not followed
  for (const { method, headers, body } of seen) {
    assert.deepEqual([method, body], ["POST", "a report"]);
    assert.equal(headers["content-type"], "application/x-ndjson");
    const own = ["cookie", "referer", "authorization"].filter((name) => name in headers);
    assert.deepEqual(own, []);
  }
});

test("an answer that never ends is given up", async (context) => {
  const server = createServer((request, response) => response.writeHead(410).write("{"));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  context.after(() => (server.closeAllConnections(), server.close()));
  const url = `http://127.0.0.1:${server.address().port}/`;
  assert.deepEqual(await httpsSender(url, { timeoutSeconds: 0.2 })("a report"), LATER);
});
