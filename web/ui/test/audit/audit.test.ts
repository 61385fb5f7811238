import assert from "node:assert/strict";
import { test } from "node:test";

import { audit, type Report } from "../../src/audit/audit.ts";
import type { Trust } from "../../src/audit/level.ts";
import { chainHash } from "../../src/check/beacon.ts";
import { fromUtf8, utf8 } from "../../src/check/bytes.ts";
import { formatEntry, parseEntry } from "../../src/check/entry.ts";
import type { Source } from "../../src/check/source.ts";
import { Chain, Witness } from "../support/beacon.ts";
import { bundle, Log, Operator, opens, Room, script } from "../support/room.ts";

const operator = new Operator("queue.example.com/r/show", "honest");
const nobody: Trust = { vkey: operator.vkey, beacons: [], witnesses: [] };

function broken(report: Report): string[] {
  assert.equal(report.ok, report.breaches.length === 0);
  if (!report.ok) assert.equal(report.level, 0);
  return report.breaches.map(({ check, entry }) => (entry === undefined ? check : `${check} ${entry}`));
}

test("an honest room of several bundles", async () => {
  const room = script(operator, [200, 150, 100]);
  const seen: number[] = [];
  const report = await audit(room.log().publish(operator), nobody, (done) => seen.push(done));
  assert.deepEqual(broken(report), []);
  assert.equal(report.level, 1);
  assert.equal(report.entries, room.entries.length);
  assert.deepEqual(seen, [256, 512, 768, room.entries.length]);
  assert.deepEqual([report.windows, report.draws], [3, 3]);
  assert.deepEqual([report.arrivals, report.assignments], [453, 453]);
  assert.deepEqual(broken(await audit(room.log().publish(operator), { ...nobody, vkey: undefined })), []);
});

test("an entry changed in a copy breaks the history, and its rule where there is one", async () => {
  const log = script(operator, [3, 2, 1]).log();
  const published = log.publish(operator);
  const path = `tile/entries/000.p/${log.entries.length}`;
  const changed = (i: number, text: string) => published.with(path, bundle(log.entries.with(i, utf8(text))));
  const message = log.entries.findIndex((e) => fromUtf8(e).startsWith("amend "));
  const other = fromUtf8(log.entries[message]!).replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
  assert.deepEqual(broken(await audit(changed(message, other), nobody)), ["history", `freeze ${message + 1}`]);
  assert.deepEqual(broken(await audit(changed(1, "arrive"), nobody)), ["history", "form 1"]);
  assert.deepEqual(broken(await audit(changed(1, "arrive \xff"), nobody)), ["history", "form 1"]);
  assert.deepEqual(broken(await audit(published.with(path, bundle(log.entries.slice(1))), nobody)), ["history 0"]);
});

test("a log signed by another key, or for another room", async () => {
  const room = script(operator, [3, 2, 1]);
  const other = new Operator(operator.origin, "other");
  assert.deepEqual(broken(await audit(room.log().publish(other), nobody)), ["signature"]);
  assert.deepEqual(broken(await audit(room.log().publish(other), { ...nobody, vkey: other.vkey })), ["identity"]);
  const elsewhere = new Operator("queue.example.com/r/other", "honest");
  assert.deepEqual(broken(await audit(room.log().publish(elsewhere), { ...nobody, vkey: elsewhere.vkey })), [
    "identity",
  ]);
  const unsigned = room.log().publish(operator).with("checkpoint", utf8("nothing\n"));
  assert.deepEqual(broken(await audit(unsigned, nobody)), ["signature"]);
  assert.deepEqual(broken(await audit(new Log([]).publish(operator), nobody)), ["policy"]);
});

test("an operator who tampers and signs again breaks a rule", async () => {
  const { entries } = script(operator, [4, 4, 4]);
  const index = (start: string) => entries.findIndex((e) => fromUtf8(e).startsWith(start));
  const attack = async (list: Uint8Array[]) => broken(await audit(new Log(list).publish(operator), nobody));
  const draw = parseEntry(entries[index("draw")]!);
  assert.ok(draw.kind === "draw");
  const seed = draw.seed.with(0, draw.seed[0]! ^ 1);
  assert.deepEqual(await attack(entries.with(index("draw"), formatEntry({ ...draw, seed }))), [
    `seed ${index("draw")}`,
  ]);
  assert.deepEqual(await attack(entries.toSpliced(index("freeze"), 1)), [`freeze ${index("freeze")}`]);
  const [first, second] = [entries[index("assign")]!, entries[index("assign") + 1]!];
  const swapped = entries.with(index("assign"), second).with(index("assign") + 1, first);
  assert.deepEqual(await attack(swapped), [`assign ${index("assign")}`]);
  assert.deepEqual(await attack([...entries, entries.at(-1)!]), [`end ${entries.length}`]);
});

test("levels follow from what the auditor knows", async () => {
  const chain = new Chain("somebody's", BigInt(opens / 1000 - 86_400));
  const hash = chainHash(chain.beacon);
  const witnesses = ["a.example", "b.example", "c.example"].map((name) => new Witness(name));
  const keys = witnesses.map(({ vkey }) => vkey);
  const room = new Room(operator, { witnesses: keys, quorum: 2 }, chain);
  const level = async (trust: Partial<Trust>) =>
    (await audit(room.log().publish(operator), { ...nobody, ...trust })).level;
  room.join(opens + 1000, 3);
  room.freeze(opens + 60_000);
  const drawn = room.reveal(opens + 60_000, witnesses);
  room.assign();
  assert.equal(await level({}), 1);
  assert.equal(await level({ witnesses: keys }), 1);
  assert.equal(await level({ beacons: ["00".repeat(32)] }), 1);
  assert.equal(await level({ beacons: [hash] }), 2);
  assert.equal(await level({ beacons: [hash], witnesses: keys.slice(1, 2) }), 2);
  assert.equal(await level({ beacons: [hash], witnesses: keys.slice(1) }), 3);
  room.join(drawn + 1, 2);
  room.freeze(drawn + 60_000);
  assert.equal(await level({ beacons: [hash], witnesses: keys.slice(1) }), 3);
  room.reveal(drawn + 60_000, witnesses.slice(0, 2));
  assert.equal(await level({ beacons: [hash], witnesses: keys.slice(1) }), 2);
  assert.equal(await level({ beacons: [hash], witnesses: keys }), 3);
});

test("a log that cannot be read has no verdict", async () => {
  const published = script(operator, [3, 2, 1]).log().publish(operator);
  const source: Source = { checkpoint: () => published.checkpoint(), tile: () => Promise.reject(new Error("gone")) };
  await assert.rejects(audit(source, nobody), /gone/);
});
