/**
 * The bound of e^epsilon, rigorous, without large integers of the language.
 *
 * Numbers of 192 fractional bits are held as limbs of 24 bits, the lowest first. A limb times
 * m <= 2 * 10^7 plus a carry, and a remainder below 2^28 before a limb, stay below 2^53.
 */

const BITS = 192;
const LIMB = 2 ** 24;
const ONE_AT = BITS / 24;
const LIMBS = ONE_AT + 2; // e^20 < 2^29

/** Return the limbs of S with S / 2^192 <= e^(m / 10^6), docs/protocol.md, section 3. */
export function expBelow(microEpsilon: number): number[] {
  const total: number[] = new Array(LIMBS).fill(0);
  const term: number[] = new Array(LIMBS).fill(0);
  term[ONE_AT] = 1;
  for (let n = 1; term.some((limb) => limb > 0); n++) {
    add(total, term);
    scale(term, microEpsilon, 1_000_000 * n);
  }
  return total;
}

/** Return the largest weight that check 6 lets pass, at most 2^53: floor(base * S / 2^192). */
export function largestWeight(baseExponent: number, bound: number[]): number {
  let weight = 0;
  for (let k = bound.length - 1; k >= 0; k--) {
    const place = 24 * k - BITS + baseExponent; // what the lowest bit of this limb is worth
    if (place <= -24) break;
    // Exact below 2^53; what is rounded beyond stays beyond, and is cut off.
    weight += place >= 0 ? bound[k]! * 2 ** place : Math.floor(bound[k]! / 2 ** -place);
  }
  return Math.min(weight, 2 ** 53);
}

function add(total: number[], term: number[]): void {
  let carry = 0;
  for (let k = 0; k < LIMBS; k++) {
    const sum = total[k]! + term[k]! + carry;
    total[k] = sum % LIMB;
    carry = sum >= LIMB ? 1 : 0;
  }
}

/** Replace a number by floor(number * factor / divisor). */
function scale(number: number[], factor: number, divisor: number): void {
  let carry = 0;
  for (let k = 0; k < LIMBS; k++) {
    const product = number[k]! * factor + carry;
    number[k] = product % LIMB;
    carry = Math.floor(product / LIMB);
  }
  let rest = carry;
  for (let k = LIMBS - 1; k >= 0; k--) {
    const value = rest * LIMB + number[k]!;
    number[k] = Math.floor(value / divisor);
    rest = value % divisor;
  }
}
