import { sha256 } from "@noble/hashes/sha2.js";

import type { Amend, Entry, EntryOf, Kind } from "../check/entry.ts";
import { FormatError } from "../check/errors.ts";
import { leafHash } from "../check/merkle.ts";
import { policyProblem } from "../check/policy.ts";
import { Arrivals } from "./arrivals.ts";
import { Door } from "./door.ts";
import { Draws } from "./draws.ts";
import { Lanes } from "./lanes.ts";
import { readEntry } from "./line.ts";
import { must, Refused } from "./rule.ts";
import { Serving } from "./serving.ts";
import { Tree } from "./tree.ts";

/**
 * The state machine of RULES.md section 4: takes the entries of a room in order.
 * A refused entry changes nothing.
 */
export class Room {
  readonly policy: EntryOf<"room">;
  readonly arrivals: Arrivals;
  readonly lanes: Lanes;
  readonly door: Door;
  readonly draws: Draws;
  readonly tree: Tree;
  readonly counts = new Map<Kind, number>();
  readonly #serving: Serving;
  #time: number;
  #isOpen = false; // the gate is open: visitors get in without waiting
  #ended = false;

  /** Opens the room with its first entry. The tree, empty until then, grows with every accepted entry. */
  constructor(text: Uint8Array, tree = new Tree()) {
    const entry = read(text);
    must("policy", entry.kind === "room", "the first entry is not the room's policy");
    const problem = policyProblem(entry);
    must("policy", problem === undefined, `the rules do not allow what the policy says about "${problem}"`);
    this.policy = entry;
    this.tree = tree;
    this.lanes = new Lanes(entry.lanes);
    const roomHash = sha256(text);
    this.door = new Door(entry, roomHash);
    this.arrivals = new Arrivals(this.lanes, this.door, entry);
    this.draws = new Draws(entry, roomHash, this.lanes);
    this.#serving = new Serving(entry, this.lanes);
    this.#time = entry.created;
    this.#taken(entry.kind, text);
  }

  /** Takes the next entry, or throws Refused. */
  take(text: Uint8Array): void {
    const entry = read(text);
    must("policy", entry.kind !== "room", "a second policy");
    must("end", !this.#ended, "an entry after the end");
    const time = entry.kind === "assign" ? this.#time : entry.time;
    must("time", time >= this.#time, "the time is before that of an earlier entry");
    const { unfrozen } = this.arrivals;
    const ends = entry.kind === "freeze" || entry.kind === "end";
    must("freeze", ends || !unfrozen || time < unfrozen.to, "an entry before the freeze of a window that is over");
    const clock = this.#serving.clockAt(time);
    this.#apply(entry, text);
    this.#serving.reach(time, clock);
    this.#time = time;
    this.#taken(entry.kind, text);
  }

  #apply(entry: Exclude<Entry, { kind: "room" }>, text: Uint8Array): void {
    switch (entry.kind) {
      case "arrive":
        return this.arrivals.arrive(entry);
      case "merit":
        return this.arrivals.merit(entry);
      case "freeze":
        this.draws.freeze(entry, text, this.arrivals.unfrozen, this.tree);
        this.arrivals.unfrozen = undefined;
        return;
      case "draw":
        return this.draws.draw(entry);
      case "assign":
        return this.draws.assign(entry);
      case "call":
        return this.#serving.call(entry);
      case "extend":
        return this.#serving.extend(entry, this.arrivals.find(entry.ticket));
      case "restore":
        return this.#restore(entry);
      case "admit":
        return this.#serving.admit(entry, this.arrivals.find(entry.ticket));
      case "skip":
        return this.#skip(entry);
      case "amend":
        return this.#amend(entry);
      case "beat":
        return this.door.beat(entry);
      case "tell": // changes nothing
        return;
      case "end":
        this.#ended = true;
    }
  }

  #skip(entry: EntryOf<"skip">): void {
    const arrival = this.arrivals.find(entry.ticket);
    const awaits = arrival !== undefined && this.draws.awaits(arrival);
    must("skip", !awaits || !entry.reason.startsWith("revoked"), "revoked between freeze and draw of its window");
    this.#serving.skip(entry, arrival);
  }

  #restore(entry: EntryOf<"restore">): void {
    const arrival = this.arrivals.find(entry.ticket);
    const awaits = arrival !== undefined && this.draws.awaits(arrival);
    must("restore", !awaits, "restored between freeze and draw of its window");
    this.#serving.restore(entry, arrival);
  }

  #amend(entry: Amend): void {
    switch (entry.change) {
      case "outflow":
        return this.#serving.outflow(entry.time, entry.perMinute);
      case "pause":
        return this.#serving.pause(entry.time, entry.claims);
      case "resume":
        return this.#serving.resume(entry.time);
      case "seats":
        return this.#serving.seats(entry.seats, this.draws.isFrozen);
      case "windows":
        return this.arrivals.amend(entry.time, entry.windows, entry.closes);
      case "open":
        return this.#open();
      case "shut":
        must("amend", this.#isOpen, "the room is not open");
        this.#isOpen = false;
        return;
      case "message": // any text may be shown
    }
  }

  #open(): void {
    must("amend", !this.#isOpen, "the room is open already");
    must("amend", !this.#serving.paused, "the room is paused");
    must("amend", this.arrivals.count === this.#serving.done, "the line is not empty");
    this.#isOpen = true;
  }

  #taken(kind: Kind, text: Uint8Array): void {
    this.tree.append(leafHash(text));
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }
}

function read(text: Uint8Array): Entry {
  try {
    return readEntry(text);
  } catch (failure) {
    if (failure instanceof FormatError) throw new Refused("form", failure.message);
    throw failure;
  }
}
