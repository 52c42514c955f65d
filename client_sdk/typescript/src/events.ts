/** The name under which a ledger holds an answered reading (docs/protocol.md, section 8). */

import { ParameterError } from "./errors.js";
import { hmac } from "./sha256.js";
import { encode } from "./utf8.js";
import { unicodeText } from "./validate.js";

export const KEY_BYTES = 32;

/**
 * Return the 32 bytes that stand for an event of one collection or series.
 *
 * The length of the digest keeps apart what would be one text when written together.
 *
 * @throws ParameterError where the key has another length or a text is empty or ill-formed.
 */
export function eventName(key: Uint8Array, digest: string, event: string): Uint8Array {
  if (!(key instanceof Uint8Array) || key.length !== KEY_BYTES) {
    throw new ParameterError(`key must be ${KEY_BYTES} bytes`); // it is a secret: no value
  }
  unicodeText("digest", digest);
  return hmac(key, encode(`${digest.length}:${digest}${unicodeText("event", event)}`));
}
