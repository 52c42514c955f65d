/**
 * SHA-256 and HMAC-SHA256 (FIPS 180-4, FIPS 198-1).
 *
 * The hash at hand in browsers is asynchronous, which would end a transaction of IndexedDB, and it
 * is absent outside of secure contexts and in other engines.
 */

import { encode, toHex } from "./utf8.js";

const BLOCK = 64; // bytes

// The first 32 bits of the fractional parts of square and cube roots of the first primes.
const START: number[] = [];
const ROUND: number[] = [];
for (let n = 2; ROUND.length < 64; n++) {
  if (ROUND.length < 8 && isPrime(n)) START.push(fraction(n, 2));
  if (isPrime(n)) ROUND.push(fraction(n, 3));
}

function isPrime(n: number): boolean {
  for (let k = 2; k < n; k++) if (n % k === 0) return false;
  return true;
}

/**
 * Return floor(2^32 * frac(n^(1/power))) as a signed 32-bit number.
 *
 * Math.pow may be off by some units in the last place. Each of these 72 roots is farther than
 * 0.005 * 2^-32 from a multiple of 2^-32, so a thousand units would change nothing.
 */
function fraction(n: number, power: number): number {
  return ((n ** (1 / power) % 1) * 2 ** 32) | 0;
}

/** Return the 32 bytes of the SHA-256 of some bytes. */
export function sha256(message: Uint8Array): Uint8Array {
  const { length } = message;
  const padded = new Uint8Array((((length + 8) >> 6) + 1) * BLOCK);
  padded.set(message);
  padded[length] = 0x80;
  let at = padded.length;
  for (let bits = 8 * length; bits > 0; bits = Math.floor(bits / 256)) padded[--at] = bits;

  let state = START;
  for (let block = 0; block < padded.length; block += BLOCK) {
    state = compress(state, padded.subarray(block, block + BLOCK));
  }
  return Uint8Array.from({ length: 32 }, (_, i) => state[i >> 2]! >> (24 - 8 * (i % 4)));
}

function compress(state: readonly number[], block: Uint8Array): number[] {
  const words: number[] = [];
  for (let t = 0; t < 64; t++) {
    const v = words[t - 15]!;
    const w = words[t - 2]!;
    const s0 = right(v, 7) ^ right(v, 18) ^ (v >>> 3);
    const s1 = right(w, 17) ^ right(w, 19) ^ (w >>> 10);
    words.push(t < 16 ? wordAt(block, 4 * t) : (words[t - 16]! + s0 + words[t - 7]! + s1) | 0);
  }

  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  words.forEach((word, t) => {
    const s1 = right(e, 6) ^ right(e, 11) ^ right(e, 25);
    const t1 = h + s1 + ((e & f) ^ (~e & g)) + ROUND[t]! + word;
    const s0 = right(a, 2) ^ right(a, 13) ^ right(a, 22);
    const t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
  });
  return [a, b, c, d, e, f, g, h].map((value, i) => (value + state[i]!) | 0);
}

function wordAt(block: Uint8Array, at: number): number {
  return (block[at]! << 24) | (block[at + 1]! << 16) | (block[at + 2]! << 8) | block[at + 3]!;
}

function right(value: number, by: number): number {
  return (value >>> by) | (value << (32 - by));
}

/** Return the SHA-256 of the UTF-8 bytes of a text, as 64 hexadecimal digits. */
export function digestOf(text: string): string {
  return toHex(sha256(encode(text)));
}

/** Return the 32 bytes of HMAC-SHA256 under a key of at most 64 bytes. */
export function hmac(key: Uint8Array, message: Uint8Array): Uint8Array {
  const hashed = (mask: number, rest: Uint8Array): Uint8Array => {
    const both = new Uint8Array(BLOCK + rest.length).fill(mask, 0, BLOCK);
    key.forEach((byte, i) => (both[i]! ^= byte));
    both.set(rest, BLOCK);
    return sha256(both);
  };
  return hashed(0x5c, hashed(0x36, message));
}
