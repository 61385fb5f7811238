import assert from "node:assert/strict";
import { test } from "node:test";

import { concat, utf8 } from "../../src/check/bytes.ts";
import { type Checkpoint, parseCheckpoint } from "../../src/check/checkpoint.ts";
import { cosignedAt, cosigners } from "../../src/check/cosignature.ts";
import { FormatError } from "../../src/check/errors.ts";
import { leafHash } from "../../src/check/merkle.ts";
import { parseKey, parseNote, parseWitnessKey } from "../../src/check/note.ts";
import { Witness } from "../support/beacon.ts";
import { cosignatures } from "../support/vectors.ts";

test("cosignatures of public witnesses", () => {
  let seen = 0;
  for (const { checkpoint, witnesses } of cosignatures.vectors) {
    const { text, signatures } = parseNote(utf8(checkpoint));
    const head = parseCheckpoint(text);
    for (const [vkey, time] of Object.entries(witnesses)) {
      const key = parseWitnessKey(vkey);
      const { keyId, signature } = signatures.find(({ name }) => name === key.name)!;
      const bytes = concat(keyId, signature);
      assert.equal(cosignedAt(key, head, bytes), BigInt(time));
      assert.equal(cosignedAt(key, { ...head, size: head.size + 1n }, bytes), undefined);
      for (let i = 0; i < bytes.length; i++) {
        assert.equal(cosignedAt(key, head, bytes.with(i, bytes[i]! ^ 1)), undefined, `byte ${i}`);
      }
      seen++;
    }
  }
  assert.ok(seen >= 3, `${seen}`);
});

const [a, b, c] = [new Witness("a.example.org"), new Witness("b.example.org/w"), new Witness("c.example.org")];
const witnesses = [a.vkey, b.vkey, c.vkey];
const head: Checkpoint = { origin: "queue.example.com/r/x", size: 5n, root: leafHash(utf8("x")) };

test("cosignatures are in order, one of each, in time, and all right", () => {
  const [ofA, ofB, ofC] = [a.cosign(head, 100n), b.cosign(head, 101n), c.cosign(head, 99n)];
  const cases: [string, Uint8Array[], string[] | undefined][] = [
    ["none", [], []],
    ["all", [ofA, ofB, ofC], ["a.example.org", "b.example.org/w", "c.example.org"]],
    ["some", [ofA, ofC], ["a.example.org", "c.example.org"]],
    ["one", [ofB], ["b.example.org/w"]],
    ["another order", [ofB, ofA], undefined],
    ["twice", [ofA, ofA], undefined],
    ["two of one witness", [ofA, a.cosign(head, 99n)], undefined],
    ["late", [ofA, b.cosign(head, 102n)], undefined],
    ["within the slack", [a.cosign(head, 97n), ofB], ["a.example.org", "b.example.org/w"]],
    ["early", [a.cosign(head, 96n), ofB], undefined],
    ["no time", [a.cosign(head, 0n)], undefined],
    ["a time below zero", [a.cosign(head, -1n)], undefined],
    ["a stranger", [new Witness("d.example.org").cosign(head, 99n)], undefined],
    ["another checkpoint", [a.cosign({ ...head, size: 4n }, 99n)], undefined],
    ["another room", [a.cosign({ ...head, origin: "queue.example.com/r/y" }, 99n)], undefined],
  ];
  for (const [name, list, want] of cases)
    assert.deepEqual(cosigners(witnesses, head, list, 99_000, 104_000n), want, name);
  assert.equal(cosigners(witnesses, head, [a.cosign(head, 2n ** 62n)], 99_000, 104_000n), undefined);
  assert.equal(cosigners([], head, [ofA], 99_000, 104_000n), undefined);
  // A witness with a malformed key cannot sign, and does not invalidate others' signatures.
  assert.deepEqual(cosigners(["x+y+z", ...witnesses], head, [ofA], 99_000, 104_000n), ["a.example.org"]);
});

test("keys of logs and of witnesses are not mixed up", () => {
  assert.throws(() => parseKey(a.vkey), FormatError);
  for (const { log } of cosignatures.vectors) assert.throws(() => parseWitnessKey(log), FormatError);
  assert.equal(parseWitnessKey(b.vkey).name, "b.example.org/w");
  for (const bad of [
    "",
    "a+b",
    a.vkey.slice(0, -1),
    a.vkey.toUpperCase(),
    a.vkey.replace("+", "++"),
    a.vkey.replace("a.", "b."),
  ]) {
    assert.throws(() => parseWitnessKey(bad), FormatError, bad);
  }
});
