import type { EntryOf } from "../check/entry.ts";
import { Schedule, type WindowRule } from "../check/schedule.ts";
import type { Door } from "./door.ts";
import type { Lane, Lanes } from "./lanes.ts";
import { must } from "./rule.ts";

const maxSeats = 2 ** 32 - 1;

/** One recorded join, and its state. */
export interface Arrival {
  ticket: string;
  window: bigint;
  lane: Lane;
  seats: number;
  /** Place in the line of its lane, from 1; 0: its window is not drawn. */
  place: number;
  /** The claim clock when the time to claim ends; undefined: not called. */
  claimEnds: number | undefined;
  extended: boolean;
  /** The claim clock when the ticket was revoked after its call. */
  stopped: number;
  /** It is skipped because it was revoked. */
  revoked: boolean;
  restored: boolean;
  settled: "no" | "admitted" | "skipped";
  /** The methods that it shows, as bits. */
  shown: number;
}

/** A window with arrivals that is not frozen yet. */
export interface UnfrozenWindow {
  window: bigint;
  to: number; // when it ends
  arrivals: Map<Lane, Arrival[]>; // by seq; every lane has a list
}

/** The arrivals: the schedule in force (RULES.md section 5), and the rules arrival, ticket and amend windows. */
export class Arrivals {
  /** The latest window with arrivals, unless it is frozen: an earlier one is frozen as soon as it is over. */
  unfrozen: UnfrozenWindow | undefined;
  windows = 0; // with arrivals
  #seats = 0; // of all arrivals
  readonly #byTicket = new Map<string, Arrival>();
  readonly #notice: number;
  readonly #lanes: Lanes;
  readonly #party: number; // seats of an arrival at most; 0: one
  readonly #door: Door;
  #schedule: Schedule;

  constructor(lanes: Lanes, door: Door, { windows, closes, party, notice }: EntryOf<"room">) {
    this.#lanes = lanes;
    this.#party = party;
    this.#door = door;
    this.#notice = notice;
    this.#schedule = new Schedule(windows, closes);
  }

  get count(): number {
    return this.#byTicket.size;
  }

  find(ticket: string): Arrival | undefined {
    return this.#byTicket.get(ticket);
  }

  arrive(entry: EntryOf<"arrive">): void {
    const { time, window, seq, ticket, lane, party } = entry;
    const open = this.#schedule.at(time);
    must("arrival", open !== undefined, "no window is open at this time");
    must("arrival", window === open.index, "another window is open at this time");
    const own = this.#lanes.find(lane);
    must("lane", own !== undefined, "the policy has no such lane");
    const current = this.unfrozen ?? this.#emptyWindow(window, open.to);
    const arrivals = current.arrivals.get(own)!;
    must("arrival", seq === arrivals.length, "seq is not the number of earlier arrivals in the window and lane");
    const [seats = 1] = party;
    must("arrival", this.#seats + seats <= maxSeats, "the room is full");
    const isAllowed = party.length === 0 || (seats >= 2 && seats <= this.#party);
    must("arrival", isAllowed, "a party of a size that the policy does not allow");
    must("ticket", !this.#byTicket.has(ticket), "the ticket has arrived before");
    const arrival: Arrival = {
      ticket,
      window,
      lane: own,
      seats,
      place: 0,
      claimEnds: undefined,
      extended: false,
      stopped: 0,
      revoked: false,
      restored: false,
      settled: "no",
      shown: this.#door.arrive(entry),
    };
    this.#byTicket.set(ticket, arrival);
    this.#seats += seats;
    arrivals.push(arrival);
    if (current === this.unfrozen) return;
    this.unfrozen = current;
    this.windows++;
  }

  #emptyWindow(window: bigint, to: number): UnfrozenWindow {
    return { window, to, arrivals: new Map(this.#lanes.all.map((lane) => [lane, []])) };
  }

  /** Replaces windows that begin after the notice. */
  amend(time: number, rules: readonly WindowRule[], closes: number): void {
    const next = this.#schedule.amended(time, this.#notice, rules, closes);
    must("amend", next !== undefined, "the new windows are not allowed, or change one that begins within the notice");
    this.#schedule = next;
  }
}
