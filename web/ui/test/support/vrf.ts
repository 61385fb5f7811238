import { p256 } from "@noble/curves/nist.js";
import { sha256 } from "@noble/hashes/sha2.js";

import { concat, utf8 } from "../../src/check/bytes.ts";
import { encodeToCurve } from "../../src/check/p256.ts";

const { Point } = p256;
type CurvePoint = InstanceType<typeof Point>;

export const order = Point.Fn.ORDER;

/** The point's encoding, by hand: the single byte 0 for the identity. */
function encode(point: CurvePoint): Uint8Array {
  return point.is0() ? Uint8Array.of(0) : point.toBytes(true);
}

export function scalar(value: bigint): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, i) => Number((value >> BigInt(8 * (31 - i))) & 0xffn));
}

export function integer(bytes: Uint8Array): bigint {
  return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

export function publicKey(secret: bigint): Uint8Array {
  return Point.BASE.multiply(secret).toBytes(true);
}

/** Makes a proof with the caller's nonce; any nonce makes a valid proof. */
export function prove(secret: bigint, alpha: Uint8Array, nonce: bigint): Uint8Array {
  const key = publicKey(secret);
  const tag = utf8("ECVRF_P256_XMD:SHA-256_SSWU_NU_\x02");
  const h = Point.fromBytes(encodeToCurve(concat(key, alpha), tag).toBytes(true));
  const gamma = encode(h.multiply(secret));
  const u = encode(Point.BASE.multiplyUnsafe(nonce));
  const v = encode(h.multiplyUnsafe(nonce));
  const c = sha256(concat(Uint8Array.of(2, 2), key, encode(h), gamma, u, v, Uint8Array.of(0))).slice(0, 16);
  return concat(gamma, c, scalar((nonce + integer(c) * secret) % order));
}
