/**
 * Draw one report from a table, in exact whole-number arithmetic (docs/protocol.md, section 4).
 *
 * One uniform number u below the total weight decides. The **low** part is the base weight of every
 * output cell; **high** is what the cells of the largest weight have above it, **mixed** what the
 * other cells of the disk have. Both list orbits: an offset and its images, all of one weight.
 */

import { below, type ByteSource } from "./entropy.js";
import { ParameterError } from "./errors.js";
import type { Cell } from "./grid.js";
import { firstAbove } from "./search.js";
import { orbit, orbitSize, type ResponseTable } from "./table.js";
import { isWhole } from "./validate.js";

interface Lifted {
  readonly x: number;
  readonly y: number;
  readonly excess: number; // weight of each of its cells above the base
}

class Part {
  readonly ends: number[] = []; // orbit i owns the numbers [ends[i - 1], ends[i])

  constructor(private readonly orbits: readonly Lifted[]) {
    let end = 0;
    for (const { x, y, excess } of orbits) this.ends.push((end += orbitSize(x, y) * excess));
  }

  get length(): number {
    return this.ends[this.ends.length - 1] ?? 0;
  }

  /** Return the offset that owns number v of this part. */
  pick(v: number): Cell {
    // A search, not a walk: the time of a walk tells how far it went.
    const i = firstAbove(this.ends, v);
    const { x, y, excess } = this.orbits[i]!;
    return orbit(x, y)[Math.floor((v - (this.ends[i - 1] ?? 0)) / excess)]!;
  }
}

/** Draws reports for input cells of one verified table. */
export class Sampler {
  private readonly lowEnd: number;
  private readonly high: Part;
  private readonly mixed: Part;
  private readonly total: number;

  constructor(private readonly table: ResponseTable) {
    const lifted: Lifted[] = [];
    table.octant.forEach((row, x) => {
      row.forEach((weight, y) => {
        const excess = weight - table.baseWeight;
        if (excess > 0) lifted.push({ x, y, excess });
      });
    });
    const top = lifted.reduce((most, { excess }) => Math.max(most, excess), 0);
    this.high = new Part(lifted.filter(({ excess }) => excess === top));
    this.mixed = new Part(lifted.filter(({ excess }) => excess < top));
    this.lowEnd = table.outputSize * table.baseWeight;
    this.total = this.lowEnd + this.high.length + this.mixed.length;
  }

  /** Return the reported cell for an input cell of the square; a bad one is never repeated. */
  draw(row: number, col: number, source: ByteSource): Cell {
    const last = this.table.cells - 1;
    // A fraction would survive in the reports that are drawn from the disk.
    if (!isWhole(row, 0, last) || !isWhole(col, 0, last)) {
      throw new ParameterError(`row and col must be whole numbers from 0 to ${last}`);
    }
    const u = below(this.total, source);
    if (u < this.lowEnd) return this.table.outputCell(Math.floor(u / this.table.baseWeight));
    const v = u - this.lowEnd;
    const ofHigh = this.high.length;
    const [drow, dcol] = v < ofHigh ? this.high.pick(v) : this.mixed.pick(v - ofHigh);
    return [row + drow, col + dcol];
  }
}
