import assert from "node:assert/strict";
import { test } from "node:test";

import { flowOf } from "../../src/console/capacity.ts";
import { readLength, readNumber, writeLength, writeNumber } from "../../src/console/lengths.ts";
import { slugOf } from "../../src/console/slug.ts";
import { Random } from "../support/random.ts";

test("lengths as people write them", () => {
  const lengths: Record<string, number> = {
    "100 ms": 100,
    "1 min": 60_000,
    "1 min 30 s": 90_000,
    "1m30s": 90_000,
    "2 Hours": 7_200_000,
    "1.5 h": 5_400_000,
    " 31 d ": 2_678_400_000,
    "3 secs": 3000,
    "0 s": 0,
  };
  for (const [text, want] of Object.entries(lengths)) assert.equal(readLength(text), want, text);
  for (const text of ["", "90", "s", "1 parsec", "-1 s", "1 s x", "1..5 h", "9999999999 h", "1 constructor"]) {
    assert.equal(readLength(text), undefined, text);
  }
});

test("lengths that are shown can be read again", () => {
  const random = new Random(4);
  for (let round = 0; round < 2000; round++) {
    const length = random.below(2 ** (1 + (round % 31)));
    assert.equal(readLength(writeLength(length)), length);
  }
  assert.equal(writeLength(93_784_005), "1 d 2 h 3 min 4 s 5 ms");
});

test("numbers with commas", () => {
  assert.equal(writeNumber(1_234_567), "1,234,567");
  assert.equal(writeNumber(999), "999");
  assert.equal(readNumber("1,234 567"), 1_234_567);
  for (const text of ["", "x", "-1", "1.5", "1".repeat(16)]) assert.equal(readNumber(text), undefined, text);
});

test("the calculator says what the server says", () => {
  const say = (capacity: string, stay: string, people = "", noShow = "") =>
    flowOf({ capacity, stay, people, noShow })?.words;
  assert.equal(
    say("500", "4 min", "20,000", "10"),
    "Let in 125 per minute, with at most 500 at once. Everyone is through after about 2 h 40 min, and about 22,223 have to be called for that.",
  );
  assert.equal(say("100", "90 s"), "Let in 66 per minute, with at most 100 at once.");
  assert.equal(
    say("1", "1 h", "10", "x"),
    "Let in 1 per minute, with at most 1 at once. Everyone is through after about 10 min, and about 10 have to be called for that.",
  );
  assert.equal(say("4000000000", "1 ms"), "Let in 10,000,000 per minute, with at most 4,000,000,000 at once.");
  for (const [capacity, stay] of [
    ["0", "4 min"],
    ["500", "long"],
    ["500", "0 s"],
    ["", ""],
  ] as const) {
    assert.equal(say(capacity, stay), undefined);
  }
});

test("slugs of titles", () => {
  const slugs: Record<string, string> = {
    "Winter sale 2026": "winter-sale-2026",
    "  F\u00fcr alle: Stra\u00dfe & Caf\u00e9!  ": "fur-alle-strasse-cafe",
    "\u6771\u4eac": "",
    "---": "",
    [`${"a".repeat(62)} b`]: "a".repeat(62),
  };
  for (const [title, slug] of Object.entries(slugs)) assert.equal(slugOf(title), slug);
});
