import { hasPrimeOrder } from "./ed25519.ts";
import { FormatError } from "./errors.ts";
import { fromHex, toHex } from "./hex.ts";

// RULES.md section 13: methods of a policy, and credentials as entries have them.

/** A method of a policy: how something is shown about a ticket's holder. */
export interface Method {
  name: string;
  kind: "work" | "signed" | "blind";
  bits: number; // of work
  key: string; // of an issuer, in hexadecimal: Ed25519 key or RSA modulus
  limit: number; // how many credentials the room takes; 0: no bound
}

/** What a ticket shows for one method. */
export interface Credential {
  method: string;
  nullifier: Uint8Array; // 32 bytes, or none
  evidence: Uint8Array;
}

const namePattern = /^[a-z0-9-]{1,32}$/;
const numberPattern = /^(?:0|[1-9][0-9]{0,9})$/;
/** Bytes of a nullifier. */
export const nullifierSize = 32;
const maxBits = 40;
// bytes of an RSA modulus
const minModulus = 256;
const maxModulus = 512;

/** Reads a method as it stands in a policy after the word "method", or throws a FormatError. */
export function parseMethod(text: string): Method {
  const [name = "", kind, value = "", bound = "0", ...rest] = text.split(" ");
  const isWork = kind === "work";
  const number = isWork ? value : bound;
  if (!namePattern.test(name) || rest.length > 0 || !numberPattern.test(number)) throw new FormatError("not a method");
  if (isWork && text === `${name} work ${value}` && Number(value) < 2 ** 8) {
    return { name, kind, bits: Number(value), key: "", limit: 0 };
  }
  const isIssuer = (kind === "signed" || kind === "blind") && /^[!-~]+$/.test(value);
  if (isIssuer && text === `${name} ${kind} ${value} ${bound}` && Number(bound) < 2 ** 32) {
    return { name, kind, bits: 0, key: value, limit: Number(bound) };
  }
  throw new FormatError("not a method");
}

/** The text that parseMethod reads. */
export function formatMethod({ name, kind, bits, key, limit }: Method): string {
  return kind === "work" ? `${name} work ${bits}` : `${name} ${kind} ${key} ${limit}`;
}

/** Reports whether a policy may have a method: its bounds and its key are sound. */
export function methodAllowed({ kind, bits, key }: Method): boolean {
  if (kind === "work") return bits >= 1 && bits <= maxBits;
  if (!/^(?:[0-9a-f]{2})+$/.test(key)) return false;
  const bytes = fromHex(key);
  if (kind === "signed") return hasPrimeOrder(bytes);
  return bytes.length >= minModulus && bytes.length <= maxModulus && bytes[0]! >= 0x80 && bytes.at(-1)! % 2 === 1;
}

/** Reads the three fields of a credential, or throws a FormatError. */
export function parseCredential(method: string, nullifier: string, evidence: string): Credential {
  const out: Credential = {
    method,
    nullifier: nullifier === "-" ? new Uint8Array() : fromHex(nullifier, nullifierSize),
    evidence: fromHex(evidence),
  };
  const { length } = out.evidence;
  if (!namePattern.test(method) || length === 0 || length > maxModulus) throw new FormatError("not a credential");
  return out;
}

/** The three fields that parseCredential reads. */
export function formatCredential({ method, nullifier, evidence }: Credential): string {
  return `${method} ${nullifier.length === 0 ? "-" : toHex(nullifier)} ${toHex(evidence)}`;
}
