/**
 * The collection document: everything that a device and the server agree on.
 *
 * Its id is the SHA-256 of its canonical text. A device trusts the numbers in it, not the server:
 * reading one recomputes the claim from the weights.
 */

import { CollectionError, ParameterError } from "./errors.js";
import { Grid, type GridKind } from "./grid.js";
import {
  checkExpected,
  checkSchema,
  fields,
  integer,
  type Json,
  type JsonObject,
  label,
  LONGEST,
  parse,
  wholeOf,
  write,
} from "./json.js";
import { digestOf } from "./sha256.js";
import { type Octant, ResponseTable } from "./table.js";
import { MAX_CELLS, MAX_EPSILON, MAX_WHOLE, MICRO, microEpsilons, optionsOf } from "./validate.js";
import { checkShape, checkWeights } from "./verify.js";

export const COLLECTION_SCHEMA = "ldpspatial/collection/1";
export const DESIGN_FIELDS =
  "base_weight grid mechanism micro_epsilon output_size total_weight weights";
const FIELDS =
  "base_weight grid max_reports mechanism micro_epsilon name output_size schema total_weight " +
  "weights";

/** What a device expects of a document. */
export interface Expected {
  /** The id that the app ships: any other document is refused. */
  digest?: string | undefined;
  /** The most that one report may cost, 0.000001 to 20. */
  maxEpsilon?: number | undefined;
}

/** What a collection and the windows of a series have in common. */
export interface Design {
  readonly grid: Grid;
  readonly table: ResponseTable;
  readonly microEpsilon: number;
}

/** The agreed parameters of one collection, verified; read one with `Collection.fromJson`. */
export class Collection implements Design {
  readonly name: string;
  readonly grid: Grid;
  readonly table: ResponseTable;
  /** Privacy loss of one report in millionths. */
  readonly microEpsilon: number;
  /** Reports that one device may give to this collection. */
  readonly maxReports: number;

  private readonly text: string;
  private id: string | undefined;

  /** @internal Of a parsed document; its design is verified here, unless it was before. */
  constructor(document: JsonObject, design?: Design) {
    checkSchema(document, COLLECTION_SCHEMA);
    fields(document, FIELDS, "the collection document");
    this.name = label(document, "name", 200);
    this.maxReports = integer(document, "max_reports", 1, 1_000_000);
    const { grid, table, microEpsilon } = design ?? readDesign(document);
    this.grid = grid;
    this.table = table;
    this.microEpsilon = microEpsilon;
    this.text = write(document);
  }

  /**
   * Read and verify a document of at most 2^26 characters.
   *
   * @throws CollectionError where it is malformed, not private as it claims, or not as expected.
   * @throws ParameterError where what is expected breaks its rule.
   */
  static fromJson(text: string, expected: Expected = {}): Collection {
    optionsOf("expected", expected);
    const collection = new Collection(parse(text, "the collection document", LONGEST));
    checkExpectations(collection, expected);
    return collection;
  }

  /** Privacy loss of one report. */
  get epsilon(): number {
    return this.microEpsilon / MICRO;
  }

  /** The id of the collection: 64 hexadecimal digits. */
  get digest(): string {
    return (this.id ??= digestOf(this.text));
  }

  /** Return the canonical document. */
  toJson(): string {
    return this.text;
  }
}

/** Hold a verified document to what the device expects of it. */
export function checkExpectations(
  made: { readonly digest: string; readonly microEpsilon: number },
  expected: Expected,
): void {
  checkExpected(expected.digest);
  if (expected.digest !== undefined && expected.digest !== made.digest) {
    throw new CollectionError(`the document has the id ${made.digest}, not ${expected.digest}`);
  }
  if (
    expected.maxEpsilon !== undefined &&
    made.microEpsilon > microEpsilons("maxEpsilon", expected.maxEpsilon)
  ) {
    throw new CollectionError(
      `the epsilon of one report is ${made.microEpsilon / MICRO}, above ${expected.maxEpsilon}`,
    );
  }
}

/** Read grid and table of a document and verify the claim from its weights. */
export function readDesign(document: JsonObject): Design {
  const grid = readGrid(document["grid"]);
  label(document, "mechanism", 60);
  const microEpsilon = integer(document, "micro_epsilon", 1, MAX_EPSILON * MICRO);
  const octant = readOctant(document["weights"]);
  checkShape(octant);
  const base = integer(document, "base_weight", 1, MAX_WHOLE);
  const table = new ResponseTable(grid.cells, base, octant);
  checkStated(document, "output_size", table.outputSize);
  checkStated(document, "total_weight", checkWeights(table, microEpsilon));
  return { grid, table, microEpsilon };
}

function readGrid(value: Json | undefined): Grid {
  const stated = fields(value, "cells height_e7 kind south_e7 west_e7 width_e7", "grid");
  const whole = (field: string) => integer(stated, field, -MAX_WHOLE, MAX_WHOLE);
  try {
    return new Grid(
      stated["kind"] as GridKind,
      whole("south_e7"),
      whole("west_e7"),
      whole("height_e7"),
      whole("width_e7"),
      whole("cells"),
    );
  } catch (error) {
    if (!(error instanceof ParameterError)) throw error;
    throw new CollectionError(`grid: ${error.message}`);
  }
}

function readOctant(value: Json | undefined): Octant {
  const rows = listOf(value);
  if (rows.length > 2 * MAX_CELLS + 1) {
    throw new CollectionError(`weights must have at most ${2 * MAX_CELLS + 1} rows`);
  }
  return rows.map((row) => listOf(row).map((weight) => wholeOf(weight, "a weight", 1, MAX_WHOLE)));
}

function listOf(value: Json | undefined): Json[] {
  if (Array.isArray(value)) return value;
  throw new CollectionError("weights must be an array of arrays");
}

function checkStated(document: JsonObject, field: string, found: number): void {
  const stated = integer(document, field, 1, MAX_WHOLE);
  if (stated !== found) {
    throw new CollectionError(`${field} must be ${found} for these weights, got ${stated}`);
  }
}
