import assert from "node:assert/strict";
import { test } from "node:test";
import { sha256 } from "@noble/hashes/sha2.js";

import { utf8 } from "../../src/check/bytes.ts";
import { alphaOf } from "../../src/check/draw.ts";
import { type Entry, type EntryOf, formatEntry, type Kind, parseEntry } from "../../src/check/entry.ts";
import { gather, type Visitor } from "../../src/check/evidence.ts";
import { fromHex } from "../../src/check/hex.ts";
import { checkPlace } from "../../src/check/place.ts";
import { check, honest, reasons, reds } from "../support/check.ts";
import { Random } from "../support/random.ts";
import { type Files, Log, message, Operator, opens, Room, script, visitorAt } from "../support/room.ts";
import { fairness } from "../support/vectors.ts";
import { prove } from "../support/vrf.ts";

const operator = new Operator("queue.example.com/r/place", "place");
const room = script(operator, [7, 12, 5]);
const log = room.log();
const files = log.publish(operator);
const parsed = room.entries.map(parseEntry);

/** The index of the nth entry of a kind (from 0) that satisfies a condition. */
function find<K extends Kind>(kind: K, where: (entry: EntryOf<K>) => boolean = () => true): number {
  const index = parsed.findIndex((entry) => entry.kind === kind && where(entry as EntryOf<K>));
  assert.ok(index >= 0, kind);
  return index;
}

// The visitor of the tests below: in the middle of window 1.
const mine = find("arrive", (e) => e.window === 1n && e.seq === 4);
const me = visitorAt(operator, log, mine);
const freezeAt = find("freeze", (e) => e.window === 1n);
const drawAt = find("draw", (e) => e.window === 1n);
const firstAt = find("assign", (e) => e.window === 1n);
const placeAt = find("assign", (e) => e.ticket === me.ticket);
const placeOf = (ticket: string): bigint =>
  (parsed[find("assign", (e) => e.ticket === ticket)] as EntryOf<"assign">).position;

test("every visitor of an honest room gets four good lines", async () => {
  for (const [index, entry] of parsed.entries()) {
    if (entry.kind !== "arrive") continue;
    const visitor = { ...visitorAt(operator, log, index), shown: placeOf(entry.ticket) };
    const lines = await check(files, visitor);
    assert.deepEqual(reasons(lines), honest, `entry ${index}`);
    assert.deepEqual(
      lines.map(({ status }) => status),
      ["green", "green", "amber", "green"],
    );
    assert.equal(lines[3]!.facts.position, placeOf(entry.ticket));
    assert.equal(lines[0]!.facts.index, BigInt(index));
  }
});

test("every visitor of the room of the vectors gets four good lines", async () => {
  const { entries, lines } = fairness.room;
  const line = lines.general!;
  const owner = new Operator("queue.example.com/r/vectors", "", sha256(utf8("log key of the vectors")));
  assert.ok(entries[0]!.includes(owner.vkey));
  const vectors = new Log(entries.map((text) => utf8(text)));
  const published = vectors.publish(owner);
  const amends = [25n]; // the amendment of the schedule
  const earlier = [10n]; // the first freeze
  for (const [i, ticket] of line.entries()) {
    const index = entries.findIndex((text) => text.startsWith("arrive ") && text.includes(ticket));
    const visitor = { ...visitorAt(owner, vectors, index), shown: BigInt(i + 1) };
    const isLate = index > 25;
    const lines = await check(published, visitor, isLate ? { amends, earlier } : {});
    assert.deepEqual(reasons(lines), honest, `place ${i + 1}`);
    assert.equal(lines[3]!.facts.position, BigInt(i + 1));
    // Without the amendment the end of the window is unknown.
    if (isLate)
      assert.deepEqual(reasons(await check(published, visitor)), ["included", "schedule", "no-beacon", "exact"]);
  }
  const { ticket, secret } = fairness.tickets[1]!;
  const visitor = { ...visitorAt(owner, vectors, 1), ticket: { secret: fromHex(secret) }, shown: 3n };
  assert.equal(visitorAt(owner, vectors, 1).ticket, ticket);
  assert.deepEqual(reasons(await check(published, visitor)), honest);
});

test("without a given key, the log's own is used, and the facts say so", async () => {
  const { vkey: _, ...without } = me;
  const lines = await check(files, without);
  assert.deepEqual(reasons(lines), honest);
  assert.equal(lines[0]!.facts.keyFrom, "log");
  assert.equal((await check(files, me))[0]!.facts.keyFrom, "visitor");
});

test("hints change only the search, not the result", async () => {
  const right = { freeze: BigInt(freezeAt), place: BigInt(placeAt), earlier: [BigInt(find("freeze"))] };
  const want = await check(files, me);
  assert.deepEqual(await check(files, me, right), want);
  for (let index = -1n; index <= BigInt(log.entries.length); index++) {
    assert.deepEqual(await check(files, me, { freeze: index, place: index }), want, `${index}`);
  }
});

test("entries of the vectors that break the rules of a draw make one line red", async () => {
  const { entries, lines: places, violations } = fairness.room;
  const line = places.general!;
  const owner = new Operator("queue.example.com/r/vectors", "", sha256(utf8("log key of the vectors")));
  // A visitor cannot notice that a freeze counts one lot too few, but then the proof is for another
  // freeze.
  const lines = {
    freeze: ["group", "draw"],
    proof: ["draw"],
    draw: ["draw"],
    seed: ["draw"],
    assign: ["place"],
    lane: ["place"],
  };
  const tried = new Set<string>();
  for (const { after, entry, rule } of violations) {
    if (!/^(?:freeze|draw|assign) /.test(entry)) continue;
    const broken = new Log(entries.with(after, entry).map((text) => utf8(text)));
    // The visitor who is first in the window.
    const ticket = after < 20 ? line[0]! : line[8]!;
    const index = entries.findIndex((text) => text.startsWith("arrive ") && text.includes(ticket));
    const red = reds(await check(broken.publish(owner), visitorAt(owner, broken, index), { amends: [25n] }));
    assert.ok(red.length === 1 && lines[rule as keyof typeof lines].includes(red[0]!), `${rule} at ${after}: ${red}`);
    tried.add(rule);
  }
  assert.deepEqual([...tried].sort(), Object.keys(lines).sort());
});

test("at every size of the published log", async () => {
  const want = (size: number): string[] => {
    if (size <= mine) return ["behind", "unchecked", "unchecked", "unchecked"];
    if (size <= freezeAt) return ["included", "pending", "unchecked", "unchecked"];
    if (size <= drawAt) return ["included", "closed", "pending", "unchecked"];
    return ["included", "closed", "no-beacon", size <= placeAt ? "pending" : "exact"];
  };
  for (let size = 1; size <= log.entries.length; size++) {
    const lines = await check(new Log(log.entries.slice(0, size)).publish(operator), me);
    assert.deepEqual(reasons(lines), want(size), `${size}`);
    assert.equal(lines[3]!.facts.position, size > firstAt ? placeOf(me.ticket) : undefined);
  }
  // A receipt for a later tree than the published one, which already has the arrival.
  const later = visitorAt(operator, log, mine, mine + 5);
  const lines = await check(new Log(log.entries.slice(0, mine + 3)).publish(operator), later);
  assert.deepEqual(reasons(lines).slice(0, 2), ["behind", "pending"]);
});

/** What an operator does to a transcript before publishing and signing it. */
function tampered(change: (entries: Entry[]) => void): Files {
  const entries = parsed.map((entry) => structuredClone(entry));
  change(entries);
  return new Log(entries.map(formatEntry)).publish(operator);
}

function set<K extends Kind>(index: number, kind: K, change: Partial<EntryOf<K>>): (entries: Entry[]) => void {
  return (entries) => {
    assert.equal(entries[index]!.kind, kind);
    Object.assign(entries[index]!, change);
  };
}

const freeze = parsed[freezeAt] as EntryOf<"freeze">;
const otherFreeze = parsed[find("freeze")] as EntryOf<"freeze">;
const draw = parsed[drawAt] as EntryOf<"draw">;
const place = parsed[placeAt] as EntryOf<"assign">;
const flipped = (bytes: Uint8Array): Uint8Array => bytes.map((byte, i) => (i === bytes.length - 1 ? byte ^ 1 : byte));

/** A wrong freeze, whose proof and draw follow from it. */
function refrozen(change: Partial<EntryOf<"freeze">>): (entries: Entry[]) => void {
  const wrong = { ...freeze, ...change };
  const proof = prove(operator.vrfSecret, alphaOf(sha256(log.entries[0]!), wrong), 99n);
  return set(freezeAt, "freeze", { ...wrong, proof });
}

const attacks: [name: string, change: (entries: Entry[]) => void, want: string[]][] = [
  [
    "another visitor's earlier arrival",
    set(2, "arrive", { ticket: me.ticket }),
    ["history", "root", "unchecked", "unchecked"],
  ],
  [
    "my arrival given to another",
    set(mine, "arrive", { ticket: place.ticket.replace(/^./, "0") }),
    ["history", "unchecked", "unchecked", "unchecked"],
  ],
  ["my arrival left out", (e) => e.splice(mine, 1), ["history", "unchecked", "unchecked", "unchecked"]],
  [
    "an arrival slipped in before mine",
    (e) => e.splice(mine, 0, e[mine - 1]!),
    ["history", "unchecked", "unchecked", "unchecked"],
  ],
  [
    "an arrival slipped in after mine",
    (e) => e.splice(mine + 1, 0, e[mine]!),
    ["included", "size", "unchecked", "unchecked"],
  ],
  ["an arrival after mine left out", (e) => e.splice(mine + 1, 1), ["included", "size", "unchecked", "unchecked"]],
  [
    "an arrival after mine given to another",
    set(mine + 1, "arrive", { ticket: me.ticket }),
    ["included", "root", "unchecked", "unchecked"],
  ],
  [
    "another VRF key",
    set(0, "room", { vrfKey: flipped((parsed[0] as EntryOf<"room">).vrfKey) }),
    ["history", "root", "unchecked", "unchecked"],
  ],
  [
    "another log key",
    set(0, "room", { logKey: new Operator(operator.origin, "x").vkey }),
    ["room", "unchecked", "unchecked", "unchecked"],
  ],
  [
    "another origin",
    set(0, "room", { origin: "queue.example.com/r", logKey: "queue.example.com/r+a" }),
    ["room", "unchecked", "unchecked", "unchecked"],
  ],
  ["a policy against the rules", set(0, "room", { claim: 1 }), ["room", "unchecked", "unchecked", "unchecked"]],
  [
    "a beacon whose key is no point",
    set(0, "room", {
      beacon: { id: "test", key: new Uint8Array(96), genesis: 0n, period: 3, group: new Uint8Array(32), margin: 5000 },
    }),
    ["room", "unchecked", "unchecked", "unchecked"],
  ],
  ["no policy", (e) => e.splice(0, 1, { kind: "end", time: 5 }), ["room", "unchecked", "unchecked", "unchecked"]],

  ["no freeze", (e) => e.splice(freezeAt, 1), ["included", "window", "unchecked", "unchecked"]],
  ["no freeze from mine on", (e) => e.splice(freezeAt), ["included", "pending", "unchecked", "unchecked"]],
  [
    "the freeze of a later window",
    set(freezeAt, "freeze", { window: 2n }),
    ["included", "window", "unchecked", "unchecked"],
  ],
  [
    "a freeze earlier than my arrival",
    set(freezeAt, "freeze", { time: opens }),
    ["included", "early", "unchecked", "unchecked"],
  ],
  [
    "a freeze before the window is over",
    refrozen({ time: opens + 69_500 }),
    ["included", "schedule", "no-beacon", "exact"],
  ],
  ["a freeze of another size", refrozen({ size: freeze.size - 1n }), ["included", "size", "unchecked", "unchecked"]],
  ["a freeze of fewer people than me", refrozen({ lots: [4] }), ["included", "lots", "unchecked", "unchecked"]],
  [
    "a freeze of more people than entries",
    refrozen({ lots: [freezeAt] }),
    ["included", "lots", "unchecked", "unchecked"],
  ],
  ["a freeze of another history", refrozen({ root: otherFreeze.root }), ["included", "root", "unchecked", "unchecked"]],
  [
    "a freeze of one more, drawn as before",
    set(freezeAt, "freeze", { lots: [freeze.lots[0]! + 1] }),
    ["included", "closed", "proof", "unchecked"],
  ],
  [
    "a freeze of one more, with its proof",
    refrozen({ lots: [freeze.lots[0]! + 1] }),
    ["included", "closed", "seed", "unchecked"],
  ],
  [
    "a freeze with a beacon round",
    set(freezeAt, "freeze", { round: 3n }),
    ["included", "closed", "round", "unchecked"],
  ],
  [
    "a proof with a flipped bit",
    set(freezeAt, "freeze", { proof: flipped(freeze.proof) }),
    ["included", "closed", "proof", "unchecked"],
  ],
  [
    "a proof of another window",
    set(freezeAt, "freeze", { proof: otherFreeze.proof }),
    ["included", "closed", "proof", "unchecked"],
  ],

  ["no draw", (e) => e.splice(drawAt, 1), ["included", "closed", "draw", "unchecked"]],
  ["no draw and no places", (e) => e.splice(drawAt), ["included", "closed", "pending", "unchecked"]],
  ["the draw of a later window", set(drawAt, "draw", { window: 2n }), ["included", "closed", "window", "unchecked"]],
  [
    "a draw earlier than the freeze",
    set(drawAt, "draw", { time: opens }),
    ["included", "closed", "early", "unchecked"],
  ],
  ["another seed", set(drawAt, "draw", { seed: flipped(draw.seed) }), ["included", "closed", "seed", "unchecked"]],
  [
    "a beacon signature",
    set(drawAt, "draw", { signature: Uint8Array.of(1) }),
    ["included", "closed", "beacon", "unchecked"],
  ],

  [
    "my place given to another",
    set(placeAt, "assign", { ticket: place.ticket.replace(/^./, "0") }),
    ["included", "closed", "no-beacon", "ticket"],
  ],
  ["my place left out", (e) => e.splice(placeAt, 1), ["included", "closed", "no-beacon", "position"]],
  [
    "my place of another lane",
    set(placeAt, "assign", { lane: "vip" }),
    ["included", "closed", "no-beacon", "position"],
  ],
  [
    "my place of another window",
    set(placeAt, "assign", { window: 0n }),
    ["included", "closed", "no-beacon", "position"],
  ],
  [
    "the first place of a later window",
    set(firstAt, "assign", { window: 2n }),
    ["included", "closed", "no-beacon", "places"],
  ],
  ["no place of mine", (e) => e.splice(firstAt), ["included", "closed", "no-beacon", "pending"]],
];

test("an operator who tampers and signs again", async (t) => {
  for (const [name, change, want] of attacks) {
    await t.test(name, async () => {
      const source = tampered(change);
      for (const visitor of [me, { ...me, shown: place.position }]) {
        for (const hints of [{}, { freeze: BigInt(freezeAt), place: BigInt(placeAt) }]) {
          const lines = await check(source, visitor, hints);
          assert.deepEqual(reasons(lines), want);
        }
      }
    });
  }
});

test("two places swapped", async () => {
  const other = placeAt === firstAt ? placeAt + 1 : firstAt;
  const { ticket: theirs, position: swapped } = parsed[other] as EntryOf<"assign">;
  const swap = tampered((entries) => {
    set(placeAt, "assign", { ticket: theirs })(entries);
    set(other, "assign", { ticket: me.ticket })(entries);
  });
  assert.deepEqual(reasons(await check(swap, me)), honest.with(3, "ticket"));
  // The server names the other place as the ticket's, and shows it.
  assert.deepEqual(reasons(await check(swap, me, { place: BigInt(other) })), honest.with(3, "ticket"));
  assert.deepEqual(reasons(await check(swap, { ...me, shown: swapped })), honest.with(3, "shown"));
  // Evidence made up for that place does not help either.
  const evidence = await gather(swap, me);
  const { place } = await gather(
    swap,
    visitorAt(
      operator,
      log,
      find("arrive", (e) => e.ticket === theirs),
    ),
  );
  assert.deepEqual(reasons(checkPlace(me, { ...evidence, place: place! })), honest.with(3, "position"));
});

test("the first place of another lane", async () => {
  const source = tampered(set(firstAt, "assign", { lane: "vip" }));
  const reason = reasons(await check(source, me))[3]!; // by where my place is, the next one is another ticket's, or missing
  assert.ok(["ticket", "position"].includes(reason), reason);
  assert.deepEqual(reasons(await check(source, { ...me, shown: place.position })), honest.with(3, "shown"));
});

test("a window that begins at another place", async () => {
  const shifted = (by: bigint): Files =>
    tampered((entries) => {
      for (const entry of entries) if (entry.kind === "assign" && entry.window === 1n) entry.position += by;
    });
  const earlier = [BigInt(find("freeze"))];
  const one = shifted(1n);
  assert.deepEqual(reasons(await check(one, me, { earlier })), honest.with(3, "first"));
  // Without the earlier freezes, the check only notices impossible numbers of people.
  assert.deepEqual(reasons(await check(one, me)), honest);
  assert.deepEqual(reasons(await check(shifted(100n), me)), honest.with(3, "first"));
  // Earlier freezes must be freezes of earlier windows, each only once.
  for (const wrong of [[], [...earlier, ...earlier], [BigInt(freezeAt)], [1n]]) {
    assert.deepEqual(reasons(await check(files, me, { earlier: wrong })), honest.with(3, "first"), `${wrong}`);
  }
  // Even if the sum is right.
  const late = visitorAt(
    operator,
    log,
    find("arrive", (e) => e.window === 1n && e.seq === 6),
  );
  const twice = [...earlier, ...earlier];
  assert.deepEqual(reasons(await check(shifted(7n), late)), honest);
  assert.deepEqual(reasons(await check(shifted(7n), late, { earlier: twice })), honest.with(3, "first"));
  const own = [...earlier, BigInt(freezeAt)];
  assert.deepEqual(reasons(await check(shifted(12n), late, { earlier: own })), honest.with(3, "first"));
});

test("the first window is known to begin at 1 without other evidence", async () => {
  const quiet = new Room(operator);
  for (let n = 0; n < 5; n++) quiet.write(message(opens));
  const index = quiet.join(opens, 2);
  quiet.draw(opens + 60_000);
  quiet.assign();
  const entries = quiet.entries.map(parseEntry);
  for (const entry of entries) if (entry.kind === "assign") entry.position += 1n;
  const moved = new Log(entries.map(formatEntry));
  const lines = await check(moved.publish(operator), visitorAt(operator, moved, index));
  assert.deepEqual(reasons(lines), honest.with(3, "first"));
});

test("a shown position that is not my place", async () => {
  const lines = await check(files, { ...me, shown: place.position + 1n });
  assert.deepEqual(reasons(lines), honest.with(3, "shown"));
  assert.equal(lines[3]!.facts.position, place.position);
});

test("keys, receipts and tickets that are not mine", async () => {
  const rival = new Operator(operator.origin, "rival");
  const other = visitorAt(operator, log, mine - 1);
  const elsewhere = new Operator("queue.example.com/r/other", "place");
  const text = Buffer.from(me.receipt).toString();
  const rest = ["unchecked", "unchecked", "unchecked"];
  const cases: [string, Files, Visitor, string[]][] = [
    ["the log signed by another key", log.publish(rival), me, ["checkpoint", ...rest]],
    ["a key of another room", files, { ...me, vkey: elsewhere.vkey }, ["key", ...rest]],
    ["a malformed key", files, { ...me, vkey: me.vkey!.slice(1) }, ["key", ...rest]],
    ["a rival's key", files, { ...me, vkey: rival.vkey }, ["checkpoint", ...rest]],
    ["another room", files, { ...me, origin: elsewhere.origin }, ["key", ...rest]],
    ["another's receipt", files, { ...me, receipt: other.receipt }, ["ticket", ...rest]],
    ["another's ticket", files, { ...me, ticket: other.ticket }, ["ticket", ...rest]],
    ["another's secret", files, { ...me, ticket: { secret: Room.secret(0) } }, ["ticket", ...rest]],
    [
      "a receipt signed by another key",
      files,
      { ...me, receipt: log.receipt(rival, mine) },
      ["receipt", "closed", "no-beacon", "exact"],
    ],
    [
      "a receipt with a wrong path",
      files,
      { ...me, receipt: utf8(text.replace(/(index \d+\n)./, "$1/")) },
      ["receipt-arrival", "closed", "no-beacon", "exact"],
    ],
    ["a malformed receipt", files, { ...me, receipt: utf8(`${text} `) }, ["receipt", "closed", "no-beacon", "exact"]],
    ["no receipt", files, { ...me, receipt: new Uint8Array(0) }, ["receipt", ...rest]],
  ];
  for (const [name, source, visitor, want] of cases) {
    assert.deepEqual(reasons(await check(source, visitor)), want, name);
  }
  const secret = { secret: Room.secret(parsed.slice(0, mine).filter((entry) => entry.kind === "arrive").length) };
  assert.deepEqual(reasons(await check(files, { ...me, ticket: secret })), honest);
});

test("a receipt for another history of the same operator shows the fork", async () => {
  const fork = new Log(log.entries.with(2, log.entries[3]!));
  const lines = await check(files, visitorAt(operator, fork, mine));
  assert.deepEqual(reasons(lines), ["history", "closed", "no-beacon", "exact"]);
});

test("an empty log and a malformed checkpoint", async () => {
  const rest = ["unchecked", "unchecked", "unchecked"];
  assert.deepEqual(reasons(await check(new Log([]).publish(operator), me)), ["room", ...rest]);
  const { vkey: _, ...without } = me;
  for (const content of ["", "<!doctype html>\n\n", "\n\n\u2014 x AAAAAAA=\n"]) {
    const source = files.with("checkpoint", utf8(content));
    assert.deepEqual(reasons(await check(source, me)), ["checkpoint", ...rest]);
    assert.deepEqual(reds(await check(source, without)), ["record"]);
  }
});

test("a source that fails says nothing about the record", async () => {
  for (const path of new Set(files.asked)) {
    const broken = files.with("checkpoint", files.map.get("checkpoint")!);
    broken.map.delete(path);
    await assert.rejects(check(broken, me), new RegExp(`${path}: not found`));
  }
});

test("a server that changes any byte it sends makes a line red, or nothing happens", async () => {
  const want = await check(files, me);
  const random = new Random(5);
  let noticed = 0;
  for (const [path, content] of files.map) {
    for (let n = 0; n < 150; n++) {
      const at = random.below(content.length);
      const bad = content.map((byte, i) => (i === at ? byte ^ (1 << random.below(8)) : byte));
      const lines = await check(files.with(path, bad), { ...me, shown: place.position });
      const same = JSON.stringify(reasons(lines)) === JSON.stringify(reasons(want));
      if (same) assert.deepEqual(lines, want, path);
      else if (reds(lines).length > 0) noticed++;
      // Amber if the tampered entry only hides what the check looks for.
      else assert.notEqual(lines[3]!.status, "green", `${path} at ${at}: ${reasons(lines)}`);
    }
  }
  assert.ok(noticed > 100, `${noticed}`);
});

test("files of the wrong length make a line red", async () => {
  for (const [path, content] of files.map) {
    for (const bad of [
      content.subarray(1),
      content.subarray(0, -1),
      new Uint8Array(0),
      Uint8Array.from([...content, 0]),
    ]) {
      const lines = await check(files.with(path, bad), me);
      if (files.asked.includes(path)) assert.equal(reds(lines).length, 1, `${path}: ${reasons(lines)}`);
    }
  }
});
