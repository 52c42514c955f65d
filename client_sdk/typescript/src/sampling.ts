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
  end: number; // running total: an orbit owns the numbers from the end before it to its own
}

/** Draws reports for input cells of one verified table. */
export class Sampler {
  private readonly low: number; // length of the low part
  private readonly lifted: Lifted[] = []; // orbits of the high part, then of the mixed part
  private readonly total: number;

  constructor(private readonly table: ResponseTable) {
    let top = 0;
    table.octant.forEach((row, x) => {
      row.forEach((weight, y) => {
        const excess = weight - table.baseWeight;
        if (excess > 0) this.lifted.push({ x, y, excess, end: 0 });
        top = Math.max(top, excess);
      });
    });
    // Within a part the order stays.
    const isMixed = ({ excess }: Lifted) => (excess < top ? 1 : 0);
    this.lifted.sort((a, b) => isMixed(a) - isMixed(b));
    let end = 0;
    for (const one of this.lifted) one.end = end += orbitSize(one.x, one.y) * one.excess;
    this.low = table.outputSize * table.baseWeight;
    this.total = this.low + end;
  }

  /** Return the reported cell for an input cell of the square; a bad one is never repeated. */
  draw(row: number, col: number, source: ByteSource): Cell {
    const last = this.table.cells - 1;
    // A fraction would survive in the reports that are drawn from the disk.
    if (!isWhole(row, 0, last) || !isWhole(col, 0, last)) {
      throw new ParameterError(`row and col must be whole numbers from 0 to ${last}`);
    }
    const u = below(this.total, source);
    if (u < this.low) return this.table.outputCell(Math.floor(u / this.table.baseWeight));
    const [drow, dcol] = this.pick(u - this.low);
    return [row + drow, col + dcol];
  }

  /** Return the offset that owns number v of the two parts. */
  private pick(v: number): Cell {
    // A search, not a walk: the time of a walk tells how far it went.
    const i = firstAbove(this.lifted, v, ({ end }) => end);
    const { x, y, excess } = this.lifted[i]!;
    return orbit(x, y)[Math.floor((v - (this.lifted[i - 1]?.end ?? 0)) / excess)]!;
  }
}
