/** All modules of the built client, for the tests. */

export * from "../../dist/index.js";
export { expBelow, largestWeight } from "../../dist/bound.js";
export { below, checkedSource, systemBytes } from "../../dist/entropy.js";
export { eventName } from "../../dist/events.js";
export { label, parse } from "../../dist/json.js";
export { Sampler } from "../../dist/sampling.js";
export { chooseWindows, MAX_WINDOWS } from "../../dist/series.js";
export { digestOf, hmac, sha256 } from "../../dist/sha256.js";
export { encode, fromHex, toHex } from "../../dist/utf8.js";
export { codePoints, microEpsilons, wholeNumber } from "../../dist/validate.js";
export { isVisible } from "../../dist/visible.js";
