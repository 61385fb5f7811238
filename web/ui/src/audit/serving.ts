import type { EntryOf } from "../check/entry.ts";
import { passOf } from "../check/ticket.ts";
import type { Arrival } from "./arrivals.ts";
import type { Lanes } from "./lanes.ts";
import { Pace } from "./pace.ts";
import { must, type Rule } from "./rule.ts";

/** An arrival that is called. */
type Called = Arrival & { claimEnds: number };

const maxPerMinute = 10_000_000;

/** Calls, admissions and skips: the rules call, outflow, admission and skip, and amendments of the pace. */
export class Serving {
  readonly #policy: EntryOf<"room">;
  readonly #lanes: Lanes;
  readonly #pace: Pace;
  #seats: number; // in force; 0: any number
  #held = 0; // seats of called tickets neither admitted nor skipped
  #sold = 0; // seats of admitted tickets
  #waiting = 0; // called tickets neither admitted nor skipped
  #done = 0;
  #clock = 0; // the claim clock at the time of the latest entry
  #reached: number; // that time
  #claimsFrozen = false; // in a pause: claims are frozen too

  constructor(policy: EntryOf<"room">, lanes: Lanes) {
    this.#policy = policy;
    this.#lanes = lanes;
    this.#pace = new Pace(policy.starts, policy.perMinute, Math.max(policy.party, 1));
    this.#seats = policy.seats;
    this.#reached = policy.created;
  }

  get paused(): boolean {
    return this.#pace.paused;
  }

  /** How many tickets have left the line: called, or skipped before their call. */
  get done(): number {
    return this.#done;
  }

  call({ time, positions }: EntryOf<"call">): void {
    must("call", time >= this.#policy.starts, "a call before the start");
    const { people, commit } = this.#lanes.serve(positions);
    const seats = people.reduce((sum, arrival) => sum + arrival.seats, 0);
    this.#pay("call", time, seats);
    for (const arrival of people) arrival.claimEnds = this.clockAt(time) + this.#policy.claim;
    commit();
    this.#waiting += people.length;
    this.#done += people.length;
  }

  /** Takes the credit for calling so many seats, which are held from here on. */
  #pay(rule: Rule, time: number, seats: number): void {
    must(rule, !this.#pace.paused, "the room is paused");
    must("outflow", this.#pace.allows(time, seats), "more seats than the outflow allows");
    must("seats", seats <= this.#left, "more seats than are left");
    this.#pace.spend(time, seats);
    this.#held += seats;
  }

  /** Gives a revoked ticket its place back. */
  restore({ time }: EntryOf<"restore">, arrival: Arrival | undefined): void {
    must("restore", arrival?.revoked === true, "the ticket is not revoked");
    must("restore", !arrival.restored, "the ticket has been restored before");
    const { lane, place } = arrival;
    if (place > 0 && place <= lane.called) this.#callAgain(time, arrival);
    else {
      if (place > 0) this.#lanes.ready(lane, place);
      this.#done--;
    }
    arrival.settled = "no";
    arrival.revoked = false;
    arrival.restored = true;
  }

  /** Calls a ticket whose place is passed. Its lane pays for that, unless it did when the ticket was called before. */
  #callAgain(time: number, arrival: Arrival): void {
    this.#pay("restore", time, arrival.seats);
    this.#waiting++;
    if (arrival.claimEnds !== undefined) {
      arrival.claimEnds += this.clockAt(time) - arrival.stopped;
      return;
    }
    arrival.claimEnds = this.clockAt(time) + this.#policy.claim;
    this.#lanes.pay(arrival.lane, arrival.seats);
  }

  admit({ time, ticket, pass }: EntryOf<"admit">, arrival: Arrival | undefined): void {
    const called = this.#claimable("admission", time, arrival);
    must("admission", pass === passOf(this.#policy.origin, ticket), "not the pass of the ticket");
    called.settled = "admitted";
    this.#waiting--;
    this.#held -= called.seats;
    this.#sold += called.seats;
  }

  /** Gives a called ticket more time. */
  extend({ time }: EntryOf<"extend">, arrival: Arrival | undefined): void {
    const { extend } = this.#policy;
    must("extend", extend > 0, "the policy has no extensions");
    const called = this.#claimable("extend", time, arrival);
    must("extend", !called.extended, "the ticket has been given more time before");
    called.claimEnds += extend;
    called.extended = true;
  }

  /** Returns the arrival if it may be admitted now, and refuses the entry otherwise. */
  #claimable(rule: Rule, time: number, arrival: Arrival | undefined): Called {
    must(rule, arrival !== undefined, "the ticket never arrived");
    must(rule, arrival.settled === "no", "the ticket is admitted or skipped already");
    must(rule, arrival.claimEnds !== undefined, "the ticket is not called");
    must(rule, !this.#claimsFrozen, "claims are paused");
    must(rule, this.#claimLeft(time, arrival.claimEnds) > 0, "the time to claim is over");
    return arrival as Called;
  }

  skip({ time, reason }: EntryOf<"skip">, arrival: Arrival | undefined): void {
    must("skip", arrival !== undefined, "the ticket never arrived");
    must("skip", arrival.settled === "no", "the ticket is admitted or skipped already");
    const { claimEnds } = arrival;
    if (reason === "no-show") {
      must("skip", claimEnds !== undefined, "a no-show that was not called");
      must("skip", this.#claimLeft(time, claimEnds) <= 0, "a no-show with time left to claim");
    }
    if (reason === "too-large") {
      const isNext = this.#waiting === 0 && this.#lanes.next() === arrival;
      must("skip", isNext && arrival.seats > this.#left, "not a party that is next and wants more seats than are left");
    }
    if (claimEnds !== undefined) {
      this.#pace.giveBack(time, arrival.seats);
      this.#waiting--;
      this.#held -= arrival.seats;
      arrival.stopped = this.clockAt(time);
    } else {
      this.#done++;
      if (arrival.place > 0) arrival.lane.ready--;
      if (reason === "too-large") arrival.lane.clear = arrival.place; // it was next
    }
    arrival.settled = "skipped";
    arrival.revoked = reason.startsWith("revoked");
  }

  outflow(time: number, perMinute: number): void {
    must("amend", perMinute >= 1 && perMinute <= maxPerMinute, "an outflow that no policy may have");
    this.#pace.change(time, perMinute);
  }

  /** Changes the number of seats; between a freeze and its draw it may not change. */
  seats(seats: number, isFrozen: boolean): void {
    const committed = this.#held + this.#sold;
    must("amend", this.#seats > 0 && seats >= Math.max(committed, 1), "fewer seats than are committed");
    must("amend", !isFrozen, "seats changed between a freeze and its draw");
    this.#seats = seats;
  }

  /** How many more seats may be called. */
  get #left(): number {
    return this.#seats === 0 ? Infinity : this.#seats - this.#held - this.#sold;
  }

  pause(time: number, claims: boolean): void {
    must("amend", !this.#pace.paused || this.#claimsFrozen !== claims, "the room is paused already");
    if (!this.#pace.paused) this.#pace.pause(time);
    this.#claimsFrozen = claims;
  }

  resume(time: number): void {
    must("amend", this.#pace.paused, "the room is not paused");
    this.#pace.resume(time);
    this.#claimsFrozen = false;
  }

  /** The time left to claim a ticket until that time of the claim clock; RULES.md section 8. */
  #claimLeft(time: number, ends: number): number {
    return ends - this.clockAt(time);
  }

  /** The claim clock: it stands still in a pause, and advances by at most the grace from one entry to the next. */
  clockAt(time: number): number {
    return this.#clock + (this.#pace.paused ? 0 : Math.min(time - this.#reached, this.#policy.grace));
  }

  /** Takes note of an entry, with the claim clock as it was before the entry. */
  reach(time: number, clock: number): void {
    this.#reached = time;
    this.#clock = clock;
  }
}
