import assert from "node:assert/strict";
import { test } from "node:test";

import { offset, problemOf } from "../../src/console/brand.ts";

test("a place in own CSS, by line and column in characters", () => {
  const text = "h1 {\n  \u{1f600}gap: 0;\n}";
  assert.equal(offset(text, 1, 1), 0);
  assert.equal(offset(text, 1, 4), 3);
  assert.equal(offset(text, 2, 3), 7);
  assert.equal(offset(text, 2, 4), 9); // after a character of two code units
  assert.equal(offset(text, 3, 1), text.length - 1);
  assert.equal(offset(text, 9, 9), text.length);
});

test("problems of one field, and not of another", () => {
  const said = {
    problems: [
      { field: "brand.color", detail: "one" },
      { field: "brand.colors", detail: "two" },
      { field: "brand.color", detail: "three" },
    ],
    css: [],
    contrast: [],
  };
  assert.equal(problemOf(said, "brand.color"), "one; three");
  assert.equal(problemOf(said, "brand.css"), "");
});
