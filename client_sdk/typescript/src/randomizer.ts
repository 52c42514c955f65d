/** Randomizer: a position in, a report out, and no account of what that spends. */

import { Collection } from "./collection.js";
import { type ByteSource, checkedSource } from "./entropy.js";
import { ParameterError } from "./errors.js";
import type { Cell } from "./grid.js";
import { drawReport, type Report } from "./report.js";
import { Sampler } from "./sampling.js";
import { optionsOf } from "./validate.js";

/**
 * Randomises positions and keeps no account of it: to show people what would leave their device,
 * for simulation and research. Every call spends epsilon again. An app takes a Device, which holds
 * a cap.
 */
export class Randomizer {
  private readonly sampler: Sampler;
  private readonly bytes: ByteSource;

  constructor(
    readonly collection: Collection,
    options: { bytes?: ByteSource } = {},
  ) {
    if (!(collection instanceof Collection)) {
      throw new ParameterError("collection must be a Collection");
    }
    this.sampler = new Sampler(collection.table);
    this.bytes = checkedSource(optionsOf("options", options).bytes);
  }

  /** Return a report for a position in degrees (y, x on a plane grid); errors as `Grid.cell`. */
  report(lat: number, lon: number): Report {
    const { grid, digest } = this.collection;
    return drawReport(this.sampler, digest, grid.cell(lat, lon), this.bytes);
  }

  /** Return the reported [row, col] for an input cell; a ParameterError where it is none. */
  randomize(cell: Cell): Cell {
    const [row = NaN, col = NaN] = Array.isArray(cell) ? cell : [];
    return this.sampler.draw(row, col, this.bytes);
  }
}
