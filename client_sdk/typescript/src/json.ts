/**
 * Canonical JSON: one text for one document, in every language (docs/protocol.md, section 5).
 *
 * The engine's parser holds a text to RFC 8259. What it lets pass all the same, and two parsers
 * might not read alike, is refused here: a repeated field, `1.0` and `1e3`, half a surrogate pair.
 */

import { CollectionError, ParameterError } from "./errors.js";
import { codePoints, isWhole, shown } from "./validate.js";
import { isVisible } from "./visible.js";

export type Json = number | string | Json[] | JsonObject;
export type JsonObject = { [field: string]: Json };

export const LONGEST = 2 ** 26; // code points of a document
export const LONGEST_JOINED = 2 ** 22; // what a Device reads
export const LONGEST_REPORT = 1024;

const DEEPEST = 4; // a series: document, collection, weights, row
const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/** Parse a document of at most `longest` code points strictly; `what` names it in errors. */
export function parse(text: unknown, what: string, longest: number): JsonObject {
  // A code point has one or two units: what is longer is not even counted.
  const fits = typeof text === "string" && text.length <= 2 * longest;
  const length = fits ? codePoints(text) : longest + 1;
  if (length < 0 || length > longest) {
    throw new CollectionError(`${what} must be a text of at most ${longest} whole characters`);
  }
  let reason = "not a JSON object of whole numbers, texts and arrays";
  try {
    const document: Json = JSON.parse(text as string);
    const marks = (text as string).replace(STRINGS, "");
    // The numbers alone are left: a letter is of an exponent, or of true, false and null. None in
    // range has 18 characters.
    const isWhole = !/[.a-z]|[-\d]{18}/i.test(marks);
    // One colon a field. Of fields of one name in an object the parser keeps the last.
    const colons = marks.split(":").length - 1;
    if (isWhole && colons === countFields(document, 0)) return objectOf(document, what);
    if (isWhole) reason = "nested too deeply, or an object repeats a field";
  } catch {
    // Its message would quote the text.
  }
  throw new CollectionError(`${what} is ${reason}`);
}

/** Return how many fields all objects have; NaN where they are nested deeper than any document. */
function countFields(value: Json, depth: number): number {
  if (typeof value !== "object") return 0;
  if (depth === DEEPEST) return NaN;
  const inside = Object.values(value).map((part: Json) => countFields(part, depth + 1));
  return inside.reduce((sum, count) => sum + count, Array.isArray(value) ? 0 : inside.length);
}

function objectOf(value: Json | undefined, what: string): JsonObject {
  if (typeof value === "object" && !Array.isArray(value)) return value;
  throw new CollectionError(`${what} must be a JSON object`);
}

/** Return the canonical text. */
export function write(value: Json): string {
  if (typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(write).join()}]`;
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `"${name}":${write(value[name]!)}`).join()}}`;
}

/** Return an object that has these fields, given in ascending order, and no others. */
export function fields(value: Json | undefined, names: string, what: string): JsonObject {
  const document = objectOf(value, what);
  if (Object.keys(document).sort().join(" ") === names) return document;
  throw new CollectionError(`${what} must have the fields ${names} and no others`);
}

/** Check the schema of a document. */
export function checkSchema(document: JsonObject, schema: string): void {
  if (document["schema"] !== schema) throw new CollectionError(`schema must be "${schema}"`);
}

/** Return a value of a document that must be a whole number in [low, high]. */
export function wholeOf(value: unknown, field: string, low: number, high: number): number {
  if (isWhole(value, low, high)) return value;
  const rule = `${field} must be a whole number from ${low} to ${high}`;
  throw new CollectionError(`${rule}, got ${shown(value)}`);
}

/** Return the whole number of a field, in [low, high]. */
export function integer(document: JsonObject, field: string, low: number, high: number): number {
  return wholeOf(document[field], field, low, high);
}

/** Return the visible text of a field, of 1 to `longest` code points. */
export function label(document: JsonObject, field: string, longest: number): string {
  const value = document[field];
  if (typeof value === "string" && isVisible(value, longest)) return value;
  throw new CollectionError(`${field} must be a text of 1 to ${longest} visible characters`);
}

/** Return the text of a field that must be that many hexadecimal digits in lower case. */
export function hexDigits(document: JsonObject, field: string, length: number): string {
  const value = document[field];
  // Not with $, which stands before a line's end, too, in other languages and is easily misread.
  if (typeof value === "string" && value.length === length && !/[^0-9a-f]/.test(value)) {
    return value;
  }
  throw new CollectionError(`${field} must be ${length} hexadecimal digits`);
}

/** Refuse an expected id that is not a text, or too long for a message to repeat. */
export function checkExpected(digest: unknown): void {
  if (digest !== undefined && (typeof digest !== "string" || digest.length > 64)) {
    throw new ParameterError(`digest must be 64 hexadecimal digits, got ${shown(digest)}`);
  }
}
