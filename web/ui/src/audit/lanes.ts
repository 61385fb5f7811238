import type { LaneRule } from "../check/entry.ts";
import type { Arrival } from "./arrivals.ts";
import { must } from "./rule.ts";

// RULES.md section 7: lanes take turns by virtual time. Every number stays below 2^53, so it is exact.

/** The virtual time that serving one seat takes in a lane of weight 1. */
const quantum = 2 ** 20;

/** One lane, and its line. */
export interface Lane {
  readonly name: string;
  readonly step: number; // virtual time that serving one seat takes
  /** Who has each drawn place; element 0 is place 1. Nobody has those of empty lots, and of further lots of a ticket. */
  readonly line: (Arrival | undefined)[];
  readonly firsts: Map<bigint, number>; // the first place of each window
  called: number; // the serving pointer: all places up to it are called
  stated: number; // places before the next one to be stated by an assign entry
  ready: number; // places that are drawn, not called, and not skipped
  time: number; // virtual
  clear: number; // no place between the serving pointer and the one after this is ready
}

/** A lane after some people of it have been served. */
type Turn = Pick<Lane, "called" | "ready" | "time">;

/** The lanes of a room, in the order of its policy. */
export class Lanes {
  readonly all: readonly Lane[];
  #time = 0; // virtual time of the lane that was served last, when it was

  constructor(rules: readonly LaneRule[]) {
    this.all = rules.map(({ name, weight }) => {
      return {
        name,
        step: Math.floor(quantum / weight),
        line: [],
        firsts: new Map(),
        called: 0,
        stated: 0,
        ready: 0,
        time: 0,
        clear: 0,
      };
    });
  }

  find(name: string): Lane | undefined {
    return this.all.find((lane) => lane.name === name);
  }

  /** Adds what the draw of a window gives to a lane. */
  extend(lane: Lane, window: bigint, drawn: Iterable<Arrival | undefined>): void {
    this.#wake(lane);
    lane.firsts.set(window, lane.line.length + 1);
    for (const arrival of drawn) {
      const isFirst = arrival?.place === 0;
      lane.line.push(isFirst ? arrival : undefined);
      if (!isFirst) continue;
      arrival.place = lane.line.length;
      if (arrival.settled !== "skipped") lane.ready++;
    }
  }

  /** A lane that is about to get ready places does not make up for a time in which it had none. */
  #wake(lane: Lane): void {
    if (lane.ready === 0) lane.time = Math.max(lane.time, this.#time);
  }

  /** Makes a drawn place ready that was skipped and is not passed. */
  ready(lane: Lane, place: number): void {
    this.#wake(lane);
    lane.ready++;
    lane.clear = Math.min(lane.clear, place - 1);
  }

  /** Lets a lane pay for seats that are called out of turn. */
  pay(lane: Lane, seats: number): void {
    this.#wake(lane);
    lane.time += seats * lane.step;
  }

  /** The first drawn place that is not stated: window by window, and in each the first of every lane, then the second. */
  nextPlace(): { lane: Lane; arrival: Arrival } | undefined {
    let first: { lane: Lane; arrival: Arrival; rank: number } | undefined;
    for (const lane of this.all) {
      while (lane.stated < lane.line.length && !lane.line[lane.stated]) lane.stated++;
      const arrival = lane.line[lane.stated];
      if (!arrival) continue;
      const rank = arrival.place - lane.firsts.get(arrival.window)!;
      const isEarlier =
        !first ||
        arrival.window < first.arrival.window ||
        (arrival.window === first.arrival.window && rank < first.rank);
      if (isEarlier) first = { lane, arrival, rank };
    }
    return first;
  }

  /**
   * Serves people until the serving pointers are these, or throws Refused. Returns the people, and what makes them
   * called.
   */
  serve(positions: readonly bigint[]): { people: Arrival[]; commit: () => void } {
    must("call", positions.length === this.all.length, "not a position for each lane");
    const goals = positions.map(Number);
    for (const [i, goal] of goals.entries()) {
      const { called, line } = this.all[i]!;
      must("call", goal >= called && goal <= line.length, "a pointer goes back, or beyond the places that are drawn");
    }
    const turns: Turn[] = this.all.map(({ called, ready, time }) => ({ called, ready, time }));
    const people: Arrival[] = [];
    let time = this.#time;
    do {
      const next = this.#next(turns);
      must("call", next !== undefined, "the pointers are beyond the last person in line");
      const turn = turns[next]!;
      const { line, step } = this.all[next]!;
      while (!isToCall(line[turn.called])) turn.called++;
      people.push(line[turn.called]!);
      turn.called++;
      must("call", turn.called <= goals[next]!, "another person is the next to be called");
      turn.ready--;
      time = turn.time;
      turn.time += people.at(-1)!.seats * step;
    } while (turns.some(({ called }, i) => called < goals[i]!));
    const commit = (): void => {
      this.#time = time;
      for (const [i, turn] of turns.entries()) Object.assign(this.all[i]!, turn);
    };
    return { people, commit };
  }

  /** The arrival that is the next to be called; undefined: none. */
  next(): Arrival | undefined {
    const next = this.#next(this.all);
    if (next === undefined) return undefined;
    const { called, clear, line } = this.all[next]!;
    let before = Math.max(called, clear); // not a search from the pointer: many parties may be passed over, one by one
    while (!isToCall(line[before])) before++;
    return line[before];
  }

  /** The lane whose turn it is, as its index. */
  #next(turns: readonly Turn[]): number | undefined {
    let next: number | undefined;
    for (const [i, { ready, time }] of turns.entries()) {
      if (ready > 0 && (next === undefined || time < turns[next]!.time)) next = i;
    }
    return next;
  }
}

/** Reports whether a place is one to call: somebody has it, who is not skipped. */
function isToCall(arrival: Arrival | undefined): boolean {
  return arrival !== undefined && arrival.settled !== "skipped";
}
