import { bls12_381 } from "@noble/curves/bls12-381.js";
import { sha256 } from "@noble/hashes/sha2.js";

import { concat, uint64, utf8 } from "./bytes.ts";
import type { Beacon } from "./entry.ts";
import { toHex } from "./hex.ts";

// Rounds of a drand chain of the scheme bls-unchained-g1-rfc9380: keys in G2,
// signatures in G1. https://docs.drand.love/docs/concepts/2-3-concepts-specification/

/**
 * The League of Entropy's chain with a round every three seconds.
 * https://docs.drand.love/blog/2023/10/16/quicknet-is-live/
 */
export const quicknet = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971";

const signatureSize = 48;

const { G1, G2, shortSignatures } = bls12_381;

/** The hash that identifies a chain, hexadecimal. It does not cover the scheme. */
export function chainHash({ id, key, genesis, period, group }: Beacon): string {
  const clock = concat(uint64(BigInt(period)).subarray(4), uint64(genesis));
  return toHex(sha256(concat(clock, key, group, utf8(id === "default" ? "" : id))));
}

/** The first round that appears after a window was frozen at a time (in ms) and the margin has passed. */
export function roundAfter(beacon: Beacon, frozen: number): bigint {
  return roundAt(beacon, BigInt(frozen) + BigInt(beacon.margin));
}

/** The first round that appears after a time, in ms. */
export function roundAt({ genesis, period }: Beacon, time: bigint): bigint {
  const passed = time - 1000n * genesis;
  return passed < 0n ? 1n : passed / (1000n * BigInt(period)) + 2n;
}

/** When a round appears, in milliseconds since the Unix epoch. */
export function roundTime({ genesis, period }: Beacon, round: bigint): bigint {
  return 1000n * (genesis + (round - 1n) * BigInt(period));
}

/** Reports whether the bytes are a public key: a point of G2, compressed, in the subgroup, not the identity. */
export function isBeaconKey(key: Uint8Array): boolean {
  return decode(G2.Point, key) !== undefined;
}

/** Reports whether the bytes are the chain's signature of a round. */
export function verifyRound(beacon: Beacon, round: bigint, signature: Uint8Array): boolean {
  const key = decode(G2.Point, beacon.key);
  const point = signature.length === signatureSize ? decode(G1.Point, signature) : undefined;
  if (!key || !point) return false;
  return shortSignatures.verify(point, shortSignatures.hash(sha256(uint64(round))), key);
}

/** A point, if it is in the subgroup and not the identity. Of the two encodings only the compressed one has the upper bit. */
function decode<P extends { is0(): boolean }>(
  curve: { fromBytes(bytes: Uint8Array): P },
  bytes: Uint8Array,
): P | undefined {
  if (((bytes[0] ?? 0) & 0x80) === 0) return undefined;
  try {
    const point = curve.fromBytes(bytes);
    return point.is0() ? undefined : point;
  } catch {
    return undefined; // not on the curve, or outside the subgroup
  }
}
