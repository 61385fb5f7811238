import assert from "node:assert/strict";
import { test } from "node:test";

import { never, Schedule } from "../../src/check/schedule.ts";
import { isPlan, type Plan } from "../../src/console/outline.ts";
import {
  blocks,
  bounds,
  type Handle,
  markStep,
  move,
  positionOf,
  snap,
  summary,
  typed,
  wholeView,
  zoom,
} from "../../src/console/windows.ts";
import { Random } from "../support/random.ts";
import { fairness } from "../support/vectors.ts";

const minute = 60_000;
const hour = 60 * minute;

/** One draw of half an hour until the start, then windows of a minute. */
const usual: Plan = {
  starts: 30 * minute,
  closes: never,
  rules: [
    { from: 0, length: 30 * minute },
    { from: 30 * minute, length: minute },
  ],
};

test("blocks match the windows of the vectors, where they are distinguishable", () => {
  for (const { rules, closes, at } of fairness.schedules) {
    for (const { time, window } of at) {
      if (!window || window.to - window.from < 1000) continue;
      const view = { from: time, to: time + 1 };
      const found = blocks({ starts: rules[0]!.from, closes, rules }, view, 100);
      assert.ok(found.length > 0, `${time}`);
      const { x, width, many, odd } = found.at(-1)!;
      assert.ok(!many && x >= 0 && x + width <= 100.001);
      assert.equal(odd, window.index % 2 === 1, `${time}`);
    }
  }
});

test("blocks cover what can be seen from the opening to the close, without overlap", () => {
  const random = new Random(5);
  for (let round = 0; round < 300; round++) {
    const plan = somePlan(random);
    const opens = plan.rules[0]!.from;
    const view = { from: opens - 1000 + random.below(5000), to: opens + 10_000 + random.below(100_000) };
    const width = 300 + random.below(500);
    const scale = width / (view.to - view.from);
    let x = Math.max((opens - view.from) * scale, 0);
    for (const block of blocks(plan, view, width)) {
      assert.ok(Math.abs(block.x - x) < scale + 1e-6, `${block.x} ${x}`);
      assert.ok(block.width >= 0);
      x = block.x + block.width;
    }
    const end = Math.max(Math.min(plan.closes, view.to), view.from, opens);
    assert.ok(Math.abs(x - (end - view.from) * scale) < scale + 1e-6);
  }
});

function somePlan(random: Random): Plan {
  const opens = 100_000 + random.below(1000);
  const rules = [{ from: opens, length: 100 + random.below(30_000) }];
  for (let n = random.below(4); n > 0; n--) {
    rules.push({ from: rules.at(-1)!.from + 100 + random.below(20_000), length: 100 + random.below(10_000) });
  }
  const closes = random.below(2) ? never : rules.at(-1)!.from + 100 + random.below(50_000);
  const starts = random.below(2) ? rules.at(-1)!.from : opens + random.below(30_000);
  return { starts, closes, rules };
}

test("windows stay within the rules after every move", () => {
  const random = new Random(6);
  for (let round = 0; round < 3000; round++) {
    const plan = somePlan(random);
    const handles: Handle[] = ["opens", "starts", ...plan.rules.map((_, i) => i).slice(1)];
    if (plan.closes !== never) handles.push("closes");
    const handle = handles[random.below(handles.length)]!;
    const to = 80_000 + random.below(200_000);
    const next = move(plan, handle, to);
    assert.ok(isPlan(next), `${handle} to ${to}: ${JSON.stringify(plan)} becomes ${JSON.stringify(next)}`);
    const [least, most] = bounds(plan, handle);
    assert.equal(positionOf(next, handle), Math.min(Math.max(to, least), Math.max(least, most)));
    assert.ok(new Schedule(next.rules, next.closes).at(next.rules[0]!.from));
    if (plan.rules.length > 1) assert.deepEqual(move(plan, 1, positionOf(plan, 1)), plan);
  }
});

test("what begins with the start moves with it, and one draw stays one", () => {
  const later = move(usual, "starts", 40 * minute);
  assert.deepEqual(later, {
    starts: 40 * minute,
    closes: never,
    rules: [
      { from: 0, length: 40 * minute },
      { from: 40 * minute, length: minute },
    ],
  });
  assert.equal(move(usual, "opens", 10 * minute).rules[0]!.length, 20 * minute);
  const own = move(usual, 1, 20 * minute);
  assert.equal(own.starts, 30 * minute);
  assert.equal(own.rules[0]!.length, 20 * minute);
  const draw: Plan = { starts: 24 * hour, closes: 24 * hour, rules: [{ from: 0, length: 24 * hour }] };
  for (const handle of ["starts", "closes"] as const) {
    const next = move(draw, handle, 20 * hour);
    assert.deepEqual([next.starts, next.closes, next.rules[0]!.length], [20 * hour, 20 * hour, 20 * hour]);
  }
});

test("no move goes before a fixed time", () => {
  const plan: Plan = {
    starts: 0,
    closes: 10 * hour,
    rules: [
      { from: 0, length: minute },
      { from: 5 * hour, length: hour },
    ],
  };
  assert.equal(move(plan, 1, 0, 2 * hour).rules[1]!.from, 2 * hour);
  assert.equal(move(plan, "closes", 0, 6 * hour).closes, 6 * hour);
});

test("typing the opening or the start on another day moves the whole room", () => {
  const day = 24 * hour;
  const plan = move(usual, "opens", minute);
  for (const [handle, from] of [
    ["opens", plan.rules[0]!.from],
    ["starts", plan.starts],
  ] as const) {
    const by = handle === "opens" ? 3 * day : -30 * minute;
    const later = typed(
      {
        ...plan,
        closes: day,
        rules: plan.rules.map(({ from, length }) => ({ from: from + hour, length })),
        starts: plan.starts + hour,
      },
      handle,
      from + hour + by,
    );
    assert.deepEqual(later, {
      starts: plan.starts + hour + by,
      closes: day + by,
      rules: plan.rules.map(({ from, length }) => ({ from: from + hour + by, length })),
    });
  }
  assert.deepEqual(typed(usual, "starts", hour), move(usual, "starts", hour));
  assert.equal(typed(usual, 1, -hour), undefined);
  assert.equal(typed(usual, "starts", -hour), undefined, "before 1970");
});

test("the view begins before the opening, and ends after the start", () => {
  const view = wholeView(usual);
  assert.ok(view.from < 0 && view.to > 35 * minute && view.to < 2 * hour, JSON.stringify(view));
  const closer = zoom(view, 0.5, usual.starts);
  assert.ok(Math.abs(closer.to - closer.from - (view.to - view.from) / 2) < 1);
  const share = ({ from, to }: { from: number; to: number }) => (usual.starts - from) / (to - from);
  assert.ok(Math.abs(share(closer) - share(view)) < 1e-9);
  let narrow = view;
  for (let i = 0; i < 60; i++) narrow = zoom(narrow, 0.5, usual.starts);
  assert.ok(narrow.to - narrow.from >= 1999);
});

test("marks are as far apart as they need", () => {
  assert.equal(markStep({ from: 0, to: hour }, 600, 84), 10 * minute);
  assert.equal(markStep({ from: 0, to: 10_000 }, 600, 84), 2000);
  assert.equal(snap(61_234, { from: 0, to: 10 * minute }, 600), 62_000);
});

test("how many windows there are, in words", () => {
  assert.equal(summary(usual), "One window of 30 min, then windows of 1 min without end.");
  assert.equal(summary({ ...usual, closes: hour }), "One window of 30 min, then 30 windows of 1 min: 31 in all.");
  assert.equal(summary({ starts: 0, closes: 90_000, rules: [{ from: 0, length: minute }] }), "2 windows of 1 min.");
  assert.match(summary({ starts: 0, closes: 0, rules: [] }), /cannot be drawn yet/);
});
