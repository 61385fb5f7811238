import { sha256 } from "@noble/hashes/sha2.js";

import { concat, equal } from "../check/bytes.ts";
import { ed25519Verifier, isReduced } from "../check/ed25519.ts";
import { FormatError } from "../check/errors.ts";
import { fromHex } from "../check/hex.ts";
import { type Credential, type Method, methodAllowed, nullifierSize } from "../check/method.ts";
import { encodeMessage, integer, powerOf65537 } from "./rsa.ts";
import { messageOf, type Subject } from "./subject.ts";

/** What is wrong with a credential. */
export type Fault = "method" | "nullifier" | "size" | "range" | "signature" | "round" | "work";

/** Verifies the credentials of one method. */
export class Verifier {
  readonly #method: Method;
  readonly #evidence: number; // its size in bytes
  readonly #verify: (message: Uint8Array, evidence: Uint8Array, subject: Subject) => Fault | undefined;

  /** Throws a FormatError if no policy may have the method. */
  constructor(method: Method) {
    if (!methodAllowed(method)) throw new FormatError("not a sound method");
    const { kind, bits } = method;
    const key = fromHex(method.key);
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
        this.#evidence = 64;
        const verify = ed25519Verifier(key);
        this.#verify = (message, evidence) => {
          if (!isReduced(evidence)) return "range";
          return verify(message, evidence) ? undefined : "signature";
        };
        break;
      }
      case "blind":
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
