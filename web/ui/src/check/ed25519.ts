import { edwards } from "@noble/curves/abstract/edwards.js";
import { sha512 } from "@noble/hashes/sha2.js";

import { concat, equal } from "./bytes.ts";

/** https://www.rfc-editor.org/rfc/rfc8032.html#section-5.1 */
const parameters = {
  p: 2n ** 255n - 19n,
  n: 2n ** 252n + 27742317777372353535851937790883648493n,
  h: 8n,
  a: 2n ** 255n - 20n, // -1
  d: 37095705934669439343138083508754565189542113879843219016388785533085940283555n,
  Gx: 15112221349535400772501151409588531511454012693041857206046113283949847762202n,
  Gy: 46316835694926478169428394003475163141307993866256225615783033603165251855960n,
};

const Point = edwards(parameters);
type Point = InstanceType<typeof Point>;

/**
 * Verifies an Ed25519 signature of RFC 8032 by the equation without cofactor,
 * R = [S]B - [k]A, comparing R's bytes. The RFC allows either equation; they
 * differ only for signatures that the key's holder crafts, and browsers and
 * auditors must agree about every checkpoint.
 * https://www.rfc-editor.org/rfc/rfc8032.html#section-5.1.7
 */
export function verifyEd25519(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  try {
    const multiply = (point: Point, k: bigint) => point.multiplyUnsafe(k);
    return verify(publicKey, Point.fromBytes(publicKey, true).negate(), multiply, message, signature);
  } catch {
    return false; // the public key is not a point
  }
}

/**
 * A function that verifies signatures of one key as verifyEd25519 does. It computes tables of the key first, and
 * then takes a third of the time.
 */
export function ed25519Verifier(publicKey: Uint8Array): (message: Uint8Array, signature: Uint8Array) => boolean {
  const negated = Point.fromBytes(publicKey, true).negate();
  negated.precompute(8);
  const multiply = (point: Point, k: bigint) => (k === 0n ? Point.ZERO : point.multiply(k));
  return (message, signature) => verify(publicKey, negated, multiply, message, signature);
}

/** Compares R with [S]B + [k](-A). */
function verify(
  publicKey: Uint8Array,
  negated: Point,
  multiply: (point: Point, k: bigint) => Point,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  if (publicKey.length !== 32 || signature.length !== 64 || !isReduced(signature)) return false;
  const r = signature.subarray(0, 32);
  const s = littleEndian(signature.subarray(32));
  const k = littleEndian(sha512(concat(r, publicKey, message))) % parameters.n;
  return equal(multiply(Point.BASE, s).add(multiply(negated, k)).toBytes(), r);
}

/** Reports whether S of a signature of 64 bytes is below the order of the group: it has one spelling. */
export function isReduced(signature: Uint8Array): boolean {
  return littleEndian(signature.subarray(32)) < parameters.n;
}

/** Reports whether a public key is the canonical encoding of a point of prime order. */
export function hasPrimeOrder(publicKey: Uint8Array): boolean {
  try {
    const point = Point.fromBytes(publicKey, true);
    return equal(point.toBytes(), publicKey) && !point.is0() && point.isTorsionFree();
  } catch {
    return false; // not a point
  }
}

function littleEndian(bytes: Uint8Array): bigint {
  return bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
}
