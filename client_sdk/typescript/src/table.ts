/**
 * ResponseTable: whole-number weights over the cells that may be reported (docs/protocol.md,
 * section 2). A report for input cell x is output cell y with probability weight(y - x) / total.
 */

import type { Cell } from "./grid.js";
import { firstAbove } from "./search.js";

export type Octant = readonly (readonly number[])[];

/** Return the distinct mirror images of offset (x, y), ascending by row, then column. */
export function orbit(x: number, y: number): Cell[] {
  const images: Cell[] = [];
  new Set([-x, -y, y, x]).forEach((row) => {
    const col = Math.abs(row) === x ? y : x;
    if (col > 0) images.push([row, -col]);
    images.push([row, col]);
  });
  return images;
}

/** Return how many images an offset (x, y) has, itself among them. */
export function orbitSize(x: number, y: number): number {
  if (x === 0) return 1;
  return y === 0 || y === x ? 4 : 8;
}

/** Return h(0..b): row x of the disk is the interval of columns [-h(x), h(x)]. */
export function halfWidths(octant: Octant): number[] {
  const reach: number[] = new Array(octant.length + 2).fill(0); // octant rows longer than n
  octant.forEach((row) => reach[row.length - 1]!++);
  for (let n = octant.length; n >= 0; n--) reach[n]! += reach[n + 1]!;
  return octant.map((row, x) => (row.length <= x ? row.length : x + reach[x]!) - 1);
}

/** The weights of one mechanism at one epsilon on one grid of `cells` x `cells` cells. */
export class ResponseTable {
  /** Reach b of the disk in cells. */
  readonly radius: number;
  /** Number N of cells that may be reported. */
  readonly outputSize: number;

  private readonly widths: readonly number[];
  private readonly rowEnds: number[] = []; // how many output cells there are up to each row

  constructor(
    readonly cells: number,
    readonly baseWeight: number,
    readonly octant: Octant,
  ) {
    this.radius = octant.length - 1;
    this.widths = halfWidths(octant);
    let end = 0;
    for (let row = -this.radius; row < cells + this.radius; row++) {
      end += cells + 2 * this.margin(row);
      this.rowEnds.push(end);
    }
    this.outputSize = end;
  }

  /** Return h such that output row `row` is the interval of columns [-h, cells - 1 + h]. */
  margin(row: number): number {
    return this.widths[Math.max(-row, row - this.cells + 1, 0)]!;
  }

  /** Return the output cell of an index from 0 to N - 1, by row, then column. */
  outputCell(index: number): Cell {
    const k = firstAbove(this.rowEnds, index, Number);
    const row = k - this.radius;
    return [row, index - (this.rowEnds[k - 1] ?? 0) - this.margin(row)];
  }

  /** Tell whether a report may name this cell. */
  isOutput(row: number, col: number): boolean {
    if (row < -this.radius || row >= this.cells + this.radius) return false;
    const margin = this.margin(row);
    return col >= -margin && col < this.cells + margin;
  }

  /** Return all output cells in the order of their index. */
  outputCells(): Cell[] {
    return Array.from({ length: this.outputSize }, (_, index) => this.outputCell(index));
  }
}
