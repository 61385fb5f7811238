import assert from "node:assert/strict";
import { test } from "node:test";
import { sha256 } from "@noble/hashes/sha2.js";

import { verifyRound } from "../../src/check/beacon.ts";
import { utf8 } from "../../src/check/bytes.ts";
import { alphaOf, seedOf, shuffle } from "../../src/check/draw.ts";
import { type Entry, type EntryOf, formatEntry, type Kind, parseEntry } from "../../src/check/entry.ts";
import { gather } from "../../src/check/evidence.ts";
import { toHex } from "../../src/check/hex.ts";
import { checkPlace } from "../../src/check/place.ts";
import { verifyVrf } from "../../src/check/vrf.ts";
import { Chain, Witness } from "../support/beacon.ts";
import { check, reasons } from "../support/check.ts";
import { type Files, Log, Operator, opens, Room, visitorAt } from "../support/room.ts";
import { fairness } from "../support/vectors.ts";

// Rooms with a beacon and witnesses. One with the public beacon is among the saved proofs, because
// these tests cannot sign for it.

const good = ["included", "closed", "own-beacon", "exact"];
const red = (reason: string): string[] => ["included", "closed", reason, "unchecked"];

const vectors = fairness.witnessed_room;
const owner = new Operator("queue.example.com/r/vectors", "", sha256(utf8("log key of the vectors")));

function indexOf(entries: readonly string[], ticket: string): number {
  return entries.findIndex((text) => text.startsWith("arrive ") && text.includes(ticket));
}

test("every draw of the vectors follows from freeze and round", () => {
  const entries = vectors.entries.map((text) => parseEntry(utf8(text)));
  const room = entries[0] as EntryOf<"room">;
  for (const { window, alpha, beta, seed, orders } of vectors.draws) {
    const freeze = entries.find(
      (entry) => entry.kind === "freeze" && entry.window === BigInt(window),
    ) as EntryOf<"freeze">;
    const draw = entries.find((entry) => entry.kind === "draw" && entry.window === BigInt(window)) as EntryOf<"draw">;
    const input = alphaOf(sha256(utf8(vectors.entries[0]!)), freeze);
    const output = verifyVrf(room.vrfKey, input, freeze.proof)!;
    assert.equal(toHex(input), alpha);
    assert.equal(toHex(output), beta);
    assert.ok(verifyRound(room.beacon!, freeze.round, draw.signature));
    assert.equal(toHex(seedOf(input, output, freeze.round, draw.signature)), seed);
    assert.deepEqual([...shuffle(draw.seed, "general", freeze.lots[0]!)], orders.general);
  }
  assert.ok(vectors.draws.length > 1);
});

test("every visitor of the vectors' room gets four lines", async () => {
  const log = new Log(vectors.entries.map((text) => utf8(text)));
  const published = log.publish(owner);
  for (const [i, ticket] of vectors.lines.general!.entries()) {
    const visitor = { ...visitorAt(owner, log, indexOf(vectors.entries, ticket)), shown: BigInt(i + 1) };
    const lines = await check(published, visitor);
    assert.deepEqual(reasons(lines), good, `place ${i + 1}`);
    const { witnesses, quorum, cosigned, cosigners } = lines[2]!.facts;
    // All witnesses cosigned the first freeze, and one of them the second.
    const names = ["witness-a.example.org", "witness-b.example.net/w"];
    assert.deepEqual([witnesses, quorum], [2, 2]);
    assert.equal(cosigned, i < 2 ? 2 : 1);
    assert.ok(cosigners!.split(" ").every((name) => names.includes(name)));
  }
});

test("entries of the vectors that break the rules of a draw make one line red", async () => {
  const tried = new Map<string, Set<string>>();
  for (const { after, entry, rule } of vectors.violations) {
    if (!/^(?:freeze|draw) /.test(entry)) continue;
    const entries = vectors.entries.with(after, entry);
    const broken = new Log(entries.map((text) => utf8(text)));
    const ticket = after < 6 ? vectors.lines.general![0]! : vectors.lines.general![2]!;
    const lines = await check(broken.publish(owner), visitorAt(owner, broken, indexOf(entries, ticket)));
    const { status, reason } = lines[2]!;
    assert.equal(status, "red", `${rule} at ${after}: ${reasons(lines)}`);
    tried.set(rule, (tried.get(rule) ?? new Set()).add(reason));
  }
  assert.deepEqual(Object.fromEntries([...tried].map(([rule, said]) => [rule, [...said].sort()])), {
    freeze: ["round"],
    beacon: ["beacon", "too-soon"],
    witness: ["witness"],
    seed: ["seed"],
  });
});

const operator = new Operator("queue.example.com/r/chance", "chance");
const chain = new Chain("chance", BigInt(opens / 1000) - 86_400n);
const [a, b, c] = [new Witness("a.example.org"), new Witness("b.example.org"), new Witness("c.example.org")];
const witnesses = [a, b, c];

function newRoom(): Room {
  return new Room(operator, { witnesses: witnesses.map(({ vkey }) => vkey), quorum: 2 }, chain);
}

/** Two windows: visitors join between a freeze and its draw, and places are assigned late. */
function script(between: number): Room {
  const room = newRoom();
  room.join(opens, 5);
  room.freeze(opens + 60_000);
  room.join(opens + 61_000, 6);
  room.reveal(opens + 61_000, [a, c]);
  room.join(opens + 66_000, 1);
  room.freeze(opens + 70_000);
  room.join(opens + 70_000, between);
  room.reveal(opens + 70_000, witnesses);
  room.assign();
  return room;
}

const room = script(3);
const log = room.log();
const files = log.publish(operator);
const parsed = room.entries.map(parseEntry);
const at = (kind: Kind, window: bigint): number =>
  parsed.findIndex((entry) => entry.kind === kind && "window" in entry && entry.window === window);
const mine = at("arrive", 1n) + 2;
const me = visitorAt(operator, log, mine);
const freeze = parsed[at("freeze", 1n)] as EntryOf<"freeze">;
const draw = parsed[at("draw", 1n)] as EntryOf<"draw">;
const first = parsed[at("draw", 0n)] as EntryOf<"draw">;

test("every visitor gets four lines, with the signers", async () => {
  for (const [index, entry] of parsed.entries()) {
    if (entry.kind !== "arrive" || entry.window > 1n) continue;
    const lines = await check(files, visitorAt(operator, log, index));
    assert.deepEqual(reasons(lines), good, `entry ${index}`);
    const names = entry.window === 0n ? "a.example.org c.example.org" : "a.example.org b.example.org c.example.org";
    assert.equal(lines[2]!.facts.cosigners, names);
    assert.equal(lines[2]!.facts.appears, BigInt(entry.window === 0n ? first.time : draw.time));
  }
});

test("the log at every size", async () => {
  for (let size = mine + 1; size <= log.entries.length; size++) {
    const lines = await check(new Log(log.entries.slice(0, size)).publish(operator), me);
    const isFrozen = size > at("freeze", 1n);
    const isDrawn = size > at("draw", 1n);
    assert.deepEqual(reasons(lines).slice(0, 3), [
      "included",
      isFrozen ? "closed" : "pending",
      isDrawn ? "own-beacon" : isFrozen ? "pending" : "unchecked",
    ]);
    // The round is known from the freeze on.
    assert.equal(lines[2]!.facts.appears, isFrozen ? BigInt(draw.time) : undefined);
  }
});

function tampered(change: (entries: Entry[]) => void): Files {
  const entries = parsed.map((entry) => structuredClone(entry));
  change(entries);
  return new Log(entries.map(formatEntry)).publish(operator);
}

function set<K extends Kind>(kind: K, change: Partial<EntryOf<K>>): (entries: Entry[]) => void {
  return (entries) => void Object.assign(entries[at(kind, 1n)]!, change);
}

test("an operator who tampers with round and signatures", async () => {
  const flipped = (bytes: Uint8Array, i: number): Uint8Array => bytes.with(i, bytes[i]! ^ 1);
  const [one, two, three] = draw.cosignatures as [Uint8Array, Uint8Array, Uint8Array];
  const cases: [string, (entries: Entry[]) => void, string][] = [
    ["a later round", set("freeze", { round: freeze.round + 1n }), "round"],
    ["an earlier round", set("freeze", { round: freeze.round - 1n }), "round"],
    ["no round", set("freeze", { round: 0n }), "round"],
    ["a later freeze", set("freeze", { time: freeze.time + 3000 }), "round"],
    ["a draw before its round", set("draw", { time: draw.time - 1 }), "too-soon"],
    ["no signature", set("draw", { signature: new Uint8Array(0) }), "beacon"],
    ["another round's signature", set("draw", { signature: chain.sign(freeze.round + 1n) }), "beacon"],
    ["another chain's signature", set("draw", { signature: new Chain("x", 0n).sign(freeze.round) }), "beacon"],
    ["a signature with a flipped bit", set("draw", { signature: flipped(draw.signature, 47) }), "beacon"],
    ["cosignatures of the freeze before", set("draw", { cosignatures: first.cosignatures }), "witness"],
    ["a cosignature twice", set("draw", { cosignatures: [one, one] }), "witness"],
    ["cosignatures in another order", set("draw", { cosignatures: [two, one, three] }), "witness"],
    ["a cosignature with another time", set("draw", { cosignatures: [flipped(one, 11)] }), "witness"],
    ["a forged cosignature", set("draw", { cosignatures: [one, flipped(two, 75)] }), "witness"],
    ["a seed without the round", set("draw", { seed: first.seed }), "seed"],
  ];
  for (const [name, change, reason] of cases)
    assert.deepEqual(reasons(await check(tampered(change), me)), red(reason), name);
  // A draw without cosignatures is not wrong; it only changes the colour.
  const lines = await check(tampered(set("draw", { cosignatures: [] })), me);
  assert.deepEqual(reasons(lines), good);
  assert.equal(lines[2]!.facts.cosigned, 0);
});

test("any byte of a draw changed makes the line red", async () => {
  const evidence = await gather(files, me);
  const from = "draw 0000000000000 0 ".length;
  for (let i = from; i < evidence.draw!.entry.length; i += 37) {
    const text = Buffer.from(evidence.draw!.entry).toString();
    const digit = text[i] === "0" ? "1" : "0";
    if (text[i] === " ") continue;
    const changed = tampered((entries) =>
      entries.splice(at("draw", 1n), 1, parseEntry(utf8(text.slice(0, i) + digit + text.slice(i + 1)))),
    );
    assert.equal((await check(changed, me))[2]!.status, "red", `character ${i}`);
  }
});

test("evidence of another entry for the freeze does not pass for it", async () => {
  const evidence = await gather(files, me);
  const theirs = await gather(files, visitorAt(operator, log, 1));
  assert.deepEqual(reasons(checkPlace(me, { ...evidence, draw: theirs.draw! })), red("window"));
});

test("a draw is found after all visitors who arrive before its round", async () => {
  for (const between of [600, 20_000]) {
    const crowd = script(between);
    const published = crowd.log();
    const lines = await check(published.publish(operator), visitorAt(operator, published, mine));
    assert.deepEqual(reasons(lines), good, `${between}`);
  }
});

test("a draw is found that came late, and many with it", async () => {
  const late = newRoom();
  const index = late.join(opens, 3);
  late.freeze(opens + 60_000);
  late.join(opens + 61_000, 2000);
  late.freeze(opens + 70_000);
  late.join(opens + 76_000, 20_000);
  late.reveal(opens + 77_000);
  late.reveal(opens + 77_000);
  late.assign();
  const published = late.log();
  for (const visitor of [visitorAt(operator, published, index), visitorAt(operator, published, index + 1000)]) {
    assert.deepEqual(reasons(await check(published.publish(operator), visitor)), good);
  }
});

test("a draw is found before places of the window before", async () => {
  const late = newRoom();
  late.join(opens, 3000);
  late.freeze(opens + 60_000);
  const index = late.join(opens + 61_000, 4);
  const now = late.reveal(opens + 61_000);
  late.assign(5);
  late.freeze(opens + 70_000);
  late.assign(1200);
  assert.ok(now < opens + 70_000);
  late.join(opens + 71_000, 5);
  late.assign(3);
  late.reveal(opens + 71_000);
  late.assign();
  const published = late.log();
  const lines = await check(published.publish(operator), visitorAt(operator, published, index));
  assert.deepEqual(reasons(lines), good);
});
