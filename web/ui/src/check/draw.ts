import { sha256 } from "@noble/hashes/sha2.js";
import { shake256 } from "@noble/hashes/sha3.js";

import { concat, uint64, utf8 } from "./bytes.ts";
import type { Hash } from "./merkle.ts";

/** The most lots to shuffle here, which takes 80 MB and some seconds. A freeze could claim 2^32. */
export const maxLots = 20_000_000;

/** What a freeze fixes. */
export interface Frozen {
  window: bigint;
  lots: readonly number[]; // in the drum of each lane
  size: bigint;
  root: Hash;
}

/** The input of a window's VRF proof: everything its freeze fixes; 106 bytes with one lane. */
export function alphaOf(roomHash: Hash, { window, lots, size, root }: Frozen): Uint8Array {
  const drums = lots.map((n) => uint64(BigInt(n)));
  return concat(utf8("proofline/draw/v1\0"), roomHash, uint64(window), ...drums, uint64(size), root);
}

/** The lots of a freeze in one lane of the policy, and in all. */
export function lotsOf(
  lanes: readonly { name: string }[],
  lane: string,
  { lots }: Frozen,
): { own: number; all: bigint } {
  const own = lots[lanes.findIndex(({ name }) => name === lane)] ?? 0;
  return { own, all: lots.reduce((sum, n) => sum + BigInt(n), 0n) };
}

/** The seed of a draw; without a beacon the round is 0 and the signature empty. */
export function seedOf(alpha: Uint8Array, beta: Hash, round: bigint, signature: Uint8Array): Hash {
  return sha256(concat(utf8("proofline/seed/v1\0"), alpha, beta, uint64(round), sha256(signature)));
}

/**
 * The order in which lots are drawn: element k is the lot drawn as number k,
 * both counted from 0. Fisher-Yates, from the last place down to the second.
 */
export function shuffle(seed: Hash, lane: string, lots: number): Uint32Array {
  const order = new Uint32Array(lots);
  for (let i = 0; i < lots; i++) order[i] = i;
  const below = words(seed, lane);
  for (let i = lots - 1; i >= 1; i--) {
    const j = below(i + 1);
    const lot = order[i]!;
    order[i] = order[j]!;
    order[j] = lot;
  }
  return order;
}

/**
 * Draws numbers below m from SHAKE256, 32 bits little-endian each. Words of
 * the last, incomplete run of m values are rejected, so that all numbers are
 * equally likely.
 */
function words(seed: Hash, lane: string): (m: number) => number {
  const stream = shake256.create({}).update(concat(utf8("proofline/shuffle/v1\0"), seed, utf8(lane)));
  const buffer = new Uint8Array(136 * 32); // some blocks of SHAKE256
  const view = new DataView(buffer.buffer);
  let at = buffer.length;
  const next = (): number => {
    if (at === buffer.length) {
      stream.xofInto(buffer);
      at = 0;
    }
    const word = view.getUint32(at, true);
    at += 4;
    return word;
  };
  return (m) => {
    const limit = 2 ** 32 - (2 ** 32 % m);
    let word = next();
    while (word >= limit) word = next();
    return word % m;
  };
}
