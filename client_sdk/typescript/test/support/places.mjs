/** A collection, a series and devices for tests. */

import { Collection, Device, Series } from "../../dist/index.js";
import { vectors } from "./files.mjs";
import { MemoryStore } from "./memory.mjs";

/** Epsilon 1.4 on 2 x 2 cells around (41.8, -87.8): the worked example of the protocol. */
export const EXAMPLE = vectors.draws.documents
  .map((text) => Collection.fromJson(text))
  .find(({ name }) => name === "worked example");

/** Change fields of the example, and its digest with them. */
export function collection(changes) {
  const document = { ...JSON.parse(EXAMPLE.toJson()), ...changes };
  return Collection.fromJson(JSON.stringify(document));
}

/** A series of the example's table. */
export function series({ windows, answers, firstStart, windowSeconds = 1000 }) {
  const { schema, name, max_reports, ...body } = JSON.parse(EXAMPLE.toJson());
  return Series.fromJson(
    JSON.stringify({
      schema: "ldpspatial/series/1",
      name: "a series",
      collection: body,
      first_start: firstStart,
      window_seconds: windowSeconds,
      windows,
      answers,
    }),
  );
}

/** Install a device that takes part in these. */
export async function installed(joins, { capEpsilon = 1000, collectionCapEpsilon, bytes } = {}) {
  const store = new MemoryStore();
  const device = await Device.install(store, { capEpsilon, collectionCapEpsilon, bytes });
  for (const what of joins) await device.join(what.toJson(), pins(what));
  return { device, store };
}

/** What an app pins of a document. */
export function pins(what) {
  return { digest: what.digest, maxEpsilon: 4 };
}
