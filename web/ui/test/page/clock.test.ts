import assert from "node:assert/strict";
import { test } from "node:test";

import { ServerClock } from "../../src/page/clock.ts";

test("the least delayed response sets the clock", () => {
  let local = 1000;
  const clock = new ServerClock(() => local);
  assert.equal(clock.now(), 1000);
  clock.observe(9000); // at least 8 s ahead
  assert.equal(clock.now(), 9000);
  local = 3000;
  clock.observe(10_000); // from a cache, one second old
  assert.equal(clock.now(), 11_000);
  clock.observe(11_300); // and one that was faster than the first
  assert.equal(clock.now(), 11_300);
});
