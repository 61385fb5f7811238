import { sha256 } from "@noble/hashes/sha2.js";

import { concat, equal, utf8 } from "./bytes.ts";
import { encodeToCurve, order, Point } from "./p256.ts";

// ECVRF-P256-SHA256-SSWU, suite 0x02, the verifier only.
// https://www.rfc-editor.org/rfc/rfc9381.html#section-5

const suite = 0x02;
const pointSize = 33;
const challengeSize = 16;
const scalarSize = 32;

export const publicKeySize = pointSize;
export const proofSize = pointSize + challengeSize + scalarSize;

const encodeToCurveTag = utf8("ECVRF_P256_XMD:SHA-256_SSWU_NU_\x02");

interface Decoded {
  gamma: Point;
  gammaString: Uint8Array;
  c: Uint8Array;
  s: bigint;
}

/** Returns the output beta, 32 bytes, if the proof is the key's for alpha; undefined if not. */
export function verifyVrf(publicKey: Uint8Array, alpha: Uint8Array, proof: Uint8Array): Uint8Array | undefined {
  const y = decodePoint(publicKey);
  const decoded = decodeProof(proof);
  if (!y || !decoded) return undefined;
  const { gamma, gammaString, s } = decoded;
  const c = integer(decoded.c);
  // https://www.rfc-editor.org/rfc/rfc9381.html#section-5.4.1.2, the salt is the public key
  const h = encodeToCurve(concat(publicKey, alpha), encodeToCurveTag);
  const u = Point.BASE.multiplyUnsafe(s).subtract(y.multiplyUnsafe(c));
  const v = h.multiplyUnsafe(s).subtract(gamma.multiplyUnsafe(c));
  // https://www.rfc-editor.org/rfc/rfc9381.html#section-5.4.3
  const points = [publicKey, encodePoint(h), gammaString, encodePoint(u), encodePoint(v)];
  const challenge = sha256(concat(Uint8Array.of(suite, 0x02), ...points, Uint8Array.of(0))).slice(0, challengeSize);
  return equal(challenge, decoded.c) ? gammaToHash(gammaString) : undefined;
}

/** Returns the output that a proof states, unverified; undefined if the proof is malformed. */
export function vrfProofToHash(proof: Uint8Array): Uint8Array | undefined {
  const decoded = decodeProof(proof);
  return decoded && gammaToHash(decoded.gammaString);
}

/** https://www.rfc-editor.org/rfc/rfc9381.html#section-5.2; the cofactor is 1. */
function gammaToHash(gammaString: Uint8Array): Uint8Array {
  return sha256(concat(Uint8Array.of(suite, 0x03), gammaString, Uint8Array.of(0)));
}

/** https://www.rfc-editor.org/rfc/rfc9381.html#section-5.4.4 */
function decodeProof(proof: Uint8Array): Decoded | undefined {
  if (proof.length !== proofSize) return undefined;
  const gammaString = proof.slice(0, pointSize);
  const gamma = decodePoint(gammaString);
  const c = proof.slice(pointSize, pointSize + challengeSize);
  const s = integer(proof.slice(pointSize + challengeSize));
  return gamma && s < order ? { gamma, gammaString, c, s } : undefined;
}

/** Reads a compressed point (SEC 1, 2.3.4); undefined for anything else. The identity has no such encoding. */
function decodePoint(bytes: Uint8Array): Point | undefined {
  if (bytes.length !== pointSize || (bytes[0] !== 2 && bytes[0] !== 3)) return undefined;
  try {
    return Point.fromBytes(bytes);
  } catch {
    return undefined; // not on the curve, or a coordinate not below the field's prime
  }
}

/**
 * The compressed encoding, and the single byte 0 for the identity (SEC 1,
 * 2.3.3), which U and V are in a proof with the nonce 0: the RFC's verifier
 * accepts that one.
 */
function encodePoint(point: Point): Uint8Array {
  return point.is0() ? Uint8Array.of(0) : point.toBytes(true);
}

function integer(bytes: Uint8Array): bigint {
  return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}
