import assert from "node:assert/strict";
import { test } from "node:test";
import { sha256 } from "@noble/hashes/sha2.js";

import { alphaOf, deal, fill, seedOf, shuffle } from "../../src/check/draw.ts";
import { fromHex, toHex } from "../../src/check/hex.ts";
import { SlotLine } from "../../src/check/lots.ts";
import { passOf, ticketOf } from "../../src/check/ticket.ts";
import { fairness } from "../support/vectors.ts";

test("tickets and passes of the vectors", () => {
  for (const { origin, secret, ticket, pass } of fairness.tickets) {
    assert.equal(ticketOf(origin, fromHex(secret)), ticket);
    assert.equal(passOf(origin, ticket), pass);
  }
  assert.ok(fairness.tickets.length > 0);
});

test("alphas of the vectors", () => {
  for (const { room_hash, window, lots, size, root, alpha } of fairness.alphas) {
    const frozen = { window: BigInt(window), lots, size: BigInt(size), root: fromHex(root) };
    assert.equal(toHex(alphaOf(fromHex(room_hash), frozen)), alpha);
  }
  assert.ok(fairness.alphas.length > 0);
});

test("seeds of the vectors", () => {
  for (const { alpha, beta, round, signature, seed } of fairness.seeds) {
    assert.equal(toHex(seedOf(fromHex(alpha), fromHex(beta), BigInt(round), fromHex(signature))), seed);
  }
  assert.ok(fairness.seeds.length > 0);
});

test("shuffles of the vectors", () => {
  for (const { seed, lane, lots, order, sha256: want } of fairness.shuffles) {
    const got = shuffle(fromHex(seed), lane, lots);
    if (order) assert.deepEqual([...got], order);
    const bytes = new DataView(new ArrayBuffer(4 * lots));
    for (const [i, lot] of got.entries()) bytes.setUint32(4 * i, lot, true);
    assert.equal(toHex(sha256(new Uint8Array(bytes.buffer))), want, `${lots} in ${lane}`);
  }
  assert.ok(fairness.shuffles.length > 0);
});

test("deals of the vectors, in whole and lot by lot", () => {
  for (const { seed, lane, lots, filled, line } of fairness.deals) {
    const drums = lots.map((n, slot) => Array.from({ length: n }, (_, seq): [number, number] => [slot, seq]));
    const dealt = [...deal(fromHex(seed), lane, drums)];
    assert.deepEqual(fill(lots), filled);
    assert.deepEqual(
      dealt,
      line.map(([slot, seq]) => (seq < lots[slot]! ? [slot, seq] : undefined)),
    );
    const slots = lots.map(
      (_, slot) => new SlotLine(fromHex(seed), lane, { slot, drums: lots, seqs: [], missing: true }),
    );
    for (const [rank, [slot, seq]] of line.entries()) {
      assert.equal(slots[slot]!.rank([seq]), rank);
      for (const [other, at] of slots.entries()) assert.equal(at.lotAt(rank), other === slot ? seq : undefined);
    }
    assert.equal(slots[0]!.lotAt(-1), undefined);
    assert.equal(slots[0]!.lotAt(line.length), undefined);
    if (lots[0]! > 1) assert.equal(slots[0]!.rank([0, 1]), Math.min(slots[0]!.rank([0]), slots[0]!.rank([1])));
  }
  assert.ok(fairness.deals.length > 3);
});

test("every place is as likely as any other", () => {
  // 6,000 draws of 5 lots: each lot is in each place 1,200 times, give or take 31.
  const counts = Array.from({ length: 5 }, () => [0, 0, 0, 0, 0]);
  for (let n = 0; n < 6000; n++) {
    const order = shuffle(sha256(Uint8Array.of(n & 0xff, n >> 8)), "general", 5);
    for (const [place, lot] of order.entries()) counts[lot]![place]!++;
  }
  for (const count of counts.flat()) assert.ok(Math.abs(count - 1200) < 160, `${count}`);
});

test("a shuffle of a million is a permutation and takes no more than seconds", (t) => {
  const from = performance.now();
  const order = shuffle(fromHex("00".repeat(32)), "general", 1_000_000);
  const took = performance.now() - from;
  const seen = new Uint8Array(1_000_000);
  for (const lot of order) seen[lot] = 1;
  assert.ok(seen.every((one) => one === 1));
  assert.ok(took < 10_000);
  t.diagnostic(`1,000,000 lots in ${Math.round(took)} ms`);
});
