/** What a device checks before it trusts a table, whoever made it (docs/protocol.md, section 3). */

import { expBelow, largestWeight } from "./bound.js";
import { CollectionError } from "./errors.js";
import { halfWidths, type Octant, orbitSize, type ResponseTable } from "./table.js";
import { MAX_WHOLE } from "./validate.js";

/** Check that an octant is one of a disk whose rows narrow away from row 0. */
export function checkShape(octant: Octant): void {
  const fits = octant.every((row, x) => row.length >= 1 && row.length <= x + 1);
  if (!fits || octant.length === 0) {
    throw new CollectionError("weights[x] must hold 1 to x + 1 numbers for x = 0..radius");
  }
  if (halfWidths(octant).some((width, x, all) => x > 0 && width > all[x - 1]!)) {
    throw new CollectionError("weights must be one octant of a disk that narrows from row 0 on");
  }
}

/** Check that base and weights of a table bear its claim, and return its total weight. */
export function checkWeights(table: ResponseTable, microEpsilon: number): number {
  const base = table.baseWeight;
  let exponent = 0;
  while (2 ** exponent < base) exponent++;
  if (2 ** exponent !== base) throw new CollectionError("base_weight must be a power of two");
  const most = largestWeight(exponent, expBelow(microEpsilon));

  // The total must not wrap: a sum that is stopped in time is exact.
  const tooLarge = "total_weight must be below 2^53";
  if (base > Math.floor(MAX_WHOLE / table.outputSize)) throw new CollectionError(tooLarge);
  let total = table.outputSize * base;
  table.octant.forEach((row, x) => {
    row.forEach((weight, y) => {
      if (weight < base || weight > most) {
        throw new CollectionError(
          `weights[${x}][${y}] must lie between base_weight and base_weight * e^epsilon, ` +
            `got ${weight}: not epsilon-LDP`,
        );
      }
      const excess = weight - base;
      const size = orbitSize(x, y);
      if (excess > Math.floor((MAX_WHOLE - total) / size)) throw new CollectionError(tooLarge);
      total += size * excess;
    });
  });
  return total;
}
