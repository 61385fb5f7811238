import assert from "node:assert/strict";
import { test } from "node:test";

import { Pace } from "../../src/audit/pace.ts";

// RULES.md section 7, with a start at 1,000,000 ms and 60 calls a minute: one per second, and a
// store of ten.
const starts = 1_000_000;
const pace = (): Pace => new Pace(starts, 60);

/** The largest number of calls for which there is credit. */
function most(of: Pace, time: number): number {
  let calls = 0;
  while (of.allows(time, calls + 1)) calls++;
  return calls;
}

test("one call is saved up at the start, and the store is full after nine seconds more", () => {
  assert.equal(most(pace(), starts), 1);
  assert.equal(most(pace(), starts + 999), 1);
  assert.equal(most(pace(), starts + 1000), 2);
  assert.equal(most(pace(), starts + 8999), 9);
  assert.equal(most(pace(), starts + 9000), 10);
  assert.equal(most(pace(), starts + 900_000), 10);
});

test("a store smaller than one call holds one call", () => {
  const slow = new Pace(starts, 1);
  slow.spend(starts, 1);
  assert.equal(most(slow, starts + 59_999), 0);
  assert.equal(most(slow, starts + 60_000), 1);
  assert.equal(most(slow, starts + 600_000), 1);
});

test("the credit that a skip gives back may exceed the store by one call, and then does not grow", () => {
  const full = pace();
  full.giveBack(starts + 9000);
  assert.equal(most(full, starts + 9000), 11);
  full.giveBack(starts + 9001);
  assert.equal(most(full, starts + 99_000), 11);
});

test("a skip before the start counts at once", () => {
  const early = pace();
  early.giveBack(starts - 5000);
  assert.equal(most(early, starts), 2);
});

test("a slower pace cuts the store, a faster one applies from then on", () => {
  const changed = pace();
  changed.change(starts + 9000, 30);
  assert.equal(most(changed, starts + 9000), 5);
  changed.spend(starts + 9000, 5);
  changed.change(starts + 11_000, 120); // one call earned at 30 a minute
  assert.equal(most(changed, starts + 11_000), 1);
  assert.equal(most(changed, starts + 12_000), 3);
});

test("credit does not grow in a pause", () => {
  const paused = pace();
  paused.spend(starts, 1);
  paused.pause(starts + 2000);
  assert.equal(paused.paused, true);
  assert.equal(most(paused, starts + 9000), 2);
  paused.resume(starts + 10_000);
  assert.equal(paused.paused, false);
  assert.equal(most(paused, starts + 10_999), 2);
  assert.equal(most(paused, starts + 11_000), 3);
});

test("a pause before the start does not move the start", () => {
  const early = pace();
  early.pause(starts - 5000);
  early.resume(starts - 2000);
  assert.equal(most(early, starts), 1);
  assert.equal(most(early, starts + 1000), 2);
  const over = pace();
  over.pause(starts - 5000);
  over.resume(starts + 5000);
  assert.equal(most(over, starts + 5999), 1);
  assert.equal(most(over, starts + 6000), 2);
});
