import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { type Line, verdicts } from "../../src/check/index.ts";
import { atTime, isPending, overall, proofName, summary } from "../../src/page/proof.ts";

const lines = (...reasons: [string, string][]): Line[] =>
  reasons.map(([status, reason]) => ({ id: "record", status, reason, facts: {} }) as unknown as Line);

test("a check is as good as its worst line", () => {
  assert.equal(overall(lines(["green", "included"], ["green", "closed"])), "green");
  assert.equal(overall(lines(["green", "included"], ["amber", "no-beacon"])), "amber");
  assert.equal(overall(lines(["neutral", "unchecked"], ["red", "seed"], ["green", "exact"])), "red");
});

test("a line still to come is neutral, and amber only when it is late", () => {
  const waiting = lines(["green", "included"], ["neutral", "pending"], ["neutral", "unchecked"]);
  assert.equal(overall(waiting), "neutral");
  assert.equal(overall(lines(["neutral", "unchecked"], ["amber", "not-found"])), "amber");
  const draws = 1_000_000;
  assert.equal(overall(atTime(waiting, draws, draws + 59_000)), "neutral");
  assert.equal(overall(atTime(waiting, draws, draws + 60_000)), "amber");
});

test("a room of level 1 has a sentence of its own, and one of level 2 is green", () => {
  assert.equal(summary(lines(["green", "included"], ["amber", "no-beacon"], ["green", "exact"])), "level1");
  assert.equal(summary(lines(["green", "included"], ["amber", "no-beacon"], ["amber", "too-large"])), "amber");
  assert.equal(summary(lines(["green", "included"], ["green", "unpredictable"], ["green", "exact"])), "green");
  assert.equal(summary(lines(["red", "seed"], ["amber", "no-beacon"])), "red");
});

test("a check is repeated while something is to come and nothing is wrong", () => {
  assert.equal(isPending(lines(["green", "included"], ["neutral", "pending"])), true);
  assert.equal(isPending(lines(["neutral", "behind"])), true);
  assert.equal(isPending(lines(["amber", "no-beacon"])), false);
  assert.equal(isPending(lines(["red", "seed"], ["neutral", "pending"])), false);
});

test("a proof is saved under the name of the room and the ticket", () => {
  const ticket = "cda3f665-387e-8031-a3d9-8534adbd7fa3";
  assert.equal(proofName({ room: "/r/summer-tour", ticket }), "proofline-summer-tour-cda3f665.json");
});

test("the page has words for everything that is not red, and for red", () => {
  const source = readFileSync("../page/check.go", "utf8");
  for (const [line, reasons] of Object.entries(verdicts)) {
    const block = new RegExp(`\\{"${line}", \\[\\]\\[3\\]string\\{(.*?)\\n\\t\\}\\}`, "s").exec(source)?.[1] ?? "";
    const named = [...block.matchAll(/^\t\t\{"([a-z-]+)"/gm)].map(([, name]) => name!);
    const wanted = Object.entries(reasons).map(([reason, status]) => (status === "red" ? "red" : reason));
    assert.deepEqual(named.sort(), [...new Set(wanted)].sort(), line);
  }
});
