import { hash_to_field, mapToCurveSimpleSWU } from "@noble/curves/abstract/hash-to-curve.js";
import { weierstrass } from "@noble/curves/abstract/weierstrass.js";
import { sha256 } from "@noble/hashes/sha2.js";

// The curve P-256, made from noble's parts, because its complete curves include
// signing, key exchange and more.

/** https://www.secg.org/sec2-v2.pdf, section 2.4.2 */
const parameters = {
  p: 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn,
  n: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  h: 1n,
  a: 0xffffffff00000001000000000000000000000000fffffffffffffffffffffffcn,
  b: 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn,
  Gx: 0x6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296n,
  Gy: 0x4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5n,
};

export const Point = weierstrass(parameters);
export type Point = InstanceType<typeof Point>;

/** The order of the group. */
export const order = parameters.n;

const { Fp } = Point;
const map = mapToCurveSimpleSWU(Fp, { A: parameters.a, B: parameters.b, Z: Fp.neg(10n) });

/**
 * Hashes a message to a point, not uniformly: encode_to_curve with the suite
 * P256_XMD:SHA-256_SSWU_NU_. The cofactor is 1.
 * https://www.rfc-editor.org/rfc/rfc9380.html#section-3
 */
export function encodeToCurve(message: Uint8Array, tag: Uint8Array): Point {
  const options = { DST: tag, p: parameters.p, m: 1, k: 128, expand: "xmd", hash: sha256 } as const;
  const [[u]] = hash_to_field(message, 1, options) as [[bigint]];
  return Point.fromAffine(map(u));
}
