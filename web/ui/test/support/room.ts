import { ed25519 } from "@noble/curves/ed25519.js";
import { sha256 } from "@noble/hashes/sha2.js";

import { toBase64 } from "../../src/check/base64.ts";
import { roundAfter, roundTime } from "../../src/check/beacon.ts";
import { concat, utf8 } from "../../src/check/bytes.ts";
import { type Checkpoint, formatCheckpoint } from "../../src/check/checkpoint.ts";
import { alphaOf, deal, seedOf } from "../../src/check/draw.ts";
import { type Entry, type EntryOf, formatEntry, parseEntry } from "../../src/check/entry.ts";
import type { Visitor } from "../../src/check/evidence.ts";
import { toHex } from "../../src/check/hex.ts";
import { emptyRoot, type Hash, inclusionRanges, leafHash, rootOf } from "../../src/check/merkle.ts";
import type { Credential } from "../../src/check/method.ts";
import { formatProof } from "../../src/check/proof.ts";
import { Schedule, slotAt, slotsIn } from "../../src/check/schedule.ts";
import type { Source } from "../../src/check/source.ts";
import { ticketOf } from "../../src/check/ticket.ts";
import { hashesAt, tileOf, tilePath } from "../../src/check/tiles.ts";
import { verifyVrf } from "../../src/check/vrf.ts";
import type { Chain, Witness } from "./beacon.ts";
import { integer, order, prove, publicKey } from "./vrf.ts";

/** The secrets of an operator, made from a name. */
export class Operator {
  readonly origin: string;
  readonly seed: Uint8Array;
  readonly vrfSecret: bigint;
  readonly vkey: string;
  readonly #id: Uint8Array;

  constructor(origin: string, name: string, seed: Uint8Array = sha256(utf8(`log key of ${name}`))) {
    this.origin = origin;
    this.seed = seed;
    this.vrfSecret = integer(sha256(utf8(`vrf key of ${name}`))) % order;
    const typed = concat(Uint8Array.of(1), ed25519.getPublicKey(this.seed));
    this.#id = sha256(concat(utf8(`${origin}\n`), typed)).slice(0, 4);
    this.vkey = `${origin}+${toHex(this.#id)}+${toBase64(typed)}`;
  }

  signatureLine(text: string): string {
    const signature = concat(this.#id, ed25519.sign(utf8(text), this.seed));
    return `\u2014 ${this.origin} ${toBase64(signature)}\n`;
  }

  sign(text: string): Uint8Array {
    return utf8(`${text}\n${this.signatureLine(text)}`);
  }
}

/** A published log in memory. */
export class Files implements Source {
  readonly map: Map<string, Uint8Array>;
  readonly asked: string[] = [];

  constructor(map: Map<string, Uint8Array>) {
    this.map = map;
  }

  checkpoint(): Promise<Uint8Array> {
    return this.tile("checkpoint");
  }

  async tile(path: string): Promise<Uint8Array> {
    this.asked.push(path);
    const file = this.map.get(path);
    if (!file) throw new Error(`${path}: not found`);
    return file.slice();
  }

  with(path: string, content: Uint8Array): Files {
    return new Files(new Map(this.map).set(path, content));
  }
}

/** A log of any entries, whether they follow the rules or not. */
export class Log {
  readonly entries: Uint8Array[];
  readonly leaves: Hash[];

  constructor(entries: Uint8Array[]) {
    this.entries = entries;
    this.leaves = entries.map(leafHash);
  }

  rootAt(size: number): Hash {
    return size === 0 ? emptyRoot : rootOf(this.leaves.slice(0, size));
  }

  /** Everything the log publishes at its full size, signed. */
  publish(operator: Operator): Files {
    const size = BigInt(this.entries.length);
    const map = new Map<string, Uint8Array>();
    let hashes = this.leaves;
    for (let level = 0; hashes.length > 0; level++) {
      const roots: Hash[] = [];
      for (let n = 0; n * 256 < hashes.length; n++) {
        const tile = tileOf(level, BigInt(n), size)!;
        const slice = hashes.slice(256 * n, 256 * (n + 1));
        map.set(tilePath(tile), concat(...slice));
        if (level === 0) map.set(tilePath({ ...tile, level: -1 }), bundle(this.entries.slice(256 * n, 256 * (n + 1))));
        if (slice.length === 256) roots.push(rootOf(slice));
      }
      hashes = roots;
      if (BigInt(hashes.length) !== hashesAt(level + 1, size)) throw new Error("a level has another width");
    }
    const text = formatCheckpoint({ origin: operator.origin, size, root: this.rootAt(this.entries.length) });
    return new Files(map.set("checkpoint", operator.sign(text)));
  }

  /** The proof of an entry in the tree of a size. */
  receipt(operator: Operator, index: number, size = index + 1): Uint8Array {
    const path = inclusionRanges(BigInt(index), BigInt(size)).map(([a, b]) =>
      rootOf(this.leaves.slice(Number(a), Number(b))),
    );
    const text = formatCheckpoint({ origin: operator.origin, size: BigInt(size), root: this.rootAt(size) });
    const checkpoint = `${text}\n${operator.signatureLine(text)}`;
    return utf8(formatProof({ extra: new Uint8Array(0), index: BigInt(index), path, checkpoint }));
  }
}

export function bundle(entries: Uint8Array[]): Uint8Array {
  return concat(...entries.flatMap((e) => [Uint8Array.of(e.length >> 8, e.length & 0xff), e]));
}

export const opens = 1_800_000_000_000;

export const policy = {
  created: opens - 60_000,
  beacon: undefined,
  witnesses: [],
  quorum: 0,
  methods: [],
  lanes: [{ name: "general", weight: 1, needs: [] }],
  lots: [],
  party: 0,
  seats: 0,
  opens,
  starts: opens + 60_000,
  closes: opens + 600_000,
  windows: [
    { from: opens, length: 60_000 },
    { from: opens + 60_000, length: 10_000 },
  ],
  slots: 0,
  notice: 10_000,
  perMinute: 600,
  maxActive: 0,
  claim: 30_000,
  extend: 0,
  grace: 20_000,
  session: 60_000,
};

/** A window that is frozen but not drawn. */
interface Frozen {
  window: bigint;
  drums: string[][]; // the ticket of each lot, by slot and seq
  round: bigint;
  sealed: Checkpoint; // of the tree that ends with the freeze
  seed: (signature: Uint8Array) => Hash;
}

interface Drawn {
  window: bigint;
  lane: string;
  line: (string | undefined)[];
}

/** Writes the transcript of an honest room, entry by entry. */
export class Room {
  readonly operator: Operator;
  readonly entries: Uint8Array[] = [];
  readonly entry: EntryOf<"room">;
  readonly #waiting = new Map<bigint, string[][]>(); // drums by window
  readonly #frozen: Frozen[] = [];
  readonly #drawn: Drawn[] = [];
  readonly #chain: Chain | undefined;
  #schedule: Schedule;
  #visitors = 0;
  #first = 1n; // position of the first place of #drawn[0]
  #assigned = 0; // places of #drawn[0] before the next to assign
  readonly #stated = new Set<string>();

  constructor(operator: Operator, changes: Partial<EntryOf<"room">> = {}, chain?: Chain) {
    this.operator = operator;
    this.#chain = chain;
    const { origin, vkey: logKey } = operator;
    this.entry = {
      kind: "room",
      ...policy,
      origin,
      logKey,
      vrfKey: publicKey(operator.vrfSecret),
      beacon: chain?.beacon,
      ...changes,
    };
    this.#schedule = new Schedule(this.entry.windows, this.entry.closes);
    this.write(this.entry);
  }

  write(entry: Entry): void {
    this.entries.push(formatEntry(entry));
    if (entry.kind !== "amend" || entry.change !== "windows") return;
    this.#schedule = this.#schedule.amended(this.entry, entry.time, entry.windows, entry.closes)!;
  }

  /** The secret of the nth visitor who joined. */
  static secret(n: number): Uint8Array {
    return sha256(utf8(`visitor ${n}`));
  }

  /** The drum of a time. */
  #drum(time: number): { window: bigint; drum: string[] } {
    const window = this.#schedule.at(time)!.index;
    const drums = this.#waiting.get(window) ?? Array.from({ length: slotsIn(this.entry, window) }, () => []);
    this.#waiting.set(window, drums);
    return { window, drum: drums[slotAt(this.entry, window, time)]! };
  }

  /** Puts a ticket's lots into a drum, apart from the first, for some made-up credentials. */
  #more(drum: string[], ticket: string, methods: string[]): Credential[] {
    for (const method of methods) if (this.entry.lots.includes(method)) drum.push(ticket);
    return methods.map((method) => ({ method, nullifier: new Uint8Array(32), evidence: Uint8Array.of(1) }));
  }

  /** Lets the nth visitor, who joined at some time, show one more method. Returns the entry's index. */
  merit(time: number, n: number, joined: number, method: string): number {
    const { drum } = this.#drum(joined);
    const ticket = ticketOf(this.operator.origin, Room.secret(n));
    const seq = drum.length;
    this.write({ kind: "merit", time, ticket, seq, credentials: this.#more(drum, ticket, [method]) });
    return this.entries.length - 1;
  }

  /** Joins n more visitors, who show some methods, and returns the index of the first one's entry. */
  join(time: number, n = 1, methods: string[] = []): number {
    const index = this.entries.length;
    const { window, drum } = this.#drum(time);
    for (let i = 0; i < n; i++) {
      const ticket = ticketOf(this.operator.origin, Room.secret(this.#visitors++));
      const seq = drum.push(ticket) - 1;
      const credentials = this.#more(drum, ticket, methods);
      this.write({ kind: "arrive", time, window, seq, ticket, lane: "general", credentials, party: [] });
    }
    return index;
  }

  /** Freezes and draws the next window, without assigning places. */
  draw(time: number): void {
    this.freeze(time);
    this.reveal(time);
  }

  /** Freezes the next window. */
  freeze(time: number): void {
    const [window, drums] = [...this.#waiting.entries()][0]!;
    this.#waiting.delete(window);
    const size = this.entries.length;
    const lots = drums.map(({ length }) => length);
    const frozen = { window, lots, size: BigInt(size), root: new Log(this.entries).rootAt(size) };
    const alpha = alphaOf(sha256(this.entries[0]!), frozen);
    const proof = prove(this.operator.vrfSecret, alpha, 7n + BigInt(size));
    const beta = verifyVrf(this.entry.vrfKey, alpha, proof)!;
    const round = this.#chain ? roundAfter(this.#chain.beacon, time) : 0n;
    this.write({ kind: "freeze", time, ...frozen, round, proof });
    const sealed = {
      origin: this.operator.origin,
      size: BigInt(size + 1),
      root: new Log(this.entries).rootAt(size + 1),
    };
    this.#frozen.push({ window, drums, round, sealed, seed: (signature) => seedOf(alpha, beta, round, signature) });
  }

  /**
   * Draws the window frozen first, if that is due, and returns the time. These witnesses cosigned it three seconds before
   * its round.
   */
  reveal(time: number, witnesses: Witness[] = []): number {
    const { window, drums, round, sealed, seed: seedFor } = this.#frozen.shift()!;
    const appears = this.#chain ? Number(roundTime(this.#chain.beacon, round)) : time;
    const signature = this.#chain ? this.#chain.sign(round) : new Uint8Array(0);
    const seed = seedFor(signature);
    const cosignatures = witnesses.map((witness) => witness.cosign(sealed, BigInt(appears / 1000 - 3)));
    this.write({ kind: "draw", time: Math.max(time, appears), window, signature, seed, cosignatures });
    this.#drawn.push({ window, lane: "general", line: [...deal(seed, "general", drums)] });
    return Math.max(time, appears);
  }

  /** Assigns the next n drawn places. */
  assign(n = Number.POSITIVE_INFINITY): void {
    for (let left = n; left > 0 && this.#drawn.length > 0; ) {
      const { window, lane, line } = this.#drawn[0]!;
      const position = this.#first + BigInt(this.#assigned);
      const ticket = line[this.#assigned];
      if (ticket !== undefined && !this.#stated.has(ticket)) {
        this.write({ kind: "assign", window, lane, position, ticket });
        this.#stated.add(ticket);
        left--;
      }
      if (++this.#assigned < line.length) continue;
      this.#first += BigInt(line.length);
      this.#assigned = 0;
      this.#drawn.shift();
    }
  }

  log(): Log {
    return new Log(this.entries);
  }
}

/** An amendment that does not affect the order. */
export function message(time: number): Entry {
  return { kind: "amend", time, change: "message", message: sha256(utf8("soon")) };
}

/** Three windows, an amendment that does not affect them, and joins among the places of the previous window. */
export function script(operator: Operator, people: [number, number, number]): Room {
  const room = new Room(operator);
  const second = 1000;
  room.join(opens + 5 * second, people[0]);
  room.write(message(opens + 59 * second));
  room.draw(opens + 60 * second);
  room.assign(people[0] >> 1);
  room.join(opens + 61 * second, people[1] >> 1);
  room.assign();
  room.write({ kind: "call", time: opens + 62 * second, positions: [2n] });
  room.join(opens + 69 * second, people[1] - (people[1] >> 1));
  room.draw(opens + 70 * second);
  room.join(opens + 70 * second, people[2]);
  room.join(opens + 71 * second, 2);
  room.assign(3);
  room.join(opens + 72 * second, 1);
  room.assign();
  room.draw(opens + 80 * second);
  room.assign();
  room.write({ kind: "end", time: opens + 90 * second });
  return room;
}

/** The visitor of an arrive entry, with a receipt for the tree up to it. */
export function visitorAt(operator: Operator, log: Log, index: number, size = index + 1): Visitor & { ticket: string } {
  const entry = parseEntry(log.entries[index]!);
  if (entry.kind !== "arrive") throw new Error(`entry ${index} is ${entry.kind}`);
  const { origin, vkey } = operator;
  return { origin, vkey, ticket: entry.ticket, receipt: log.receipt(operator, index, size) };
}
