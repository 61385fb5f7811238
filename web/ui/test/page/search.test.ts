import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { Verifier } from "../../src/audit/credential.ts";
import { messageOf } from "../../src/audit/subject.ts";
import { concat } from "../../src/check/bytes.ts";
import { fromHex } from "../../src/check/hex.ts";
import { parseMethod } from "../../src/check/method.ts";
import { credentialOf } from "../../src/page/confirmation.ts";
import { chance, expectedTries, Search, usualTries } from "../../src/page/search.ts";
import { Tail } from "../../src/page/sha256.ts";
import { lasting } from "../../src/page/task.ts";
import { credentials } from "../support/vectors.ts";

test("hashes of messages of every length, wherever the number is in a block", () => {
  for (let size = 0; size < 300; size++) {
    const prefix = Uint8Array.from({ length: size }, (_, i) => 7 * i + size);
    const tail = new Tail(prefix);
    for (const number of [0, 1, 0x89abcdef, 0xffffffff, size]) {
      const last = Buffer.alloc(4);
      last.writeUInt32BE(number);
      const got = Buffer.alloc(32);
      tail.hash(number).forEach((word, i) => void got.writeInt32BE(word, 4 * i));
      assert.equal(got.toString("hex"), createHash("sha256").update(prefix).update(last).digest("hex"), `${size}`);
    }
  }
});

/** The vectors that are accepted as work, each with its message. */
const accepted = credentials.credentials
  .filter(({ method, verdict }) => verdict === "accepted" && parseMethod(method).kind === "work")
  .map(({ method, subject, credential }) => {
    const { name, bits } = parseMethod(method);
    const of = { room: fromHex(subject.room), lane: subject.lane, ticket: fromHex(subject.ticket) };
    const round = fromHex(subject.round);
    const message = concat(messageOf({ ...of, round }, name, new Uint8Array()), round);
    return { method, bits, subject: { ...of, round }, message, evidence: credential.split(" ")[2]! };
  });

test("finds the solutions of the vectors, from just before them", () => {
  for (const { bits, message, evidence } of accepted) {
    const solution = Number.parseInt(evidence, 16);
    const search = new Search(message, bits, solution);
    assert.equal(search.run(1), evidence);
    assert.equal(search.next, solution, "a search that has found something stays there");
  }
  assert.ok(accepted.length > 0);
});

test("what a search finds from the start is accepted, in pieces as in one", () => {
  for (const { method, bits, subject, message } of accepted) {
    const pieces = new Search(message, bits);
    let found: string | undefined;
    while (found === undefined) found = pieces.run(100);
    assert.equal(new Search(message, bits).run(1e6), found);
    const resumed = new Search(message, bits, Math.max(0, Number.parseInt(found, 16) - 3));
    assert.equal(resumed.run(10), found);
    const evidence = fromHex(found);
    const shown = { method: parseMethod(method).name, nullifier: new Uint8Array(), evidence };
    assert.equal(new Verifier(parseMethod(method)).fault(subject, shown), undefined);
    assert.equal(
      new Verifier(parseMethod(method)).fault({ ...subject, ticket: new Uint8Array(16) }, shown),
      "work",
      "of another ticket",
    );
  }
});

test("a search goes on past 32 bits", () => {
  const { message } = accepted[0]!;
  const from = 2 ** 32 - 5;
  const found = new Search(message, 1, from).run(100)!;
  const all = Array.from({ length: 100 }, (_, i) => (from + i).toString(16).padStart(16, "0"));
  const isGood = (hex: string) => createHash("sha256").update(message).update(fromHex(hex)).digest()[0]! < 128;
  assert.equal(found, all.find(isGood));
  const late = new Search(message, 8, 2 ** 32).run(10_000)!;
  assert.equal(createHash("sha256").update(message).update(fromHex(late)).digest()[0], 0);
});

test("the chance to be done says what luck does", () => {
  assert.equal(chance(0, 20), 0);
  assert.ok(Math.abs(chance(expectedTries(20), 20) - 0.632) < 0.001);
  assert.ok(Math.abs(chance(usualTries(12), 12) - 0.9) < 1e-9);
  const { message } = accepted[0]!;
  let usual = 0;
  for (let i = 0; i < 200; i++) {
    const search = new Search(concat(Uint8Array.of(i), message), 6);
    search.run(1e6);
    if (search.next < usualTries(6)) usual++;
  }
  assert.ok(usual > 160 && usual < 198, `${usual} of 200`);
});

test("times are rounded up, in a unit that suits them", () => {
  const texts = [0.2, 3.1, 42, 91, 1500, 9000].map((seconds) => lasting(seconds, "en"));
  assert.deepEqual(texts, ["1 second", "4 seconds", "45 seconds", "2 minutes", "25 minutes", "3 hours"]);
});

test("a credential in the fragment of the address", () => {
  const [nullifier, evidence] = ["ab".repeat(32), "cd".repeat(64)];
  const hash = `#${new URLSearchParams({ credential: `club ${nullifier} ${evidence}`, ticket: "t" })}`;
  assert.deepEqual(credentialOf(hash), { ticket: "t", shown: { method: "club", nullifier, evidence } });
  for (const bad of ["", "#k=1", hash.replace("club", "Club"), hash.slice(0, -20)]) {
    const read = credentialOf(bad);
    assert.ok(read === undefined || read.ticket !== "t");
  }
});
