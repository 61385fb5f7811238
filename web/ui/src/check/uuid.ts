import { FormatError } from "./errors.ts";
import { fromHex, toHex } from "./hex.ts";

const uuid8 = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * The UUID of version 8 around the first 16 of some bytes.
 * https://www.rfc-editor.org/rfc/rfc9562.html#section-5.8
 */
export function makeUuid8(bytes: Uint8Array): string {
  const id = bytes.slice(0, 16);
  id[6] = (id[6]! & 0x0f) | 0x80;
  id[8] = (id[8]! & 0x3f) | 0x80;
  return toHex(id).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Returns the text if it is a lower-case UUID of version 8. */
export function parseUuid8(text: string): string {
  if (!uuid8.test(text)) throw new FormatError("not a lower-case UUID of version 8");
  return text;
}

/** The 16 bytes of a UUID of version 8. */
export function uuidBytes(text: string): Uint8Array {
  return fromHex(parseUuid8(text).replaceAll("-", ""));
}
