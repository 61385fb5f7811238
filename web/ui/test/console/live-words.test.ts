import assert from "node:assert/strict";
import { test } from "node:test";

import { type Figures, valueAt } from "../../src/console/live/figures.ts";
import {
  bytesize,
  decimal,
  emptied,
  noShowLevel,
  number,
  percent,
  say,
  span,
  spoken,
  turn,
  until,
} from "../../src/console/live/words.ts";

const noon = Date.parse("2026-05-01T12:00:00Z");
const after = (seconds: number): string => new Date(noon + seconds * 1000).toISOString();
const line = (from: number, to: number) => ({
  window: null,
  draw: null,
  called: { earliest: after(from), latest: after(to) },
});
const joining = (from: number, to: number) =>
  turn({ at: after(0), joining: { earliest: after(from), latest: after(to) } });

test("figures have the words of the server", () => {
  // The server's test has the same cases.
  for (const [got, want] of [
    [decimal(null), "\u2013"],
    [decimal(0), "0.0"],
    [decimal(12.34), "12.3"],
    [decimal(99.94), "99.9"],
    [decimal(1234.5), "1,235"],
    [percent(null), "\u2013"],
    [percent(0.1234), "12.3 %"],
    [percent(1), "100.0 %"],
    [bytesize(0), "0 MiB"],
    [bytesize(5 * 2 ** 30 + 1), "5,120 MiB"],
    [span(0), "0.0 s"],
    [span(90), "90 s"],
    [span(null), "\u2013"],
    [span(0.44), "0.4 s"],
    [span(120), "2 min"],
    [span(7200), "2.0 h"],
    [span(100_000), "27.8 h"],
    [turn({ at: after(0), joining: null }), "\u2013"],
    [joining(0, 59), "within a minute"],
    [joining(0, 60), "in 0 to 1 min"],
    [joining(150, 301), "in 2 to 6 min"],
    [joining(59 * 60, 61 * 60), "in 55 to 65 min"],
    [joining(359 * 60, 361 * 60), "in 345 to 375 min"],
    [joining(50 * 3600, 61 * 3600), "in 50 to 61 h"],
    [until(-1), "now"],
    [until(0), "now"],
    [until(42_000), "0:42"],
    [until(41_001), "0:42"],
    [until(725_000), "12:05"],
    [until(11_525_000), "3:12:05"],
    [until(183_600_000), "2 d 03:00"],
    [noShowLevel({ recent: null, overall: null }), ""],
    [noShowLevel({ recent: 0.249, overall: 1 }), ""],
    [noShowLevel({ recent: 0.25, overall: 0 }), "warn"],
    [noShowLevel({ recent: 0.78, overall: 0 }), "bad"],
    [noShowLevel({ recent: null, overall: 0.5 }), "bad"],
    [emptied({ at: after(0), phase: "serving", waiting: 0, next: line(60, 90) }), "no line"],
    [emptied({ at: after(0), phase: "claims-frozen", waiting: 3, next: line(60, 90) }), "not while stopped"],
    [emptied({ at: after(0), phase: "serving", waiting: 3, next: line(60, 150) }), "in 1 to 3 min"],
    [
      emptied({ at: after(0), phase: "serving", waiting: 3, next: { window: null, draw: null, called: null } }),
      "\u2013",
    ],
    [number(0), "0"],
    [number(999), "999"],
    [number(1000), "1,000"],
    [number(1_234_567), "1,234,567"],
  ])
    assert.equal(got, want);
});

const figures = {
  at: after(0),
  phase: "serving",
  opens: after(-60),
  starts: after(0),
  closes: null,
  arrivals: 5,
  arrival_rate: 2.5,
  waiting: 200_000,
  windows: [],
  active: 7,
  admitted: 4,
  joining: null,
  lanes: [],
  next: { window: null, draw: null, called: null },
  alarms: [],
  no_show_rate: { recent: null, overall: null },
  outflow: { per_minute: 600, max_active: 0, minute: 598.2 },
  gate: null,
  fail_open: [],
  witnesses: [],
  nodes: [],
} satisfies Figures;

test("values are found by their path, and said in a form", () => {
  for (const [path, form, want] of [
    ["phase", undefined, "serving"],
    ["waiting", "number", "200,000"],
    ["outflow.minute", "decimal", "598"],
    ["outflow.max_active", "limit", "no limit"],
    ["outflow.per_minute", "limit", "at most 600"],
    ["", "turn", "\u2013"],
    ["nothing.here", "number", "\u2013"],
    ["phase.deeper", "number", "\u2013"],
    ["arrival_rate", "millis", "2.5 ms"],
    ["active", "span", "0.0 s"],
    ["phase", "answers", "does not answer"],
  ] as const)
    assert.equal(say(valueAt(figures, path), form), want, `${path} as ${form}`);
  assert.equal(say(true, "answers"), "answers");
  assert.match(say(after(7), "moment"), /\d+:00:07/);
  assert.equal(say(null, "moment"), "\u2013");
});

test("the page speaks in one sentence", () => {
  assert.equal(
    spoken(figures),
    "calling visitors: 200,000 in line, 2.5 arrivals per second, 598 let in per minute of 600.",
  );
  assert.equal(
    spoken({ ...figures, outflow: { ...figures.outflow, minute: null } }),
    "calling visitors: 200,000 in line, 2.5 arrivals per second.",
  );
});
