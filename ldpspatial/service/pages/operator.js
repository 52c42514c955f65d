/** The page of operators: collections, how far they are, their maps. */

import { CellMap, COLOURS, drawLegend, fetchOutlines, inMetres, largest } from "./map.js";

const LOOK_AGAIN_MS = 3000;
const KEY = "token";
const FILES = {
  png: "heatmap.png",
  geojson: "estimate.geojson",
  csv: "estimate.csv",
  npz: "estimate.npz",
};
const STATES = {
  open: "Open: devices send reports, and each is kept until the collection is closed.",
  closed:
    "Closed: no report is taken any more. Repeated reports were looked for, and the rest counted.",
  released: "Released: the reports were deleted. Their counts are all that is left of them.",
  dropped: "Dropped: the reports were deleted, and nothing was made of them.",
};
const QUESTIONS = {
  close: {
    title: "Close this collection?",
    words:
      "No report will be taken any more, and it cannot be opened again. Devices whose report has " +
      "not arrived yet drop it; what they have spent stays spent. Repeated reports are looked " +
      "for, and the rest is counted.",
    yes: "Close for good",
  },
  release: {
    title: "Release this collection?",
    words:
      "All its reports and their ids are deleted and overwritten; the counts stay, and the map is " +
      "made from them. This cannot be undone. If you want to keep the reports, export them first: " +
      "ldpspatial store export.",
    yes: "Delete the reports and release",
  },
  drop: {
    title: "Drop this collection?",
    words:
      "All its reports and their ids are deleted and overwritten, and nothing is made of them: no " +
      "counts, no map. This cannot be undone.",
    yes: "Delete everything",
  },
};

const at = (id) => document.getElementById(id);
let chosen = null; // digest of the collection that is shown
let drawnFor = null; // digest of the map that is shown, or being made
let drawings = 0; // how often a map was asked for
let outlines = null;

/** Ask the service; what it refuses is an Error with its words. */
async function ask(path, options = {}) {
  const answer = await fetch(path, {
    cache: "no-store",
    ...options,
    headers: { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` },
  });
  if (answer.status === 401) {
    sessionStorage.removeItem(KEY);
    show();
    throw new Error("This token is not valid.");
  }
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw new Error(problem.detail ?? `The service answered ${answer.status}.`);
  }
  return answer;
}

/** Run what a person asked for, and say what went wrong. */
async function attempt(work) {
  at("error").hidden = true;
  try {
    return await work();
  } catch (error) {
    at("error").textContent = error.message;
    at("error").hidden = false;
    return undefined;
  }
}

function show() {
  const isIn = sessionStorage.getItem(KEY) !== null;
  at("sign-in").hidden = isIn;
  at("signed-in").hidden = !isIn;
}

async function refresh() {
  const all = await (await ask("/operator/collections")).json();
  at("none").hidden = all.length > 0;
  const focused = document.activeElement?.dataset?.digest;
  at("list").replaceChildren(...all.map(lineOf));
  if (focused) at("list").querySelector(`[data-digest="${focused}"]`)?.focus();
  const one = all.find(({ digest }) => digest === chosen);
  at("one").hidden = !one;
  if (one) showOne(one);
}

function lineOf(one) {
  const line = document.createElement("tr");
  const name = document.createElement("th");
  name.scope = "row";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "second";
  button.textContent = one.name;
  button.dataset.digest = one.digest;
  button.setAttribute("aria-expanded", String(one.digest === chosen));
  button.addEventListener("click", () =>
    attempt(async () => {
      chosen = one.digest;
      await refresh();
      at("one-title").focus();
    }),
  );
  name.append(button);
  const later = one.state === "open" ? "when closed" : "being counted";
  const counted = one.counted === null ? later : number(one.counted);
  line.append(name, cell(one.state));
  for (const text of [number(one.received), counted, number(one.minimum)]) {
    line.append(cell(text, "number"));
  }
  return line;
}

function cell(text, kind = "") {
  const made = document.createElement("td");
  made.className = kind;
  made.textContent = text;
  return made;
}

function showOne(one) {
  at("one-title").textContent = one.name;
  at("state-words").textContent = STATES[one.state];
  at("arriving").max = Math.max(one.minimum, one.received, 1);
  at("arriving").value = one.counted ?? one.received;
  const refused = Object.entries(one.refused).map(([reason, n]) => `${number(n)} ${reason}`);
  const facts = {
    "Id": one.digest,
    "Received": `${number(one.received)} acknowledged, copies among them`,
    "Counted":
      one.counted === null
        ? "repeated reports are looked for when it is closed"
        : `${number(one.counted)} (${number(one.repeated)} repeated, ` +
          `${number(one.conflicting)} conflicting, left out)`,
    "Refused": refused.join(", ") || "none",
    "Minimum": number(one.minimum),
    "Take part": `${location.origin}/participate/${one.digest}`,
  };
  at("facts").replaceChildren(
    ...Object.entries(facts).flatMap(([name, text]) => {
      const term = document.createElement("dt");
      const value = document.createElement("dd");
      term.textContent = name;
      value.textContent = text;
      return [term, value];
    }),
  );
  at("actions").hidden = one.state === "released" || one.state === "dropped";
  at("drop").disabled = one.state !== "closed";
  at("close").disabled = one.state !== "open";
  const isCounted = one.state === "closed" && one.counted !== null;
  at("release").disabled = !isCounted || one.counted < one.minimum;
  const why = whyNot(one);
  at("why-not").hidden = !why;
  at("why-not").textContent = why;
  at("map").hidden = one.state !== "released";
  if (one.state === "released" && drawnFor !== one.digest) attempt(() => showMap(one.digest));
}

function whyNot(one) {
  if (one.state === "open") return "It can be released once it is closed.";
  if (one.counted === null) return "Its reports are being counted.";
  if (one.state === "closed" && one.counted < one.minimum) {
    return (
      `It cannot be released: ${number(one.counted)} reports count, and the minimum is ` +
      `${number(one.minimum)}. Drop it, add another one, and let that run for longer.`
    );
  }
  return "";
}

/** Ask a person whether to close or release, and do it. */
async function change(verb) {
  const question = QUESTIONS[verb];
  at("ask-title").textContent = question.title;
  at("ask-words").textContent = question.words;
  at("ask-yes").textContent = question.yes;
  const digest = chosen;
  at("ask").returnValue = "";
  at("ask").showModal();
  at("ask-no").focus();
  await new Promise((resolve) => at("ask").addEventListener("close", resolve, { once: true }));
  if (at("ask").returnValue !== "yes") return;
  await ask(`/operator/collections/${digest}/${verb}`, { method: "POST" });
  await refresh();
}

/** Show the map of a collection, unless a person chooses another one while it is made. */
async function showMap(digest) {
  const drawing = ++drawings;
  const isLeft = () => drawing !== drawings || digest !== chosen;
  drawnFor = digest;
  at("map-done").hidden = true;
  at("making").hidden = false;
  try {
    const found = await fetchMap(`/operator/collections/${digest}/map`, isLeft);
    if (isLeft()) return;
    at("map-done").hidden = false; // before anything is measured
    drawMap(...found);
  } catch (error) {
    if (isLeft()) return; // it would be told of another collection
    drawnFor = null;
    throw error;
  } finally {
    if (drawing === drawings) {
      at("making").hidden = true;
      if (isLeft()) drawnFor = null; // asked for again when it is chosen again
    }
  }
}

/** Return a map and its summary, once it is made; null where nobody waits for it any more. */
async function fetchMap(path, isLeft) {
  let answer = await ask(path);
  while (answer.status === 202) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    if (isLeft()) return null;
    answer = await ask(path);
  }
  const summary = await answer.json();
  const map = await (await ask(`${path}/map.json`)).json();
  outlines ??= await fetchOutlines();
  return [map, summary];
}

function drawMap(map, summary) {
  const shares = map.density.map((value) => value * map.share);
  const low = map.lower?.map((value) => value * map.share);
  const high = map.upper?.map((value) => value * map.share);
  const density = new CellMap(at("density"), map);
  const top = largest(shares);
  density.fill(shares, top, COLOURS.shares, true);
  density.outline(outlines);
  drawLegend(at("density-legend"), top, COLOURS.shares, true, percent);
  if (low) {
    const widths = high.map((value, k) => value - low[k]);
    const most = largest(widths);
    const width = new CellMap(at("width"), map);
    width.fill(widths, most, COLOURS.widths, false);
    width.outline(outlines);
    drawLegend(at("width-legend"), most, COLOURS.widths, false, percent);
  }
  const words = (k) => (low ? `${percent(low[k])} to ${percent(high[k])}` : "none");
  letRead(density, map.cells, (k) => `${percent(shares[k])}, 95 % interval ${words(k)}`);
  at("cells").replaceChildren(
    ...shares.map((share, k) => {
      const line = document.createElement("tr");
      const place = [Math.floor(k / map.cells), k % map.cells].map(String);
      for (const text of [...place, percent(share), words(k)]) line.append(cell(text, "number"));
      return line;
    }),
  );
  at("fit").className = summary.fit.plausible ? "" : "warning";
  at("fit").textContent = fitWords(summary.fit);
  at("expected").textContent = errorWords(summary, map.kind);
}

/** Let people read single cells, by pointer or keyboard. */
function letRead(map, cells, words) {
  const place = at("density");
  let [row, col] = [Math.floor(cells / 2), Math.floor(cells / 2)];
  const say = () => {
    map.mark("chosen", [row, col]);
    at("cell-words").textContent = `Row ${row}, column ${col}: ${words(row * cells + col)}`;
  };
  const inside = (line) => Math.min(Math.max(line, 0), cells - 1);
  place.onpointermove = (event) => {
    [row, col] = map.cellAt(event).map(inside);
    say();
  };
  place.onkeydown = (event) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    row = inside(row + step[0]);
    col = inside(col + step[1]);
    say();
  };
}

const STEPS = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };

function fitWords(fit) {
  const chance = `p = ${fit.p_value.toPrecision(2)}`;
  if (fit.plausible) {
    return (
      `The reports look as devices of this collection send them (${chance}). Who sends what an ` +
      "honest device might send is not noticed by this check."
    );
  }
  return (
    `Warning: the reports do not look as devices of this collection send them (${chance}). Some ` +
    "may come from devices with other parameters, or be made up. Do not rely on this map."
  );
}

function errorWords(summary, kind) {
  const error = summary.expected_error;
  const [before] = Object.values(error.foretold); // plans are made on one map
  return (
    `Error to expect for ${number(summary.n)} reports, as a mean distance (W2) by which the map ` +
    `is off: ${inMetres(error.this_map.mean, kind)}, as if this map were the truth; before the ` +
    `collection, on the synthetic city of plans, ${inMetres(before.mean, kind)} is foretold for ` +
    "so many reports."
  );
}

async function download(kind) {
  const answer = await ask(`/operator/collections/${drawnFor}/map/${FILES[kind]}`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = FILES[kind];
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

async function add() {
  const file = at("document").files[0];
  const body = { document: await file.text(), minimum: Number(at("minimum").value) };
  const answer = await ask("/operator/collections", {
    method: "POST",
    body: JSON.stringify(body),
  });
  chosen = (await answer.json()).digest;
  at("add").reset();
  await refresh();
}

function number(value) {
  return value.toLocaleString("en");
}

function percent(share) {
  return `${Number((100 * share).toPrecision(3))} %`;
}

at("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, at("token").value.trim());
  at("token").value = "";
  attempt(async () => {
    await refresh();
    show();
  });
});
at("sign-out").addEventListener("click", () => {
  sessionStorage.removeItem(KEY);
  location.reload();
});
at("add").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(add);
});
for (const verb of Object.keys(QUESTIONS)) {
  at(verb).addEventListener("click", () => attempt(() => change(verb)));
}
at("ask-yes").addEventListener("click", () => at("ask").close("yes"));
at("ask-no").addEventListener("click", () => at("ask").close("no"));
for (const kind of Object.keys(FILES)) {
  at(kind).addEventListener("click", () => attempt(() => download(kind)));
}
show();
if (sessionStorage.getItem(KEY) !== null) attempt(refresh);

/** Look again some time after the last answer has come. */
async function keepLooking() {
  const isBusy = document.hidden || at("ask").open || sessionStorage.getItem(KEY) === null;
  if (!isBusy) await refresh().catch(() => {}); // the next look may fare better
  setTimeout(keepLooking, LOOK_AGAIN_MS);
}
setTimeout(keepLooking, LOOK_AGAIN_MS);
