import assert from "node:assert/strict";
import { test } from "node:test";
import { sha256 } from "@noble/hashes/sha2.js";

import { utf8 } from "../../src/check/bytes.ts";
import { alphaOf, seedOf } from "../../src/check/draw.ts";
import { type EntryOf, formatEntry, parseEntry } from "../../src/check/entry.ts";
import { type Evidence, gather, type Visitor } from "../../src/check/evidence.ts";
import { checkPlace } from "../../src/check/place.ts";
import { tilePath } from "../../src/check/tiles.ts";
import { verifyVrf } from "../../src/check/vrf.ts";
import { check, honest, reasons, reds } from "../support/check.ts";
import { SparseLog } from "../support/evidence.ts";
import { Random } from "../support/random.ts";
import { Log, message, Operator, opens, Room, script, visitorAt } from "../support/room.ts";
import { prove } from "../support/vrf.ts";

const operator = new Operator("queue.example.com/r/evidence", "evidence");
const room = script(operator, [7, 12, 5]);
const log = room.log();
const files = log.publish(operator);
const mine = log.entries.findIndex((entry) => Buffer.from(entry).toString().includes(" 1 4 "));
const me = visitorAt(operator, log, mine);
const flipped = (bytes: Uint8Array): Uint8Array => bytes.map((byte, i) => (i === bytes.length - 1 ? byte ^ 1 : byte));

test("evidence with parts left out shows less", async () => {
  const all = await gather(files, me);
  assert.deepEqual(reasons(checkPlace(me, all)), honest);
  const cases: [keyof Evidence, string[]][] = [
    ["room", ["room", "unchecked", "unchecked", "unchecked"]],
    ["arrive", ["arrival", "unchecked", "unchecked", "unchecked"]],
    ["growth", honest.with(0, "history")],
    ["freeze", ["included", "pending", "unchecked", "unchecked"]],
    ["frozen", ["included", "root", "unchecked", "unchecked"]],
    ["draw", ["included", "closed", "pending", "unchecked"]],
    ["firstPlace", honest.with(3, "pending")],
    ["place", honest.with(3, "pending")],
  ];
  for (const [part, want] of cases) {
    const less = { ...all };
    delete less[part];
    assert.deepEqual(reasons(checkPlace(me, less)), want, part);
    // Malformed files may be the reason why it is missing.
    const isUnseen = part === "arrive" || part === "growth" || part === "room";
    const line = isUnseen ? 0 : want.findIndex((reason) => reason === "pending" || reason === "root");
    const malformed = checkPlace(me, { ...less, malformed: "a tile" });
    assert.equal(malformed[line]!.reason, "malformed", part);
    assert.equal(reds(malformed).length, 1, part);
  }
});

test("evidence with parts changed or mixed up makes one line red", async () => {
  const all = await gather(files, me);
  const wrong = <T extends { path: Uint8Array[] }>(one: T): T => ({ ...one, path: one.path.map(flipped) });
  const next = await gather(files, visitorAt(operator, log, mine - 1));
  const last = log.entries.findLastIndex((entry) => parseEntry(entry).kind === "arrive");
  const later = await gather(files, visitorAt(operator, log, last));
  const run = all.firstPlace!;
  const cases: [string, Partial<Evidence>, string, string][] = [
    ["room's proof", { room: wrong(all.room!) }, "record", "room"],
    ["arrival's proof", { arrive: wrong(all.arrive!) }, "record", "arrival"],
    ["another's arrival", { arrive: next.arrive! }, "record", "arrival"],
    ["proof of growth", { growth: all.growth!.map(flipped) }, "record", "history"],
    ["freeze's proof", { freeze: wrong(all.freeze!) }, "group", "freeze"],
    ["freeze of a later window", { freeze: later.freeze! }, "group", "window"],
    ["a draw for a freeze", { freeze: all.draw! }, "group", "freeze"],
    ["proof of the freeze's root", { frozen: all.frozen!.map(flipped) }, "group", "root"],
    ["proof of another freeze's root", { frozen: later.frozen! }, "group", "root"],
    ["draw's proof", { draw: wrong(all.draw!) }, "draw", "draw"],
    ["draw of a later window", { draw: later.draw! }, "draw", "window"],
    ["proof of the first place", { firstPlace: { ...run, proof: run.proof.map(flipped) } }, "place", "places"],
    ["first place of a later window", { firstPlace: later.firstPlace! }, "place", "places"],
    ["place's proof", { place: wrong(all.place!) }, "place", "place"],
    ["another's place", { place: next.place! }, "place", "position"],
  ];
  for (const [name, part, id, reason] of cases) {
    const lines = checkPlace(me, { ...all, ...part });
    assert.deepEqual(reds(lines), [id], name);
    assert.equal(lines.find((line) => line.id === id)!.reason, reason, name);
  }
});

test("an amendment without a proof is ignored", async () => {
  const all = await gather(files, me, { amends: [8n] });
  assert.equal(all.amends.length, 1);
  assert.deepEqual(reasons(checkPlace(me, all)), honest);
  const amends = all.amends.map((amend) => ({ ...amend, path: amend.path.map(flipped) }));
  assert.deepEqual(reasons(checkPlace(me, { ...all, amends })), honest.with(1, "schedule"));
  for (const wrong of [-1n, 0n, 1n, 10n, BigInt(log.entries.length)]) {
    assert.deepEqual(reasons(await check(files, me, { amends: [wrong] })), honest, `${wrong}`);
  }
});

/** A log with only what a check of window 1 needs: an arrival at index 3, a freeze, and space for the rest. */
function sketch(size: bigint, frozenAt: bigint, lots = 1) {
  const sparse = new SparseLog(operator, size);
  sparse.set(0n, room.entry);
  sparse.set(3n, { ...(parseEntry(log.entries[mine]!) as EntryOf<"arrive">), seq: 0 });
  const frozen = { window: 1n, lots: [lots], size: frozenAt, root: sparse.root([0n, frozenAt]) };
  const alpha = alphaOf(sha256(log.entries[0]!), frozen);
  const proof = prove(operator.vrfSecret, alpha, 5n);
  const seed = seedOf(alpha, verifyVrf(room.entry.vrfKey, alpha, proof)!, 0n, new Uint8Array(0));
  const time = opens + 70_000;
  sparse.set(frozenAt, { kind: "freeze", time, ...frozen, round: 0n, proof });
  const drawAt = (frozenAt > 3n ? frozenAt : 3n) + 1n;
  sparse.set(drawAt, { kind: "draw", time, window: 1n, signature: new Uint8Array(0), seed, cosignatures: [] });
  const assign = (index: bigint, position: bigint): void =>
    sparse.set(index, { kind: "assign", window: 1n, lane: "general", position, ticket: me.ticket });
  const evidence = (from: bigint, to: bigint): [Visitor, Evidence] => [
    { ...me, receipt: sparse.receipt(3n) },
    {
      ...sparse.evidence(),
      room: sparse.prove(0n),
      arrive: sparse.prove(3n),
      growth: [],
      freeze: sparse.prove(frozenAt),
      frozen: sparse.growth(frozenAt),
      draw: sparse.prove(drawAt),
      firstPlace: sparse.run(from, to),
      place: sparse.prove(to - 1n),
    },
  ];
  return { sparse, assign, evidence };
}

test("made-up evidence", async (t) => {
  await t.test("that is right", () => {
    const { assign, evidence } = sketch(16n, 4n);
    assign(6n, 2n);
    assert.deepEqual(reasons(checkPlace(...evidence(6n, 7n))), honest);
  });
  await t.test("with a second policy further on", () => {
    const { sparse, assign, evidence } = sketch(16n, 4n);
    assign(6n, 2n);
    sparse.set(9n, room.entry);
    const [visitor, all] = evidence(6n, 7n);
    assert.equal(checkPlace(visitor, { ...all, room: sparse.prove(9n) })[0]!.reason, "room");
  });
  await t.test("with a freeze before my arrival", () => {
    const { assign, evidence } = sketch(16n, 2n);
    assign(5n, 2n);
    assert.deepEqual(reasons(checkPlace(...evidence(5n, 6n))).slice(0, 2), ["included", "early"]);
  });
  await t.test("with a run that leaves out the first place, or has two", () => {
    const { assign, evidence } = sketch(16n, 4n);
    assign(6n, 1n);
    assign(7n, 2n);
    assert.deepEqual(reasons(checkPlace(...evidence(6n, 7n))), honest);
    assert.deepEqual(reasons(checkPlace(...evidence(7n, 8n))), honest.with(3, "places"));
    assert.deepEqual(reasons(checkPlace(...evidence(6n, 8n))), honest.with(3, "places"));
  });
  await t.test("with a place 0", () => {
    const { assign, evidence } = sketch(16n, 4n);
    assign(6n, 0n);
    assert.deepEqual(reasons(checkPlace(...evidence(6n, 7n))), honest.with(3, "first"));
  });
  await t.test("with a group too large to shuffle here", () => {
    const frozenAt = 1n << 39n;
    const { assign, evidence } = sketch(1n << 40n, frozenAt, 20_000_001);
    assign(frozenAt + 2n, 2n);
    const lines = checkPlace(...evidence(frozenAt + 2n, frozenAt + 3n));
    assert.deepEqual(reasons(lines), honest.with(3, "too-large"));
  });
});

test("malformed files on the way make one line red", async () => {
  const all = script(operator, [700, 900, 400]).log();
  const published = all.publish(operator);
  const visitor = visitorAt(operator, all, 1500);
  assert.deepEqual(reasons(await check(published, visitor)), honest);
  const where = new Set<string>();
  for (const path of published.asked) {
    const source = published.with(path, published.map.get(path)!.subarray(1));
    const red = (await check(source, visitor)).filter(({ status }) => status === "red");
    assert.equal(red.length, 1, path);
    where.add(`${red[0]!.id} ${red[0]!.reason}`);
  }
  assert.ok(where.has("record malformed") && where.has("group malformed"), [...where].join());
});

test("bundles are searched, not read from one end to the other", async (t) => {
  const big = script(operator, [3000, 9000, 4000]);
  const all = big.log();
  const published = all.publish(operator);
  const random = new Random(6);
  let most = 0;
  for (let n = 0; n < 6; n++) {
    const from = random.below(14_000);
    const index = big.entries.findIndex((entry, i) => i > from && parseEntry(entry).kind === "arrive");
    const source = published.with("checkpoint", published.map.get("checkpoint")!);
    assert.deepEqual(reasons(await check(source, visitorAt(operator, all, index))), honest);
    assert.equal(new Set(source.asked).size, source.asked.length);
    most = Math.max(most, source.asked.length);
  }
  assert.ok(most < 40, `${most} files of ${published.map.size}`);
  t.diagnostic(`at most ${most} files of ${published.map.size}`);
});

test("a malformed entry does not stop the search", async () => {
  const drawAt = log.entries.findIndex((entry, i) => i > mine && parseEntry(entry).kind === "draw");
  for (const at of [drawAt, drawAt + 1]) {
    const broken = new Log(log.entries.toSpliced(at, 0, utf8("nonsense")));
    assert.deepEqual(reasons(await check(broken.publish(operator), visitorAt(operator, broken, mine))), honest);
  }
});

test("a freeze long before the published end of its window is found", async () => {
  // An amendment made the window shorter; a search that does not know it continues further on.
  const rule = { from: opens, length: 10_000 };
  const short = new Room(operator, { windows: [{ ...rule, length: 500_000 }] });
  const closes = opens + 600_000;
  short.write({ kind: "amend", time: opens - 10_000, change: "windows", closes, windows: [rule] });
  const index = short.join(opens, 3);
  short.draw(opens + 10_000);
  short.assign();
  for (let n = 0; n < 700; n++) short.write(message(opens + 10_000));
  short.join(opens + 500_000, 300);
  const all = short.log();
  const source = all.publish(operator);
  const visitor = visitorAt(operator, all, index);
  assert.deepEqual(reasons(await check(source, visitor)), honest.with(1, "schedule"));
  assert.deepEqual(reasons(await check(source, visitor, { amends: [1n] })), honest);
});

/** A room whose second window is frozen, but whose first one never is. */
function skipping(write: (room: Room) => number): [Log, number] {
  const skipping = new Room(operator);
  const index = write(skipping);
  skipping.join(opens + 60_000, 1);
  skipping.draw(opens + 70_000);
  const entries = skipping.entries.map((entry) => parseEntry(entry));
  for (const entry of entries) if (entry.kind === "freeze") entry.window = 1n;
  return [new Log(entries.map(formatEntry)), index];
}

test("a group that is skipped while a later one is closed", async () => {
  const [all, index] = skipping((room) => room.join(opens, 17_000));
  const lines = await check(all.publish(operator), visitorAt(operator, all, index));
  assert.deepEqual(reasons(lines), ["included", "window", "unchecked", "unchecked"]);
});

test("a search that cannot rule out an earlier freeze does not accept a later one", async () => {
  const [all, index] = skipping((room) => {
    const index = room.join(opens, 1);
    for (let n = 0; n < 17_000; n++) room.write(message(opens));
    return index;
  });
  const lines = await check(all.publish(operator), visitorAt(operator, all, index));
  assert.deepEqual(reasons(lines), ["included", "not-found", "unchecked", "unchecked"]);
});

test("a search gives up, and says so", async () => {
  // The freeze comes 70 bundles of joins after the end of the window.
  const late = new Room(operator);
  const index = late.join(opens, 3);
  late.join(opens + 61_000, 18_000);
  const freeze = BigInt(late.entries.length);
  late.draw(opens + 62_000);
  late.assign();
  const all = late.log();
  const source = all.publish(operator);
  const visitor = visitorAt(operator, all, index);
  assert.deepEqual(reasons(await check(source, visitor)), ["included", "not-found", "unchecked", "unchecked"]);
  assert.deepEqual(reasons(await check(source, visitor, { freeze })), honest);
});

test("a signed size that the log does not have ends at the first file", async () => {
  const source = files.with("checkpoint", operator.sign(`${operator.origin}\n${1n << 60n}\n${"A".repeat(43)}=\n`));
  await assert.rejects(check(source, me), new RegExp(tilePath({ level: -1, index: 0n, width: 256 })));
  assert.ok(source.asked.length < 10);
});
