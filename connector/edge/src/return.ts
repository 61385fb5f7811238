// Where visitors come back to from a room, signed where a connector takes a
// pass: see "The way back" of connector/rules/FORMAT.md.
import { escape } from "./answer.ts";
import { base64url, fromBase64url, toBytes, utf8 } from "./bytes.ts";

export const returnHeader = "Proofline-Return";

const label = "proofline-to/v1\n";
const keySize = 32;
const sigSize = 16;

/** Returns is what the server says about ways back from a room. */
export interface Returns {
  key: Uint8Array<ArrayBuffer>;
  isNeeded: boolean; // the room leads nobody to what is not signed
}

/** WayBack is where a visitor comes back to. */
export interface WayBack {
  to: string; // empty: to the room's first target
  sig: string; // empty: there is none
}

/** returnsOf reads what an answer to a report says of a room; undefined: nothing. */
export function returnsOf(said: Record<string, unknown>): Returns | undefined {
  const { return_key: text, signed_return: isNeeded } = said;
  const key = typeof text === "string" ? fromBase64url(text) : undefined;
  return key?.length === keySize ? { key, isNeeded: isNeeded === true } : undefined;
}

/** signReturn returns the signature of a URL for a room. */
export async function signReturn(key: Uint8Array<ArrayBuffer>, room: string, to: string): Promise<string> {
  const hmac = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const sum = await crypto.subtle.sign("HMAC", hmac, toBytes(utf8(`${label}${room}\n${to}`)));
  return base64url(new Uint8Array(sum).slice(0, sigSize));
}

/** joinURL returns the link that leads a visitor to a room, and back. */
export function joinURL(room: string, { to, sig }: WayBack): string {
  return room + (to && `?to=${escape(to)}`) + (sig && `&to_sig=${sig}`);
}
