import assert from "node:assert/strict";
import { test } from "node:test";

import { never, Schedule, type WindowRule } from "../../src/check/schedule.ts";
import { Random } from "../support/random.ts";
import { fairness } from "../support/vectors.ts";

test("windows of the vectors", () => {
  for (const { rules, closes, at } of fairness.schedules) {
    const schedule = new Schedule(rules, closes);
    for (const { time, window } of at) {
      const want = window ? { ...window, index: BigInt(window.index) } : undefined;
      assert.deepEqual(schedule.at(time), want, `${time}`);
    }
  }
  assert.ok(fairness.schedules.length > 0);
});

/** What a policy without slots says. */
function notice(millis: number): { notice: number; slots: number } {
  return { notice: millis, slots: 0 };
}

/** All windows, one after the other, by section 5 of the rules. */
function* windows(rules: WindowRule[], closes: number): Generator<{ index: bigint; from: number; to: number }> {
  let index = 0n;
  for (const [k, { from, length }] of rules.entries()) {
    const end = rules[k + 1]?.from ?? closes;
    for (let at = from; at < end; at += length) yield { index: index++, from: at, to: Math.min(at + length, end) };
  }
}

test("windows partition the time from opening to close", () => {
  const random = new Random(2);
  for (let round = 0; round < 50; round++) {
    const opens = random.below(1000);
    const rules = [{ from: opens, length: 100 + random.below(50) }];
    for (let n = random.below(4); n > 0; n--) {
      rules.push({ from: rules.at(-1)!.from + 1 + random.below(400), length: 100 + random.below(300) });
    }
    const closes = rules.at(-1)!.from + 1 + random.below(500);
    const schedule = new Schedule(rules, closes);
    assert.equal(schedule.at(opens - 1), undefined);
    assert.equal(schedule.at(closes), undefined);
    let next = opens;
    for (const window of windows(rules, closes)) {
      assert.equal(window.from, next);
      next = window.to;
      for (let time = window.from; time < window.to; time++) assert.deepEqual(schedule.at(time), window);
    }
    assert.equal(next, closes);
  }
});

const rules = [
  { from: 1000, length: 100 },
  { from: 1500, length: 200 },
];

test("an amendment replaces what has not opened", () => {
  const was = new Schedule(rules, 2000);
  const is = was.amended(notice(1), 1110, [{ from: 1200, length: 150 }], 1800)!;
  assert.deepEqual(is.at(1150), was.at(1150));
  assert.deepEqual(is.at(1200), { index: 2n, from: 1200, to: 1350 });
  assert.deepEqual(is.at(1799), { index: 5n, from: 1650, to: 1800 });
  assert.equal(is.at(1800), undefined);
  // Without rules only the close moves, and rules that begin at it or later are dropped.
  assert.deepEqual(was.amended(notice(1), 1110, [], 1400)!.rules, [rules[0]]);
  assert.deepEqual(was.amended(notice(1), 0, [], never)!.rules, rules);
  // Before the opening everything may change except the opening.
  assert.deepEqual(was.amended(notice(1), 999, [{ from: 1000, length: 500 }], 1500)!.rules, [
    { from: 1000, length: 500 },
  ]);
});

test("an amendment leaves open what has opened", () => {
  const was = new Schedule(rules, 2000);
  const rule = { from: 1200, length: 150 };
  const refused: [number, WindowRule[], number][] = [
    [2000, [], 3000], // closed
    [1110, [], 1199], // in the open window
    [1110, [{ ...rule, from: 1199 }], 2000],
    [999, [{ ...rule, from: 999 }], 2000],
    [999, [], 1000], // not after the opening
    [1110, [{ ...rule, length: 99 }], 2000],
    [1110, [rule, rule], 2000],
    [1110, [{ ...rule, from: 2000 }], 2000],
    [1110, Array.from({ length: 1001 }, (_, i) => ({ ...rule, from: 1200 + i })), 9000],
  ];
  for (const [time, more, closes] of refused)
    assert.equal(was.amended(notice(1), time, more, closes), undefined, `${closes}`);
  // A window that begins within the notice stays, and none is new.
  const late = new Schedule([{ from: 1000, length: 100 }], 1500);
  assert.equal(late.amended(notice(201), 1000, [{ from: 1200, length: 100 }], 1500), undefined);
  assert.deepEqual(late.amended(notice(200), 1000, [{ from: 1200, length: 100 }], 1500)!.at(1249), {
    index: 2n,
    from: 1200,
    to: 1300,
  });
  assert.equal(late.amended(notice(101), 1400, [], 2000), undefined);
  assert.ok(late.amended(notice(100), 1400, [{ from: 1500, length: 100 }], 2000));
  // The last window is cut short by the close and must not grow; a rule from the close on keeps it.
  const cut = new Schedule([{ from: 1000, length: 300 }], 1400);
  assert.equal(cut.amended(notice(1), 1350, [], 2000), undefined);
  assert.deepEqual(cut.amended(notice(1), 1350, [{ from: 1400, length: 100 }], 2000)!.at(1350), cut.at(1350));
});
