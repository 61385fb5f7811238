import { roundAfter, roundTime, verifyRound } from "../check/beacon.ts";
import { equal } from "../check/bytes.ts";
import type { Checkpoint } from "../check/checkpoint.ts";
import { cosigners } from "../check/cosignature.ts";
import { alphaOf, deal, seedOf } from "../check/draw.ts";
import type { EntryOf } from "../check/entry.ts";
import { type Hash, leafHash } from "../check/merkle.ts";
import { verifyVrf } from "../check/vrf.ts";
import type { Arrival, UnfrozenWindow } from "./arrivals.ts";
import type { Lanes } from "./lanes.ts";
import { must } from "./rule.ts";
import type { Tree } from "./tree.ts";

/** A window that is frozen and not drawn. */
interface Frozen {
  window: bigint;
  drums: UnfrozenWindow["drums"];
  alpha: Uint8Array;
  beta: Hash;
  frozen: number; // time of the freeze
  round: bigint; // 0 without a beacon
  sealed: Checkpoint; // of the tree that ends with the freeze: what witnesses sign
}

/** The witnesses' signatures of a draw's freeze. */
export interface Witnessed {
  sealed: Checkpoint;
  cosignatures: Uint8Array[];
}

/** From arrivals to places: RULES.md section 6, and the rules from freeze to assign. */
export class Draws {
  readonly draws: Witnessed[] = [];
  readonly #policy: EntryOf<"room">;
  readonly #roomHash: Hash;
  readonly #lanes: Lanes;
  readonly #frozen: Frozen[] = [];

  constructor(policy: EntryOf<"room">, roomHash: Hash, lanes: Lanes) {
    this.#policy = policy;
    this.#roomHash = roomHash;
    this.#lanes = lanes;
  }

  /** Reports whether a window is frozen and not drawn. */
  get isFrozen(): boolean {
    return this.#frozen.length > 0;
  }

  /** Reports whether a ticket's window is frozen and not drawn. */
  awaits({ window }: Arrival): boolean {
    const [first, last] = [this.#frozen[0], this.#frozen.at(-1)]; // those between are frozen, too
    return first !== undefined && first.window <= window && window <= last!.window;
  }

  /** Freezes a window. The tree holds the entries before this one. */
  freeze(entry: EntryOf<"freeze">, text: Uint8Array, first: UnfrozenWindow | undefined, tree: Tree): void {
    const { time, window, lots, size, root, proof } = entry;
    const { beacon, origin, vrfKey } = this.#policy;
    must("freeze", first !== undefined, "no window waits for a freeze");
    must("freeze", window === first.window, "another window is the first to freeze");
    must("freeze", time >= first.to, "the window is not over");
    const { drums } = first;
    must("freeze", String(lots) === String(drums.map(({ length }) => length)), "lots are not those in each drum");
    must("freeze", size === tree.size, "size is not the number of entries before");
    must("freeze", equal(root, tree.root()), "root is not that of the entries before");
    const round = beacon ? roundAfter(beacon, time) : 0n;
    must("freeze", entry.round === round, "not the round that follows from the policy and the time");
    const alpha = alphaOf(this.#roomHash, entry);
    const beta = verifyVrf(vrfKey, alpha, proof);
    must("proof", beta !== undefined, "the proof is not of the room's key for this freeze");
    const sealed = { origin, size: size + 1n, root: tree.with(leafHash(text)).root() };
    this.#frozen.push({ window, drums, alpha, beta, frozen: time, round, sealed });
  }

  /** Draws the first of the frozen windows. */
  draw(entry: EntryOf<"draw">): void {
    const first = this.#frozen[0];
    must("draw", first !== undefined, "no window waits for a draw");
    must("draw", entry.window === first.window, "another window is the first to draw");
    const appears = this.#checkBeacon(entry, first.round);
    const { cosignatures, signature, seed } = entry;
    const names = cosigners(this.#policy.witnesses, first.sealed, cosignatures, first.frozen, appears);
    must(
      "witness",
      names !== undefined,
      "a cosignature is not of a witness, of the freeze, in order, or between freeze and round",
    );
    must("seed", equal(seed, seedOf(first.alpha, first.beta, first.round, signature)), "not the seed that follows");
    this.#frozen.shift();
    this.draws.push({ sealed: first.sealed, cosignatures });
    for (const [i, lane] of this.#lanes.all.entries()) {
      const drums = first.drums.filter((_, drum) => drum % this.#lanes.all.length === i);
      this.#lanes.extend(lane, first.window, deal(seed, lane.name, drums));
    }
  }

  /** Returns when the window's round appeared, in milliseconds. */
  #checkBeacon({ time, signature }: EntryOf<"draw">, round: bigint): bigint {
    const { beacon } = this.#policy;
    if (!beacon) {
      must("beacon", signature.length === 0, "a signature in a room without a beacon");
      return BigInt(time);
    }
    const appears = roundTime(beacon, round);
    must("beacon", BigInt(time) >= appears, "the draw is before its round");
    must("beacon", verifyRound(beacon, round, signature), "not the beacon's signature of the round");
    return appears;
  }

  assign({ window, lane, position, ticket }: EntryOf<"assign">): void {
    const next = this.#lanes.nextPlace();
    must("assign", next !== undefined, "all drawn places are stated");
    must("lane", this.#lanes.find(lane) !== undefined, "the policy has no such lane");
    const { arrival } = next;
    must("assign", lane === next.lane.name && position === BigInt(arrival.place), "not the next place");
    must("assign", window === arrival.window && ticket === arrival.ticket, "the place belongs to another ticket");
    next.lane.stated++;
  }
}
