import assert from "node:assert/strict";
import { test } from "node:test";

import { never } from "../../src/check/schedule.ts";
import { examples, outline, utcClock } from "../../src/console/outline.ts";
import { Random } from "../support/random.ts";
import { outlines } from "../support/vectors.ts";

test("sentences are those of the server", () => {
  for (const { about, starts, closes, rules, sentences } of outlines) {
    assert.deepEqual(outline({ starts, closes: closes ?? never, rules }, utcClock), sentences, about);
  }
  assert.ok(outlines.length > 8);
});

test("examples are in the windows that they are said to be in", () => {
  const random = new Random(3);
  for (let round = 0; round < 2000; round++) {
    const from = random.below(10_000_000);
    const to = from + 1 + random.below(round % 2 ? 500 : 1_000_000);
    const { early, late, after } = examples(from, to);
    assert.ok(from <= early && early <= late && late < to && after >= to, `${from} ${to}`);
  }
});
