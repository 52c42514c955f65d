/** Bytes of texts: in UTF-8, and in hexadecimal. Not every engine has encoders. */

/** Return the UTF-8 bytes of a text without halves of surrogate pairs. */
export function encode(text: string): Uint8Array {
  const bytes = encodeURIComponent(text).replace(/%(..)/g, (_, hex: string) => fromCode(hex));
  return Uint8Array.from(Array.from(bytes, (unit) => unit.charCodeAt(0)));
}

function fromCode(hex: string): string {
  return String.fromCharCode(parseInt(hex, 16));
}

/** Return bytes in hexadecimal, two lower-case digits each. */
export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => (byte + 256).toString(16).slice(1)).join("");
}

/** Return the bytes of an even number of hexadecimal digits. */
export function fromHex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (hex) => parseInt(hex, 16));
}
