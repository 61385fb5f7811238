import { type Frozen, fill, lotsOf, orderOf, sum, turnsOf } from "./draw.ts";
import type { EntryOf } from "./entry.ts";
import type { Hash } from "./merkle.ts";
import { slotAt, slotsIn } from "./schedule.ts";

// A ticket's lots, and where they are in the line of its window and lane: RULES.md sections 4 and 6.

/** Returns the most lots that so many entries from the first on can have put into drums. */
export function mostLots({ lots }: EntryOf<"room">, entries: bigint): bigint {
  return (entries - 1n) * BigInt(1 + lots.length);
}

/** Returns the most places that so many lots of a lane can have got: half of a drum may be empty lots. */
export function mostPlaces({ slots }: EntryOf<"room">, lots: bigint): bigint {
  return slots === 0 ? lots : 2n * lots + 64n;
}

/** How many places a lane has in a window with that freeze; undefined if its numbers are not one for each drum. */
export function placesOf(room: EntryOf<"room">, lane: string, freeze: Frozen): bigint | undefined {
  if (freeze.lots.length !== slotsIn(room, freeze.window) * room.lanes.length) return undefined;
  return BigInt(sum(fill(lotsOf(room.lanes, lane, freeze))));
}

/** A merit entry, and where it is. */
export interface Shown {
  index: bigint;
  merit: EntryOf<"merit"> | undefined; // undefined: it is none
}

/** The drum of an arrival, and its lots in it. */
export interface Own {
  slot: number;
  drums: number[]; // lots of its lane, by slot
  seqs: number[]; // its own lots, ascending
  missing: boolean; // it may have got more lots by merits
}

/** The lots that an arrival has by itself; undefined if the freeze of its window cannot be right. */
export function ownOf(room: EntryOf<"room">, arrive: EntryOf<"arrive">, freeze: Frozen): Own | undefined {
  const slot = slotAt(room, arrive.window, arrive.time);
  const drums = lotsOf(room.lanes, arrive.lane, freeze);
  const shown = room.lots.filter((name) => arrive.credentials.some(({ method }) => method === name)).length;
  const isWhole = freeze.lots.length === slotsIn(room, arrive.window) * room.lanes.length;
  if (!isWhole || arrive.seq + shown >= (drums[slot] ?? 0)) return undefined;
  const seqs = Array.from({ length: 1 + shown }, (_, i) => arrive.seq + i);
  return { slot, drums, seqs, missing: shown < room.lots.length };
}

/**
 * Adds the lots that merits give, which are in the order of their indexes, between arrival and freeze; undefined if one
 * of them cannot be the ticket's.
 */
export function withMerits(
  room: EntryOf<"room">,
  arrive: EntryOf<"arrive">,
  own: Own,
  merits: readonly Shown[],
  [after, before]: readonly [bigint, bigint],
): Own | undefined {
  const shown = new Set(arrive.credentials.map(({ method }) => method));
  const seqs = [...own.seqs];
  let last = after;
  for (const { index, merit } of merits) {
    const method = merit?.credentials[0]?.method;
    const isTheirs = merit?.ticket === arrive.ticket && index > last && index < before;
    if (!isTheirs || method === undefined || shown.has(method)) return undefined;
    shown.add(method);
    last = index;
    if (!room.lots.includes(method)) continue;
    if (merit.seq <= seqs.at(-1)! || merit.seq >= own.drums[own.slot]!) return undefined;
    seqs.push(merit.seq);
  }
  return { ...own, seqs, missing: room.lots.some((name) => !shown.has(name)) };
}

/** The line of a window and lane, as far as one slot of it needs: only that one is shuffled. */
export class SlotLine {
  readonly #filled: readonly number[];
  readonly #order: Uint32Array;
  readonly #ahead: number[]; // slots whose turn comes before

  constructor(seed: Hash, lane: string, { slot, drums }: Own) {
    this.#filled = fill(drums);
    this.#order = orderOf(seed, lane, this.#filled, slot);
    const turns = turnsOf(seed, lane, drums.length);
    this.#ahead = [...turns.subarray(0, turns.indexOf(slot))];
  }

  /** The place of the first of some lots of the slot among those of the window and lane, from 0. */
  rank(seqs: readonly number[]): number {
    return this.#before(Math.min(...seqs.map((seq) => this.#order.indexOf(seq))));
  }

  /** The lot of the slot that has that place; undefined: it is one of another slot. */
  lotAt(rank: number): number | undefined {
    let low = 0;
    let high = this.#order.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#before(middle) < rank) low = middle + 1;
      else high = middle;
    }
    return low < this.#order.length && this.#before(low) === rank ? this.#order[low] : undefined;
  }

  /** How many lots are drawn before the lot with a number in the order of the slot. */
  #before(round: number): number {
    const earlier = this.#filled.map((size) => Math.min(size, round));
    return sum(earlier) + this.#ahead.filter((slot) => this.#filled[slot]! > round).length;
  }
}
