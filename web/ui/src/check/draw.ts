import { sha256 } from "@noble/hashes/sha2.js";
import { shake256 } from "@noble/hashes/sha3.js";

import { concat, uint64, utf8 } from "./bytes.ts";
import type { Hash } from "./merkle.ts";

/** The most lots to shuffle here, which takes 80 MB and some seconds. A freeze could claim 2^32. */
export const maxLots = 20_000_000;

/** What a freeze fixes. */
export interface Frozen {
  window: bigint;
  lots: readonly number[]; // in the drums: slot by slot, in each by lane
  size: bigint;
  root: Hash;
}

/** The input of a window's VRF proof: everything its freeze fixes; 106 bytes with one lane and slot. */
export function alphaOf(roomHash: Hash, { window, lots, size, root }: Frozen): Uint8Array {
  const drums = lots.map((n) => uint64(BigInt(n)));
  return concat(utf8("proofline/draw/v1\0"), roomHash, uint64(window), ...drums, uint64(size), root);
}

/** The lots of a freeze in one lane of the policy, by slot. */
export function lotsOf(lanes: readonly { name: string }[], lane: string, { lots }: Pick<Frozen, "lots">): number[] {
  const own = lanes.findIndex(({ name }) => name === lane);
  return lots.filter((_, drum) => drum % lanes.length === own);
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, n) => all + n, 0); // exact: at most 1,024 numbers below 2^32
}

/**
 * The numbers of a lane's lots by slot, after slots with less than half of the mean are filled up to that, rounded up,
 * with empty lots.
 */
export function fill(lots: readonly number[]): number[] {
  const least = Math.ceil(sum(lots) / (2 * lots.length));
  return lots.map((n) => Math.max(n, least));
}

/** The order in which slots take turns. */
export function turnsOf(seed: Hash, lane: string, slots: number): Uint32Array {
  return slots === 1 ? Uint32Array.of(0) : shuffle(seed, `${lane}/`, slots);
}

/** The order of the lots of one slot. */
export function orderOf(seed: Hash, lane: string, filled: readonly number[], slot: number): Uint32Array {
  return shuffle(seed, filled.length === 1 ? lane : `${lane}/${slot}`, filled[slot]!);
}

/** The lots of a lane in the order drawn, given by slot: slots take turns. undefined: an empty lot. */
export function* deal<T>(seed: Hash, lane: string, drums: readonly (readonly T[])[]): Generator<T | undefined> {
  const filled = fill(drums.map(({ length }) => length));
  const orders = drums.map((_, slot) => orderOf(seed, lane, filled, slot));
  const turns = turnsOf(seed, lane, drums.length);
  const rounds = Math.max(...filled);
  for (let round = 0; round < rounds; round++) {
    for (const slot of turns) if (round < filled[slot]!) yield drums[slot]![orders[slot]![round]!];
  }
}

/** The seed of a draw; without a beacon the round is 0 and the signature empty. */
export function seedOf(alpha: Uint8Array, beta: Hash, round: bigint, signature: Uint8Array): Hash {
  return sha256(concat(utf8("proofline/seed/v1\0"), alpha, beta, uint64(round), sha256(signature)));
}

/**
 * The order in which some things, such as the lots of a drum, are drawn: element k is the one drawn as number k,
 * both counted from 0. Fisher-Yates, from the last place down to the second.
 */
export function shuffle(seed: Hash, name: string, things: number): Uint32Array {
  const order = new Uint32Array(things);
  for (let i = 0; i < things; i++) order[i] = i;
  const below = words(seed, name);
  for (let i = things - 1; i >= 1; i--) {
    const j = below(i + 1);
    const moved = order[i]!;
    order[i] = order[j]!;
    order[j] = moved;
  }
  return order;
}

/**
 * Draws numbers below m from SHAKE256, 32 bits little-endian each. Words of
 * the last, incomplete run of m values are rejected, so that all numbers are
 * equally likely.
 */
function words(seed: Hash, name: string): (m: number) => number {
  const stream = shake256.create({}).update(concat(utf8("proofline/shuffle/v1\0"), seed, utf8(name)));
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
