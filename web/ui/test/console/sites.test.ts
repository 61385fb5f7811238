import assert from "node:assert/strict";
import { test } from "node:test";

import { lineAt } from "../../src/console/sites.ts";

test("lines of a text begin and end where they do", () => {
  const text = "one\n\nthree\nlast";
  const cases: [number, string][] = [
    [1, "one"],
    [2, ""],
    [3, "three"],
    [4, "last"],
    [9, "last"],
  ];
  for (const [line, want] of cases) {
    const [from, to] = lineAt(text, line);
    assert.equal(text.slice(from, to), want, `line ${line}`);
  }
  assert.deepEqual(lineAt("", 1), [0, 0]);
});
