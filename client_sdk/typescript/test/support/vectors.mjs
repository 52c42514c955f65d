/**
 * Every vector of client_sdk/vectors, put to a client: how many of how many it passes.
 *
 * Runs in Node, in a browser and in engines without classes and async functions.
 */

import { double, drawn, fixedEntropy } from "./answers.mjs";

export const FILES = ["documents", "draws", "events", "positions", "reports", "series", "tables"];

/**
 * Return, for each file of vectors, how many passed, of how many, and what did not.
 *
 * `vectors` holds the content of the files by name, and `visible` that of the table of visible
 * characters (client_sdk/schema/visible-1.json).
 */
export function runVectors(client, vectors, visible) {
  const results = {};
  for (const name of [...FILES, "visible"]) {
    const result = { passed: 0, total: 0, failed: [] };
    const check = (title, holds) => {
      result.total++;
      let found = "does not hold";
      try {
        if (holds()) {
          result.passed++;
          return;
        }
      } catch (error) {
        found = `${error}`;
      }
      result.failed.push(`${title}: ${found}`);
    };
    if (name === "visible") checkVisible(client, visible, check);
    else RUNNERS[name](client, vectors[name], check);
    results[name] = result;
  }
  return results;
}

const RUNNERS = { documents, draws, events, positions, reports, series, tables };

function refuses(kind, call) {
  try {
    call();
  } catch (error) {
    return error instanceof kind;
  }
  return false;
}

function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

function long(parts) {
  return parts.map(([text, times]) => text.repeat(times)).join("");
}

function expected(entry) {
  const most = entry.max_micro_epsilon;
  return { digest: entry.digest, maxEpsilon: most === undefined ? undefined : most / 1e6 };
}

function documents({ Collection, CollectionError, fromHex }, vectors, check) {
  for (const { text, canonical, digest } of vectors.good) {
    check(digest, () => {
      const made = Collection.fromJson(text, { digest });
      return made.toJson() === canonical && made.digest === digest;
    });
  }
  for (const entry of vectors.bad) {
    const read = () => Collection.fromJson(entry.text, expected(entry));
    check(entry.reason, () => refuses(CollectionError, read));
  }
  // The client reads texts. Strictly decoded, the bytes are refused then or as a text; an engine
  // without a decoder has no texts of bytes.
  for (const { reason, hex } of typeof TextDecoder === "undefined" ? [] : vectors.bytes) {
    check(reason, () => {
      const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
      try {
        Collection.fromJson(decoder.decode(fromHex(hex)));
      } catch (error) {
        return error instanceof CollectionError || error instanceof TypeError;
      }
      return false;
    });
  }
  for (const { reason, parts, digest } of vectors.long) {
    const read = () => Collection.fromJson(long(parts)).digest;
    check(reason, () => (digest === null ? refuses(CollectionError, read) : read() === digest));
  }
}

function draws({ Collection, fromHex, ParameterError, Sampler }, vectors, check) {
  const samplers = vectors.documents.map((text) => new Sampler(Collection.fromJson(text).table));
  for (const { document, cell, entropy, output, bytes } of vectors.draws) {
    check(`${document} ${cell} ${entropy}`, () => {
      const source = fixedEntropy(fromHex(entropy));
      const found = drawn(source, () => samplers[document].draw(cell[0], cell[1], source));
      return same(found, output) && source.used === bytes;
    });
  }
  for (const { document, cell } of vectors.bad) {
    const source = fixedEntropy(new Uint8Array(7));
    const draw = () => samplers[document].draw(cell[0], cell[1], source);
    check(`bad cell ${cell}`, () => refuses(ParameterError, draw) && source.used === 0);
  }
}

function events({ eventName, fromHex, ParameterError, toHex }, vectors, check) {
  for (const { key, digest, event, name } of vectors.events) {
    check(event, () => toHex(eventName(fromHex(key), digest, event)) === name);
  }
  for (const { key, digest, event } of vectors.bad) {
    const call = () => eventName(fromHex(key), digest, event);
    check(`bad event ${event}`, () => refuses(ParameterError, call));
  }
}

function positions({ Grid, PositionError }, vectors, check) {
  for (const { kind, south_e7, west_e7, height_e7, width_e7, cells, positions } of vectors.grids) {
    const grid = new Grid(kind, south_e7, west_e7, height_e7, width_e7, cells);
    for (const { at, cell, inside } of positions) {
      const y = double(at[0]);
      const x = double(at[1]);
      check(`${at}`, () => same(grid.cell(y, x), cell) && grid.contains(y, x) === inside);
    }
  }
  for (const { kind, at } of vectors.bad) {
    const grid = new Grid(kind, 0, 0, 10000000, 10000000, 5);
    const find = () => grid.cell(double(at[0]), double(at[1]));
    check(`bad position ${at}`, () => refuses(PositionError, find));
  }
}

function reports({ Collection, CollectionError, Report }, vectors, check) {
  const collection = Collection.fromJson(vectors.document);
  check("outputs", () => same(collection.table.outputCells(), vectors.outputs));
  for (const { text, canonical } of vectors.good) {
    check(text, () => {
      Report.fromJson(text).check(collection);
      return Report.fromJson(text).toJson() === canonical;
    });
  }
  for (const text of vectors.bad) {
    check(text, () => refuses(CollectionError, () => Report.fromJson(text)));
  }
  for (const text of vectors.foreign) {
    const report = Report.fromJson(text);
    check(text, () => refuses(CollectionError, () => report.check(collection)));
  }
  for (const { text, body } of vectors.bodies) {
    check(text, () => Report.fromJson(text).toBody() === body);
  }
}

function series(client, vectors, check) {
  const { chooseWindows, CollectionError, fromHex, ParameterError, Series } = client;
  const all = vectors.good.map(({ text }) => Series.fromJson(text));
  vectors.good.forEach(({ canonical, digest }, k) => {
    check(digest, () => all[k].toJson() === canonical && all[k].digest === digest);
  });
  for (const { series: k, window, start, digest, canonical } of vectors.windows) {
    check(`window ${window}`, () => {
      const made = all[k].collection(window);
      const isText = canonical === undefined || made.toJson() === canonical;
      return all[k].start(window) === start && made.digest === digest && isText;
    });
  }
  for (const { series: k, seconds, window } of vectors.times) {
    check(`at ${seconds}`, () => all[k].windowAt(seconds) === window);
  }
  for (const { series: k, window } of vectors.bad_windows) {
    check(`no window ${window}`, () => refuses(ParameterError, () => all[k].collection(window)));
  }
  for (const entry of vectors.bad) {
    const read = () => Series.fromJson(entry.text, expected(entry));
    check(entry.reason, () => refuses(CollectionError, read));
  }
  for (const { reason, parts } of vectors.long) {
    check(reason, () => refuses(CollectionError, () => Series.fromJson(long(parts))));
  }
  for (const { windows, answers, entropy, chosen, bytes } of vectors.choices) {
    check(`${answers} of ${windows}`, () => {
      const source = fixedEntropy(fromHex(entropy));
      const found = drawn(source, () => chooseWindows(windows, answers, source));
      return same(found, chosen) && source.used === bytes;
    });
  }
}

/** The bounds; the tables themselves are for ports that design. */
function tables({ expBelow }, vectors, check) {
  for (const { micro_epsilon, bound } of vectors.bounds) {
    check(`e^${micro_epsilon}`, () => {
      const limbs = expBelow(micro_epsilon);
      const digits = limbs.map((limb) => (limb + 0x1000000).toString(16).slice(1)).reverse();
      return digits.join("").replace(/^0+/, "") === bound;
    });
  }
}

/** Every code point against the table of the protocol. */
function checkVisible({ isVisible }, { ranges }, check) {
  check("the table of visible characters", () => {
    let range = 0;
    for (let code = 0; code <= 0x10ffff; code++) {
      while (range < ranges.length && code > ranges[range][1]) range++;
      const isListed = range < ranges.length && code >= ranges[range][0] && code !== 0x20;
      if (isVisible(String.fromCodePoint(code), 1) !== isListed) return false;
    }
    return true;
  });
}

/** Return the lines that a run prints, and whether all passed. */
export function summary(engine, results) {
  const counts = Object.values(results);
  const passed = counts.reduce((sum, result) => sum + result.passed, 0);
  const total = counts.reduce((sum, result) => sum + result.total, 0);
  const failed = [].concat(...counts.map((result) => result.failed));
  const lines = [`${engine}: ${passed} of ${total} vectors`];
  for (const reason of failed.slice(0, 10)) lines.push(`  ${reason.slice(0, 200)}`);
  return { lines, passed, total };
}
