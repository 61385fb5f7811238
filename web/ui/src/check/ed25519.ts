import { ed25519 } from "@noble/curves/ed25519.js";
import { sha512 } from "@noble/hashes/sha2.js";

import { concat, equal } from "./bytes.ts";

const { Point } = ed25519;

/**
 * Verifies an Ed25519 signature of RFC 8032 by the equation without cofactor,
 * R = [S]B - [k]A, comparing R's bytes. The RFC allows either equation; they
 * differ for signatures that only the holder of the key can make, and browsers
 * and auditors must not differ about a checkpoint.
 * https://www.rfc-editor.org/rfc/rfc8032.html#section-5.1.7
 */
export function verifyEd25519(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  const r = signature.subarray(0, 32);
  const s = littleEndian(signature.subarray(32));
  if (s >= Point.Fn.ORDER) return false;
  const k = littleEndian(sha512(concat(r, publicKey, message))) % Point.Fn.ORDER;
  try {
    const a = Point.fromBytes(publicKey, true);
    return equal(Point.BASE.multiplyUnsafe(s).subtract(a.multiplyUnsafe(k)).toBytes(), r);
  } catch {
    return false; // the public key is no point
  }
}

function littleEndian(bytes: Uint8Array): bigint {
  return bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
}
