import { ahead, callTime, type Place } from "./place.ts";
import type { Room } from "./room.ts";

/** A range of moments, in milliseconds since the Unix epoch. */
export interface Range {
  earliest: number;
  latest: number;
}

/** Why a turn is expected later than before. */
export type Cause = "paused" | "slower" | "behind";

/**
 * When a place will be called if the outflow stays the same, by the server's rule.
 * Earliest: after all visitors ahead. Latest: with a fifth of the rate lost, and
 * places at the site becoming free as slowly as the room states. Undefined: unknown.
 */
export function expect(place: Place, room: Room, now: number): Range | undefined {
  if (room.paused || isOverdue(place, now) || (place.state !== "waiting" && place.state !== "drawn")) return undefined;
  const { min, max } = ahead(place, room);
  const from = Math.max(now, room.starts, place.state === "waiting" ? place.draws : 0);
  return {
    earliest: from + callTime(min / room.shareNow, room.perMinute),
    latest: latest(from, (max + 1) / room.share, room),
  };
}

/** The latest time by which a number of visitors is called, if the site may be full earlier. */
function latest(from: number, people: number, { perMinute, free, firstFree, freed }: Room): number {
  const at = from + (callTime(people, perMinute) * 5) / 4;
  if (people <= free) return at;
  const full = Math.max(from + callTime(free, perMinute), firstFree);
  return Math.max(at, full + (((people - free - 1) / freed) * minute * 5) / 4);
}

const minute = 60_000;

/** Reports whether people can still join the group of a place: then the number ahead of it is unknown. */
export function grows(place: Place, now: number): boolean {
  return place.state === "waiting" && now < place.closes;
}

/** How long after its time a draw counts as late. */
const lateAfter = 30_000;

/** Reports whether a draw is late: then its time is unknown. */
export function isOverdue(place: Place, now: number): boolean {
  return place.state === "waiting" && now >= place.draws + lateAfter;
}

/** Widens a range to whole steps: the further away it is, the coarser. */
export function round({ earliest, latest }: Range, now: number): Range {
  const ahead = latest - now;
  const step = ahead < 60 * minute ? minute : ahead < 360 * minute ? 5 * minute : 15 * minute;
  return { earliest: Math.floor(earliest / step) * step, latest: Math.ceil(latest / step) * step };
}

/** What an expectation rests on. */
export interface Basis {
  state: string;
  paused: boolean;
  perMinute: number;
}

/** The expectation that was shown, in a form that survives a reload. */
export interface Estimate {
  range: Range;
  basis: Basis;
  cause?: { name: Cause; until: number };
}

/** How long a cause is shown. */
const statedFor = 5 * minute;

/**
 * Says when a turn is expected. Each end of the range may move nearer at any time, but moves back only with a cause,
 * which is shown.
 */
export class Expectation {
  #shown: Estimate | undefined;
  #wasPaused = false;

  constructor(shown?: Estimate) {
    this.#shown = shown;
  }

  get shown(): Estimate | undefined {
    return this.#shown;
  }

  /** Sets what is expected now; undefined: unknown. */
  update(next: Range | undefined, basis: Basis, now: number): void {
    this.#wasPaused ||= basis.paused;
    if (!next) return;
    const range = round(next, now);
    const shown = this.#shown;
    if (!shown) {
      this.#shown = { range, basis };
    } else if (range.latest > shown.range.latest) {
      this.#shown = { range, basis, cause: { name: this.#cause(shown.basis, basis), until: now + statedFor } };
    } else {
      const { cause, ...rest } = shown;
      const isSettled = basis.state !== shown.basis.state; // by the draw: what was shown before no longer counts
      this.#shown = { ...rest, range: nearer(shown, range, basis, now), basis, ...(cause && !isSettled && { cause }) };
    }
    this.#wasPaused = false;
  }

  /** The cause to show, if any. */
  cause(now: number): Cause | undefined {
    const cause = this.#shown?.cause;
    return cause && now < cause.until ? cause.name : undefined;
  }

  #cause(was: Basis, is: Basis): Cause {
    if (this.#wasPaused) return "paused";
    if (is.perMinute < was.perMinute) return "slower";
    return "behind";
  }
}

/** The range with its earliest moment where it was, unless that is past, or the draw has settled it. */
function nearer({ range: was, basis }: Estimate, is: Range, { state }: Basis, now: number): Range {
  if (state !== basis.state) return is;
  const current = Math.floor(now / minute) * minute;
  return { earliest: Math.min(is.earliest, Math.max(was.earliest, current)), latest: is.latest };
}
