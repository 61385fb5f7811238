import { sha384 } from "@noble/hashes/sha2.js";

import { concat } from "../check/bytes.ts";
import { fromHex, toHex } from "../check/hex.ts";

const hashSize = 48;

/**
 * The encoding EMSA-PSS of a message for a modulus of that many whole bytes, with SHA-384, MGF1 and no salt.
 * https://www.rfc-editor.org/rfc/rfc8017.html#section-9.1.1
 */
export function encodeMessage(message: Uint8Array, size: number): Uint8Array {
  const hash = sha384(concat(new Uint8Array(8), sha384(message)));
  const block = mask(hash, size - hashSize - 1);
  block[block.length - 1]! ^= 1;
  block[0]! &= 0x7f; // the encoding has one bit less than the modulus
  return concat(block, hash, Uint8Array.of(0xbc));
}

/** MGF1 of RFC 8017, section B.2.1. */
function mask(seed: Uint8Array, size: number): Uint8Array {
  const out = new Uint8Array(Math.ceil(size / hashSize) * hashSize);
  for (let i = 0; i * hashSize < size; i++) out.set(sha384(concat(seed, Uint8Array.of(0, 0, 0, i))), i * hashSize);
  return out.slice(0, size);
}

/** value^65537 modulo the modulus, as many bytes as the modulus. */
export function powerOf65537(value: Uint8Array, modulus: Uint8Array): Uint8Array {
  const n = integer(modulus);
  const base = integer(value);
  let power = base;
  for (let i = 0; i < 16; i++) power = (power * power) % n;
  return fromHex(((power * base) % n).toString(16).padStart(2 * modulus.length, "0"));
}

/** An integer from its bytes, big-endian. */
export function integer(bytes: Uint8Array): bigint {
  return BigInt(`0x${toHex(bytes)}`);
}
