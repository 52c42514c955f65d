/** Report: what leaves the device. A cell that was drawn, never a position. */

import type { Collection } from "./collection.js";
import type { ByteSource } from "./entropy.js";
import { CollectionError } from "./errors.js";
import type { Cell } from "./grid.js";
import { checkSchema, fields, hexDigits, integer, LONGEST_REPORT, parse } from "./json.js";
import type { Sampler } from "./sampling.js";
import { toHex } from "./utf8.js";

const SCHEMA = "ldpspatial/report/1";
const CELL_LIMIT = 2 ** 20;
const SPACES = " ".repeat(24);
/** Every report is sent in this many bytes: its digits would tell the cell's. */
export const BODY_BYTES = 192; // the canonical text has 168 to 182

/** One randomised cell for one collection. */
export class Report {
  /** @internal */
  constructor(
    /** Digest of the collection document. */
    readonly collection: string,
    /** 16 random bytes as 32 hexadecimal digits: the same report sent twice counts once. */
    readonly id: string,
    readonly row: number,
    readonly col: number,
  ) {}

  /** Parse a report; a CollectionError where it is malformed or over 1024 characters. */
  static fromJson(text: string): Report {
    const document = parse(text, "the report", LONGEST_REPORT);
    checkSchema(document, SCHEMA);
    fields(document, "col collection id row schema", "the report");
    return new Report(
      hexDigits(document, "collection", 64),
      hexDigits(document, "id", 32),
      integer(document, "row", -CELL_LIMIT, CELL_LIMIT),
      integer(document, "col", -CELL_LIMIT, CELL_LIMIT),
    );
  }

  /** Return the canonical text. */
  toJson(): string {
    const { row, col, collection, id } = this;
    return (
      `{"col":${col},"collection":"${collection}","id":"${id}",` +
      `"row":${row},"schema":"${SCHEMA}"}`
    );
  }

  /** Return what is sent: the canonical text and spaces, 192 ASCII characters. */
  toBody(): string {
    return (this.toJson() + SPACES).slice(0, BODY_BYTES);
  }

  /** Throw a CollectionError unless this report can belong to the collection. */
  check(collection: Collection): void {
    if (this.collection !== collection?.digest) {
      throw new CollectionError("the report names another collection");
    }
    if (!collection.table.isOutput(this.row, this.col)) {
      throw new CollectionError("the report's cell is outside the output domain");
    }
  }
}

/** Draw the report of an input cell, with an id of its own. */
export function drawReport(
  sampler: Sampler,
  digest: string,
  [row, col]: Cell,
  source: ByteSource,
): Report {
  const drawn = sampler.draw(row, col, source);
  return new Report(digest, toHex(source(16)), drawn[0], drawn[1]);
}
