import { sha256 } from "@noble/hashes/sha2.js";

import { concat, utf8 } from "./bytes.ts";
import { makeUuid8, uuidBytes } from "./uuid.ts";

/** Length of a visitor's secret in bytes. */
export const secretSize = 32;

/** The ticket that commits to a secret in the room of that origin. */
export function ticketOf(origin: string, secret: Uint8Array): string {
  return derive("proofline/ticket/v1", origin, secret);
}

/** The id of the pass of an admitted ticket. */
export function passOf(origin: string, ticket: string): string {
  return derive("proofline/pass/v1", origin, uuidBytes(ticket));
}

/** UUIDv8(SHA-256(label || 0 || origin || 0 || bytes)) */
function derive(label: string, origin: string, bytes: Uint8Array): string {
  return makeUuid8(sha256(concat(utf8(`${label}\0${origin}\0`), bytes)));
}
