// URLs that visitors return to from a room, signed if a connector redeems passes
// there: see "The way back" of connector/rules/FORMAT.md.
import { encodeQuery } from "./answer.ts";
import { base64url, fromBase64url, toBytes, utf8 } from "./bytes.ts";

export const returnHeader = "Proofline-Return";

const label = "proofline-to/v1\n";
const keySize = 32;
const sigSize = 16;

/** ReturnSigning is what the server says about return URLs of a room. */
export interface ReturnSigning {
  key: Uint8Array<ArrayBuffer>;
  isRequired: boolean; // the room ignores unsigned return URLs
}

/** ReturnTarget is a URL to return to. */
export interface ReturnTarget {
  to: string; // empty: the room's first target
  sig: string; // empty: unsigned
}

/** returnsOf parses the return signing in a reply; undefined: none. */
export function returnsOf(said: Record<string, unknown>): ReturnSigning | undefined {
  const { return_key: text, signed_return: isRequired } = said;
  const key = typeof text === "string" ? fromBase64url(text) : undefined;
  return key?.length === keySize ? { key, isRequired: isRequired === true } : undefined;
}

/** signReturn returns the signature of a URL for a room. */
export async function signReturn(key: Uint8Array<ArrayBuffer>, room: string, to: string): Promise<string> {
  const hmac = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const sum = await crypto.subtle.sign("HMAC", hmac, toBytes(utf8(`${label}${room}\n${to}`)));
  return base64url(new Uint8Array(sum).slice(0, sigSize));
}

/** joinURL returns the URL of the room, with the return URL. */
export function joinURL(room: string, { to, sig }: ReturnTarget): string {
  return room + (to && `?to=${encodeQuery(to)}`) + (sig && `&to_sig=${sig}`);
}
