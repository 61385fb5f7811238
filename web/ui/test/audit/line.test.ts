import assert from "node:assert/strict";
import { test } from "node:test";

import { readEntry } from "../../src/audit/line.ts";
import { utf8 } from "../../src/check/bytes.ts";
import { type Entry, parseEntry } from "../../src/check/entry.ts";
import { FormatError } from "../../src/check/errors.ts";
import { mangled } from "../support/random.ts";
import { fairness } from "../support/vectors.ts";

function outcome(read: (text: Uint8Array) => Entry, text: Uint8Array): Entry | "refused" {
  try {
    return read(text);
  } catch (failure) {
    if (failure instanceof FormatError) return "refused";
    throw failure;
  }
}

test("the fast reader agrees with parseEntry, also on changed entries", () => {
  const frequent = fairness.entries.filter((text) => /^(?:arrive|assign|admit) /.test(text));
  assert.ok(frequent.length >= 3);
  for (const text of frequent) {
    for (const other of [utf8(text), ...mangled(utf8(text))]) {
      assert.deepEqual(outcome(readEntry, other), outcome(parseEntry, other), Buffer.from(other).toString());
    }
  }
});

test("numbers at their limits", () => {
  const id = "0badcafe-0123-8123-8123-456789abcdef";
  const limits = [
    10n ** 9n,
    2n ** 32n - 1n,
    2n ** 32n,
    10n ** 15n,
    2n ** 53n - 2n,
    2n ** 53n - 1n,
    2n ** 63n - 1n,
    2n ** 63n,
  ];
  for (const limit of limits.flatMap((n) => [n - 1n, n])) {
    for (const text of [
      `arrive ${limit} 0 0 ${id} general`,
      `arrive 0 ${limit} 0 ${id} general`,
      `arrive 0 0 ${limit} ${id} general`,
      `assign ${limit} general 1 ${id}`,
      `assign 0 general ${limit} ${id}`,
      `admit ${limit} ${id} ${id}`,
    ]) {
      assert.deepEqual(outcome(readEntry, utf8(text)), outcome(parseEntry, utf8(text)), text);
    }
  }
});
