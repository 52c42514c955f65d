/**
 * SHA-256 and HMAC-SHA256 (FIPS 180-4, FIPS 198-1).
 *
 * The hash at hand in browsers is asynchronous, which would end a transaction of IndexedDB, and it
 * is absent outside of secure contexts and in other engines.
 */

import { encode, toHex } from "./utf8.js";

const BLOCK = 64;

// The first 32 bits of the fractional parts of square and cube roots of the first primes.
const START: number[] = [];
const ROUND: number[] = [];
for (let n = 2; ROUND.length < 64; n++) {
  let isPrime = true;
  for (let k = 2; k * k <= n; k++) if (n % k === 0) isPrime = false;
  if (!isPrime) continue;
  if (START.length < 8) START.push(fraction(n, 2));
  ROUND.push(fraction(n, 3));
}

/**
 * Return floor(2^32 * frac(n^(1/power))) as a signed 32-bit number.
 *
 * Math.pow may be off by some units in the last place. Each of these 72 roots is farther than
 * 0.005 * 2^-32 from a multiple of 2^-32, so a thousand units would change nothing.
 */
function fraction(n: number, power: number): number {
  const root = Math.pow(n, 1 / power);
  return ((root - Math.floor(root)) * 0x1_0000_0000) | 0;
}

/** Return the 32 bytes of the SHA-256 of some bytes. */
export function sha256(message: Uint8Array): Uint8Array {
  const blocks = Math.floor((message.length + 8) / BLOCK) + 1;
  const padded = new Uint8Array(blocks * BLOCK);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(message.length / 0x2000_0000));
  view.setUint32(padded.length - 4, (message.length << 3) >>> 0);

  const state = Int32Array.from(START);
  const words = new Int32Array(64);
  for (let at = 0; at < padded.length; at += BLOCK) compress(state, words, view, at);

  const out = new DataView(new ArrayBuffer(32));
  for (let i = 0; i < 8; i++) out.setInt32(4 * i, state[i]!);
  return new Uint8Array(out.buffer);
}

function compress(state: Int32Array, words: Int32Array, view: DataView, at: number): void {
  for (let t = 0; t < 64; t++) {
    if (t < 16) {
      words[t] = view.getInt32(at + 4 * t);
      continue;
    }
    const v = words[t - 15]!;
    const w = words[t - 2]!;
    const s0 = right(v, 7) ^ right(v, 18) ^ (v >>> 3);
    const s1 = right(w, 17) ^ right(w, 19) ^ (w >>> 10);
    words[t] = words[t - 16]! + s0 + words[t - 7]! + s1;
  }

  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  let f = state[5]!;
  let g = state[6]!;
  let h = state[7]!;
  for (let t = 0; t < 64; t++) {
    const s1 = right(e, 6) ^ right(e, 11) ^ right(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUND[t]! + words[t]!) | 0;
    const s0 = right(a, 2) ^ right(a, 13) ^ right(a, 22);
    const t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((value, i) => (state[i]! += value));
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
  return sha256(joined(padded(key, 0x5c), sha256(joined(padded(key, 0x36), message))));
}

function padded(key: Uint8Array, mask: number): Uint8Array {
  const block = new Uint8Array(BLOCK);
  block.set(key);
  return block.map((byte) => byte ^ mask);
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
