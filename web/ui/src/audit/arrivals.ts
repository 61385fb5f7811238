import type { EntryOf } from "../check/entry.ts";
import { Schedule, slotAt, slotsIn, type WindowRule } from "../check/schedule.ts";
import type { Door } from "./door.ts";
import type { Lane, Lanes } from "./lanes.ts";
import { must } from "./rule.ts";

const maxSeats = 2 ** 29;

/** One recorded join, and its state. */
export interface Arrival {
  ticket: string;
  window: bigint;
  lane: Lane;
  drum: number; // as an index: slot by slot, in each by lane
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
  drums: Arrival[][]; // the arrival of each lot, by seq; slot by slot, in each by lane
}

/** The arrivals: the schedule in force (RULES.md section 5), and the rules arrival, ticket, merit and amend windows. */
export class Arrivals {
  /** The latest window with arrivals, unless it is frozen: an earlier one is frozen as soon as it is over. */
  unfrozen: UnfrozenWindow | undefined;
  windows = 0; // with arrivals
  #seats = 0; // of all arrivals
  readonly #byTicket = new Map<string, Arrival>();
  readonly #policy: EntryOf<"room">;
  readonly #lanes: Lanes;
  readonly #door: Door;
  #schedule: Schedule;

  constructor(lanes: Lanes, door: Door, policy: EntryOf<"room">) {
    this.#lanes = lanes;
    this.#door = door;
    this.#policy = policy;
    this.#schedule = new Schedule(policy.windows, policy.closes);
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
    const slot = slotAt(this.#policy, window, time);
    const drum = slot * this.#lanes.all.length + this.#lanes.all.indexOf(own);
    must("arrival", seq === current.drums[drum]!.length, "seq is not the number of lots in the drum");
    const [seats = 1] = party;
    must("arrival", this.#seats + seats <= maxSeats, "the room is full");
    const isAllowed = party.length === 0 || (seats >= 2 && seats <= this.#policy.party);
    must("arrival", isAllowed, "a party of a size that the policy does not allow");
    must("ticket", !this.#byTicket.has(ticket), "the ticket has arrived before");
    const arrival: Arrival = {
      ticket,
      window,
      lane: own,
      drum,
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
    for (let lots = 1 + this.#lotsFor(entry); lots > 0; lots--) current.drums[drum]!.push(arrival);
    if (current === this.unfrozen) return;
    this.unfrozen = current;
    this.windows++;
  }

  #emptyWindow(window: bigint, to: number): UnfrozenWindow {
    const drums = slotsIn(this.#policy, window) * this.#lanes.all.length;
    return { window, to, drums: Array.from({ length: drums }, () => []) };
  }

  /** How many more lots a ticket gets for some credentials. */
  #lotsFor({ credentials }: EntryOf<"arrive" | "merit">): number {
    return credentials.filter(({ method }) => this.#policy.lots.includes(method)).length;
  }

  /** Takes a credential of an arrival whose window is not frozen, and so not over. */
  merit(entry: EntryOf<"merit">): void {
    const arrival = this.find(entry.ticket);
    must("merit", arrival !== undefined, "the ticket has not arrived");
    must("merit", arrival.settled === "no", "the ticket is settled");
    must("merit", arrival.window === this.unfrozen?.window, "the window of the ticket is over");
    must("credential", this.#policy.methods.length > 0, "the policy has no methods");
    const drum = this.unfrozen.drums[arrival.drum]!;
    must("merit", entry.seq === drum.length, "seq is not the number of lots in the drum");
    this.#door.merit(entry, arrival);
    if (this.#lotsFor(entry) > 0) drum.push(arrival);
  }

  /** Replaces windows that begin after the notice. */
  amend(time: number, rules: readonly WindowRule[], closes: number): void {
    const next = this.#schedule.amended(this.#policy, time, rules, closes);
    must("amend", next !== undefined, "the new windows are not allowed, or change one that begins within the notice");
    this.#schedule = next;
  }
}
