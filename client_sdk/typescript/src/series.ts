/**
 * A collection that repeats: windows of time, of which a device answers some (docs/protocol.md,
 * section 12). A series is pinned and verified once; the document of a window follows from it.
 */

import {
  checkExpectations,
  Collection,
  COLLECTION_SCHEMA,
  type Design,
  DESIGN_FIELDS,
  type Expected,
  readDesign,
} from "./collection.js";
import { below, type ByteSource } from "./entropy.js";
import { CollectionError } from "./errors.js";
import {
  checkSchema,
  fields,
  integer,
  type JsonObject,
  label,
  LONGEST,
  parse,
  write,
} from "./json.js";
import { digestOf } from "./sha256.js";
import type { ResponseTable } from "./table.js";
import { codePoints, MICRO, numberWithin, optionsOf, wholeNumber } from "./validate.js";

export const SERIES_SCHEMA = "ldpspatial/series/1";
export const MAX_WINDOWS = 100_000;
const LONGEST_SERIES = LONGEST - 300; // so that the documents of its windows can be read, too
const LAST_SECOND = 253_402_300_799; // of the year 9999

/** A collection in windows of time, verified; read one with `Series.fromJson`. */
export class Series {
  readonly name: string;
  /** When window 1 opens, in seconds since 1970-01-01 00:00 UTC. */
  readonly firstStart: number;
  readonly windowSeconds: number;
  /** How many windows there are. */
  readonly windows: number;
  /** In how many of them one device answers. */
  readonly answers: number;

  private readonly text: string;
  private readonly body: JsonObject;
  /** @internal */
  readonly table: ResponseTable;

  private readonly design: Design;
  private id: string | undefined;

  /** @internal Of a parsed document, which is verified here. */
  constructor(document: JsonObject) {
    checkSchema(document, SERIES_SCHEMA);
    const names = "answers collection first_start name schema window_seconds windows";
    fields(document, names, "the series document");
    this.name = label(document, "name", 100);
    this.firstStart = integer(document, "first_start", 0, LAST_SECOND);
    this.windowSeconds = integer(document, "window_seconds", 1, 1_000_000_000);
    this.windows = integer(document, "windows", 1, MAX_WINDOWS);
    this.answers = integer(document, "answers", 1, this.windows);
    this.body = fields(document["collection"], DESIGN_FIELDS, "collection");
    this.design = readDesign(this.body);
    this.table = this.design.table;
    this.text = write(document);
    if (codePoints(this.text) > LONGEST_SERIES) {
      throw new CollectionError(`the series must have at most ${LONGEST_SERIES} characters`);
    }
  }

  /** Read and verify a document; arguments and errors as of `Collection.fromJson`. */
  static fromJson(text: string, expected: Expected = {}): Series {
    optionsOf("expected", expected);
    const series = new Series(parse(text, "the series document", LONGEST));
    checkExpectations(series, expected);
    return series;
  }

  /** Privacy loss of one report in millionths; a device loses `answers` times this. */
  get microEpsilon(): number {
    return this.design.microEpsilon;
  }

  /** Privacy loss of one report. */
  get epsilon(): number {
    return this.microEpsilon / MICRO;
  }

  /** Id of the series: 64 hexadecimal digits. */
  get digest(): string {
    return (this.id ??= digestOf(this.text));
  }

  /** Return the canonical document. */
  toJson(): string {
    return this.text;
  }

  /** Return the collection of a window, counted from 1; a ParameterError where there is none. */
  collection(window: number): Collection {
    const k = wholeNumber("window", window, 1, this.windows);
    const document = {
      ...this.body,
      schema: COLLECTION_SCHEMA,
      name: `${this.name} - window ${k} of ${this.windows} - series ${this.digest}`,
      max_reports: 1,
    };
    return new Collection(document, this.design);
  }

  /** Return when a window opens, in seconds since 1970; the one before closes then. */
  start(window: number): number {
    const k = wholeNumber("window", window, 1, this.windows);
    return this.firstStart + (k - 1) * this.windowSeconds;
  }

  /** Return the window that is open at a time in seconds since 1970, or null. */
  windowAt(seconds: number): number | null {
    const passed = numberWithin("seconds", seconds, -1e15, 1e15) - this.firstStart;
    const k = Math.floor(passed / this.windowSeconds) + 1;
    return k >= 1 && k <= this.windows ? k : null;
  }

  /** @internal Draw which windows a device answers: see `chooseWindows`. */
  choose(source: ByteSource): number[] {
    return chooseWindows(this.windows, this.answers, source);
  }
}

/** Draw `answers` of `windows`, ascending, all sets alike likely (Bentley and Floyd, CACM 1987). */
export function chooseWindows(windows: number, answers: number, source: ByteSource): number[] {
  const chosen = new Set<number>();
  for (let j = windows - answers + 1; j <= windows; j++) {
    const k = 1 + below(j, source);
    // After each step a uniform set of its size in 1..j.
    chosen.add(chosen.has(k) ? j : k);
  }
  return Array.from(chosen).sort((a, b) => a - b);
}
