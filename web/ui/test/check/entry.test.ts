import assert from "node:assert/strict";
import { test } from "node:test";

import { utf8 } from "../../src/check/bytes.ts";
import { formatEntry, parseEntry } from "../../src/check/entry.ts";
import { FormatError } from "../../src/check/errors.ts";
import { policyProblem } from "../../src/check/policy.ts";
import { mangled } from "../support/random.ts";
import { fairness } from "../support/vectors.ts";

test("entries of the vectors are written as they were read", () => {
  const kinds = new Set<string>();
  for (const text of [...fairness.entries, ...fairness.room.entries, ...fairness.witnessed_room.entries]) {
    const entry = parseEntry(utf8(text));
    kinds.add(entry.kind);
    assert.equal(entry.kind, text.split(" ")[0]);
    assert.equal(Buffer.from(formatEntry(entry)).toString(), text);
  }
  assert.equal(kinds.size, 15);
});

test("texts of the vectors that are not entries", () => {
  for (const text of fairness.not_entries) assert.throws(() => parseEntry(utf8(text)), FormatError, text);
  assert.ok(fairness.not_entries.length > 0);
});

test("a mangled entry is refused, or another entry in canonical form", () => {
  for (const text of fairness.entries) {
    for (const other of mangled(utf8(text))) {
      try {
        assert.deepEqual(formatEntry(parseEntry(other)), other);
      } catch (failure) {
        assert.ok(failure instanceof FormatError, Buffer.from(other).toString());
      }
    }
  }
});

test("fields have the values of the text", () => {
  assert.deepEqual(
    parseEntry(utf8("arrive 5 9223372036854775807 4294967295 0badcafe-0123-8123-8123-456789abcdef a-9")),
    {
      kind: "arrive",
      time: 5,
      window: (1n << 63n) - 1n,
      seq: 2 ** 32 - 1,
      ticket: "0badcafe-0123-8123-8123-456789abcdef",
      lane: "a-9",
      credentials: [],
      party: [],
    },
  );
  assert.deepEqual(parseEntry(utf8("amend 5 windows 900 100 50 200 60")), {
    kind: "amend",
    time: 5,
    change: "windows",
    closes: 900,
    windows: [
      { from: 100, length: 50 },
      { from: 200, length: 60 },
    ],
  });
  assert.deepEqual(parseEntry(utf8("amend 5 outflow 10 20")), {
    kind: "amend",
    time: 5,
    change: "outflow",
    perMinute: 10,
    maxActive: 20,
  });
});

test("names of object properties are not kinds or changes", () => {
  for (const name of ["constructor", "__proto__", "toString", "hasOwnProperty"]) {
    assert.throws(() => parseEntry(utf8(`${name} 5`)), FormatError);
    assert.throws(() => parseEntry(utf8(`amend 5 ${name}`)), FormatError);
  }
});

test("an entry has at most 65,535 bytes", () => {
  const text = fairness.room.entries[0]!;
  const most = text.replace("origin ", `origin ${"e".repeat(65_535 - text.length)}`);
  assert.equal(parseEntry(utf8(most)).kind, "room");
  assert.throws(() => parseEntry(utf8(most.replace("origin ", "origin e"))), FormatError);
  assert.throws(() => parseEntry(Uint8Array.of(0x65, 0x6e, 0x64, 0x20, 0xff)), FormatError);
});

test("policies of the vectors", () => {
  for (const { entries, violations } of [fairness.room, fairness.witnessed_room]) {
    const room = parseEntry(utf8(entries[0]!));
    assert.ok(room.kind === "room" && policyProblem(room) === undefined);
    const broken = violations.filter(({ after, entry }) => after === 0 && entry.startsWith("room"));
    for (const { entry } of broken) {
      const bad = parseEntry(utf8(entry));
      assert.ok(bad.kind === "room" && policyProblem(bad) !== undefined, entry);
    }
    assert.ok(broken.length > 0);
  }
});

test("every rule of a policy", () => {
  const room = parseEntry(utf8(fairness.room.entries[0]!));
  assert.ok(room.kind === "room");
  const never = 2 ** 53 - 1;
  const rule = { from: room.opens, length: 100 };
  const bad: [string, Partial<typeof room>][] = [
    ["origin", { origin: "a".repeat(256), logKey: `${"a".repeat(256)}+` }],
    ["origin", { origin: "a+b", logKey: "a+b+c" }],
    ["log", { logKey: "other+key" }],
    ["log", { logKey: `${room.origin}+${"a".repeat(1024)}` }],
    ["vrf", { vrfKey: Uint8Array.from([4, ...room.vrfKey.subarray(1)]) }],
    [
      "beacon",
      {
        beacon: {
          id: "test",
          key: new Uint8Array(96),
          genesis: 0n,
          period: 3,
          group: new Uint8Array(32),
          margin: 5000,
        },
      },
    ],
    ["lane", { lanes: [] }],
    ["lane", { lanes: [{ name: "vip", weight: 1, needs: ["task"] }] }],
    ["method", { methods: [{ name: "task", kind: "work", bits: 5, key: "", limit: 0 }] }], // there is no beacon
    ["lane", { lanes: [{ name: "vip", weight: 0, needs: [] }] }],
    ["lane", { lanes: [{ name: "vip", weight: 101, needs: [] }] }],
    [
      "lane",
      {
        lanes: [
          { name: "vip", weight: 1, needs: [] },
          { name: "vip", weight: 2, needs: [] },
        ],
      },
    ],
    ["lane", { lanes: Array.from({ length: 17 }, (_, i) => ({ name: `lane-${i}`, weight: 1, needs: [] })) }],
    ["opens", { created: room.opens + 1 }],
    ["starts", { starts: room.opens - 1 }],
    ["closes", { closes: room.opens }],
    ["window", { windows: [] }],
    ["window", { windows: [{ ...rule, from: room.opens + 1 }] }],
    ["window", { windows: [{ ...rule, length: 99 }] }],
    ["window", { windows: [{ ...rule, length: 2_678_400_001 }] }],
    ["window", { windows: [rule, rule] }],
    ["window", { windows: [rule, { ...rule, from: room.closes }] }],
    ["window", { windows: Array.from({ length: 1001 }, (_, i) => ({ ...rule, from: room.opens + i })) }],
    ["notice", { notice: 9999 }],
    ["notice", { notice: 86_400_001 }],
    ["outflow", { perMinute: 0 }],
    ["outflow", { perMinute: 10_000_001 }],
    ["claim", { claim: 999 }],
    ["claim", { claim: 86_400_001 }],
    ["extend", { extend: 999 }],
    ["extend", { extend: 86_400_001 }],
    ["grace", { grace: 999 }],
    ["grace", { grace: 86_400_001 }],
    ["session", { session: 999 }],
    ["session", { session: 604_800_001 }],
  ];
  for (const [field, change] of bad) assert.equal(policyProblem({ ...room, ...change }), field, field);
  const good: Partial<typeof room>[] = [
    { closes: never },
    { maxActive: 0 },
    { extend: 1000 },
    { extend: 86_400_000 },
    { perMinute: 1, claim: 1000, session: 604_800_000 },
    { windows: [{ ...rule, length: 2_678_400_000 }] },
    { windows: Array.from({ length: 1000 }, (_, i) => ({ ...rule, from: room.opens + i })) },
  ];
  for (const change of good) assert.equal(policyProblem({ ...room, ...change }), undefined);
});

test("every rule about beacon and witnesses", () => {
  const room = parseEntry(utf8(fairness.witnessed_room.entries[0]!));
  assert.ok(room.kind === "room" && room.beacon);
  const { beacon, witnesses } = room;
  const another = (n: number): string => `w${n}.example.org+00000000+key${n}`;
  const bad: [string, Partial<typeof room>][] = [
    ["beacon", { beacon: { ...beacon, id: "a".repeat(65) } }],
    ["beacon", { beacon: { ...beacon, genesis: 2n ** 42n + 1n } }],
    ["beacon", { beacon: { ...beacon, period: 0 } }],
    ["beacon", { beacon: { ...beacon, period: 2_678_401 } }],
    ["beacon", { beacon: { ...beacon, margin: 4999 } }],
    ["beacon", { beacon: { ...beacon, margin: 3_600_001 } }],
    ["beacon", { beacon: { ...beacon, key: new Uint8Array(96) } }],
    ["witnesses", { beacon: undefined }],
    ["witnesses", { quorum: 0 }],
    ["witnesses", { quorum: 1 }],
    ["witnesses", { quorum: 3 }],
    ["witnesses", { witnesses: [], quorum: 1 }],
    ["witnesses", { witnesses: [...witnesses, "c.example.org"] }],
    ["witnesses", { witnesses: [...witnesses, "c.example.org+00000000"] }],
    [
      "witnesses",
      { witnesses: [...witnesses, `c.example.org+00000000+${witnesses[0]!.split("+").slice(2).join("+")}`] },
    ],
    ["witnesses", { witnesses: Array.from({ length: 17 }, (_, i) => another(i)), quorum: 17 }],
  ];
  for (const [field, change] of bad) assert.equal(policyProblem({ ...room, ...change }), field, field);
  const good: Partial<typeof room>[] = [
    { beacon: { ...beacon, id: "a".repeat(64), genesis: 2n ** 42n, period: 2_678_400, margin: 3_600_000 } },
    { beacon: { ...beacon, genesis: 0n, period: 1, margin: 5000 } },
    { witnesses: [], quorum: 0 },
    { beacon: undefined, witnesses: [], quorum: 0 },
    { witnesses: Array.from({ length: 16 }, (_, i) => another(i)), quorum: 16 },
    { witnesses: [...witnesses, "a+b+c+d", "a+b+c+e"], quorum: 3 },
  ];
  for (const change of good) assert.equal(policyProblem({ ...room, ...change }), undefined);
});
