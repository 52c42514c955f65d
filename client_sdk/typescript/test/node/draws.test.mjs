/** Drawing: the whole distribution, the source of randomness, and what is never told. */

import assert from "node:assert/strict";
import test from "node:test";

import * as client from "../support/client.mjs";
import { fixedEntropy } from "../support/answers.mjs";
import { vectors } from "../support/files.mjs";
import { collection, EXAMPLE } from "../support/places.mjs";

const { below, Collection, EntropyError, ParameterError, Randomizer, Sampler } = client;

/** A table of total 29 over 13 output cells: every integer below it can be tried. */
const SMALL = vectors.draws.documents
  .map((text) => Collection.fromJson(text))
  .filter(({ table }) => total(table) < 5000);

function total({ outputSize, baseWeight, octant }) {
  let sum = outputSize * baseWeight;
  octant.forEach((row, x) =>
    row.forEach((weight, y) => {
      const images = new Set();
      for (const [a, b] of [[x, y], [y, x]]) {
        for (const s of [1, -1]) for (const t of [1, -1]) images.add(`${s * a + 0},${t * b + 0}`);
      }
      sum += images.size * (weight - baseWeight);
    }),
  );
  return sum;
}

function word(u) {
  const bytes = new Uint8Array(7);
  for (let i = 6; i >= 0; i--, u = Math.floor(u / 256)) bytes[i] = u % 256;
  return bytes;
}

test("every integer below the total leads to a cell, and so many as its weight says", () => {
  assert.ok(SMALL.length >= 1);
  for (const { grid, table } of SMALL) {
    const sampler = new Sampler(table);
    for (let row = 0; row < grid.cells; row++) {
      for (let col = 0; col < grid.cells; col++) {
        const counts = new Map(table.outputCells().map((cell) => [String(cell), 0]));
        for (let u = 0; u < total(table); u++) {
          const cell = String(sampler.draw(row, col, fixedEntropy(word(u))));
          counts.set(cell, counts.get(cell) + 1);
        }
        for (const [r, c] of table.outputCells()) {
          const [y, x] = [Math.abs(r - row), Math.abs(c - col)].sort((a, b) => a - b);
          const weight = table.octant[x]?.[y] ?? table.baseWeight;
          assert.equal(counts.get(`${r},${c}`), weight, `${row},${col} to ${r},${c}`);
        }
      }
    }
  }
});

/** Upper tail of chi-square far out: Wilson and Hilferty's normal approximation, z of 1e-6. */
function limit(freedom) {
  const z = 4.7534;
  const part = 2 / (9 * freedom);
  return freedom * (1 - part + z * Math.sqrt(part)) ** 3;
}

function chiSquare(counts, expected) {
  return counts.reduce((sum, count, i) => sum + (count - expected[i]) ** 2 / expected[i], 0);
}

test("draws from the platform follow the table: chi-square, false alarm 1e-6", () => {
  const randomizer = new Randomizer(EXAMPLE);
  const cells = EXAMPLE.table.outputCells();
  const { baseWeight, octant } = EXAMPLE.table;
  const draws = 200_000;
  const counts = new Map(cells.map((cell) => [String(cell), 0]));
  for (let i = 0; i < draws; i++) {
    const cell = String(randomizer.randomize([1, 0]));
    counts.set(cell, counts.get(cell) + 1);
  }
  const weights = cells.map(([r, c]) => {
    const [y, x] = [Math.abs(r - 1), Math.abs(c)].sort((a, b) => a - b);
    return octant[x]?.[y] ?? baseWeight;
  });
  const sum = weights.reduce((a, b) => a + b);
  const found = cells.map((cell) => counts.get(String(cell)));
  const expected = weights.map((weight) => (draws * weight) / sum);
  assert.ok(chiSquare(found, expected) < limit(cells.length - 1));
  // Power: cells that are two in a hundred likelier than they should be are noticed.
  const skewed = expected.map((count, i) => count * (i % 2 ? 1.02 : 0.98));
  const scale = draws / skewed.reduce((a, b) => a + b);
  const noticed = chiSquare(skewed.map((count) => count * scale), expected);
  assert.ok(noticed > limit(cells.length - 1));
});

test("an input cell that is none is refused and not repeated, before a byte is read", () => {
  const sampler = new Sampler(EXAMPLE.table);
  for (const bad of [-1, 2, 0.5, NaN, "1", null, undefined, 1n]) {
    for (const cell of [[bad, 0], [0, bad]]) {
      const source = () => assert.fail("a byte was read");
      assert.throws(() => sampler.draw(...cell, source), {
        name: "ParameterError",
        message: "row and col must be whole numbers from 0 to 1",
      });
    }
  }
});

test("there is no draw where the bytes are not secure or not enough", () => {
  const sampler = new Sampler(EXAMPLE.table);
  const sources = [
    () => new Uint8Array(6),
    () => [1, 2, 3, 4, 5, 6, 7],
    () => undefined,
    () => Promise.resolve(new Uint8Array(7)),
  ];
  for (const source of sources) {
    const checked = client.checkedSource(source);
    assert.throws(() => sampler.draw(0, 0, checked), EntropyError);
  }
  assert.throws(() => new Randomizer(EXAMPLE, { bytes: 7 }), ParameterError);
});

function withCrypto(value, call) {
  const own = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  Object.defineProperty(globalThis, "crypto", { value, configurable: true });
  try {
    return call();
  } finally {
    Object.defineProperty(globalThis, "crypto", own);
  }
}

test("the pool ends with its task, is overwritten where used, and fails closed", async () => {
  let filled = [];
  const counted = (fill) => ({
    getRandomValues(target) {
      filled.push(target);
      fill(target);
      return target;
    },
  });
  await Promise.resolve();
  for (const broken of [undefined, {}, counted(() => {}), counted((pool) => pool.fill(0))]) {
    withCrypto(broken, () => assert.throws(() => client.systemBytes(7), EntropyError));
  }
  filled = [];
  withCrypto(counted((pool) => pool.fill(7)), () => {
    for (let i = 0; i < 20; i++) assert.deepEqual([...client.systemBytes(7)], Array(7).fill(7));
    assert.equal(filled.length, 1);
    assert.equal(filled[0].filter((byte) => byte === 0).length, 20 * 7);
  });
  await Promise.resolve();
  assert.ok(filled[0].every((byte) => byte === 0)); // nothing of it is left
  withCrypto(counted((pool) => pool.fill(9)), () => {
    assert.deepEqual([...client.systemBytes(2)], [9, 9]); // filled anew
  });
  await Promise.resolve();
});

test("bytes of the pool are given once", () => {
  let next = 0;
  const crypto = { getRandomValues: (pool) => pool.forEach((_, i) => (pool[i] = next++ % 251)) };
  withCrypto(crypto, () => {
    const seen = new Set();
    for (let i = 0; i < 300; i++) seen.add(String(client.systemBytes(16)));
    // 63 sixteens in a filling of 1024; 251 is prime to both, so equal bytes would show a reuse.
    assert.ok(seen.size >= 250);
  });
});

test("uniform integers are uniform at awkward bounds", () => {
  for (const bound of [1, 2, 3, 2 ** 31 + 1, 2 ** 52 + 1, 2 ** 53 - 1]) {
    let power = 1;
    while (power < bound) power *= 2;
    const words = [...word(bound), ...word(bound - 1)]; // thrown away where there is room
    const source = fixedEntropy(Uint8Array.from(words));
    assert.equal(below(bound, source), bound === power ? 0 : bound - 1);
    assert.equal(source.used, bound === power ? 7 : 14);
  }
});

test("positions are never repeated in an error", () => {
  const randomizer = new Randomizer(EXAMPLE);
  const wrong = [["41.9", -87.8], [41.9, null], [412.9, 0], [0, 1187.8], [NaN, 0], [0, Infinity]];
  for (const at of wrong) {
    assert.throws(
      () => randomizer.report(...at),
      (error) => error instanceof client.PositionError && !/41|87|NaN|Infinity/.test(error.message),
    );
  }
});

test("a position in the plane has the cell of exact arithmetic", () => {
  const names = ["plane", -(10 ** 15), 10 ** 15, 2 * 10 ** 15, 2 * 10 ** 15 - 1, 4093];
  const [kind, south, west, height, width, cells] = names;
  const grid = new client.Grid(kind, south, west, height, width, cells);
  const exact = (v, corner, side) => {
    const units = BigInt(Math.floor(v * 1e7 + 0.5)) - BigInt(corner);
    const within = units < 0n ? 0n : units > BigInt(side) ? BigInt(side) : units;
    const line = (within * BigInt(cells)) / BigInt(side);
    return Number(line >= BigInt(cells) ? BigInt(cells) - 1n : line);
  };
  for (let k = 0; k < 5000; k++) {
    const y = ((k * 0.6180339887) % 1) * 2.2e8 - 1.1e8;
    const x = ((k * 0.7548776662) % 1) * 2.2e8 + 0.9e8;
    assert.deepEqual(grid.cell(y, x), [exact(y, south, height), exact(x, west, width)]);
  }
});

test("a collection that is not what the app pinned is refused", () => {
  const text = collection({ name: "another" }).toJson();
  const expected = { digest: EXAMPLE.digest };
  assert.throws(() => Collection.fromJson(text, expected), client.CollectionError);
  for (const [maxEpsilon, passes] of [[1.4, true], [1.3999999, false], [20, true]]) {
    const read = () => Collection.fromJson(text, { maxEpsilon });
    if (passes) read();
    else assert.throws(read, client.CollectionError);
  }
  for (const maxEpsilon of [0, -1, NaN, 20.1, "4", null, {}]) {
    assert.throws(() => Collection.fromJson(text, { maxEpsilon }), ParameterError);
  }
});
