import { encodeMessage, integer, powerOf65537 } from "../audit/rsa.ts";
import { messageOf } from "../audit/subject.ts";
import { equal } from "../check/bytes.ts";
import { fromHex } from "../check/hex.ts";
import { uuidBytes } from "../check/uuid.ts";

/** What a blind signature is for: the data of the form that leads to the issuer. */
export interface Wish {
  ticket: string;
  lane: string;
  method: string;
  key: string; // the issuer's modulus, in hex
  entry: string; // SHA-256 of the room entry, in hex
}

/** A message for an issuer to sign, and the factor that hides it. */
export interface Blinded {
  message: string; // blinded, in hex
  factor: string; // inverse of the random value, in hex; whoever knows it can link message and ticket
}

/** Returns the encoded message of a wish, which the signature is for. */
function encoded({ ticket, lane, method, key, entry }: Wish): Uint8Array {
  const subject = { room: fromHex(entry, 32), lane, ticket: uuidBytes(ticket), round: new Uint8Array() };
  return encodeMessage(messageOf(subject, method, new Uint8Array()), key.length / 2);
}

/** Blinds the message of a wish with a random value. https://www.rfc-editor.org/rfc/rfc9474.html#section-4.2 */
export function blind(wish: Wish): Blinded {
  const modulus = fromHex(wish.key);
  const n = integer(modulus);
  for (;;) {
    const random = crypto.getRandomValues(new Uint8Array(modulus.length));
    const factor = integer(random) < n ? inverse(integer(random), n) : undefined;
    if (factor === undefined) continue;
    const hidden = integer(powerOf65537(random, modulus));
    return { message: hex((integer(encoded(wish)) * hidden) % n, modulus.length), factor: hex(factor, modulus.length) };
  }
}

/**
 * Returns the credential's evidence that a blind signature hides; undefined if it is not for the wish.
 * https://www.rfc-editor.org/rfc/rfc9474.html#section-4.4
 */
export function unblind(wish: Wish, factor: string, signature: string): string | undefined {
  const modulus = fromHex(wish.key);
  const n = integer(modulus);
  const evidence = hex((integer(fromHex(signature, modulus.length)) * integer(fromHex(factor))) % n, modulus.length);
  return equal(powerOf65537(fromHex(evidence), modulus), encoded(wish)) ? evidence : undefined;
}

/** The inverse of a value modulo n; undefined if it has none. */
function inverse(value: bigint, n: bigint): bigint | undefined {
  let [rest, next] = [n, value];
  let [factor, following] = [0n, 1n];
  while (next !== 0n) {
    const times = rest / next;
    [rest, next] = [next, rest - times * next];
    [factor, following] = [following, factor - times * following];
  }
  return rest === 1n ? ((factor % n) + n) % n : undefined;
}

function hex(value: bigint, size: number): string {
  return value.toString(16).padStart(2 * size, "0");
}
