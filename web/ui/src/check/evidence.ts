import { roundTime } from "./beacon.ts";
import { openCheckpoint, parseCheckpoint } from "./checkpoint.ts";
import { fill, maxLots, sum } from "./draw.ts";
import { type EntryOf, type Kind, parseEntry } from "./entry.ts";
import { FormatError, SignatureError } from "./errors.ts";
import { mostLots, ownOf, SlotLine, withMerits } from "./lots.ts";
import type { Hash } from "./merkle.ts";
import { parseKey, parseNote } from "./note.ts";
import { policyProblem } from "./policy.ts";
import { parseProof } from "./proof.ts";
import { LogReader } from "./reader.ts";
import { Schedule } from "./schedule.ts";
import { findDraw, findFirstPlace, findFreeze, findPlace, peek, SearchError } from "./search.ts";
import type { Source } from "./source.ts";

/** What a visitor has to check a place with. */
export interface Visitor {
  origin: string;
  /** The log's verifier key from another source, such as the room's link; undefined: the one that the log names. */
  vkey?: string;
  /** The ticket, or the secret that it is the hash of. */
  ticket: string | { secret: Uint8Array };
  /** The receipt of joining, a tlog-proof. */
  receipt: Uint8Array;
  /** The position that the visitor is shown; undefined before the draw. */
  shown?: bigint;
}

/**
 * Indexes of entries, as the server states them. A wrong or missing index costs a
 * search, except that merits, amendments and earlier freezes are not searched for.
 */
export interface Hints {
  freeze?: bigint;
  place?: bigint;
  /** Asks for the merits of the ticket, in their order; called in rooms where these give lots. */
  merits?: () => Promise<readonly bigint[]>;
  /** The amendments of the schedule before the visitor's window. */
  amends?: readonly bigint[];
  /** The freezes of all earlier windows: with them the window's first position is checked too. */
  earlier?: readonly bigint[];
}

/** One entry, with the inclusion proof that it is at an index of the published log. */
export interface Proven {
  index: bigint;
  entry: Uint8Array;
  path: Hash[];
}

/** Entries without gaps, and the proof that they are in the published log from an index on. */
export interface ProvenRun {
  first: bigint;
  entries: Uint8Array[];
  proof: Hash[];
}

/**
 * The files to check, as the server sent them. What is missing is not in the log
 * yet, unless malformed or gaveUp says otherwise.
 */
export interface Evidence {
  checkpoint: Uint8Array;
  room?: Proven;
  arrive?: Proven;
  /** The merits of the ticket, as far as they are known. */
  merits: Proven[];
  /** From the receipt's tree to the published one; missing if that is smaller. */
  growth?: Hash[];
  amends: Proven[];
  freeze?: Proven;
  /** From the tree that the freeze names to the published one. */
  frozen?: Hash[];
  draw?: Proven;
  /** From after the draw up to the assignment of the first place of the window and lane. */
  firstPlace?: ProvenRun;
  place?: Proven;
  earlier?: Proven[];
  /** The fault in the form of a published file or of the receipt. */
  malformed?: string;
  /** A search ended before the log did. */
  gaveUp?: boolean;
}

/**
 * Fetches the evidence about a visitor's place. It rejects only if the source
 * does; checkPlace reports faults in the content.
 */
export async function gather(source: Source, visitor: Visitor, hints: Hints = {}): Promise<Evidence> {
  const evidence: Evidence = { checkpoint: await source.checkpoint(), merits: [], amends: [] };
  try {
    await new Gatherer(source, visitor, hints, evidence).gather();
  } catch (failure) {
    if (failure instanceof SearchError) evidence.gaveUp = true;
    else if (failure instanceof FormatError) evidence.malformed = failure.message;
    else if (!(failure instanceof SignatureError)) throw failure;
  }
  return evidence;
}

class Gatherer {
  readonly #visitor: Visitor;
  readonly #hints: Hints;
  readonly #evidence: Evidence;
  readonly #log: LogReader;

  constructor(source: Source, visitor: Visitor, hints: Hints, evidence: Evidence) {
    this.#visitor = visitor;
    this.#hints = hints;
    this.#evidence = evidence;
    this.#log = new LogReader(source, headSize(evidence.checkpoint, visitor.vkey));
  }

  async gather(): Promise<void> {
    const evidence = this.#evidence;
    if (this.#log.size === 0n) return;
    evidence.room = await this.#prove(0n);
    const room = entryOf(evidence.room, "room");
    // Tiles are fetched only up to a signed size.
    openCheckpoint(evidence.checkpoint, parseKey(this.#visitor.vkey ?? room.logKey));
    if (policyProblem(room) !== undefined) return;
    const receipt = parseReceipt(this.#visitor.receipt);
    if (receipt.index >= this.#log.size) return;
    evidence.arrive = await this.#prove(receipt.index);
    if (receipt.size <= this.#log.size) evidence.growth = await this.#log.consistency(receipt.size);
    await this.#gatherDraw(room, entryOf(evidence.arrive, "arrive"));
  }

  async #gatherDraw(room: EntryOf<"room">, arrive: EntryOf<"arrive">): Promise<void> {
    const evidence = this.#evidence;
    const merits = room.lots.length > 0 ? await this.#hints.merits?.() : [];
    for (const index of merits ?? []) {
      if ((await peek(this.#log, index))?.kind === "merit") evidence.merits.push(await this.#prove(index));
    }
    for (const index of this.#hints.amends ?? []) {
      if ((await peek(this.#log, index))?.kind === "amend") evidence.amends.push(await this.#prove(index));
    }
    const end = scheduleOf(room, evidence.amends).at(arrive.time)?.to ?? arrive.time + 1;
    const after = evidence.arrive!.index;
    const { freeze: hint } = this.#hints;
    const hinted = hint === undefined ? undefined : await peek(this.#log, hint);
    const isHinted = hinted?.kind === "freeze" && hinted.window === arrive.window;
    const freezeAt = isHinted ? hint : await findFreeze(this.#log, arrive.window, after, end);
    if (freezeAt === undefined) return;
    evidence.freeze = await this.#prove(freezeAt);
    const freeze = entryOf(evidence.freeze, "freeze");
    if (freeze.size <= this.#log.size) evidence.frozen = await this.#log.consistency(freeze.size);
    if (this.#hints.earlier) evidence.earlier = await this.#proveAll(this.#hints.earlier);

    const due = room.beacon && Number(roundTime(room.beacon, freeze.round));
    const drawAt = await findDraw(this.#log, arrive.window, freezeAt, due);
    if (drawAt === undefined) return;
    evidence.draw = await this.#prove(drawAt);
    const draw = await peek(this.#log, drawAt);
    if (draw?.kind !== "draw") return;
    const own = ownOf(room, arrive, freeze);
    const isPossible = BigInt(sum(freeze.lots)) <= mostLots(room, freezeAt);
    if (!own || !isPossible || sum(fill(own.drums)) > maxLots) return; // not worth a shuffle
    const shown = evidence.merits.map((proven) => ({ index: proven.index, merit: entryOf(proven, "merit") }));
    const { seqs } = withMerits(room, arrive, own, shown, [after, freezeAt]) ?? own;
    const rank = new SlotLine(draw.seed, arrive.lane, own).rank(seqs);
    await this.#gatherPlace(arrive, drawAt, BigInt(rank), own.drums.length > 1);
  }

  async #gatherPlace({ window, lane }: EntryOf<"arrive">, drawAt: bigint, rank: bigint, isCut: boolean): Promise<void> {
    const firstAt = await findFirstPlace(this.#log, window, lane, drawAt);
    if (firstAt === undefined) return;
    this.#evidence.firstPlace = await this.#proveRun(drawAt + 1n, firstAt + 1n);
    const first = await peek(this.#log, firstAt);
    if (first?.kind !== "assign") return;
    const position = rank + (isCut ? 1n : first.position); // its first places may be those of empty lots
    const { place: hint } = this.#hints;
    const hinted = hint === undefined ? undefined : await peek(this.#log, hint);
    const isHinted = hinted?.kind === "assign" && hinted.lane === lane && hinted.position === position;
    const placeAt = isHinted
      ? hint
      : await findPlace(this.#log, lane, { index: firstAt, position: first.position }, position);
    if (placeAt !== undefined) this.#evidence.place = await this.#prove(placeAt);
  }

  async #prove(index: bigint): Promise<Proven> {
    const entry = await this.#log.entry(index); // first, because the proof reads its bundle too
    return { index, entry, path: await this.#log.inclusion(index) };
  }

  #proveAll(indexes: readonly bigint[]): Promise<Proven[]> {
    const inside = indexes.filter((index) => index >= 0n && index < this.#log.size);
    return Promise.all(inside.map((index) => this.#prove(index)));
  }

  async #proveRun(from: bigint, to: bigint): Promise<ProvenRun> {
    const entries: Uint8Array[] = [];
    for (let index = from; index < to; index++) entries.push(await this.#log.entry(index));
    return { first: from, entries, proof: await this.#log.run([from, to]) };
  }
}

/** The size of a checkpoint, if the key that is known so far signed it. */
function headSize(checkpoint: Uint8Array, vkey: string | undefined): bigint {
  if (vkey === undefined) return parseCheckpoint(parseNote(checkpoint).text).size;
  return openCheckpoint(checkpoint, parseKey(vkey)).size;
}

/** Returns the index and the tree of a receipt, unverified. */
function parseReceipt(receipt: Uint8Array): { index: bigint; size: bigint } {
  const { index, checkpoint } = parseProof(receipt);
  const text = checkpoint.slice(0, checkpoint.lastIndexOf("\n\n") + 1);
  return { index, size: parseCheckpoint(text).size };
}

/** Reads an entry of one kind, or throws a FormatError. */
export function entryOf<K extends Kind>({ entry, index }: Proven, kind: K): EntryOf<K> {
  const read = parseEntry(entry);
  if (read.kind !== kind) throw new FormatError(`entry ${index} is ${read.kind}, not ${kind}`);
  return read as EntryOf<K>;
}

/** The schedule of a policy after some amendments. Those that the rules do not allow are ignored. */
export function scheduleOf(room: EntryOf<"room">, amends: readonly Proven[]): Schedule {
  let schedule = new Schedule(room.windows, room.closes);
  let now = room.created; // time never runs backwards
  for (const proven of [...amends].sort((a, b) => (a.index < b.index ? -1 : 1))) {
    const amend = entryOf(proven, "amend");
    if (amend.change !== "windows" || amend.time < now) continue;
    const next = schedule.amended(room, amend.time, amend.windows, amend.closes);
    if (!next) continue;
    schedule = next;
    now = amend.time;
  }
  return schedule;
}
