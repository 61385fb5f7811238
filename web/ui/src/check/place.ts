import { sha256 } from "@noble/hashes/sha2.js";

import { chainHash, quicknet, roundAfter, roundTime, verifyRound } from "./beacon.ts";
import { equal, utf8 } from "./bytes.ts";
import { type Checkpoint, openCheckpoint } from "./checkpoint.ts";
import { cosigners } from "./cosignature.ts";
import { alphaOf, fill, lotsOf, maxLots, seedOf, sum } from "./draw.ts";
import { type Entry, type EntryOf, parseEntry } from "./entry.ts";
import { FormatError, SignatureError } from "./errors.ts";
import { type Evidence, entryOf, type Proven, type ProvenRun, scheduleOf, type Visitor } from "./evidence.ts";
import { toHex } from "./hex.ts";
import { mostLots, mostPlaces, type Own, ownOf, placesOf, SlotLine, withMerits } from "./lots.ts";
import { leafHash, rootEndingWith, verifyConsistency, verifyInclusion, verifyRun } from "./merkle.ts";
import { type Key, parseKey } from "./note.ts";
import { majority, policyProblem } from "./policy.ts";
import { parseProof } from "./proof.ts";
import { ticketOf } from "./ticket.ts";
import { type Facts, type Line, type LineId, type Reason, type Status, verdicts } from "./verdicts.ts";
import { verifyVrf } from "./vrf.ts";

/**
 * Checks a visitor's place: record, group, draw, place. Nothing in the
 * evidence is trusted; all of it may be forged. A line that depends on one above
 * that failed is neutral, so that only the line with the fault is red.
 */
export function checkPlace(visitor: Visitor, evidence: Evidence): Line[] {
  const record = judgeRecord(visitor, evidence);
  const group = record.base ? judgeGroup(record.base, evidence) : unchecked();
  const draw = group.frozen ? judgeDraw(group.frozen, evidence) : unchecked();
  const place = draw.drawn ? judgePlace(draw.drawn, visitor, evidence) : unchecked();
  return [line("record", record), line("group", group), line("draw", draw), line("place", place)];
}

interface Verdict<L extends LineId> {
  reason: Reason<L>;
  facts: Facts;
}

function line<L extends LineId>(id: L, { reason, facts }: Verdict<L>): Line {
  const status: Status = (verdicts[id] as Record<Reason<L>, Status>)[reason];
  return { id, status, reason, facts } as Line;
}

function unchecked(): { reason: "unchecked"; facts: Facts; frozen?: Frozen; drawn?: Drawn } {
  return { reason: "unchecked", facts: {} };
}

/** Why a part of the evidence is missing. */
function missing({ gaveUp, malformed }: Evidence): "pending" | "not-found" | "malformed" {
  if (malformed !== undefined) return "malformed";
  return gaveUp ? "not-found" : "pending";
}

/** What the record's line shows for the lines below: the room's published log, with my arrival in it. */
interface Base {
  head: Checkpoint;
  room: EntryOf<"room">;
  roomHash: Uint8Array;
  arrive: EntryOf<"arrive">;
  index: bigint; // of the arrival
}

/** What the group's line shows: the freeze of my window. */
interface Frozen extends Base {
  freeze: EntryOf<"freeze">;
  freezeIndex: bigint;
  own: Own; // my lots, but for those of merits
  sealed: Checkpoint; // of the tree that ends with it
}

/** What the draw's line shows: the seed, revealed at an index. */
interface Drawn extends Frozen {
  seed: Uint8Array;
  drawIndex: bigint;
}

function judgeRecord(visitor: Visitor, evidence: Evidence): Verdict<"record"> & { base?: Base } {
  const facts: Facts = { keyFrom: visitor.vkey === undefined ? "log" : "visitor" };
  const first = evidence.room;
  const vkey = visitor.vkey ?? (first && attempt(() => entryOf(first, "room").logKey));
  const key = vkey === undefined ? undefined : attempt(() => parseKey(vkey));
  const noRoom = !first && evidence.malformed !== undefined ? "malformed" : "room";
  if (key?.name !== visitor.origin) return { reason: visitor.vkey === undefined ? noRoom : "key", facts };
  const head = attempt(() => openCheckpoint(evidence.checkpoint, key));
  if (!head) return { reason: "checkpoint", facts };
  facts.size = head.size;
  const room = proven(head, first, "room");
  if (first?.index !== 0n || !room) return { reason: noRoom, facts };
  if (room.logKey !== vkey) return { reason: "room", facts };
  const problem = policyProblem(room); // if none, its origin is the name of the key, and the visitor's
  if (problem !== undefined) return { reason: "room", facts: { ...facts, problem } };

  const reason = judgeArrival(visitor, evidence, key, head);
  const arrive = proven(head, evidence.arrive, "arrive");
  if (!evidence.arrive || !arrive || arrive.ticket !== ticketOfVisitor(visitor)) return { reason, facts };
  const base = { head, room, roomHash: sha256(first.entry), arrive, index: evidence.arrive.index };
  return { reason, facts: { ...facts, index: base.index, window: arrive.window }, base };
}

/** Judges the visitor's entry, in the receipt's tree and in the published one. */
function judgeArrival(visitor: Visitor, evidence: Evidence, key: Key, head: Checkpoint): Reason<"record"> {
  const receipt = attempt(() => parseProof(visitor.receipt));
  const kept = receipt && attempt(() => openCheckpoint(utf8(receipt.checkpoint), key));
  if (!receipt || !kept) return "receipt";
  if (receipt.index >= head.size) return "behind";
  const { arrive, growth } = evidence;
  if (!arrive) return evidence.malformed === undefined ? "arrival" : "malformed";
  if (arrive.index !== receipt.index || !included(head, arrive)) return "arrival";
  if (kept.size > head.size) return "behind";
  if (!growth && evidence.malformed !== undefined) return "malformed";
  if (!growth || !verifyConsistency(kept, head, growth)) return "history";
  if (!included(kept, { ...arrive, path: receipt.path })) return "receipt-arrival";
  const entry = attempt(() => entryOf(arrive, "arrive"));
  return entry?.ticket === ticketOfVisitor(visitor) ? "included" : "ticket";
}

function judgeGroup(base: Base, evidence: Evidence): Verdict<"group"> & { frozen?: Frozen } {
  const { head, room, arrive } = base;
  const index = evidence.freeze?.index;
  if (index === undefined) return { reason: missing(evidence), facts: { window: arrive.window } };
  const freeze = proven(head, evidence.freeze, "freeze");
  if (!freeze) return { reason: "freeze", facts: { window: arrive.window } };
  const lots = sum(lotsOf(room.lanes, arrive.lane, freeze));
  const facts: Facts = { window: freeze.window, lots, closed: freeze.time };
  if (room.lots.length > 0) facts.most = 1 + room.lots.length;
  const before = { size: freeze.size, root: freeze.root };
  if (freeze.window !== arrive.window) return { reason: "window", facts };
  if (index <= base.index || freeze.time < arrive.time) return { reason: "early", facts };
  if (freeze.size !== index) return { reason: "size", facts };
  // All entries before the freeze but the first can be arrivals.
  const own = BigInt(sum(freeze.lots)) > mostLots(room, index) ? undefined : ownOf(room, arrive, freeze);
  if (!own) return { reason: "lots", facts };
  if (!evidence.frozen && evidence.malformed !== undefined) return { reason: "malformed", facts };
  if (!evidence.frozen || !verifyConsistency(before, head, evidence.frozen)) return { reason: "root", facts };
  const { entry, path } = evidence.freeze!;
  const sealed = {
    origin: room.origin,
    size: index + 1n,
    root: rootEndingWith(index, leafHash(entry), head.size, path),
  };
  const frozen = { ...base, freeze, freezeIndex: index, own, sealed };
  const amended = evidence.amends.every((amend) => proven(head, amend, "amend"));
  const window = amended ? scheduleOf(room, evidence.amends).at(arrive.time) : undefined;
  const scheduled = window?.index === arrive.window && freeze.time >= window.to;
  return { reason: scheduled ? "closed" : "schedule", facts, frozen };
}

function judgeDraw(frozen: Frozen, evidence: Evidence): Verdict<"draw"> & { drawn?: Drawn } {
  const { head, room, roomHash, freeze } = frozen;
  const { beacon } = room;
  const facts: Facts = beacon ? { chain: chainHash(beacon), round: freeze.round } : {};
  // The window ends before its freeze, as the line above wants, so that alone decides.
  const round = beacon ? roundAfter(beacon, freeze.time) : 0n;
  if (freeze.round !== round) return { reason: "round", facts };
  if (beacon) facts.appears = roundTime(beacon, round);
  const alpha = alphaOf(roomHash, freeze);
  const beta = verifyVrf(room.vrfKey, alpha, freeze.proof);
  if (!beta) return { reason: "proof", facts };
  const drawIndex = evidence.draw?.index;
  if (drawIndex === undefined) return { reason: missing(evidence), facts };
  const draw = proven(head, evidence.draw, "draw");
  if (!draw) return { reason: "draw", facts };
  facts.seed = toHex(draw.seed);
  if (draw.window !== freeze.window) return { reason: "window", facts };
  if (draw.time < freeze.time) return { reason: "early", facts };
  const chance = judgeChance(frozen, draw, facts);
  if (verdicts.draw[chance] === "red") return { reason: chance, facts };
  // The seed depends on all entries before the freeze, so the draw cannot be one of them.
  const seed = seedOf(alpha, beta, round, draw.signature);
  if (!equal(seed, draw.seed)) return { reason: "seed", facts };
  return { reason: chance, facts, drawn: { ...frozen, seed, drawIndex } };
}

/** Judges what the draw takes from third parties: the beacon's round, and the witnesses who signed the freeze before it. */
function judgeChance({ room, freeze, sealed }: Frozen, draw: EntryOf<"draw">, facts: Facts): Reason<"draw"> {
  const { beacon, witnesses, quorum } = room;
  const appears = beacon ? roundTime(beacon, freeze.round) : 0n;
  if (draw.time < appears) return "too-soon";
  const signed = beacon ? verifyRound(beacon, freeze.round, draw.signature) : draw.signature.length === 0;
  if (!signed) return "beacon";
  const names = cosigners(witnesses, sealed, draw.cosignatures, freeze.time, appears);
  if (!names) return "witness";
  if (!beacon) return "no-beacon";
  if (witnesses.length > 0) {
    Object.assign(facts, { witnesses: witnesses.length, quorum, cosigned: names.length, cosigners: names.join(" ") });
  }
  if (facts.chain !== quicknet) return "own-beacon";
  return names.length >= majority(witnesses) ? "witnessed" : "unpredictable";
}

function judgePlace(drawn: Drawn, visitor: Visitor, evidence: Evidence): Verdict<"place"> {
  const { head, room, arrive, index, freezeIndex, seed } = drawn;
  const lots = sum(drawn.own.drums);
  if (sum(fill(drawn.own.drums)) > maxLots) return { reason: "too-large", facts: { lots } };
  const merits = evidence.merits.map((one) => ({ index: one.index, merit: proven(head, one, "merit") }));
  const own = withMerits(room, arrive, drawn.own, merits, [index, freezeIndex]);
  if (!own) return { reason: "merit", facts: { lots } };
  const line = new SlotLine(seed, arrive.lane, own);
  const rank = line.rank(own.seqs);
  const facts: Facts = { lots, own: own.seqs.length, rank };
  if (!evidence.firstPlace) return { reason: missing(evidence), facts };
  const stated = firstPosition(drawn, evidence.firstPlace);
  if (stated === undefined) return { reason: "places", facts };
  const first = own.drums.length > 1 ? 1n : stated; // the first places of slots may be those of empty lots
  facts.first = stated;
  const position = first + BigInt(rank);
  if (!beginsRightly(drawn, first, evidence.earlier) || stated < first || stated > position) {
    return { reason: "first", facts };
  }
  facts.position = position;
  // A place of a lot that only a merit can have given, which was kept out of the evidence.
  const isOfMerit = (place: bigint): boolean => {
    const lot = place < position && own.missing ? line.lotAt(Number(place - first)) : undefined;
    return lot !== undefined && lot > drawn.own.seqs.at(-1)! && lot < own.drums[own.slot]!;
  };
  if (visitor.shown !== undefined && visitor.shown !== position) {
    return { reason: isOfMerit(visitor.shown) ? "more-lots" : "shown", facts };
  }
  if (!evidence.place) return { reason: missing(evidence), facts };
  const place = proven(head, evidence.place, "assign");
  if (!place) return { reason: "place", facts };
  const isHere = place.window === arrive.window && place.lane === arrive.lane;
  if (place.position !== position || !isHere) {
    const isBetter = isHere && place.ticket === arrive.ticket && isOfMerit(place.position);
    return { reason: isBetter ? "more-lots" : "position", facts: { ...facts, stated: place.position } };
  }
  return { reason: place.ticket === arrive.ticket ? "exact" : "ticket", facts };
}

/**
 * The position of the first place of my window and lane in the published log: in their first assignment after the
 * draw. The run shows that there is none before it.
 */
function firstPosition({ head, arrive, drawIndex }: Drawn, run: ProvenRun): bigint | undefined {
  const isProven = verifyRun(run.first, run.entries.map(leafHash), head.size, head.root, run.proof);
  if (!isProven || run.first !== drawIndex + 1n) return undefined;
  const places = run.entries
    .map((entry): Entry | undefined => attempt(() => parseEntry(entry)))
    .map((entry) => (entry?.kind === "assign" ? entry : undefined))
    .map((entry) => (entry?.window === arrive.window && entry.lane === arrive.lane ? entry.position : undefined));
  const first = places.pop();
  return places.every((place) => place === undefined) ? first : undefined;
}

/**
 * Positions of a lane continue across windows, one for each lot. Without the
 * earlier freezes two facts remain: the first window begins at 1, and no window
 * has more places before it than the entries before mine can have given.
 */
function beginsRightly({ head, room, arrive, index }: Drawn, first: bigint, earlier: Proven[] | undefined): boolean {
  if (arrive.window === 0n && first !== 1n) return false;
  const others = mostLots(room, index) - BigInt(arrive.seq);
  if (first < 1n || others < 0n || first - 1n > mostPlaces(room, others)) return false;
  if (!earlier) return true;
  let places = 0n;
  let last = -1n;
  for (const one of earlier) {
    const freeze = proven(head, one, "freeze");
    if (!freeze || freeze.window <= last || freeze.window >= arrive.window) return false;
    last = freeze.window;
    const more = placesOf(room, arrive.lane, freeze);
    if (more === undefined) return false;
    places += more;
  }
  return first === places + 1n;
}

/** The entry, if it is of that kind and the proof shows it in the tree. */
function proven<K extends Entry["kind"]>(head: Checkpoint, one: Proven | undefined, kind: K): EntryOf<K> | undefined {
  return one && included(head, one) ? attempt(() => entryOf(one, kind)) : undefined;
}

function included({ size, root }: Checkpoint, { index, entry, path }: Proven): boolean {
  return verifyInclusion(index, leafHash(entry), size, root, path);
}

function ticketOfVisitor({ origin, ticket }: Visitor): string {
  return typeof ticket === "string" ? ticket : ticketOf(origin, ticket.secret);
}

/** The result; undefined if something is malformed or has a wrong signature. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (failure) {
    if (failure instanceof FormatError || failure instanceof SignatureError) return undefined;
    throw failure;
  }
}
