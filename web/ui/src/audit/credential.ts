import { sha256 } from "@noble/hashes/sha2.js";

import { concat, equal, utf8 } from "../check/bytes.ts";
import { ed25519Verifier, hasPrimeOrder, isReduced } from "../check/ed25519.ts";
import { FormatError } from "../check/errors.ts";
import { fromHex } from "../check/hex.ts";
import type { Hash } from "../check/merkle.ts";
import { encodeMessage, integer, powerOf65537 } from "./rsa.ts";

/** A method of a policy: how something is shown about a ticket's holder. */
export interface Method {
  name: string;
  kind: "work" | "signed" | "blind";
  bits: number; // of work
  key: Uint8Array; // of an issuer: Ed25519 key or RSA modulus
  limit: number; // how many credentials the room takes; 0: no bound
}

/** What a ticket shows for one method. */
export interface Credential {
  method: string;
  nullifier: Uint8Array; // 32 bytes, or none
  evidence: Uint8Array;
}

/** What a credential is good for. */
export interface Subject {
  room: Hash; // SHA-256 of the room entry
  lane: string;
  ticket: Uint8Array; // 16 bytes
  round: Uint8Array; // for work: the beacon's signature of the first round after the room opens, or empty
}

/** What is wrong with a credential. */
export type Fault = "method" | "nullifier" | "size" | "range" | "signature" | "round" | "work";

const namePattern = /^[a-z0-9-]{1,32}$/;
const nullifierSize = 32;
const maxBits = 40;
// bytes of an RSA modulus
const minModulus = 256;
const maxModulus = 512;

/** Reads a method as it stands in a policy after the word "method", or throws a FormatError. */
export function parseMethod(text: string): Method {
  const [name = "", kind, value = "", bound = "0", ...rest] = text.split(" ");
  const isWork = kind === "work";
  const number = isWork ? value : bound;
  if (!namePattern.test(name) || rest.length > 0 || !/^(?:0|[1-9][0-9]{0,9})$/.test(number)) {
    throw new FormatError("not a method");
  }
  if (isWork && text === `${name} work ${value}` && Number(value) >= 1 && Number(value) <= maxBits) {
    return { name, kind, bits: Number(value), key: new Uint8Array(), limit: 0 };
  }
  if ((kind === "signed" || kind === "blind") && text === `${name} ${kind} ${value} ${bound}` && +bound < 2 ** 32) {
    return { name, kind, bits: 0, key: fromHex(value), limit: Number(bound) };
  }
  throw new FormatError("not a method");
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

/** What an issuer signs, and what work is done for. */
export function messageOf({ room, lane, ticket }: Subject, method: string, nullifier: Uint8Array): Uint8Array {
  return concat(utf8("proofline/credential/v1\0"), room, utf8(`${method}\0${lane}\0`), ticket, nullifier);
}

/** Verifies the credentials of one method. */
export class Verifier {
  readonly #method: Method;
  readonly #evidence: number; // its size in bytes
  readonly #verify: (message: Uint8Array, evidence: Uint8Array, subject: Subject) => Fault | undefined;

  /** Throws a FormatError if no policy may have the method's key. */
  constructor(method: Method) {
    const { kind, bits, key } = method;
    this.#method = method;
    switch (kind) {
      case "work":
        this.#evidence = 8;
        this.#verify = (message, evidence, { round }) => {
          if (round.length === 0) return "round";
          return zeroBits(sha256(concat(message, round, evidence))) < bits ? "work" : undefined;
        };
        break;
      case "signed": {
        if (!hasPrimeOrder(key)) throw new FormatError("not the canonical key of a point of prime order");
        this.#evidence = 64;
        const verify = ed25519Verifier(key);
        this.#verify = (message, evidence) => {
          if (!isReduced(evidence)) return "range";
          return verify(message, evidence) ? undefined : "signature";
        };
        break;
      }
      case "blind":
        if (key.length < minModulus || key.length > maxModulus || key[0]! < 0x80 || key.at(-1)! % 2 === 0) {
          throw new FormatError("not an odd modulus of 256 to 512 whole bytes");
        }
        this.#evidence = key.length;
        this.#verify = (message, evidence) => {
          if (integer(evidence) >= integer(key)) return "range";
          return verifyBlind(key, message, evidence) ? undefined : "signature";
        };
    }
  }

  /** Returns what is wrong with a credential shown for a subject; undefined if nothing is. */
  fault(subject: Subject, { method, nullifier, evidence }: Credential): Fault | undefined {
    const { name, kind } = this.#method;
    if (method !== name) return "method";
    if (nullifier.length !== (kind === "signed" ? nullifierSize : 0)) return "nullifier";
    if (evidence.length !== this.#evidence) return "size";
    return this.#verify(messageOf(subject, name, nullifier), evidence, subject);
  }
}

/**
 * Verifies a signature of RSABSSA-SHA384-PSSZERO-Deterministic. Without a salt the encoding of a
 * message is fixed, so it is made again and compared.
 * https://www.rfc-editor.org/rfc/rfc9474.html#section-5
 */
export function verifyBlind(modulus: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  return equal(powerOf65537(signature, modulus), encodeMessage(message, modulus.length));
}

function zeroBits(hash: Uint8Array): number {
  const at = hash.findIndex((byte) => byte !== 0);
  return at < 0 ? 8 * hash.length : 8 * at + Math.clz32(hash[at]!) - 24;
}
