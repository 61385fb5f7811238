// Counts of rooms in mode off.
import assert from "node:assert/strict";
import test from "node:test";
import { Observed, withObserved } from "../src/observed.ts";

const minute = 60_000;
const start = 1_793_000_000_000;

test("an hour is 60 minutes", () => {
  const observed = new Observed();
  observed.add(start);
  observed.add(start + 1);
  observed.add(start + 59 * minute);
  assert.deepEqual(
    [
      observed.hour(start + 59 * minute),
      observed.hour(start + 60 * minute),
      observed.hour(start + 200 * minute),
      observed.all,
    ],
    [3, 1, 0, 3],
  );
});

test("rooms in mode off are counted, if their names fit", () => {
  const door = (name: string, mode = "off") => {
    const observed = new Observed();
    observed.add(start);
    return { name, room: { mode }, roomState: { observed } };
  };
  const fits = "r".repeat(36);
  const counts = withObserved({ passed: 7 }, [door("a-b"), door("c", "always"), door(fits), door(`${fits}r`)], start);
  assert.deepEqual(counts, { passed: 7, observed_hour_a_b: 1, [`observed_hour_${fits}`]: 1 });
  const full = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`n${i}`, i]));
  assert.deepEqual(withObserved(full, [door("a")], start), full);
});
