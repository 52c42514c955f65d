/**
 * The source of randomness: the platform's cryptographic generator, or one that the app passes.
 *
 * Where neither is there, nothing is drawn. There is no seed.
 */

import { EntropyError, ParameterError } from "./errors.js";

/** Returns that many fresh random bytes from a cryptographic generator. */
export type ByteSource = (count: number) => Uint8Array;

const DRAW_BYTES = 7; // a draw is 56 bits, of which the lowest 53 at most decide
const POOL_BYTES = 1024;

/**
 * Return random bytes of `crypto.getRandomValues`.
 *
 * They come from a pool, which makes many draws quick. It never outlives the task in which it was
 * filled: what is not used is overwritten before the next one. So a page that is frozen and woken
 * twice, or a worker or machine that is cloned, has no bytes left that both would use. Each realm
 * (page, frame, worker) has a pool of its own.
 */
export function systemBytes(count: number): Uint8Array {
  if (count > left) fillPool(count);
  left -= count;
  const bytes = pool.slice(left, left + count);
  pool.fill(0, left, left + count);
  return bytes;
}

const pool = new Uint8Array(POOL_BYTES);
let left = 0;

function fillPool(count: number): void {
  left = 0;
  const generator = (globalThis as { crypto?: Crypto }).crypto;
  if (typeof generator?.getRandomValues !== "function" || count > POOL_BYTES) {
    throw new EntropyError("crypto.getRandomValues is not here: pass a source of random bytes");
  }
  generator.getRandomValues(pool);
  // A stand-in that does nothing: a generator leaves 1024 zeros once in 2^8192 times.
  if (!pool.some((byte) => byte !== 0)) {
    throw new EntropyError("crypto.getRandomValues gives zeros: nothing was drawn");
  }
  left = POOL_BYTES;
  void Promise.resolve().then(() => {
    pool.fill(0);
    left = 0;
  });
}

/** Return a source of the app's own, held to its word; without one the platform's. */
export function checkedSource(source: unknown): ByteSource {
  if (source === undefined) return systemBytes;
  if (typeof source !== "function") {
    throw new ParameterError("bytes must be a function that returns so many random bytes");
  }
  return (count) => {
    const bytes: unknown = source(count);
    if (!(bytes instanceof Uint8Array) || bytes.length !== count) {
      throw new EntropyError(`the app's source must return a Uint8Array of ${count} bytes`);
    }
    return bytes;
  };
}

/**
 * Return a uniform whole number in [0, bound), 1 <= bound < 2^53, by rejection.
 *
 * Seven bytes are read big-endian and cut to the bits of bound - 1; a number that is still too
 * large is thrown away. No modulo of the bound, so no bias.
 */
export function below(bound: number, source: ByteSource): number {
  let power = 1;
  while (power < bound) power *= 2;
  for (;;) {
    const bytes = source(DRAW_BYTES);
    const high = ((bytes[0]! << 16) | (bytes[1]! << 8) | bytes[2]!) & 0x1fffff;
    const low = ((bytes[3]! << 24) | (bytes[4]! << 16) | (bytes[5]! << 8) | bytes[6]!) >>> 0;
    bytes.fill(0);
    const value = (high * 0x1_0000_0000 + low) % power;
    if (value < bound) return value;
  }
}
