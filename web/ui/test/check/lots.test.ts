import assert from "node:assert/strict";
import { test } from "node:test";

import { parseEntry } from "../../src/check/entry.ts";
import { checkPlace, gather } from "../../src/check/index.ts";
import { reasons } from "../support/check.ts";
import { type Log, Operator, opens, Room, visitorAt } from "../support/room.ts";

const operator = new Operator("queue.example.com/r/lots", "lots");
const key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"; // of RFC 8032
const methods = ["club", "phone"].map((name) => ({ name, kind: "signed" as const, bits: 0, key, limit: 0 }));
const second = 1000;

/** A room with more lots than people, in slots of 20 s if there are any. Some show more after they have joined. */
function written(slots: number, people: number): { log: Log; merits: Map<number, bigint[]> } {
  const room = new Room(operator, { methods, lots: ["club", "phone"], slots });
  const joined: { index: number; time: number }[] = [];
  for (let n = 0; n < people; n++) {
    const time = opens + [5, 7, 9, 25, 45][Math.floor((5 * n) / people)]! * second;
    joined.push({ index: room.join(time, 1, n % 3 === 0 ? ["club"] : []), time });
  }
  const merits = new Map<number, bigint[]>();
  for (const [n, { index, time }] of joined.entries()) {
    if (n % 3 === 1) merits.set(index, [BigInt(room.merit(opens + 50 * second, n, time, "phone"))]);
    if (n % 9 === 1) merits.get(index)!.push(BigInt(room.merit(opens + 50 * second, n, time, "club")));
  }
  room.draw(opens + 60 * second);
  room.assign(people >> 1);
  room.join(opens + 61 * second, 5, ["phone"]);
  room.assign();
  room.draw(opens + 70 * second);
  room.assign();
  return { log: room.log(), merits };
}

for (const slots of [0, 20 * second]) {
  test(`everybody finds the place of the first of all lots, with slots of ${slots} ms`, async () => {
    const { log, merits } = written(slots, 36);
    const files = log.publish(operator);
    const freezes = log.entries.flatMap((text, index) => (parseEntry(text).kind === "freeze" ? [BigInt(index)] : []));
    let better = 0;
    for (const [index, text] of log.entries.entries()) {
      const entry = parseEntry(text);
      if (entry.kind !== "arrive") continue;
      const visitor = visitorAt(operator, log, index);
      const earlier = freezes.slice(0, Number(entry.window));
      const evidence = await gather(files, visitor, { merits: async () => merits.get(index) ?? [], earlier });
      const [, , , place] = checkPlace(visitor, evidence);
      assert.equal(place?.reason, "exact", `entry ${index}`);
      assert.equal(place.facts.own, 1 + entry.credentials.length + evidence.merits.length);
      if (!merits.has(index)) continue;

      // Without the merits the place is the same, or the record has a better one.
      const { reason, facts } = checkPlace(visitor, { ...evidence, merits: [] })[3]!;
      if (reason === "exact") continue;
      better++;
      assert.equal(reason, "more-lots");
      assert.ok(facts.position! > place.facts.position!);
      assert.equal(facts.stated, place.facts.position);
    }
    assert.ok(better > 3, `${better}`);
  });
}

test("a place among 30,000 lots in ten slots is checked in less than 1.5 s", async (t) => {
  const room = new Room(operator, { methods, lots: ["club"], slots: 6 * second });
  for (let slot = 0; slot < 10; slot++) {
    room.join(opens + 6 * second * slot, slot === 3 ? 8000 : 500);
    room.join(opens + 6 * second * slot, slot === 3 ? 4000 : 500, ["club"]);
  }
  const mine = room.join(opens + 59 * second, 1, ["club"]);
  room.draw(opens + 60 * second);
  room.assign();
  const log = room.log();
  const files = log.publish(operator);
  const visitor = visitorAt(operator, log, mine);
  const from = process.cpuUsage().user;
  const evidence = await gather(files, visitor);
  const lines = checkPlace(visitor, evidence);
  const took = (process.cpuUsage().user - from) / 1000;
  assert.deepEqual(reasons(lines), ["included", "closed", "no-beacon", "exact"]);
  assert.ok(took < 1500, `${took} ms`);
  assert.ok(files.asked.length < 50, `${files.asked.length} files`);
  t.diagnostic(`${Math.round(took)} ms, ${files.asked.length} files`);
});
