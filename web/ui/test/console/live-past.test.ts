import assert from "node:assert/strict";
import { test } from "node:test";

import type { Figures, Minute } from "../../src/console/live/figures.ts";
import { ofMinutes, Past } from "../../src/console/live/past.ts";

const noon = Date.parse("2026-05-01T12:00:00Z") / 1000;

function second(n: number, change: Partial<Figures> = {}): Figures {
  return {
    at: new Date((noon + n) * 1000).toISOString(),
    phase: "serving",
    opens: "",
    starts: "",
    closes: null,
    arrivals: 10 * n,
    arrival_rate: 3,
    waiting: n,
    windows: [],
    active: 1,
    admitted: 0,
    joining: null,
    lanes: [],
    next: { window: null, draw: null, called: null },
    alarms: [],
    no_show_rate: { recent: null, overall: null },
    outflow: { per_minute: 60, max_active: 0, minute: 30 },
    gate: null,
    fail_open: [],
    witnesses: [],
    nodes: [],
    ...change,
  };
}

test("seconds are added behind what the server has", () => {
  const past = new Past();
  past.take({
    at: [noon - 2, noon - 1],
    arrivals: [1, 2],
    waiting: [5, 6],
    admitted: [0, 1],
    active: [1, 1],
    target: [30, 30],
    limit: [0, 9],
  });
  past.push(second(0)); // the number of arrivals before it is unknown
  past.push(second(1));
  past.push(second(1)); // again
  past.push(second(0)); // late
  past.push(second(3)); // one was missed
  assert.deepEqual(past.at, [noon - 2, noon - 1, noon, noon + 1, noon + 3]);
  assert.deepEqual(past.arrivals, [1, 2, 3, 10, 10]);
  assert.deepEqual(past.waiting, [5, 6, 0, 1, 3]);
  assert.deepEqual(past.admitted, [0, 1, 30, 30, 30]);
  past.take({ at: [noon], arrivals: [9], waiting: [9], admitted: [9], active: [9], target: [9], limit: [9] });
  assert.deepEqual([past.at, past.active], [[noon], [9]]);
});

test("targets and limits stay as they were at the time", () => {
  const past = new Past();
  past.take({
    at: [noon - 2, noon - 1],
    arrivals: [1, 2],
    waiting: [5, 6],
    admitted: [0, 1],
    active: [1, 1],
    target: [30, 45],
    limit: [0, 9],
  });
  past.push(second(0));
  past.push(second(1, { outflow: { per_minute: 120, max_active: 7, minute: 30 } }));
  past.push(second(2, { phase: "paused" }));
  past.push(second(3, { phase: "claims-frozen" }));
  past.push(second(4));
  assert.deepEqual(past.target, [30, 45, 60, 120, 0, 0, 60]);
  assert.deepEqual(past.limit, [null, 9, null, 7, null, null, null]);
});

test("fifteen minutes are kept", () => {
  const past = new Past();
  for (let n = 0; n <= 2000; n++) past.push(second(n));
  assert.equal(past.at[0], noon + 1100);
  for (const list of [past.at, past.arrivals, past.waiting, past.admitted, past.active, past.target, past.limit])
    assert.equal(list.length, 901);
});

test("minutes are summed up, the latest first", () => {
  const past = new Past();
  for (let n = 30; n < 90; n++) past.push(second(n, { arrivals: n < 60 ? 10 * n : 600 }));
  assert.deepEqual(
    past.minutes().map(({ at, waiting }) => [at - noon, waiting]),
    [
      [60, 89],
      [0, 59],
    ],
  );
  assert.ok(Math.abs(past.minutes()[1]!.arrivals - (3 + 29 * 10) / 30) < 1e-9);
  assert.ok(Math.abs(past.minutes()[0]!.arrivals - 10 / 30) < 1e-9);
});

test("a history has rates, also over a gap", () => {
  const step = (n: number, arrivals: number, max_active: number): Minute => ({
    at: new Date((noon + 60 * n) * 1000).toISOString(),
    arrivals,
    admitted: arrivals / 2,
    waiting: n,
    active: 3,
    per_minute: 60,
    max_active,
    paused: false,
  });
  const c = ofMinutes([step(0, 8, 0), step(1, 20, 5), step(5, 60, 5)]);
  assert.deepEqual(c.arrivals, [8, 12, 10]);
  assert.deepEqual(c.admitted, [4, 6, 5]);
  assert.deepEqual(c.limit, [null, 5, 5]);
  assert.deepEqual(c.at, [noon, noon + 60, noon + 300]);
  assert.deepEqual(ofMinutes([]).at, []);
});
