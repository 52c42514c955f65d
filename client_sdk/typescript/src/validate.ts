/** The rules for parameters, each written once. */

import { ParameterError } from "./errors.js";

export const MICRO = 1_000_000; // devices count their budget in millionths of epsilon
export const MAX_EPSILON = 20; // beyond it a report is the truth in all but name
export const MAX_CELLS = 4096;
export const MAX_WHOLE = Number.MAX_SAFE_INTEGER; // 2^53 - 1

/** Return a whole number in [low, high], or throw a ParameterError. */
export function wholeNumber(field: string, value: unknown, low: number, high: number): number {
  if (isWhole(value, low, high)) return value;
  const rule = `${field} must be a whole number from ${low} to ${high}`;
  throw new ParameterError(`${rule}, got ${shown(value)}`);
}

/** Tell whether a value is a whole number in [low, high]. */
export function isWhole(value: unknown, low: number, high: number): value is number {
  return Number.isInteger(value) && (value as number) >= low && (value as number) <= high;
}

/** Return a number in [low, high], or throw a ParameterError. */
export function numberWithin(field: string, value: unknown, low: number, high: number): number {
  if (typeof value === "number" && value >= low && value <= high) return value;
  throw new ParameterError(`${field} must be a number from ${low} to ${high}, got ${shown(value)}`);
}

/** Return an epsilon in millionths, rounded down: a cap must not grow by rounding. */
export function microEpsilons(field: string, epsilon: unknown, most = MAX_EPSILON): number {
  // As it is written: the double 0.7 stands for 7/10 and holds slightly less. Within these limits
  // the shortest text of a double has no exponent.
  const text = String(numberWithin(field, epsilon, 1 / MICRO, most));
  const [whole = "", part = ""] = text.split(".");
  return Number(whole) * MICRO + Number((part + "000000").slice(0, 6));
}

/** Return a text that is not empty and holds no half of a surrogate pair. */
export function unicodeText(field: string, value: unknown): string {
  if (typeof value !== "string" || value === "") {
    // What is no text may be a position by mistake: its type says enough.
    throw new ParameterError(`${field} must be a text and not empty, got ${typeof value}`);
  }
  if (codePoints(value) < 0) {
    throw new ParameterError(`${field} must hold no half of a surrogate pair`);
  }
  return value;
}

/** Return an object of options, or throw a ParameterError. */
export function optionsOf<T extends object>(field: string, value: T): T {
  if (typeof value === "object" && value !== null) return value;
  throw new ParameterError(`${field} must be an object, got ${typeof value}`);
}

/** Return how many code points a text has, or -1 if it holds half a surrogate pair. */
export function codePoints(text: string): number {
  const paired = text.replace(/[\ud800-\udbff][\udc00-\udfff]/g, "_");
  return /[\ud800-\udfff]/.test(paired) ? -1 : paired.length;
}

/**
 * Return a value for an error message: short, and never what is inside an object.
 *
 * A number with a fraction may be a coordinate in the wrong place.
 */
export function shown(value: unknown): string {
  if (Number.isInteger(value)) return String(value);
  return typeof value === "string" ? JSON.stringify(value.slice(0, 60)) : typeof value;
}
