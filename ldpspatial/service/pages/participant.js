/**
 * The page of who takes part: what leaves the device, shown before anything does.
 *
 * The true cell is known to this script and the screen alone: requests are made with the body of a
 * report that was drawn, and with nothing else.
 */

import {
  AlreadyGivenError,
  BudgetError,
  Collection,
  Device,
  httpsSender,
  IndexedDbStore,
  Randomizer,
  Uploader,
} from "./client.js";
import { CellMap, COLOURS, drawLegend, fetchOutlines, largest } from "./map.js";

const MANY = 1000;
const MICRO = 1e6;
const UNIT = 1e7; // grid units of a degree or plane unit
const METRES_PER_DEGREE = 111_195;
const LONGEST_DELAY_S = 5; // people wait for it

const at = (id) => document.getElementById(id);
const digest = location.pathname.split("/").pop();
const CAP_EPSILON = 8; // of all collections of this site together
const store = new IndexedDbStore(); // one for all of them: what they tell adds up
let cell = null; // [row, col], of this screen only
let isBusy = false;

function complain(text) {
  at("error").textContent = text;
  at("error").hidden = false;
}

/** Return the document, or say why there is none. */
async function readCollection() {
  if (!/^[0-9a-f]{64}$/.test(digest)) throw new Error("This address names no collection.");
  const answer = await fetch(`/collections/${digest}`);
  if (answer.status === 404) throw new Error("This service has no such collection.");
  if (!answer.ok) throw new Error(`The service answered ${answer.status}. Try again later.`);
  const collection = Collection.fromJson(await answer.text(), { digest });
  if (/ - series [0-9a-f]{64}$/.test(collection.name)) {
    // Which windows a device answers is drawn once; a page for each would answer all of them.
    throw new Error("This is a window of a series: an app takes part in it, and this page cannot.");
  }
  return collection;
}

/** Return what maps are drawn from. */
function pictureOf({ grid }) {
  const isPlane = grid.kind === "plane";
  const [height, width] = [grid.height / UNIT, grid.width / UNIT];
  const middle = ((grid.south / UNIT + height / 2) * Math.PI) / 180;
  const metres = isPlane
    ? [height, width]
    : [height * METRES_PER_DEGREE, width * METRES_PER_DEGREE * Math.cos(middle)];
  return {
    ...{ cells: grid.cells, kind: grid.kind, height, width },
    south: grid.south / UNIT,
    west: grid.west / UNIT,
    cell_m: metres.map((length) => length / grid.cells),
  };
}

function item(text) {
  const made = document.createElement("li");
  made.textContent = text;
  return made;
}

function nameOf([row, col]) {
  return `row ${row} from the south, column ${col} from the west`;
}

function showPromise(collection) {
  const { table, epsilon, maxReports } = collection;
  const odds = Math.exp(epsilon);
  const total = totalOf(table);
  const own = (100 * table.octant[0][0]) / total;
  at("what").replaceChildren(
    item(
      `Your own cell is drawn in ${percent(own)} of all cases, each cell far away in ` +
        `${percent((100 * table.baseWeight) / total)}.`,
    ),
    item(
      `Whatever cell is drawn: no place of the square is more than ${rounded(odds)} times as ` +
        `likely to be yours after it as before, compared with any other (epsilon ${epsilon}, ` +
        "local differential privacy, for each report).",
    ),
    item(
      maxReports === 1
        ? "You can send one report to this collection."
        : `You can send ${maxReports} reports to this collection; what they tell adds up.`,
    ),
  );
  at("deal").textContent =
    `One report spends ${epsilon} of the ${rounded(epsilon * maxReports)} that this collection ` +
    "may ever take from you. It is written down before the report leaves. All collections of this " +
    `site together take at most ${capFor(collection)}, decided when you first take part in one. ` +
    "If you close this page, the report waits in this browser, and is sent when you come back.";
}

/** Return what this browser will ever give, where this collection is its first. */
function capFor({ epsilon, maxReports }) {
  return Math.max(CAP_EPSILON, epsilon * maxReports);
}

function totalOf(table) {
  let total = table.outputSize * table.baseWeight;
  table.octant.forEach((row, x) =>
    row.forEach((weight, y) => {
      const images = x === 0 ? 1 : y === 0 || x === y ? 4 : 8;
      total += images * (weight - table.baseWeight);
    }),
  );
  return total;
}

function rounded(value) {
  return String(Number(value.toPrecision(2)));
}

function percent(value) {
  return `${rounded(value)} %`;
}

/** Let people choose their cell; it goes nowhere. */
function letChoose(map, collection, chosen) {
  const { cells } = collection.grid;
  const inside = (line) => Math.min(Math.max(line, 0), cells - 1);
  const place = at("map");
  const choose = (row, col) => {
    cell = [inside(row), inside(col)];
    chosen();
  };
  place.addEventListener("click", (event) => choose(...map.cellAt(event)));
  place.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const [row, col] = cell ?? [Math.floor(cells / 2), Math.floor(cells / 2)];
    choose(row + step[0], col + step[1]);
  });
  at("here").addEventListener("click", () => {
    if (!navigator.geolocation) return complain("This browser gives no position.");
    navigator.geolocation.getCurrentPosition(
      ({ coords }) => choose(...collection.grid.cell(coords.latitude, coords.longitude)),
      () => complain("The position could not be read. Choose a cell on the map."),
    );
  });
  at("here").hidden = collection.grid.kind === "plane";
}

const STEPS = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };

/** Draw a thousand cells and show where they fall. */
function drawMany(map, randomizer, table) {
  const side = table.cells + 2 * table.radius;
  const counts = new Array(side * side).fill(0);
  let own = 0;
  for (let k = 0; k < MANY; k++) {
    const [row, col] = randomizer.randomize(cell);
    counts[(row + table.radius) * side + col + table.radius]++;
    if (row === cell[0] && col === cell[1]) own++;
  }
  const top = largest(counts);
  map.fill(counts, top, COLOURS.shares, true);
  at("legend").hidden = false;
  drawLegend(at("legend"), top, COLOURS.shares, true, (value) => `${value} of ${MANY}`);
  const different = counts.filter((n) => n > 0).length;
  at("many-words").textContent =
    `${MANY} draws fell on ${different} different cells, ${own} of them on your own.`;
}

/** What is spent, and what waits. */
async function showAccount(device, collection) {
  const spent = await device.spent(collection);
  const waiting = await device.waiting();
  const most = collection.microEpsilon * collection.maxReports;
  at("spent").textContent =
    `${rounded(spent / MICRO)} of ${rounded(most / MICRO)} ` +
    `(${spent / collection.microEpsilon} of ${collection.maxReports} reports)`;
  at("waiting").textContent = waiting === 0 ? "nothing" : `${waiting} reports`;
  at("spending").max = most;
  at("spending").value = spent;
  const left = await device.remaining(collection);
  const isSpent = spent + collection.microEpsilon > most || left < collection.microEpsilon;
  at("take").disabled = isBusy || cell === null || isSpent;
}

/** Open the ledger of this browser, or make it: on the person's own act alone. */
async function openDevice(collection, isAgreed) {
  let device = null;
  try {
    device = await Device.open(store);
  } catch (error) {
    if (!isAgreed) return null;
    device = await Device.install(store, { capEpsilon: capFor(collection) });
  }
  await device.join(collection.toJson(), { digest, maxEpsilon: collection.epsilon });
  return device;
}

/** Send what waits, and say what became of it. */
async function send(device, collection) {
  const sender = httpsSender(`${location.origin}/reports`);
  const uploader = new Uploader(device, sender, { maxDelaySeconds: LONGEST_DELAY_S });
  const done = await uploader.runOnce();
  const refused = Object.keys(done.refused);
  if (refused.includes("closed")) {
    at("sent").textContent = "This collection is closed and takes no more reports. Thank you.";
  } else if (refused.length > 0) {
    at("sent").textContent = "The service does not take this report.";
  } else if (done.delivered > 0) {
    at("sent").textContent = "Sent: the service has your report. Thank you.";
  } else if (!done.isComplete) {
    at("sent").textContent =
      "The service could not be reached. The report waits here and is sent when you come back.";
  }
  await showAccount(device, collection);
}

async function takePart(map, collection) {
  isBusy = true;
  at("take").disabled = true;
  at("error").hidden = true;
  at("sent").textContent = "Writing down what is spent…";
  let device = null;
  try {
    device = await openDevice(collection, true);
    const { grid } = collection;
    // The centre of the cell stands for the position, which the page need not know.
    const lat = (grid.south + ((cell[0] + 0.5) * grid.height) / grid.cells) / UNIT;
    const lon = (grid.west + ((cell[1] + 0.5) * grid.width) / grid.cells) / UNIT;
    const { row, col } = await device.report(collection, lat, lon);
    map.mark("drawn", [row, col]);
    at("drawn-cell").textContent = `${nameOf([row, col])}: this one is sent`;
    at("sent").textContent = "Sending, after a short random wait…";
  } catch (error) {
    if (!(error instanceof BudgetError || error instanceof AlreadyGivenError)) throw error;
    at("sent").textContent = "You have given what may be taken from you. Thank you.";
  } finally {
    isBusy = false;
  }
  await showAccount(device, collection);
  await send(device, collection);
}

async function main() {
  const collection = await readCollection();
  const { table } = collection;
  let device = await openDevice(collection, false); // nothing is waited for once people can click
  document.title = `Take part: ${collection.name}`;
  at("name").textContent = collection.name;
  at("digest").textContent = digest;
  at("ready").hidden = false;
  showPromise(collection);
  const map = new CellMap(at("map"), pictureOf(collection), table.radius);
  const side = table.cells + 2 * table.radius;
  const blank = new Array(side * side).fill(0);
  map.fill(blank, 1, COLOURS.shares, true);
  fetchOutlines().then((outlines) => map.outline(outlines));
  const randomizer = new Randomizer(collection);

  letChoose(map, collection, () => {
    map.fill(blank, 1, COLOURS.shares, true);
    map.mark("chosen", cell);
    map.mark("drawn", null);
    at("legend").hidden = true;
    at("many-words").textContent = "";
    at("drawn-cell").textContent = "none yet";
    at("true-cell").textContent = nameOf(cell);
    at("cell-words").textContent = `Your cell: ${nameOf(cell)}. It stays on this screen.`;
    at("draw").disabled = false;
    at("many").disabled = false;
    if (device === null) at("take").disabled = isBusy;
    else showAccount(device, collection);
  });
  at("draw").addEventListener("click", () => {
    const drawn = randomizer.randomize(cell);
    map.mark("drawn", drawn);
    at("drawn-cell").textContent = `${nameOf(drawn)} (only to look at)`;
  });
  at("many").addEventListener("click", () => drawMany(map, randomizer, table));
  at("take").addEventListener("click", () =>
    takePart(map, collection)
      .catch((error) => {
        at("sent").textContent = "";
        complain(`Nothing more was done: ${error.message}`);
      })
      .then(async () => {
        device = await openDevice(collection, false);
        if (device === null) at("take").disabled = cell === null;
        else await showAccount(device, collection);
      })
      .catch((error) => complain(error.message)),
  );
  if (device !== null) {
    await showAccount(device, collection);
    if ((await device.waiting()) > 0) await send(device, collection);
  }
}

main().catch((error) => complain(error.message));
