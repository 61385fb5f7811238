import { FormatError } from "./errors.ts";

/** Lower-case hexadecimal. */
export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}

/** Reads lower-case hexadecimal, of exactly size bytes if that is given. */
export function fromHex(text: string, size = text.length / 2): Uint8Array {
  if (text.length !== 2 * size || !/^(?:[0-9a-f]{2})*$/.test(text)) {
    throw new FormatError("not lower-case hexadecimal of the right length");
  }
  return Uint8Array.from({ length: size }, (_, i) => Number.parseInt(text.slice(2 * i, 2 * i + 2), 16));
}
