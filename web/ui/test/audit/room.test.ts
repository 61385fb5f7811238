import assert from "node:assert/strict";
import { test } from "node:test";
import { Room } from "../../src/audit/room.ts";
import { Refused } from "../../src/audit/rule.ts";
import { utf8 } from "../../src/check/bytes.ts";
import { toHex } from "../../src/check/hex.ts";
import { fairness, type RoomVector } from "../support/vectors.ts";

/** The name of the rule that refuses something. */
function refusedBy(take: () => void): string {
  try {
    take();
  } catch (failure) {
    if (failure instanceof Refused) return failure.rule;
    throw failure;
  }
  return "none";
}

/**
 * Applies every entry, and before each the ones that break a rule at its place: a refused entry must change nothing.
 */
function replay({ entries, violations }: RoomVector): Room {
  let room: Room | undefined;
  for (let i = 0; i <= entries.length; i++) {
    for (const { entry, rule } of violations.filter(({ after }) => after === i)) {
      const open = room;
      assert.equal(
        refusedBy(() => (open ? open.take(utf8(entry)) : new Room(utf8(entry)))),
        rule,
        `after ${i}: ${entry}`,
      );
    }
    if (i === entries.length) break;
    if (room) room.take(utf8(entries[i]!));
    else room = new Room(utf8(entries[i]!));
  }
  return room!;
}

for (const name of [
  "room",
  "witnessed_room",
  "lanes_room",
  "seats_room",
  "door_room",
  "turns_room",
  "slots_room",
] as const) {
  test(`${name} of the vectors, with every violation in its place`, () => {
    const vector = fairness[name];
    const room = replay(vector);
    for (const { name, line } of room.lanes.all) {
      assert.deepEqual(
        line
          .map((arrival) => arrival?.ticket ?? "")
          .join(" ")
          .trimEnd(),
        vector.lines[name]!.join(" "),
        name,
      );
    }
    assert.equal(toHex(room.tree.root()), vector.root);
    assert.equal(room.draws.draws.length, vector.draws.length);
    assert.ok(vector.violations.length > 5);
  });

  test(`${name} of the vectors, a missing or repeated entry is detected`, () => {
    const entries = fairness[name].entries.map(utf8);
    for (const [i, text] of fairness[name].entries.entries()) {
      if (!/^(?:amend|beat|tell) /.test(text)) {
        assert.notEqual(refusalOf(entries.toSpliced(i, 0, entries[i]!)), "none", `${text} twice`);
      }
      if (/^(?:room|arrive|freeze|draw) /.test(text)) {
        assert.notEqual(refusalOf(entries.toSpliced(i, 1)), "none", `without ${text}`);
      }
    }
  });
}

function refusalOf(entries: Uint8Array[]): string {
  return refusedBy(() => {
    const room = new Room(entries[0]!);
    for (const entry of entries.slice(1)) room.take(entry);
  });
}
