import { roundAt, roundTime, verifyRound } from "../check/beacon.ts";
import type { EntryOf } from "../check/entry.ts";
import { toHex } from "../check/hex.ts";
import type { Hash } from "../check/merkle.ts";
import type { Credential, Method } from "../check/method.ts";
import { uuidBytes } from "../check/uuid.ts";
import type { Arrival } from "./arrivals.ts";
import { Verifier } from "./credential.ts";
import { must } from "./rule.ts";
import type { Subject } from "./subject.ts";

/** A method of the policy, and what it has taken. */
interface Taking {
  readonly method: Method;
  readonly verifier: Verifier;
  readonly nullifiers: Set<string>;
  taken: number;
}

/** What tickets show: RULES.md section 13, and the rules credential, nullifier and, for work, beacon. */
export class Door {
  readonly #policy: EntryOf<"room">;
  readonly #roomHash: Hash;
  readonly #methods: Taking[];
  #round: Uint8Array = new Uint8Array(); // signature of the round that work is done for; empty: not stated yet

  constructor(policy: EntryOf<"room">, roomHash: Hash) {
    this.#policy = policy;
    this.#roomHash = roomHash;
    this.#methods = policy.methods.map((method) => {
      return { method, verifier: new Verifier(method), nullifiers: new Set(), taken: 0 };
    });
  }

  /** How many tickets have shown each method. */
  get shown(): { method: string; tickets: number }[] {
    return this.#methods.map(({ method, taken }) => ({ method: method.name, tickets: taken }));
  }

  /** Takes the credentials of a new arrival, and returns what it shows. */
  arrive({ ticket, lane, credentials }: EntryOf<"arrive">): number {
    const shown = this.#check(ticket, lane, credentials, 0);
    const needs = this.#policy.lanes.find(({ name }) => name === lane)!.needs;
    const missing = needs.find((need) => {
      return (shown & (1 << this.#methods.findIndex(({ method }) => method.name === need))) === 0;
    });
    must("credential", missing === undefined, `the lane needs "${missing}"`);
    for (const credential of credentials) this.#take(credential);
    return shown;
  }

  /** Takes a credential of a ticket that has arrived. */
  merit({ ticket, credentials }: EntryOf<"merit">, arrival: Arrival): void {
    arrival.shown = this.#check(ticket, arrival.lane.name, credentials, arrival.shown);
    for (const credential of credentials) this.#take(credential);
  }

  /** Takes the signature of the round that work is done for, if the entry has one. */
  beat({ time, signatures: [signature] }: EntryOf<"beat">): void {
    if (!signature) return;
    const { beacon, opens } = this.#policy;
    const waits = this.#round.length === 0 && this.#methods.some(({ method }) => method.kind === "work");
    must("beacon", beacon !== undefined && waits, "no method waits for a beacon's signature");
    const round = roundAt(beacon, BigInt(opens));
    must("beacon", BigInt(time) >= roundTime(beacon, round), "the entry is before the round");
    must("beacon", verifyRound(beacon, round, signature), "not the beacon's signature of the round after the opening");
    this.#round = signature;
  }

  /** The methods that a ticket shows with these credentials, and has shown before, as bits. */
  #check(ticket: string, lane: string, credentials: readonly Credential[], before: number): number {
    let shown = before;
    let next = 0;
    for (const credential of credentials) {
      const { method: name, nullifier } = credential;
      const index = this.#methods.findIndex(({ method }) => method.name === name);
      const isNext = index >= next && (shown & (1 << index)) === 0;
      must("credential", isNext, `"${name}" is not a method of the policy, in its order, each once`);
      const { method, verifier, nullifiers, taken } = this.#methods[index]!;
      must("nullifier", method.limit === 0 || taken < method.limit, `"${name}" has taken as many as it may`);
      must("nullifier", nullifier.length === 0 || !nullifiers.has(toHex(nullifier)), "the nullifier was used before");
      const subject: Subject = { room: this.#roomHash, lane, ticket: uuidBytes(ticket), round: this.#round };
      const fault = verifier.fault(subject, credential);
      must("credential", fault === undefined, `"${name}" does not verify: ${fault}`);
      shown |= 1 << index;
      next = index + 1;
    }
    return shown;
  }

  #take({ method: name, nullifier }: Credential): void {
    const taking = this.#methods.find(({ method }) => method.name === name)!;
    taking.taken++;
    if (nullifier.length > 0) taking.nullifiers.add(toHex(nullifier));
  }
}
